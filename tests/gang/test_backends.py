"""Which backend a job gets, how each marks pods, and what it says of a gang's state."""

from typing import Any

import msgspec
import pytest

from dtj_operator.api.observed import Admission, Admit, Facts, PodView, Situation, Wait
from dtj_operator.api.status import GangStatus, JobStatus, RecoveryState, RoundOf
from dtj_operator.desired.pods import pod
from dtj_operator.desired.topology import topology
from dtj_operator.gang.base import GangState
from dtj_operator.gang.choose import choose
from dtj_operator.gang.gated import BuiltIn, pinned
from dtj_operator.gang.none import NoGang
from dtj_worker.contract import Task
from tests.desired.jobs import CREATED, FACTS, job, trained_by
from tests.gang.nodes import node

NO_RIGHTS = msgspec.structs.replace(FACTS, has_node_rights=False)
HOST = "kubernetes.io/hostname"


def labelled(**labels: str) -> dict[str, Any]:
    return trained_by() | {"metadata": {"labels": labels}}


def scheduled_by(name: str) -> dict[str, Any]:
    template = trained_by()
    template["spec"]["schedulerName"] = name
    return template


@pytest.mark.parametrize(
    ("scheduler", "template", "facts", "name", "reason"),
    [
        pytest.param("Auto", trained_by(), FACTS, "BuiltIn", "the operator may look at nodes", id="with rights"),
        pytest.param(
            "Auto",
            trained_by(),
            NO_RIGHTS,
            "None",
            "the operator may not look at nodes (builtinGang.enabled of its chart is off); pods are bound one by one",
            id="without rights",
        ),
        pytest.param(
            "Auto", scheduled_by("default-scheduler"), FACTS, "BuiltIn", "the operator may look", id="the default"
        ),
        pytest.param(
            "Auto", scheduled_by("volcano"), FACTS, "Volcano", "the template's schedulerName is volcano", id="Volcano's"
        ),
        pytest.param(
            "Auto", scheduled_by("kai-scheduler"), FACTS, "KAI", "the template's schedulerName is", id="KAI's"
        ),
        pytest.param(
            "Auto",
            scheduled_by("mine"),
            FACTS,
            "None",
            "the template's schedulerName is mine, which binds pods one by one",
            id="another",
        ),
        pytest.param(
            "Auto",
            labelled(**{"kueue.x-k8s.io/queue-name": "team"}),
            FACTS,
            "Kueue",
            "the template's label kueue.x-k8s.io/queue-name names the queue team",
            id="Kueue's label",
        ),
        pytest.param("None", trained_by(), FACTS, "None", "spec.gang.scheduler names it", id="as asked"),
        pytest.param(
            "BuiltIn", trained_by(), NO_RIGHTS, "BuiltIn", "spec.gang.scheduler names it", id="as asked, in vain"
        ),
        pytest.param("Native", trained_by(), FACTS, "Native", "spec.gang.scheduler names it", id="one that is to come"),
    ],
)
def test_choose(scheduler: str, template: dict[str, Any], facts: Facts, name: str, reason: str) -> None:
    spec = job({"roles": {"worker": {"replicas": 2}}, "template": template, "gang": {"scheduler": scheduler}}).spec
    assert spec is not None
    backend, why = choose(spec, facts)
    assert backend.name == name
    assert why.startswith(reason)


@pytest.mark.parametrize(
    ("scheduler", "facts", "words"),
    [
        ("None", NO_RIGHTS, None),
        ("BuiltIn", FACTS, None),
        ("BuiltIn", NO_RIGHTS, "the operator may not look at nodes (builtinGang.enabled of its chart is off)"),
        *(
            (
                name,
                FACTS,
                f"this version has no backend for {name} yet; set spec.gang.scheduler to BuiltIn or None",
            )
            for name in ("Native", "Volcano", "Kueue", "Coscheduling", "KAI")
        ),
    ],
)
def test_whether_a_backend_can_work_here(scheduler: str, facts: Facts, words: str | None) -> None:
    s = job(
        {"roles": {"worker": {"replicas": 2}}, "template": trained_by(), "gang": {"scheduler": scheduler}}, facts=facts
    )
    assert s.spec is not None
    backend, _ = choose(s.spec, facts)
    assert backend.available(facts) == words
    assert backend.group(s, topology(s)) is None


@pytest.mark.parametrize(
    ("scheduler", "words"), [("Volcano", "no backend for Volcano yet"), ("BuiltIn", "may not look at nodes")]
)
def test_under_a_backend_that_cannot_work_nothing_is_ever_admitted(scheduler: str, words: str) -> None:
    spec = {"roles": {"worker": {"replicas": 2}}, "template": trained_by(), "gang": {"scheduler": scheduler}}
    s = job(spec, facts=NO_RIGHTS)
    assert s.spec is not None
    state = choose(s.spec, s.facts)[0].state(s, topology(s))
    assert not state.is_admitted
    assert not state.is_bound
    assert state.waiting_for is not None
    assert words in state.waiting_for


ROLES = {"chief": {}, "worker": {"replicas": 2}, "evaluator": {}}
CHIEF, WORKER, EVALUATOR = Task("chief", 0), Task("worker", 1), Task("evaluator", 0)


def forming(template: dict[str, Any] | None = None, **changes: Any) -> Situation:
    return job({"roles": ROLES, "template": template or trained_by()}, **changes)


def marked(s: Situation, task: Task = WORKER) -> dict[str, Any]:
    t = topology(s)
    made: dict[str, Any] = BuiltIn().mark(s, t, pod(s, t, task, 0, 0))["spec"]
    return made


def required(spec: dict[str, Any]) -> Any:
    affinity = spec.get("affinity", {}).get("nodeAffinity", {})
    return affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms")


def view(task: Task, round_: int = 0, **fields: Any) -> PodView:
    given = {"stage": "Bound", "node": "n1"} | fields
    return PodView(name=f"mnist-{task}-{round_}", uid=str(task), task=task, round=round_, **given)


def test_members_are_gated_beside_foreign_gates_and_the_evaluator_is_none() -> None:
    template = trained_by()
    template["spec"]["schedulingGates"] = [{"name": "example.com/mine"}]
    s = forming(template, admission=Admit(nodes=("n1",)))
    assert marked(s)["schedulingGates"] == [{"name": "example.com/mine"}, {"name": "dtj.dev/gang"}]
    assert marked(s, EVALUATOR)["schedulingGates"] == [{"name": "example.com/mine"}]
    assert required(marked(s, EVALUATOR)) is None


OURS = {"key": HOST, "operator": "In", "values": ["n1", "n2"]}
THEIRS = {"key": "disk", "operator": "Exists"}


@pytest.mark.parametrize(
    ("terms", "found"),
    [
        pytest.param(None, [{"matchExpressions": [OURS]}], id="nothing of the user's"),
        pytest.param(
            [{"matchExpressions": [THEIRS]}, {"matchFields": [THEIRS]}],
            [
                {"matchExpressions": [THEIRS, OURS]},
                {"matchFields": [THEIRS], "matchExpressions": [OURS]},
            ],
            id="every term of the user's",
        ),
        pytest.param([{}], [{}], id="an empty term matches nothing, and goes on to"),
    ],
)
def test_the_node_set_is_required_in_every_term(terms: list[Any] | None, found: list[Any]) -> None:
    template = trained_by()
    if terms is not None:
        required_terms = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        template["spec"]["affinity"] = {"nodeAffinity": required_terms, "podAffinity": {"x": 1}}
    spec = marked(forming(template, admission=Admit(nodes=("n1", "n2"))))
    assert required(spec) == found
    assert spec["affinity"].get("podAffinity") == ({"x": 1} if terms is not None else None)
    assert pinned({"spec": spec}) == (("n1", "n2") if found != [{}] else ())


@pytest.mark.parametrize(
    ("changes", "hosts"),
    [
        pytest.param({}, None, id="nobody has said where"),
        pytest.param({"admission": Wait("…")}, None, id="nor that it fits"),
        pytest.param({"admission": Admit()}, None, id="it fits wherever the scheduler puts it"),
        pytest.param({"admission": Admit(nodes=("n1",))}, ["n1"], id="as admitted"),
        pytest.param({"pods": (view(CHIEF, pinned=("n2",)),)}, ["n2"], id="as its pods say, after a restart of ours"),
        pytest.param(
            {"pods": (view(CHIEF, pinned=("n2",)),), "admission": Admit(nodes=("n1",))},
            ["n2"],
            id="they outlive an answer",
        ),
        pytest.param({"pods": (view(CHIEF, 7, pinned=("n2",)),)}, None, id="a pod of another round says nothing"),
        pytest.param({"pods": (view(CHIEF, pinned=("n2",), deleting_since=CREATED),)}, None, id="nor one that goes"),
        pytest.param(
            {
                "pods": (view(CHIEF, pinned=("n2",)),),
                "admission": Admit(nodes=("n1",)),
                "status": JobStatus(gang=GangStatus(formed=0), rounds={"worker": [RoundOf(indexes="1", round=1)]}),
            },
            None,
            id="a lone replacement may go anywhere",
        ),
        pytest.param(
            {
                "admission": Admit(nodes=("n1",)),
                "status": JobStatus(
                    gang=GangStatus(formed=0),
                    rounds={"chief": [RoundOf(indexes="0", round=1)], "worker": [RoundOf(indexes="0-1", round=1)]},
                ),
            },
            ["n1"],
            id="a gang that forms again as a whole",
        ),
    ],
)
def test_to_which_nodes_a_gang_is_pinned(changes: dict[str, Any], hosts: list[str] | None) -> None:
    found = required(marked(forming(**changes)))
    assert (found[0]["matchExpressions"][0]["values"] if found else None) == hosts


@pytest.mark.parametrize(
    ("nodes", "is_required"),
    [
        pytest.param((node("bad"), node("good")), True, id="another node fits"),
        pytest.param((node("bad"),), False, id="there is no other"),
        pytest.param((node("bad"), node("good", unschedulable=True)), False, id="the other is closed"),
        pytest.param((node("bad"), node("good", cpu=1)), False, id="the other is too small"),
        pytest.param(None, False, id="nodes are not seen"),
    ],
)
def test_a_bad_node_is_avoided_strictly_where_another_one_fits(nodes: Any, is_required: bool) -> None:
    template = trained_by(resources={"requests": {"cpu": "2"}})
    s = forming(template, nodes=nodes, status=JobStatus(recovery=RecoveryState(excluded_nodes=["bad"])))
    avoiding = [{"matchExpressions": [{"key": HOST, "operator": "NotIn", "values": ["bad"]}]}]
    assert required(marked(s)) == (avoiding if is_required else None)


ADMITTED = JobStatus(gang=GangStatus(admitted_at=CREATED))
ALL = (view(CHIEF), view(Task("worker", 0)), view(WORKER))


@pytest.mark.parametrize(
    ("status", "admission", "pods", "bound", "waiting_for"),
    [
        pytest.param(JobStatus(), None, (), 0, "waiting for its turn", id="not looked at"),
        pytest.param(JobStatus(), Wait("waiting for a node"), (), 0, "waiting for a node", id="waiting"),
        pytest.param(ADMITTED, None, (), 0, "0 of 3 pods have a node; chief-0 has no pod yet", id="admitted"),
        pytest.param(ADMITTED, None, ALL, 3, None, id="bound"),
        pytest.param(
            ADMITTED,
            None,
            (*ALL[:2], view(WORKER, node=None, stage="Gated", gates=("dtj.dev/gang", "example.com/mine"))),
            2,
            "2 of 3 pods have a node; worker-1 is held by dtj.dev/gang, example.com/mine",
            id="gated",
        ),
        pytest.param(
            ADMITTED,
            None,
            (*ALL[:2], view(WORKER, node=None, stage="Unbound", waiting_message="0/3 nodes are available")),
            2,
            "2 of 3 pods have a node; worker-1: 0/3 nodes are available",
            id="the scheduler says why not",
        ),
        pytest.param(
            ADMITTED,
            None,
            (*ALL[:2], view(WORKER, 1)),
            2,
            "2 of 3 pods have a node; worker-1 has no pod yet",
            id="a round",
        ),
        pytest.param(
            ADMITTED,
            None,
            (*ALL[:2], view(WORKER, deleting_since=CREATED)),
            2,
            "2 of 3 pods have a node; worker-1 has no pod yet",
            id="a pod that goes",
        ),
        pytest.param(
            msgspec.structs.replace(ADMITTED, finished={"worker": "1"}),
            None,
            ALL[:2],
            3,
            None,
            id="who is done needs none",
        ),
    ],
)
def test_state(
    status: JobStatus, admission: Admission | None, pods: tuple[PodView, ...], bound: int, waiting_for: str | None
) -> None:
    s = forming(status=status, admission=admission, pods=pods)
    at = status.gang.admitted_at
    expected = GangState(bound=bound, needed=3, is_admitted=at is not None, admitted_at=at, waiting_for=waiting_for)
    assert BuiltIn().state(s, topology(s)) == expected
    assert expected.is_bound == (bound == 3)


def test_without_a_gang_pods_are_as_they_are_and_admitted_at_once() -> None:
    s = forming()
    t = topology(s)
    made = pod(s, t, WORKER, 0, 0)
    assert NoGang().mark(s, t, made) == made
    assert NoGang().state(s, t).is_admitted
    assert NoGang().state(s, t).waiting_for == "0 of 3 pods have a node; chief-0 has no pod yet"
