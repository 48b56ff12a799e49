"""Every bad TF_CONFIG that TensorFlow meets with a hang or a traceback from its depths is named in one line before."""

import dataclasses
import json
from typing import Any

import pytest

from dtj_worker.contract import ConfigFault, Task, TaskSpec
from dtj_worker.supervisor import tfconfig

PAIR = {"worker": ["a:2222", "b:2222"]}
FIRST = {"type": "worker", "index": 0}

SPEC = TaskSpec(
    namespace="ml",
    job="count",
    uid="6f1d2c3b",
    task="worker-0",
    attempt=0,
    strategy="MultiWorkerMirrored",
    chief="worker-0",
    chief_status="a:2280",
    status="a:2280",
    peers={"worker-0": "a:2222", "worker-1": "b:2222"},
)


@pytest.mark.parametrize("text", [None, "", "  ", "{}", '{"cluster": {}}', '{"cluster": null, "task": {}}'])
def test_none_is_none(text: str | None) -> None:
    assert tfconfig.read(text) is None


@pytest.mark.parametrize(
    ("config", "fault"),
    [
        pytest.param("{", "TF_CONFIG is not JSON: Expecting property name", id="not JSON"),
        pytest.param("[" * 100_000, "TF_CONFIG is not JSON: ", id="deep"),
        pytest.param([1], "TF_CONFIG is not a JSON object but [1]", id="not an object"),
        pytest.param({"cluster": PAIR}, "TF_CONFIG: task is missing", id="no task"),
        pytest.param(
            {"cluster": PAIR, "task": "worker"}, "task must be an object with type and index", id="task a word"
        ),
        pytest.param({"cluster": PAIR, "task": {"index": 0}}, "task.type is missing", id="no type"),
        pytest.param({"cluster": PAIR, "task": {"type": "worker"}}, "task.index is missing", id="no index"),
        pytest.param(
            {"cluster": PAIR, "task": FIRST | {"index": "x"}}, "task.index 'x' is no number", id="index a word"
        ),
        pytest.param(
            {"cluster": PAIR, "task": FIRST | {"index": True}}, "task.index True is no number", id="index a truth"
        ),
        pytest.param(
            {"cluster": PAIR, "task": FIRST | {"index": -1}}, "task.index -1 is no number", id="index negative"
        ),
        pytest.param(
            {"cluster": PAIR, "task": FIRST | {"index": 5}},
            "task.index 5 is beyond cluster.worker, which has 2",
            id="index out of range",
        ),
        pytest.param(
            {"cluster": PAIR, "task": {"type": "master", "index": 0}},
            "task.type 'master' is no role; TensorFlow 2 calls it chief",
            id="master as type",
        ),
        pytest.param(
            {"cluster": {"master": ["a:1"], **PAIR}, "task": FIRST},
            "cluster.master is no role; TensorFlow 2 calls it chief",
            id="master in the cluster",
        ),
        pytest.param(
            {"cluster": PAIR, "task": {"type": "evaluator", "index": 0}},
            "task.type is evaluator, but cluster lists no evaluator",
            id="an evaluator that is not listed",
        ),
        pytest.param({"cluster": ["a:1"], "task": FIRST}, "cluster must be an object", id="cluster a list"),
        pytest.param({"cluster": {}, "task": FIRST}, "cluster must be an object that lists", id="cluster empty"),
        pytest.param({"cluster": {"worker": "a:1"}, "task": FIRST}, "cluster.worker must be a list", id="one address"),
        pytest.param({"cluster": {"worker": []}, "task": FIRST}, "cluster.worker must be a list", id="no address"),
        pytest.param(
            {"cluster": {"worker": ["127.0.0.1"]}, "task": FIRST},
            "cluster.worker[0]: '127.0.0.1' is no address: expected host:port",
            id="no port",
        ),
        pytest.param(
            {"cluster": {"worker": ["a:99999"]}, "task": FIRST}, "'a:99999' is no address", id="a port too high"
        ),
        pytest.param(
            {"cluster": {"worker": ["::1:22"]}, "task": FIRST}, "'::1:22' is no address", id="a bare IPv6 address"
        ),
        pytest.param(
            {"cluster": {"worker": [7]}, "task": FIRST}, "'7' is no address", id="an address that is a number"
        ),
        pytest.param(
            {"cluster": {"worker": ["a:2222", "a:2222"]}, "task": FIRST},
            "cluster.worker[1] and cluster.worker[0] are both a:2222",
            id="one address twice",
        ),
    ],
)
def test_a_fault_is_named(config: Any, fault: str) -> None:
    with pytest.raises(ConfigFault) as found:
        tfconfig.read(config if isinstance(config, str) else json.dumps(config))

    assert fault in str(found.value)
    assert "\n" not in str(found.value)


def test_all_faults_are_named_at_once() -> None:
    config = {"cluster": {"master": ["a"], "worker": ["b:1"]}, "task": {"type": "worker", "index": 3}}

    with pytest.raises(ConfigFault) as found:
        tfconfig.read(json.dumps(config))

    assert str(found.value).count(";") == 3


def test_an_index_may_be_text_as_tensorflow_allows() -> None:
    found = tfconfig.read(json.dumps({"cluster": PAIR, "task": {"type": "worker", "index": "1"}}))

    assert found is not None
    assert found.task == Task("worker", 1)


@pytest.mark.parametrize(
    ("cluster", "task", "fault"),
    [
        pytest.param(PAIR, FIRST | {"index": 1}, "it is that of worker-1, but this is worker-0", id="another's"),
        pytest.param({"worker": ["a:2222"]}, FIRST, "worker-1 is missing (the job has 2 tasks)", id="fewer"),
        pytest.param({"worker": ["a:2222", "b:2222", "c:2222"]}, FIRST, "worker-2 is no task of this job", id="more"),
        pytest.param(
            {"worker": ["a:2222", "b:1"]}, FIRST, "worker-1 is at b:1, but the job says b:2222", id="elsewhere"
        ),
    ],
)
def test_what_the_job_does_not_say(cluster: Any, task: Any, fault: str) -> None:
    with pytest.raises(ConfigFault, match="TF_CONFIG: ") as found:
        tfconfig.compare(tfconfig.read(json.dumps({"cluster": cluster, "task": task})), SPEC)

    assert fault in str(found.value)


def test_a_missing_one_matters_only_to_a_cluster() -> None:
    with pytest.raises(ConfigFault, match="TF_CONFIG is not set, but worker-0 is one of 2 tasks"):
        tfconfig.compare(None, SPEC)
    tfconfig.compare(None, dataclasses.replace(SPEC, peers={"worker-0": "a:2222"}))


def test_an_evaluator_is_no_member() -> None:
    config = {"cluster": {**PAIR, "evaluator": ["e:2222"]}, "task": {"type": "evaluator", "index": 0}}

    tfconfig.compare(tfconfig.read(json.dumps(config)), dataclasses.replace(SPEC, task="evaluator-0"))


@pytest.mark.parametrize(
    ("strategy", "attempt", "port"),
    [
        ("MultiWorkerMirrored", 0, 2222),
        ("MultiWorkerMirrored", 3, 2225),
        ("MultiWorkerMirrored", 9, 2223),
        ("ParameterServer", 3, 2222),
    ],
)
def test_each_attempt_has_its_port(strategy: Any, attempt: int, port: int) -> None:
    cluster = tfconfig.read(json.dumps({"cluster": PAIR, "task": FIRST}))

    text = tfconfig.for_child(cluster, dataclasses.replace(SPEC, strategy=strategy, attempt=attempt))

    assert json.loads(text or "") == {"cluster": {"worker": [f"a:{port}", f"b:{port}"]}, "task": FIRST}


@pytest.mark.parametrize(
    ("cluster", "strategy"),
    [
        pytest.param(None, "None", id="without one"),
        pytest.param({"worker": ["a:1"]}, "None", id="one worker"),
        pytest.param(PAIR, "MultiWorkerMirrored", id="two workers"),
        pytest.param({"chief": ["a:1"], "worker": ["b:1"]}, "MultiWorkerMirrored", id="a chief and a worker"),
        pytest.param({"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}, "ParameterServer", id="parameter servers"),
    ],
)
def test_what_a_cluster_is_made_for(cluster: Any, strategy: str) -> None:
    role = next(iter(cluster or ["worker"]))
    config = json.dumps({"cluster": cluster, "task": {"type": role, "index": 0}}) if cluster else None

    assert tfconfig.implied(tfconfig.read(config)) == strategy
