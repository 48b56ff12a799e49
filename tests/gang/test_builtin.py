"""Which waiting gang the built-in scheduler admits, and what it makes of a job's situation."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from dtj_operator.api.observed import (
    Admission,
    Admit,
    ClaimView,
    JobKey,
    NodeView,
    PodView,
    ProbeResult,
    Situation,
    Wait,
)
from dtj_operator.api.status import GangStatus, JobStatus, RecoveryState, RoundOf
from dtj_operator.desired.pods import pod
from dtj_operator.desired.probes import template_hash
from dtj_operator.desired.topology import topology
from dtj_operator.gang.builtin import Fleet, ReleasedGang, WaitingGang, admit, released_gang, waiting_gang
from dtj_operator.gang.demand import Demand
from dtj_worker.contract import Task
from tests.desired.jobs import CREATED, job, trained_by
from tests.gang.nodes import GPU, needs, node, taken

NOW = CREATED + timedelta(hours=1)


def gang(name: str, pods: int = 2, gpus: int = 1, age: int = 0, **fields: Any) -> WaitingGang:
    """A gang of equal workers; `age` in seconds makes it older than one of age 0."""
    known: dict[str, Any] = {
        "demands": {f"worker-{i}": needs(gpus) for i in range(pods)},
        "created_at": CREATED - timedelta(seconds=age),
    }
    return WaitingGang(**{"key": JobKey("ml", name)} | known | fields)


def answers(waiting: list[WaitingGang], fleet: Fleet) -> dict[str, Admission]:
    return {key.name: answer for key, answer in admit(waiting, fleet, NOW).items()}


TWO = (node("n1", 4), node("n2", 4))


@pytest.mark.parametrize(
    ("waiting", "admitted"),
    [
        pytest.param([gang("a"), gang("b", age=5)], "b", id="the older first"),
        pytest.param([gang("a", priority=7), gang("b", age=5)], "a", id="the more important before the older"),
        pytest.param([gang("b"), gang("a")], "a", id="by name when nothing else tells"),
        pytest.param([gang("a", gpus=5, age=5), gang("b")], "b", id="one that fits passes one that does not"),
        pytest.param([gang("a", not_before=NOW + timedelta(seconds=5)), gang("b")], "b", id="one waits for its time"),
        pytest.param([gang("a", not_before=NOW)], "a", id="and its time comes"),
    ],
)
def test_one_gang_is_admitted(waiting: list[WaitingGang], admitted: str) -> None:
    found = answers(waiting, Fleet(TWO))
    assert found.keys() == {each.key.name for each in waiting}
    assert [name for name, answer in found.items() if isinstance(answer, Admit)] == [admitted]


def test_who_waits_is_told_for_what() -> None:
    waiting = [
        gang("a", pods=1, age=9),
        gang("b"),
        gang("c", age=20, gpus=5),
        gang("d", not_before=NOW + timedelta(hours=1)),
    ]
    assert answers(waiting, Fleet(TWO)) == {
        "a": Admit(nodes=("n1",)),
        "b": Wait("waiting behind ml/a, which is being released"),
        "c": Wait("can never fit: 5 × nvidia.com/gpu per pod, largest node has 4", can_never_fit=True),
        "d": Wait("waiting until 05:04:05 UTC for its next try"),
    }


def test_nobody_reads_the_name_of_another_namespaces_job() -> None:
    found = answers([gang("a", age=9), gang("b", key=JobKey("else", "b"))], Fleet(TWO))
    assert found["b"] == Wait("waiting behind a job of another namespace, which is being released")


def test_gangs_that_ask_for_the_same_hear_the_same() -> None:
    fleet = Fleet(TWO, loads=(taken("n1", 2), taken("n2", 3)))
    found = answers(
        [gang("a", gpus=3), gang("b", gpus=3), gang("c", pods=1, gpus=3, avoid=("n1",)), gang("d", gpus=4)], fleet
    )
    assert found["a"] == found["b"] == Wait("waiting for 3 × nvidia.com/gpu on one node: the freest has 2 (n1)")
    assert found["c"] == Wait("waiting for 3 × nvidia.com/gpu on one node: the freest has 1 (n2)")
    assert found["d"] == Wait("waiting for 4 × nvidia.com/gpu on one node: the freest has 2 (n1)")


def test_nothing_is_impossible_where_an_autoscaler_brings_nodes() -> None:
    found = answers([gang("a", gpus=5)], Fleet(TWO, has_autoscaler=True))
    assert found == {"a": Wait("waiting for 5 × nvidia.com/gpu on one node: the freest has 4 (n1)")}


@pytest.mark.parametrize(
    ("released", "answer"),
    [
        pytest.param((), Admit(nodes=("n1",)), id="nobody else"),
        pytest.param((("n1",), 1), Admit(nodes=("n2",)), id="another gang will take its node"),
        pytest.param(((), 5), Wait("waiting for 4 × nvidia.com/gpu on one node: the freest has 3 (n2)"), id="or any"),
        pytest.param((("n1", "gone"), 3), Admit(nodes=("n2",)), id="or one that went away"),
        pytest.param((("n1",), 6), Admit(nodes=("n2",)), id="or more than there is any more"),
    ],
)
def test_what_is_promised_is_not_free(released: tuple[Any, ...], answer: Admission) -> None:
    promised: tuple[ReleasedGang, ...] = ()
    if released:
        hosts, count = released
        promised = (ReleasedGang(JobKey("ml", "other"), {f"worker-{i}": needs(1) for i in range(count)}, hosts),)
    assert answers([gang("a", pods=1, gpus=4)], Fleet(TWO, released=promised)) == {"a": answer}


def test_what_runs_is_not_free() -> None:
    fleet = Fleet(TWO, loads=(taken("n1", 1), taken("n2", 3)))
    assert answers([gang("a", pods=3)], fleet) == {"a": Admit(nodes=("n1",))}
    assert answers([gang("a", pods=4)], fleet) == {"a": Admit(nodes=("n1", "n2"))}


@pytest.mark.parametrize(
    ("nodes", "answer"),
    [
        pytest.param(TWO, Admit(nodes=("n2",)), id="elsewhere"),
        pytest.param(
            (node("n1", 4), node("n2", 2)),
            Admit(nodes=("n1",)),
            id="there all the same, if no other could ever hold it",
        ),
    ],
)
def test_nodes_to_avoid(nodes: tuple[NodeView, ...], answer: Admission) -> None:
    assert answers([gang("a", pods=1, gpus=4, avoid=("n1",))], Fleet(nodes)) == {"a": answer}


def test_nodes_to_avoid_are_waited_round_for_while_others_are_only_busy() -> None:
    fleet = Fleet(TWO, loads=(taken("n2", 1),))
    assert answers([gang("a", pods=1, gpus=4, avoid=("n1",))], fleet) == {
        "a": Wait("waiting for 4 × nvidia.com/gpu on one node: the freest has 3 (n2)")
    }


ZONES = (
    node("n1", 2, labels={"zone": "a"}),
    node("n2", 2, labels={"zone": "b"}),
    node("n3", 2, labels={"zone": "b"}),
    node("n4", 8),
)


@pytest.mark.parametrize(
    ("pods", "key", "answer"),
    [
        pytest.param(4, "zone", Admit(nodes=("n2", "n3")), id="a zone that holds it"),
        pytest.param(
            5,
            "zone",
            Wait(
                "can never fit: 5 pods with 1 × nvidia.com/gpu each, and all nodes together hold 4 within one zone",
                can_never_fit=True,
            ),
            id="no zone does",
        ),
        pytest.param(
            1,
            "rack",
            Wait("can never fit: no node has the label rack", can_never_fit=True),
            id="there are no such domains",
        ),
    ],
)
def test_one_topology_domain(pods: int, key: str, answer: Admission) -> None:
    assert answers([gang("a", pods=pods, topology_key=key)], Fleet(ZONES)) == {"a": answer}


def test_hosts_are_told_by_their_label_and_trust_by_role() -> None:
    fleet = Fleet((node("n1", 4, labels={"kubernetes.io/hostname": "ip-1"}),))
    demands = {"chief-0": Demand(on_trust=("its resource claims",)), "worker-0": needs(1)}
    assert answers([gang("a", demands=demands)], fleet) == {
        "a": Admit(nodes=("ip-1",), on_trust=("chief: its resource claims",))
    }


SPEC = {
    "roles": {"chief": {}, "worker": {"replicas": 2}, "evaluator": {}},
    "template": trained_by(resources={"limits": {GPU: 1}}),
    "gang": {"topologyKey": "zone"},
    "checkpoint": {"persistentVolumeClaim": "mnist-checkpoints"},
}


ANSWERED = ProbeResult(201)


def queued(phase: str = "Queued", answer: ProbeResult | None = ANSWERED, **changes: Any) -> Situation:
    status = changes.pop("status", JobStatus(phase=phase))  # type: ignore[arg-type]
    s = job(SPEC, status=status, **changes)
    assert s.spec is not None
    probes = {template_hash(s.spec, role): answer for role in ("chief", "worker") if answer is not None}
    return msgspec.structs.replace(s, probes=probes)


def test_a_queued_gang_asks_for_its_pods_without_the_evaluator() -> None:
    status = JobStatus(phase="Queued", gang=GangStatus(not_before=NOW), recovery=RecoveryState(excluded_nodes=["bad"]))
    s = queued(status=status)
    found = waiting_gang(s, topology(s))
    assert found is not None
    assert list(found.demands) == ["chief-0", "worker-0", "worker-1"]
    assert {demand.requests[GPU] for demand in found.demands.values()} == {1}
    assert (found.key, found.created_at, found.not_before) == (s.key, CREATED, NOW)
    assert (found.priority, found.avoid, found.topology_key) == (0, ("bad",), "zone")


def test_what_the_api_server_made_of_a_pod_counts() -> None:
    made = {"spec": {"priority": 9, "overhead": {"cpu": "1"}, "containers": [{"name": "trainer"}]}}
    s = queued(answer=ProbeResult(201, pod=made))
    found = waiting_gang(s, topology(s))
    assert found is not None
    assert found.priority == 9
    assert found.demands["worker-1"].requests == {"cpu": 1, "pods": 1}


@pytest.mark.parametrize(
    "s",
    [
        pytest.param(queued(answer=None), id="nobody has asked the API server yet"),
        pytest.param(queued(phase="Starting"), id="it has started"),
        pytest.param(queued(claim=ClaimView("mnist-checkpoints", None)), id="its claim is missing"),
        pytest.param(queued(status=JobStatus(phase="Queued", gang=GangStatus(admitted_at=NOW))), id="it is admitted"),
    ],
)
def test_who_does_not_wait(s: Situation) -> None:
    assert waiting_gang(s, topology(s)) is None


def view(task: str, round_: int = 0, bound: bool = True, **fields: Any) -> PodView:
    given = {"stage": "Bound" if bound else "Unbound", "node": "n1" if bound else None}
    return PodView(name=f"mnist-{task}-{round_}", uid=task, task=Task.parse(task), round=round_, **given | fields)


ADMITTED = JobStatus(phase="Queued", gang=GangStatus(admitted_at=NOW))


@pytest.mark.parametrize(
    ("s", "tasks", "hosts"),
    [
        pytest.param(queued(), None, (), id="not admitted"),
        pytest.param(
            queued(admission=Admit(nodes=("n1",))),
            "chief-0 worker-0 worker-1",
            ("n1",),
            id="admitted, and its status does not say so yet",
        ),
        pytest.param(
            queued(status=ADMITTED, pods=(view("worker-0", pinned=("n7",)), view("chief-0", bound=False))),
            "chief-0 worker-1",
            ("n7",),
            id="half bound: its pods know the hosts",
        ),
        pytest.param(
            queued(status=ADMITTED, pods=tuple(view(task) for task in ("chief-0", "worker-0", "worker-1"))),
            None,
            (),
            id="all bound",
        ),
        pytest.param(
            queued(
                status=JobStatus(
                    phase="Restarting",
                    gang=GangStatus(admitted_at=NOW, formed=0),
                    rounds={"worker": [RoundOf(indexes="1", round=1)]},
                ),
                pods=(view("chief-0"), view("worker-0", pinned=("n1",)), view("worker-1", 1, bound=False)),
                admission=Admit(nodes=("n1",)),
            ),
            "worker-1",
            (),
            id="a lone replacement may go anywhere",
        ),
        pytest.param(
            queued(status=JobStatus(phase="Failed", gang=GangStatus(admitted_at=NOW))), None, (), id="it is over"
        ),
    ],
)
def test_what_a_released_gang_will_take(s: Situation, tasks: str | None, hosts: tuple[str, ...]) -> None:
    found = released_gang(s, topology(s))
    assert (None if found is None else " ".join(found.demands)) == tasks
    assert (() if found is None else found.hosts) == hosts


def test_the_pod_of_a_task_and_its_demand_agree() -> None:
    s = queued()
    t = topology(s)
    assert pod(s, t, Task("worker", 0), 0, 0)["spec"]["containers"][0]["resources"] == {"limits": {GPU: 1}}
