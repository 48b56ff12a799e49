"""Tasks, addresses, strategy and TF_CONFIG for every strategy and role."""

from typing import Any

import pytest

from dtj_operator.api import names
from dtj_operator.desired.pods import pod
from dtj_operator.desired.topology import tf_config, topology, topology_faults
from dtj_worker.contract import Task
from tests.desired.jobs import job, trained_by

GPU = "nvidia.com/gpu"


def with_limits(**limits: Any) -> dict[str, Any]:
    return trained_by(resources={"limits": limits})


def gpus(count: int) -> dict[str, Any]:
    return with_limits(**{GPU: count})


@pytest.mark.parametrize(
    ("spec", "strategy", "reason", "replicas"),
    [
        pytest.param(
            {"roles": {"worker": {"replicas": 1}}},
            "None",
            "1 worker with no GPU in its limits: there is nothing to distribute over",
            1,
            id="one worker on a CPU",
        ),
        pytest.param(
            {"roles": {"worker": {"replicas": 1}}, "template": gpus(1)},
            "None",
            "1 worker with 1 GPU: there is nothing to distribute over",
            1,
            id="one worker with one GPU",
        ),
        pytest.param(
            {"roles": {"worker": {"replicas": 1}}, "template": gpus(4)},
            "Mirrored",
            "1 worker has 4 GPUs",
            4,
            id="one worker with several GPUs",
        ),
        pytest.param(
            {
                "roles": {"worker": {"replicas": 1}},
                "template": trained_by(resources={"requests": {"amd.com/gpu": "2"}}),
            },
            "Mirrored",
            "1 worker has 2 GPUs",
            2,
            id="another maker's, in the requests",
        ),
        pytest.param(
            {"roles": {"worker": {"replicas": 1, "template": gpus(8)}}, "template": gpus(1)},
            "Mirrored",
            "1 worker has 8 GPUs",
            8,
            id="the role's template counts",
        ),
        pytest.param(
            {"roles": {"worker": {"replicas": 1}}, "template": trained_by(resources={"claims": [{"name": "gpus"}]})},
            "Mirrored",
            "1 worker gets its devices by resource claims; it uses as many as there are",
            None,
            id="resource claims",
        ),
        pytest.param(
            {"roles": {"worker": {"replicas": 4}}},
            "MultiWorkerMirrored",
            "4 workers train one model together",
            4,
            id="several workers on CPUs",
        ),
        pytest.param(
            {"roles": {"worker": {"replicas": 4}}, "template": gpus(2)},
            "MultiWorkerMirrored",
            "4 workers train one model together",
            8,
            id="several workers with several GPUs",
        ),
        pytest.param(
            {"roles": {"chief": {"template": gpus(1)}, "worker": {"replicas": 1}}, "template": gpus(2)},
            "MultiWorkerMirrored",
            "2 workers train one model together",
            3,
            id="a chief trains too, with GPUs of its own",
        ),
        pytest.param(
            {"roles": {"worker": {"replicas": 1}, "evaluator": {}}},
            "None",
            "1 worker with no GPU in its limits: there is nothing to distribute over",
            1,
            id="an evaluator does not train",
        ),
        pytest.param(
            {"roles": {"chief": {}, "worker": {"replicas": 3}, "ps": {"replicas": 2}}},
            "ParameterServer",
            "there are 2 parameter servers",
            1,
            id="parameter servers",
        ),
        pytest.param(
            {"roles": {"worker": {"replicas": 1}}, "template": with_limits(**{"google.com/tpu": 8})},
            "TPU",
            "the trainer's limits name google.com/tpu",
            None,
            id="a TPU slice",
        ),
        pytest.param(
            {"roles": {"worker": {"replicas": 1}}, "strategy": "Mirrored"},
            "Mirrored",
            "spec.strategy names it",
            None,
            id="logical devices: only the program knows how many",
        ),
        pytest.param(
            {"roles": {"worker": {"replicas": 1}}, "strategy": "CentralStorage", "template": gpus(2)},
            "CentralStorage",
            "spec.strategy names it",
            2,
            id="central storage over two GPUs",
        ),
        pytest.param(
            {"roles": {"worker": {"replicas": 1}}, "strategy": "OneDevice", "template": gpus(4)},
            "OneDevice",
            "spec.strategy names it",
            1,
            id="one device of four",
        ),
        pytest.param(
            {"roles": {"worker": {"replicas": 1}}, "strategy": "MultiWorkerMirrored"},
            "MultiWorkerMirrored",
            "spec.strategy names it",
            1,
            id="multi-worker with one worker",
        ),
    ],
)
def test_strategy(spec: dict[str, Any], strategy: str, reason: str, replicas: int | None) -> None:
    t = topology(job(spec))
    assert (t.strategy, t.reason, t.replicas) == (strategy, reason, replicas)


def addresses(role: str, count: int) -> list[str]:
    return [f"mnist-{role}-{i}.mnist-peers.ml.svc.cluster.local:2222" for i in range(count)]


ONE = {"worker": addresses("worker", 1)}
FOUR = {"worker": addresses("worker", 4)}
LED = {"chief": addresses("chief", 1), "worker": addresses("worker", 2)}
SERVED = {**LED, "ps": addresses("ps", 2)}


@pytest.mark.parametrize(
    ("roles", "tasks", "gang", "cluster"),
    [
        pytest.param({"worker": {"replicas": 1}}, "worker-0", "worker-0", ONE, id="one worker"),
        pytest.param(
            {"worker": {"replicas": 4}},
            "worker-0 worker-1 worker-2 worker-3",
            "worker-0 worker-1 worker-2 worker-3",
            FOUR,
            id="four workers",
        ),
        pytest.param(
            {"worker": {"replicas": 2}, "chief": {}},
            "chief-0 worker-0 worker-1",
            "chief-0 worker-0 worker-1",
            LED,
            id="a chief comes first",
        ),
        pytest.param(
            {"worker": {"replicas": 2}, "chief": {}, "ps": {"replicas": 2}},
            "chief-0 worker-0 worker-1 ps-0 ps-1",
            "chief-0 worker-0 worker-1 ps-0 ps-1",
            SERVED,
            id="parameter servers",
        ),
        pytest.param(
            {"worker": {"replicas": 2}, "chief": {}, "ps": {"replicas": 2}, "evaluator": {}},
            "chief-0 worker-0 worker-1 ps-0 ps-1 evaluator-0",
            "chief-0 worker-0 worker-1 ps-0 ps-1",
            SERVED,
            id="the evaluator is outside the gang",
        ),
        pytest.param(
            {"worker": {"replicas": 1}, "evaluator": {}},
            "worker-0 evaluator-0",
            "worker-0",
            ONE,
            id="beside one worker",
        ),
    ],
)
@pytest.mark.parametrize("strategy", ["Auto", "MultiWorkerMirrored", "ParameterServer", "Mirrored"])
def test_tasks_and_tf_config(
    roles: dict[str, Any], tasks: str, gang: str, cluster: dict[str, list[str]], strategy: str
) -> None:
    t = topology(job({"roles": roles, "strategy": strategy, "template": trained_by()}))
    assert " ".join(map(str, t.tasks)) == tasks
    assert " ".join(map(str, t.gang)) == gang
    assert t.chief == t.tasks[0]
    for task in t.tasks:
        expected = cluster | ({"evaluator": addresses("evaluator", 1)} if task.role == "evaluator" else {})
        assert tf_config(t, task) == {"cluster": expected, "task": {"type": task.role, "index": task.index}}


def test_an_address_names_its_pod_whatever_its_round() -> None:
    s = job(
        {
            "roles": {"worker": {"replicas": 2}},
            "network": {"port": 3333, "clusterDomain": "example.org"},
            "template": trained_by(),
        }
    )
    t = topology(s)
    assert t.addresses["worker-1"] == "mnist-worker-1.mnist-peers.ml.svc.example.org:3333"
    for round_ in (0, 7):
        made = pod(s, t, Task("worker", 1), round_, attempt=0)
        assert made["metadata"]["name"] == f"mnist-worker-1-{round_}"
        assert (made["spec"]["hostname"], made["spec"]["subdomain"]) == ("mnist-worker-1", names.peers_service("mnist"))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        pytest.param({"roles": {"worker": {"replicas": 512}}}, [], id="as many workers as there may be"),
        pytest.param(
            {"roles": {"worker": {"replicas": 2}}, "template": with_limits(**{"google.com/tpu": 4})},
            ["spec.roles.worker.replicas: google.com/tpu in the trainer's limits makes the strategy TPU"],
            id="two slices",
        ),
    ],
)
def test_what_shows_only_in_the_topology_is_refused(spec: dict[str, Any], words: list[str]) -> None:
    s = job(spec)
    found = topology_faults(s, topology(s))
    assert len(found) == len(words)
    assert all(fault.startswith(start) for fault, start in zip(found, words, strict=True))
