"""From a new job to a gang that has its places: what the API server, the queue and the quota say, and what is told."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from dtj_operator.api.observed import Admit, ClaimView, Facts, ForeignChild, PodView, ProbeResult, Situation, Wait
from dtj_operator.api.status import GangStatus, JobStatus, RoundOf
from dtj_operator.decide.actions import Create, Delete
from dtj_operator.decide.members import raised
from dtj_operator.decide.plan import plan
from dtj_operator.desired.probes import template_hash
from dtj_worker.contract import Role, Task
from tests.decide.situations import (
    LONG_AGO,
    NOW,
    accepted,
    after,
    ago,
    attempt,
    exited,
    kinds,
    leaving,
    new,
    pod,
    running,
    said,
    spec,
)

CLAIMED = {
    "volumeClaimTemplate": {
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    }
}
BUILT_IN = spec(gang={"scheduler": "BuiltIn"})
SEES_NODES = Facts(started_at=LONG_AGO, has_node_rights=True)


STRICTLY = 'Pod in version "v1" cannot be handled as a Pod: strict decoding error: '
TYPO = {"spec": {"containers": [{"name": "trainer", "image": "dtj/worker", "arg": ["train.py"]}]}}


def answered(
    code: int, message: str, seconds: float = 1, roles: tuple[Role, ...] = ("worker",), **fields: Any
) -> Situation:
    """A new job of whose worker, or other roles, the API server said this, so many seconds ago."""
    s = accepted(**fields)
    assert s.spec is not None
    answer = ProbeResult(code, message, heard_at=ago(seconds))
    return replace(s, probes=dict(s.probes) | {template_hash(s.spec, role): answer for role in roles})


def queued(job_fields: Situation, **gang: Any) -> Situation:
    """The job, accepted and queued a minute ago."""
    status = after(job_fields, plan(job_fields, ago(60)))
    status = replace(status, gang=replace(status.gang, **{"admitted_at": None} | gang))
    return replace(job_fields, status=status)


@pytest.mark.parametrize(
    ("s", "phase", "accepted_says", "reason", "actions"),
    [
        pytest.param(
            new(), "Pending", None, "asks the API server whether it takes the pods", ["Probe worker"], id="new"
        ),
        pytest.param(
            new(faults=("spec.roles.worker: bad", "spec.template: worse")),
            "Pending",
            "False Invalid",
            "spec.roles.worker: bad; spec.template: worse",
            [],
            id="all faults in one message",
        ),
        pytest.param(new(spec=None), "Pending", "False Invalid", "spec: it can't be read", [], id="no spec at all"),
        pytest.param(
            answered(400, f'{STRICTLY}unknown field "spec.containers[0].arg"', job=spec(template=TYPO)),
            "Pending",
            "False TemplateRefused",
            'spec.template: unknown field "spec.containers[0].arg"',
            [],
            id="a typo in the template",
        ),
        pytest.param(
            answered(
                400,
                f'{STRICTLY}unknown field "spec.containers[0].arg", unknown field "spec.nodeSelektor"',
                job=spec(roles={"worker": {"replicas": 2, "template": TYPO}}),
            ),
            "Pending",
            "False TemplateRefused",
            'spec.roles.worker.template: unknown field "spec.containers[0].arg", unknown field "spec.nodeSelektor"',
            [],
            id="two typos in a role's own template",
        ),
        pytest.param(
            answered(
                400,
                f'{STRICTLY}unknown field "spec.contaners"',
                roles=("worker", "ps"),
                job=spec(template=TYPO | {"contaners": []}, roles={"chief": {}, "ps": {}}),
            ),
            "Pending",
            "False TemplateRefused",
            'spec.template: unknown field "spec.contaners"',
            [],
            id="one typo is told once, whatever roles it is in",
        ),
        pytest.param(
            answered(403, "pods is forbidden: no service account", seconds=301),
            "Pending",
            "False TemplateRefused",
            "spec.roles.worker.template: pods is forbidden: no service account",
            ["Probe worker"],
            id="an old refusal is asked for again",
        ),
        pytest.param(
            accepted(foreign_names=(ForeignChild("Service", "mnist-peers", terminating=True),)),
            "Pending",
            "False WaitingForPredecessor",
            "waits for Service mnist-peers of an earlier job to be gone",
            [],
            id="a predecessor is being deleted",
        ),
        pytest.param(
            accepted(foreign_names=(ForeignChild("Service", "mnist-peers", terminating=False),)),
            "Pending",
            "False NameTaken",
            "Service mnist-peers has no owner: rename this job, or remove what has the name",
            [],
            id="a name that someone has taken by hand",
        ),
        pytest.param(
            accepted(foreign_names=(ForeignChild("Service", "mnist-peers", terminating=False, is_left=True),)),
            "Pending",
            "False WaitingForPredecessor",
            "Service mnist-peers belongs to no job that lives; it is waited for, remove it if it stays",
            [],
            id="a predecessor's owner is gone",
        ),
        pytest.param(
            accepted(
                foreign_names=(ForeignChild("Service", "mnist-peers", terminating=False, owner="Deployment web"),)
            ),
            "Pending",
            "False NameTaken",
            "Service mnist-peers belongs to Deployment web: rename this job, or remove what has the name",
            [],
            id="somebody else's name",
        ),
        pytest.param(
            accepted(predecessors=(leaving(running("worker-0", 4)), running("worker-1", 4))),
            "Pending",
            "False WaitingForPredecessor",
            "waits for Pod mnist-worker-0-4 of an earlier job to be gone; "
            "waits for Pod mnist-worker-1-4 of an earlier job to be gone",
            [],
            id="pods of a predecessor, of another round",
        ),
        pytest.param(
            accepted(predecessors=(leaving(running("worker-0", 4), seconds=30 + 121), running("worker-1", 4))),
            "Pending",
            "False WaitingForPredecessor",
            "waits for Pod mnist-worker-0-4 of an earlier job to be gone; "
            "waits for Pod mnist-worker-1-4 of an earlier job to be gone",
            ["Delete worker-0-4 by force"],
            id="a pod of a predecessor that does not go away",
        ),
        pytest.param(
            accepted(),
            "Queued",
            "True Accepted",
            "accepted as MultiWorkerMirrored: 2 workers train one model together; gang scheduler None: "
            "spec.gang.scheduler names it; released by None",
            ["Create worker-0-0", "Create worker-1-0"],
            id="all is well",
        ),
        pytest.param(
            accepted(BUILT_IN, facts=SEES_NODES),
            "Queued",
            "True Accepted",
            "accepted as MultiWorkerMirrored: 2 workers train one model together; gang scheduler BuiltIn: "
            "spec.gang.scheduler names it; waiting for its turn",
            [],
            id="a gang waits and holds nothing",
        ),
        pytest.param(
            accepted(spec(gang={"scheduler": "Volcano"})),
            "Queued",
            "True Accepted",
            "accepted as MultiWorkerMirrored: 2 workers train one model together; gang scheduler Volcano: "
            "spec.gang.scheduler names it; this version has no backend for Volcano yet; set spec.gang.scheduler to "
            "BuiltIn or None",
            [],
            id="a scheduler that is not there",
        ),
        pytest.param(
            accepted(children=frozenset()),
            "Queued",
            "True Accepted",
            "accepted as MultiWorkerMirrored: 2 workers train one model together; gang scheduler None: "
            "spec.gang.scheduler names it",
            ["Create peers", "Create token-11111111", "Create peers"],
            id="the job's objects before its pods",
        ),
    ],
)
def test_a_new_job(s: Situation, phase: str, accepted_says: str | None, reason: str, actions: list[str]) -> None:
    made = plan(s, NOW)
    status = after(s, made)
    assert (status.phase, said(status, "Accepted"), made.reason) == (phase, accepted_says, reason)
    assert kinds(made) == actions
    assert plan(replace(s, status=status), NOW).status is None


def test_an_edit_heals_a_job() -> None:
    wrong = new(faults=("spec.roles.worker: bad",))
    status = after(wrong, plan(wrong, NOW))
    healed = replace(accepted(), status=status, generation=2)
    status = after(healed, plan(healed, NOW))
    assert (status.phase, said(status, "Accepted"), status.observed_generation) == ("Queued", "True Accepted", 2)


def test_a_question_that_got_no_answer_is_told_once_and_asked_again() -> None:
    s = new(unanswered="503 ServiceUnavailable")
    made = plan(s, NOW)
    status = after(s, made)
    words = "the API server could not say whether it takes the pods (503 ServiceUnavailable); it is asked again"
    assert (status.phase, status.reason, status.conditions) == ("Pending", words, [])
    assert kinds(made) == ["Probe worker"]
    again = plan(replace(s, status=status), NOW)
    assert (again.status, kinds(again)) == (None, ["Probe worker"])


def test_a_predecessor_is_looked_for_every_5_seconds() -> None:
    s = accepted(foreign_names=(ForeignChild("Service", "mnist-peers", terminating=True),))
    made = plan(s, NOW)
    assert made.wake_at == NOW + timedelta(seconds=5)


def test_a_refused_template_is_asked_for_again_by_the_clock() -> None:
    s = answered(403, "pods is forbidden: no service account", seconds=60)
    s = replace(s, status=after(s, plan(s, NOW)))
    made = plan(s, NOW)
    assert (made.status, kinds(made), made.wake_at) == (None, [], NOW + timedelta(seconds=240))


def test_every_role_is_asked_for() -> None:
    s = new(spec(roles={"chief": {}, "ps": {"replicas": 3}, "evaluator": {}}))
    assert kinds(plan(s, NOW)) == ["Probe chief", "Probe worker", "Probe ps", "Probe evaluator"]


def test_an_answer_holds_as_long_as_the_pods_stay_the_same() -> None:
    s = accepted(spec(recovery={"maxRestarts": 3}))
    assert s.spec is not None
    edited = replace(s, spec=replace(s.spec, ttl_seconds_after_finished=5))
    assert "Probe worker" not in kinds(plan(edited, NOW))
    other = replace(s, spec=spec(keras="Keras3"))
    assert kinds(plan(other, NOW)) == ["Probe worker"]


FULL = 'pods "mnist-probe" is forbidden: exceeded quota: gpus, requested: 2, used: 7, limited: 8'


def test_a_full_quota_queues_and_is_asked_again_later_and_later() -> None:
    s = answered(403, FULL)
    status = after(s, plan(s, NOW))
    assert (status.phase, said(status, "GangScheduled")) == ("Queued", "False QuotaExceeded")
    assert (status.reason, status.gang.refused, status.gang.not_before) == (FULL, 1, plan(s, NOW).wake_at)
    due = status.gang.not_before
    assert due is not None
    assert timedelta(seconds=10) <= due - NOW <= timedelta(seconds=11)
    s = replace(s, status=status)
    assert plan(s, NOW).status is None
    assert kinds(plan(s, NOW)) == []
    assert kinds(plan(s, due)) == ["Probe worker"]
    assert s.spec is not None
    again = replace(s, probes={template_hash(s.spec, "worker"): ProbeResult(403, FULL, heard_at=due)})
    status = after(again, plan(again, due))
    assert status.gang.refused == 2
    assert status.gang.not_before is not None
    assert timedelta(seconds=20) <= status.gang.not_before - due <= timedelta(seconds=22)
    free = replace(again, probes={template_hash(s.spec, "worker"): ProbeResult(201, heard_at=due)})
    assert kinds(plan(free, due)) == ["Create worker-0-0", "Create worker-1-0"]


def test_a_refused_object_is_told_and_tried_again() -> None:
    s = queued(accepted(BUILT_IN, facts=SEES_NODES))
    s = replace(s, children=frozenset(), refusals=('services is forbidden: User "dtj" cannot create',))
    status = after(s, plan(s, NOW))
    assert (said(status, "GangScheduled"), status.reason) == ("False Forbidden", s.refusals[0])
    s = replace(s, status=status, refusals=())
    assert kinds(plan(s, NOW)) == []
    assert "Create peers" in kinds(plan(s, NOW + timedelta(seconds=11)))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "True PolicyApplied"),
        ({"network": {"policy": "None"}}, "False PolicyOff"),
        ({"template": {"spec": {"hostNetwork": True}}}, "False HostNetwork"),
    ],
)
def test_who_may_reach_the_pods_is_told(fields: dict[str, Any], says: str) -> None:
    s = accepted(spec(**fields))
    assert said(after(s, plan(s, NOW)), "Isolated") == says


BUDGETED = {"disruption": {"budget": True}}


@pytest.mark.parametrize(
    ("before", "edited", "actions", "says"),
    [
        pytest.param({}, {"ttlSecondsAfterFinished": 5}, [], "True PolicyApplied", id="what no child shows"),
        pytest.param(
            {},
            {"network": {"expose": [8080]}},
            ["Delete NetworkPolicy", "Create NetworkPolicy"],
            "True PolicyApplied",
            id="a port is opened",
        ),
        pytest.param(
            {},
            {"network": {"policy": "None"}},
            ["Delete NetworkPolicy"],
            "False PolicyOff",
            id="isolation is taken off",
        ),
        pytest.param(
            {"network": {"policy": "None"}}, {}, ["Create NetworkPolicy"], "True PolicyApplied", id="and put on again"
        ),
        pytest.param(BUDGETED, {}, ["Delete PodDisruptionBudget"], "True PolicyApplied", id="no budget any more"),
        pytest.param(
            {"workers": 2} | BUDGETED,
            {"workers": 3} | BUDGETED,
            ["Delete PodDisruptionBudget", "Create PodDisruptionBudget"],
            "True PolicyApplied",
            id="more workers after a suspend",
        ),
        pytest.param(
            {"checkpoint": CLAIMED},
            {"checkpoint": CLAIMED | {"reclaim": "Delete"}},
            [],
            "True PolicyApplied",
            id="a claim holds data, and stays as it is",
        ),
    ],
)
def test_an_edit_reaches_the_objects_before_the_next_attempt(
    before: dict[str, Any], edited: dict[str, Any], actions: list[str], says: str
) -> None:
    was = queued(accepted(spec(**before)))
    s = replace(accepted(spec(**edited)), status=was.status, children=was.children)
    made = plan(s, NOW)
    objects = [_object(action) for action in made.actions if isinstance(action, Create | Delete)]
    assert [word for word in objects if not word.endswith(" Pod")] == actions
    there = plan(replace(s, children=accepted(spec(**edited)).children), NOW)
    assert said(after(s, there), "Isolated") == says


def _object(action: Create | Delete) -> str:
    return f"Create {action.manifest['kind']}" if isinstance(action, Create) else f"Delete {action.kind}"


def test_a_refusal_half_way_takes_the_gang_back() -> None:
    s = queued(accepted(), admitted_at=ago(60))
    half = replace(s, pods=(running("worker-0"),), refusals=(FULL,))
    made = plan(half, NOW)
    status = after(half, made)
    assert (status.phase, said(status, "GangScheduled"), status.reason) == ("Queued", "False QuotaExceeded", FULL)
    assert (status.gang.admitted_at, status.gang.refused, status.restarts.total, status.attempt) == (None, 1, 0, 0)
    assert kinds(made) == ["Delete worker-0-0"]
    later = replace(half, status=status, pods=(leaving(running("worker-0")),), refusals=())
    assert plan(later, NOW + timedelta(seconds=60)).reason == "waits for 1 pod to end: mnist-worker-0-0"
    gone = replace(later, pods=())
    assert kinds(plan(gone, NOW + timedelta(seconds=60))) == ["Create worker-0-1", "Create worker-1-1"]


@pytest.mark.parametrize(
    ("admission", "says", "waiting_for"),
    [
        (
            Wait("waiting for 1 × nvidia.com/gpu: the freest node has 0 (n3)"),
            "False Waiting",
            "waiting for 1 × nvidia.com/gpu: the freest node has 0 (n3)",
        ),
        (Wait("can never fit", can_never_fit=True), "False CannotFit", "can never fit"),
    ],
)
def test_what_a_gang_waits_for(admission: Wait, says: str, waiting_for: str) -> None:
    s = queued(accepted(BUILT_IN, facts=SEES_NODES))
    s = replace(s, admission=admission)
    status = after(s, plan(s, NOW))
    assert (said(status, "GangScheduled"), status.gang.waiting_for, status.reason) == (says, waiting_for, waiting_for)


NAMED = spec(gang={"scheduler": "BuiltIn"}, checkpoint={"persistentVolumeClaim": "data"})
NO_CLAIM = "spec.checkpoint.persistentVolumeClaim: there is no PersistentVolumeClaim data in namespace ml"


@pytest.mark.parametrize(
    ("claim", "reason", "says"),
    [
        pytest.param(ClaimView("data", None), NO_CLAIM, "False ClaimMissing", id="it is not there"),
        pytest.param(ClaimView("data", ("ReadWriteOnce",)), "released by BuiltIn", "False Admitted", id="it is there"),
        pytest.param(ClaimView("former", None), "released by BuiltIn", "False Admitted", id="another is not there"),
    ],
)
def test_no_gang_is_released_without_the_claim_that_its_job_names(claim: ClaimView, reason: str, says: str) -> None:
    s = queued(accepted(NAMED, facts=SEES_NODES))
    s = replace(s, claim=claim, admission=Admit(("n0", "n1")))
    made = plan(s, NOW)
    status = after(s, made)
    assert (made.reason.partition("; ")[0], status.phase, said(status, "GangScheduled")) == (reason, "Queued", says)
    is_missing = reason == NO_CLAIM
    assert kinds(made) == ([] if is_missing else ["Create worker-0-0", "Create worker-1-0"])
    assert (status.gang.admitted_at is None) == is_missing
    assert made.wake_at == NOW + timedelta(seconds=10 if is_missing else 300)


def test_a_later_attempt_waits_for_its_claim_too_and_goes_on_when_it_comes() -> None:
    s = attempt([exited("worker-0", 1), exited("worker-1", 1)], job=replace(NAMED, gang=spec().gang))
    s = replace(s, claim=ClaimView("data", None))
    made = plan(s, NOW)
    status = after(s, made)
    assert (status.phase, status.attempt, status.reason, said(status, "GangScheduled")) == (
        "Queued",
        1,
        NO_CLAIM,
        "False ClaimMissing",
    )
    assert [word for word in kinds(made) if word.startswith("Create")] == []
    there = replace(s, status=status, pods=(), claim=ClaimView("data", ("ReadWriteOnce",)))
    assert kinds(plan(there, NOW)) == ["Create worker-0-1", "Create worker-1-1"]


def test_the_built_in_gang_is_made_gated_and_let_go_when_it_is_whole() -> None:
    s = queued(accepted(BUILT_IN, facts=SEES_NODES))
    s = replace(s, admission=Admit(("n0", "n1")))
    made = plan(s, NOW)
    assert after(s, made).gang.admitted_at == NOW
    assert kinds(made) == ["Create worker-0-0", "Create worker-1-0"]
    s = replace(s, status=after(s, made))
    gated = pod("worker-0", "Gated", gates=("dtj.dev/gang",)), pod("worker-1", "Gated", gates=("dtj.dev/gang", "x/y"))
    half = replace(s, pods=gated[:1])
    assert kinds(plan(half, NOW)) == ["Create worker-1-0"]
    assert kinds(plan(replace(s, pods=gated), NOW)) == ["Ungate worker-0-0", "Ungate worker-1-0"]


def test_a_gang_that_comes_back_queues_anew() -> None:
    """Its former places may be somebody else's by now."""
    s = attempt([exited("worker-0", 1), exited("worker-1", 1)], job=BUILT_IN, facts=SEES_NODES)
    made = plan(replace(s, admission=Admit(("n0", "n1"))), NOW)
    assert (after(s, made).phase, after(s, made).gang.admitted_at) == ("Queued", None)
    assert [word for word in kinds(made) if word.startswith("Create")] == []


OTHER_PROCESS = replace(SEES_NODES, started_at=ago(1))


@pytest.mark.parametrize(
    ("pods", "changes", "reason"),
    [
        pytest.param([], {}, "not all of its pods were made, and its places are given away", id="places given away"),
        pytest.param(
            [running("worker-0")],
            {"facts": OTHER_PROCESS},
            "the operator was restarted between the release and the last pod",
            id="killed half-way",
        ),
        pytest.param(
            [running("worker-0")],
            {"gone": frozenset({"mnist-worker-1-0"})},
            "mnist-worker-1-0 was deleted before the gang was formed",
            id="somebody deletes a pod",
        ),
        pytest.param(
            [running("worker-0"), leaving(running("worker-1"))],
            {},
            "mnist-worker-1-0 was deleted before the gang was formed",
            id="somebody is deleting a pod",
        ),
        pytest.param(
            [running("worker-0")],
            {"spec": spec(workers=3, gang={"scheduler": "BuiltIn"})},
            "the manifest was edited before the gang was formed",
            id="an edit",
        ),
        pytest.param(
            [running("worker-0")], {"faults": ("spec: bad",)}, "the manifest has faults: spec: bad", id="a bad edit"
        ),
        pytest.param(
            [running("worker-0")],
            {"foreign_names": (ForeignChild("Pod", "mnist-worker-1-0", terminating=True),)},
            "Pod mnist-worker-1-0 is not this job's",
            id="a predecessor's pod",
        ),
    ],
)
def test_what_takes_a_released_gang_back(pods: list[PodView], changes: dict[str, Any], reason: str) -> None:
    s = queued(accepted(BUILT_IN, facts=SEES_NODES), admitted_at=ago(30))
    s = replace(s, status=replace(s.status, frozen=after(*_admitted()).frozen), pods=tuple(pods))
    s = replace(s, **changes)
    made = plan(s, NOW)
    status = after(s, made)
    assert made.reason.startswith(f"taken back: {reason}")
    assert (status.gang.admitted_at, status.gang.missed, status.attempt, status.restarts.total) == (None, 0, 0, 0)
    assert status.rounds["worker"][0].round == 1
    assert [word for word in kinds(made) if word.startswith("Create")] == []


def test_a_release_that_is_still_in_memory_was_this_processs_own_whatever_the_clock_says() -> None:
    s = queued(accepted(BUILT_IN, facts=OTHER_PROCESS), admitted_at=ago(30))
    s = replace(s, status=replace(s.status, frozen=after(*_admitted()).frozen), pods=(running("worker-0"),))
    made = plan(replace(s, admission=Admit(("n0", "n1"))), NOW)
    assert [word for word in kinds(made) if word.startswith("Create")] == ["Create worker-1-0"]


def _admitted() -> tuple[Situation, Any]:
    s = accepted(BUILT_IN, facts=SEES_NODES, admission=Admit(("n0",)))
    return s, plan(s, NOW)


def test_a_gang_that_is_bound_begins_its_attempt() -> None:
    s = queued(accepted(), admitted_at=ago(30), queued_at=ago(60), missed=2)
    s = replace(s, pods=(pod("worker-0", "Bound"), pod("worker-1", "Bound")))
    made = plan(s, NOW)
    status = after(s, made)
    assert (status.phase, said(status, "GangScheduled"), made.reason) == (
        "Starting",
        "True Bound",
        "a node for all 2 pods",
    )
    assert (status.start_time, status.gang.formed, status.gang.wait_seconds) == (NOW, 0, 60)
    assert status.gang.missed == 0
    assert (status.timeline[0].attempt, status.timeline[0].start) == (0, NOW)
    assert made.wake_at == NOW + timedelta(seconds=900)


@pytest.mark.parametrize(
    ("facts", "gang", "seconds"),
    [
        pytest.param(Facts(), {}, 300, id="as the default says"),
        pytest.param(Facts(), {"timeoutSeconds": 30}, 30, id="as the job says"),
        pytest.param(Facts(has_autoscaler=True), {}, 1200, id="with an autoscaler that has to make nodes"),
        pytest.param(Facts(has_autoscaler=True), {"whenFull": "Wait"}, 300, id="that is not asked"),
        pytest.param(Facts(), {"whenFull": "Release", "scaleUpSeconds": 77}, 77, id="released on purpose"),
    ],
)
def test_a_gang_that_is_not_bound_in_time_is_taken_back(facts: Facts, gang: dict[str, Any], seconds: int) -> None:
    s = queued(accepted(spec(gang={"scheduler": "None"} | gang), facts=facts), admitted_at=ago(seconds - 1))
    unbound = pod("worker-1", "Unbound", waiting_reason="Unschedulable", waiting_message="0/3 nodes: Insufficient cpu")
    s = replace(s, pods=(running("worker-0"), unbound))
    waits = plan(s, NOW)
    assert (after(s, waits).gang.admitted_at, waits.wake_at) == (ago(seconds - 1), NOW + timedelta(seconds=1))
    assert after(s, waits).gang.waiting_for == "1 of 2 pods have a node; worker-1: 0/3 nodes: Insufficient cpu"
    late = NOW + timedelta(seconds=1)
    made = plan(s, late)
    status = after(s, made)
    assert made.reason == (
        f"1 of 2 pods got no node in {seconds} s: worker-1 Unschedulable: 0/3 nodes: Insufficient cpu; "
        "all are taken back"
    )
    assert (status.phase, status.gang.missed, status.restarts.total) == ("Queued", 1, 0)
    assert said(status, "GangScheduled") == "False Missed"
    assert status.gang.not_before is not None
    assert timedelta(seconds=10) <= status.gang.not_before - late <= timedelta(seconds=11)
    assert kinds(made) == ["Delete worker-0-0", "Delete worker-1-0"]


def test_a_gang_that_formed_while_the_operator_was_away_is_not_taken_back() -> None:
    s = queued(accepted(), admitted_at=ago(3000))
    s = replace(s, pods=(running("worker-0"), running("worker-1")), facts=Facts(started_at=ago(1)))
    assert after(s, plan(s, NOW)).phase == "Starting"


def test_what_is_to_come_is_said() -> None:
    s = accepted(spec(recovery={"mode": "InPlace"}))
    message = next(c.message for c in after(s, plan(s, NOW)).conditions if c.type == "Accepted")
    assert message == "recovery.mode InPlace is to come: until then a restart recreates the pods"


def test_a_bad_edit_of_a_running_job_stops_nothing_and_no_attempt_starts_after_it() -> None:
    s = attempt([running("worker-0"), running("worker-1")], faults=("spec.batch: bad",), generation=2)
    status = after(s, plan(s, NOW))
    assert (status.phase, said(status, "Accepted"), status.observed_generation) == ("Running", "False InvalidEdit", 2)
    assert status.reason == "can't start again as it was edited: spec.batch: bad"
    put_back = replace(s, status=status, faults=(), generation=3)
    assert after(put_back, plan(put_back, NOW)).reason is None
    ended = replace(s, status=status, pods=(exited("worker-0", 1), exited("worker-1", 1)))
    status = after(ended, plan(ended, NOW))
    assert (status.phase, said(status, "Accepted"), status.attempt) == ("Pending", "False Invalid", 1)
    healed = replace(ended, status=status, faults=(), generation=3)
    made = plan(healed, NOW)
    assert "Create worker-0-1" in kinds(made)
    assert said(after(healed, made), "Accepted") == "True Accepted"


def test_an_edit_of_a_running_job_that_cannot_be_read_is_told() -> None:
    s = attempt([running("worker-0"), exited("worker-1")], faults=("spec.roles: required",), generation=2, spec=None)
    made = plan(s, NOW)
    status = after(s, made)
    assert (status.phase, said(status, "Accepted"), made.reason) == (
        "Running",
        "False InvalidEdit",
        "left alone: spec.roles: required",
    )
    assert plan(replace(s, status=status), NOW).status is None


def test_a_role_that_comes_back_goes_on_with_its_rounds() -> None:
    """Taken out in one suspend and put back in the next: its first pods had the first rounds."""
    status = JobStatus(rounds={"evaluator": [RoundOf("0", 2)], "worker": [RoundOf("0-3", 2)]})
    two = [Task("worker", 0), Task("worker", 1)]
    assert raised(status, two, two) == {
        "evaluator": [RoundOf("0", 2)],
        "worker": [RoundOf("2-3", 2), RoundOf("0-1", 3)],
    }


def test_roles_may_grow_while_nothing_runs() -> None:
    """A new worker's round must not look like one whose pod was lost."""
    status = JobStatus(
        phase="Pending", observed_generation=1, attempt=1, gang=GangStatus(formed=3), start_time=LONG_AGO
    )
    s = accepted(spec(workers=3), status=status)
    assert kinds(plan(s, NOW)) == ["Create worker-0-4", "Create worker-1-4", "Create worker-2-4"]


def test_what_is_not_ours_is_left_alone() -> None:
    for s in (accepted(spec(managedBy="kueue.x-k8s.io/multikueue")), accepted(deleting=True)):
        made = plan(s, NOW)
        assert (made.status, made.actions, made.wake_at) == (None, (), None)
