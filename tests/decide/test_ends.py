"""How a job comes to its end, or is stopped and taken up again by its user: success, clean-up, suspend, restart."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from dtj_operator.api.observed import NodeView, PodView, Situation
from dtj_operator.api.status import FINAL, Clock, JobStatus, RecoveryState, Restarts, RoleStatus
from dtj_operator.decide.actions import DeleteJob
from dtj_operator.decide.plan import plan
from tests.decide.situations import (
    NOW,
    UID,
    accepted,
    after,
    ago,
    attempt,
    death,
    exited,
    heard,
    kinds,
    leaving,
    new,
    running,
    said,
    spec,
    told,
)

DONE = exited("worker-0", 0)
ALL_WORKERS = spec(successPolicy="AllWorkers")


@pytest.mark.parametrize(
    ("pods", "job", "phase", "reason"),
    [
        pytest.param(
            [DONE, exited("worker-1", 0)], None, "Succeeded", "succeeded: worker-0 exited 0", id="all are done"
        ),
        pytest.param(
            [DONE, exited("worker-1", 1)],
            None,
            "Succeeded",
            "succeeded: worker-0 exited 0",
            id="the chief's exit 0 wins",
        ),
        pytest.param([DONE], None, "Succeeded", "succeeded: worker-0 exited 0", id="also over a pod that is lost"),
        pytest.param([DONE, running("worker-1")], None, "Running", "worker-0 exited 0", id="the others get their time"),
        pytest.param(
            [running("worker-0"), exited("worker-1", 0)], None, "Running", "", id="a worker alone is no success"
        ),
        pytest.param([DONE, running("worker-1")], ALL_WORKERS, "Running", "", id="all workers are asked for"),
        pytest.param(
            [DONE, exited("worker-1", 0)],
            ALL_WORKERS,
            "Succeeded",
            "succeeded: every worker exited 0",
            id="and all are done",
        ),
        pytest.param([DONE, exited("worker-1", 1)], ALL_WORKERS, "Queued", "worker-1 exited 1", id="one fails"),
        pytest.param(
            [exited("chief-0", 0), running("worker-0"), running("worker-1"), running("ps-0")],
            spec(roles={"chief": {}, "ps": {}}),
            "Running",
            "chief-0 exited 0",
            id="a chief of its own",
        ),
    ],
)
def test_success(pods: list[PodView], job: Any, phase: str, reason: str) -> None:
    s = attempt(pods, job=job)
    made = plan(s, NOW)
    assert after(s, made).phase == phase
    assert reason in made.reason


@pytest.mark.parametrize(
    ("pods", "phase", "ready", "counts"),
    [
        pytest.param(
            [told("worker-0", "Config"), running("worker-1")],
            "Failed",
            "0/2",
            RoleStatus(desired=2, scheduled=2, failed=1),
            id="a peer of the culprit that is being stopped",
        ),
        pytest.param(
            [told("worker-0", "Config"), exited("worker-1", 0)],
            "Failed",
            "0/2",
            RoleStatus(desired=2, scheduled=2, succeeded=1, failed=1),
            id="a worker's success is of no use to a failed job",
        ),
        pytest.param(
            [DONE, exited("worker-1", 0)],
            "Succeeded",
            "2/2",
            RoleStatus(desired=2, scheduled=2, succeeded=2),
            id="all have succeeded",
        ),
        pytest.param(
            [DONE, exited("worker-1", 1)],
            "Succeeded",
            "1/2",
            RoleStatus(desired=2, scheduled=2, succeeded=1, failed=1),
            id="the chief's success is enough",
        ),
    ],
)
def test_nothing_of_a_job_that_is_over_runs(pods: list[PodView], phase: str, ready: str, counts: RoleStatus) -> None:
    s = attempt(pods)
    status = after(s, plan(s, NOW))
    assert (status.phase, status.ready, status.roles["worker"]) == (phase, ready, counts)


def test_others_are_stopped_30_seconds_after_the_chief_s_success() -> None:
    s = attempt([DONE, running("worker-1")])
    made = plan(s, NOW)
    status = after(s, made)
    assert (status.chief_finished_at, made.wake_at, kinds(made)) == (NOW, NOW + timedelta(seconds=30), [])
    s = replace(s, status=status, pods=(running("worker-1"),))
    assert plan(s, NOW + timedelta(seconds=29)).status is None, "the chief's pod may be gone by now"
    end = plan(s, NOW + timedelta(seconds=30))
    status = after(s, end)
    assert (status.phase, status.completion_time) == ("Succeeded", NOW + timedelta(seconds=30))
    assert said(status, "Complete") == "True ChiefSucceeded"
    assert "Delete worker-1-0" in kinds(end)
    assert (status.timeline[-1].outcome, status.restarts) == ("Succeeded", Restarts())


def test_a_job_that_ends_between_two_looks_has_its_times() -> None:
    s = accepted(spec(workers=1))
    status = after(s, plan(s, ago(10)))
    s = replace(s, status=status, pods=(DONE,))
    status = after(s, plan(s, NOW))
    assert (status.phase, status.start_time, status.completion_time) == ("Succeeded", ago(10), NOW)
    assert [(a.attempt, a.start, a.end, a.outcome) for a in status.timeline] == [(0, ago(10), NOW, "Succeeded")]
    assert status.ready == "1/1"


def evaluated(*evaluator: PodView, scheduled: int = 1, **role: Any) -> Situation:
    job = spec(roles={"evaluator": {"finishSeconds": 100} | role})
    counts = {"evaluator": RoleStatus(desired=1, scheduled=scheduled)}
    return attempt([running("worker-0"), running("worker-1"), *evaluator], job=job, status={"roles": counts})


def test_the_evaluator_comes_with_the_attempt_and_is_no_member_of_the_gang() -> None:
    s = evaluated(scheduled=0)
    made = plan(s, NOW)
    assert kinds(made) == ["Create evaluator-0-0"]
    there = replace(s, pods=(*s.pods, running("evaluator-0")))
    status = after(there, plan(there, NOW))
    assert status.roles["evaluator"] == RoleStatus(desired=1, scheduled=1, running=1)
    assert status.ready == "2/2"


def test_an_evaluator_that_may_not_be_made_is_told_until_it_is_there() -> None:
    s = evaluated(scheduled=0)
    s = replace(s, status=after(s, plan(s, NOW)))
    words = 'pods "mnist-evaluator-0-0" is forbidden: exceeded quota: pods'
    refused = replace(s, refusals=(words,))
    made = plan(refused, NOW)
    status = after(refused, made)
    assert (status.phase, status.reason) == ("Running", f"the API server refuses what the attempt needs: {words}")
    assert kinds(made) == ["Create evaluator-0-0"]
    again = plan(replace(s, status=status), NOW)
    assert (again.status, kinds(again)) == (None, ["Create evaluator-0-0"])
    again = plan(replace(refused, status=status), NOW)
    assert again.status is None
    there = replace(s, status=status, pods=(*s.pods, running("evaluator-0")))
    assert after(there, plan(there, NOW)).reason is None


@pytest.mark.parametrize(
    ("evaluator", "reason"),
    [
        pytest.param(
            (exited("evaluator-0", 1),), "evaluator-0 exited 1: restarted alone, the training goes on", id="fails"
        ),
        pytest.param((), "evaluator-0 was deleted by someone: restarted alone, the training goes on", id="is lost"),
    ],
)
def test_the_evaluator_restarts_alone(evaluator: tuple[PodView, ...], reason: str) -> None:
    s = evaluated(*evaluator)
    made = plan(s, NOW)
    status = after(s, made)
    assert made.reason == reason
    assert (status.phase, status.attempt, status.starts, status.restarts) == (
        "Running",
        0,
        {"evaluator-0": 1},
        Restarts(),
    )
    assert kinds(made) == ["Create evaluator-0-1"]
    again = plan(replace(s, status=status), NOW)
    assert (again.status, kinds(again)) == (None, ["Create evaluator-0-1"])


def test_an_evaluator_s_end_shortens_no_back_off() -> None:
    s = evaluated(exited("evaluator-0", 1))
    later = NOW + timedelta(seconds=200)
    s = replace(s, status=replace(s.status, phase="Restarting", recovery=RecoveryState(not_before=later)))
    assert after(s, plan(s, NOW)).recovery.not_before == later


def test_an_evaluator_that_keeps_failing_waits_and_then_stays_ended() -> None:
    job_status = {"roles": {"evaluator": RoleStatus(desired=1, scheduled=1)}}
    s = evaluated(exited("evaluator-0", 1))
    second = replace(s, status=replace(s.status, starts={"evaluator-0": 1}))
    made = plan(second, NOW)
    assert kinds(made) == []
    assert made.wake_at is not None
    assert timedelta(seconds=5) <= made.wake_at - NOW <= timedelta(seconds=5.5)
    last = replace(s, status=replace(s.status, starts={"evaluator-0": 10}))
    status = after(last, plan(last, NOW))
    assert (status.phase, status.finished) == ("Running", {"evaluator": "0"})
    needed = evaluated(exited("evaluator-0", 1), required=True)
    needed = replace(needed, status=replace(needed.status, starts={"evaluator-0": 10}, **job_status))
    assert said(after(needed, plan(needed, NOW)), "Failed") == "True EvaluatorFailed"


def test_a_rule_may_fail_the_job_for_its_evaluator_or_let_it_end() -> None:
    for action, phase in (("Fail", "Failed"), ("Ignore", "Running")):
        rules = [{"action": action, "roles": ["evaluator"], "exitCodes": [1]}]
        s = evaluated(exited("evaluator-0", 1))
        s = replace(s, spec=spec(roles={"evaluator": {}}, recovery={"rules": rules}))
        status = after(s, plan(s, NOW))
        assert (status.phase, status.starts) == (phase, {})


def test_the_evaluator_lives_on_when_the_gang_restarts() -> None:
    s = evaluated(running("evaluator-0"))
    ended = replace(s, pods=(running("worker-0"), exited("worker-1", 1), running("evaluator-0")))
    made = plan(ended, NOW)
    assert kinds(made) == ["Delete worker-0-0"]
    quiet = replace(ended, status=after(ended, made), pods=(exited("worker-1", 1), running("evaluator-0")))
    assert kinds(plan(quiet, NOW)) == ["Create worker-0-1", "Create worker-1-1"]


@pytest.mark.parametrize(
    ("evaluator", "seconds", "role", "phase", "says"),
    [
        (running("evaluator-0"), 99, {}, "Running", None),
        (running("evaluator-0"), 100, {}, "Succeeded", "Complete"),
        (exited("evaluator-0", 0), 31, {}, "Succeeded", "Complete"),
        (running("evaluator-0"), 100, {"required": True}, "Failed", "Failed"),
        (exited("evaluator-0", 0), 31, {"required": True}, "Succeeded", "Complete"),
    ],
)
def test_the_evaluator_may_finish(evaluator: PodView, seconds: int, role: Any, phase: str, says: Any) -> None:
    s = evaluated(evaluator, **role)
    s = replace(
        s, pods=(DONE, exited("worker-1", 0), evaluator), status=replace(s.status, chief_finished_at=ago(seconds))
    )
    status = after(s, plan(s, NOW))
    assert status.phase == phase
    assert says is None or said(status, says) is not None


def test_while_the_evaluator_finishes_the_job_says_so_and_holds_no_other_pod() -> None:
    s = evaluated(running("evaluator-0"))
    s = replace(s, pods=(DONE, running("worker-1"), running("evaluator-0")))
    status = after(s, plan(s, NOW))
    assert said(status, "Training") == "True EvaluatorFinishing"
    late = plan(replace(s, status=status), NOW + timedelta(seconds=30))
    assert kinds(late) == ["Delete worker-1-0"]
    assert late.status is None


def final(pods: list[PodView], **fields: Any) -> Situation:
    """A job that has succeeded, its pods as given, its clean-up still to do."""
    s = attempt(pods, job=spec(**fields))
    done = plan(replace(s, pods=(DONE, exited("worker-1", 0))), NOW)
    return replace(s, status=after(s, done))


@pytest.mark.parametrize(
    ("policy", "deleted"),
    [
        ("Running", ["Delete worker-1-0"]),
        ("None", ["Delete worker-1-0"]),
        ("All", ["Delete worker-0-0", "Delete worker-1-0"]),
    ],
)
def test_clean_up(policy: str, deleted: list[str]) -> None:
    s = final([DONE, running("worker-1")], cleanPodPolicy=policy)
    made = plan(s, NOW)
    objects = ["Delete peers", "Delete peers"]
    assert kinds(made) == [*objects, *deleted]
    assert made.status is None
    rest = replace(s, pods=(leaving(running("worker-1")),), children=frozenset({("Secret", "s", "u", "")}))
    assert plan(rest, NOW).status is None, "a pod that is still there is waited for"
    clean = replace(rest, pods=(DONE,) if policy != "All" else ())
    status = after(clean, plan(clean, NOW))
    assert status.cleanup is None
    over = plan(replace(clean, status=status, generation=9), NOW)
    assert (over.status, over.actions, over.wake_at) == (None, (), None)


def test_the_culprit_s_pod_outlives_the_job_unless_all_are_cleaned() -> None:
    s = attempt([running("worker-0"), exited("worker-1", 1)], job=spec(recovery={"maxRestarts": 0}))
    made = plan(s, NOW)
    assert after(s, made).phase == "Failed"
    assert kinds(made)[2:] == ["Delete worker-0-0"]
    s = attempt(
        [running("worker-0"), exited("worker-1", 1)], job=spec(recovery={"maxRestarts": 0}, cleanPodPolicy="All")
    )
    assert kinds(plan(s, NOW))[2:] == ["Delete worker-0-0", "Delete worker-1-0"]


@pytest.mark.parametrize(
    ("fields", "stays"),
    [
        pytest.param({}, True, id="kept for its logs"),
        pytest.param({"keepFailedPods": 0}, False, id="no failed pod is kept"),
        pytest.param({"keepFailedPods": 0, "cleanPodPolicy": "None"}, True, id="every pod is kept"),
        pytest.param({"cleanPodPolicy": "All"}, False, id="no pod is kept"),
    ],
)
def test_the_culprit_s_pod_ends_by_itself_where_its_end_is_told_before(fields: dict[str, Any], stays: bool) -> None:
    """The chief tells of the death while the culprit's supervisor still settles: deleted, it would take its logs."""
    job = spec(recovery={"maxRestarts": 0}, **fields)
    victim, first = told("worker-0", "Peer", at=ago(1)), heard(5, first_death=death("worker-1", exit_code=7))
    s = attempt([victim, running("worker-1")], job=job, training=first)
    made = plan(s, NOW)
    status = after(s, made)
    assert (status.phase, status.last_failure and status.last_failure.exit_code) == ("Failed", 7)
    assert ("Delete worker-1-0" not in kinds(made)) == stays
    if stays:
        s = replace(s, status=status, pods=(running("worker-1"),), children=frozenset())
        waits = plan(s, NOW)
        assert (waits.status, waits.actions, waits.wake_at) == (None, (), NOW + timedelta(seconds=10))
        assert kinds(plan(s, NOW + timedelta(seconds=10))) == ["Delete worker-1-0"]
        clean = replace(s, pods=(exited("worker-1", 7),))
        assert after(clean, plan(clean, NOW)).cleanup is None


def test_a_sidecar_keeps_no_finished_job_alive_and_no_failed_pod() -> None:
    """kubeflow/trainer#1183, where it did."""
    lingering = replace(DONE, lingers=True)
    s = final([lingering], cleanPodPolicy="None")
    assert "Delete worker-0-0" in kinds(plan(s, NOW))
    culprit = replace(exited("worker-1", 1), lingers=True)
    s = attempt([running("worker-0"), culprit])
    made = plan(s, NOW)
    assert (kinds(made), made.wake_at) == (["Delete worker-0-0"], NOW + timedelta(seconds=10))
    s = replace(s, status=after(s, made), pods=(culprit,))
    assert "Delete worker-1-0" in kinds(plan(s, NOW + timedelta(seconds=10)))


def test_time_to_live() -> None:
    s = final([DONE], ttlSecondsAfterFinished=60)
    s = replace(s, status=replace(s.status, cleanup=None), children=frozenset())
    waits = plan(s, NOW)
    assert (waits.actions, waits.wake_at) == ((), NOW + timedelta(seconds=60))
    assert plan(s, NOW + timedelta(seconds=60)).actions == (DeleteJob("mnist", UID),)


def test_the_active_deadline_counts_unsuspended_time_and_needs_no_event() -> None:
    s = attempt([running("worker-0"), running("worker-1")], job=spec(activeDeadlineSeconds=200))
    s = replace(s, status=replace(s.status, clock=Clock(active_seconds=100, since=ago(60))))
    assert plan(s, NOW).wake_at == NOW + timedelta(seconds=40)
    made = plan(s, NOW + timedelta(seconds=40))
    status = after(s, made)
    assert (status.phase, said(status, "Failed")) == ("Failed", "True DeadlineExceeded")
    assert made.reason == "the job was active for 200 s (activeDeadlineSeconds)"
    assert kinds(made)[2:] == ["Delete worker-0-0", "Delete worker-1-0"]


def test_suspend_stops_everything_and_says_when_it_has() -> None:
    s = attempt([running("worker-0"), running("worker-1")], job=spec(suspend=True))
    made = plan(s, NOW)
    status = after(s, made)
    assert (status.phase, said(status, "Suspended"), status.attempt) == ("Restarting", "False Suspending", 1)
    assert (status.gang.admitted_at, status.rounds["worker"][0].round) == (None, 1)
    assert (status.clock.active_seconds, status.clock.since) == (160, None)
    assert kinds(made) == ["Delete worker-0-0", "Delete worker-1-0"]
    assert status.restarts == Restarts()
    stopping = replace(s, status=status, pods=(leaving(running("worker-0")), exited("worker-1", 143)))
    assert plan(stopping, NOW).status is None
    quiet = replace(stopping, pods=(exited("worker-1", 143),))
    done = plan(quiet, NOW)
    status = after(quiet, done)
    assert (status.phase, said(status, "Suspended")) == ("Suspended", "True Suspended")
    assert kinds(done) == ["Delete worker-1-0"]
    assert plan(replace(quiet, status=status, pods=()), NOW + timedelta(days=1)).status is None


def test_a_suspend_that_is_taken_back_still_waits_for_the_old_pods() -> None:
    s = attempt([running("worker-0"), running("worker-1")], job=spec(suspend=True))
    status = after(s, plan(s, NOW))
    back = replace(s, spec=spec(), status=status, pods=(leaving(running("worker-0")),))
    made = plan(back, NOW)
    assert (made.status, made.reason) == (None, "suspending: waits for 1 pod to end: mnist-worker-0-0")
    quiet = replace(back, pods=())
    made = plan(quiet, NOW)
    assert (after(quiet, made).phase, kinds(made)) == ("Queued", ["Create worker-0-1", "Create worker-1-1"])


@pytest.mark.parametrize(
    ("s", "attempt_number"),
    [
        pytest.param(new(spec(suspend=True)), 0, id="a new job"),
        pytest.param(
            accepted(spec(suspend=True), status=JobStatus(phase="Queued", observed_generation=1)), 0, id="a queued one"
        ),
        pytest.param(
            accepted(
                spec(suspend=True),
                pods=(exited("worker-0", 1),),
                status=JobStatus(phase="Restarting", observed_generation=1, attempt=3),
            ),
            3,
            id="one that backs off",
        ),
    ],
)
def test_what_does_not_run_is_suspended_at_once(s: Situation, attempt_number: int) -> None:
    status = after(s, plan(s, NOW))
    assert (status.phase, status.attempt, said(status, "Suspended")) == ("Suspended", attempt_number, "True Suspended")


def test_faults_of_a_suspended_job_are_told() -> None:
    s = new(spec(suspend=True), faults=("spec.batch: bad",), status=JobStatus(phase="Suspended", observed_generation=1))
    status = after(s, plan(s, NOW))
    assert said(status, "Accepted") == "False Invalid"
    healed = replace(s, status=status, faults=())
    assert said(after(healed, plan(healed, NOW)), "Accepted") == "True Accepted"


def test_success_is_not_thrown_away_by_a_suspend() -> None:
    s = attempt([DONE, running("worker-1")], job=spec(suspend=True), status={"chief_finished_at": ago(5)})
    assert after(s, plan(s, NOW)).phase == "Running"
    assert after(s, plan(s, NOW + timedelta(seconds=30))).phase == "Succeeded"


def test_a_requested_restart_is_made_once_and_not_counted() -> None:
    s = attempt([running("worker-0"), running("worker-1")], job=spec(restartRequest="a"))
    made = plan(s, NOW)
    status = after(s, made)
    assert made.reason == "restart requested: attempt 1 now"
    assert (status.phase, status.attempt, status.restarts, status.restart_request) == ("Restarting", 1, Restarts(), "a")
    assert status.timeline[-1].outcome == "Requested"
    assert kinds(made) == ["Delete worker-0-0", "Delete worker-1-0"]
    new_pods = (running("worker-0", 1), running("worker-1", 1))
    s = attempt([*new_pods], job=spec(restartRequest="a"), number=1, status={"restart_request": "a"})
    assert after(s, plan(s, NOW)).attempt == 1


@pytest.mark.parametrize(
    ("s", "request_"),
    [
        pytest.param(new(spec(restartRequest="a")), "a", id="a job that is first seen"),
        pytest.param(
            attempt([running("worker-0"), running("worker-1")], status={"restart_request": "a"}),
            None,
            id="taken out of the manifest",
        ),
        pytest.param(
            accepted(spec(restartRequest="a"), status=JobStatus(phase="Queued", observed_generation=1)),
            "a",
            id="nothing runs",
        ),
    ],
)
def test_a_request_that_restarts_nothing(s: Situation, request_: str | None) -> None:
    status = after(s, plan(s, NOW))
    assert (status.restart_request, status.attempt, status.restarts) == (request_, 0, Restarts())


def test_a_request_ends_a_back_off() -> None:
    waits = JobStatus(
        phase="Restarting",
        observed_generation=1,
        attempt=1,
        recovery=RecoveryState(not_before=NOW + timedelta(hours=1)),
    )
    s = accepted(spec(restartRequest="a"), status=waits)
    assert "Create worker-0-0" in kinds(plan(s, NOW))
    same = accepted(spec(), status=waits)
    assert kinds(plan(same, NOW)) == []


def test_a_request_waits_for_a_good_manifest() -> None:
    s = attempt([running("worker-0"), running("worker-1")], job=spec(restartRequest="a"), faults=("spec: bad",))
    assert after(s, plan(s, NOW)).attempt == 0


@pytest.mark.parametrize(
    ("pod", "nodes", "forced"),
    [
        pytest.param(leaving(running("worker-0"), 149), None, False, id="in its grace period and 120 s"),
        pytest.param(leaving(running("worker-0"), 150), None, True, id="after them"),
        pytest.param(leaving(running("worker-0"), 31), "silent", True, id="its node is silent: grace alone"),
        pytest.param(leaving(running("worker-0"), 29), "silent", False, id="grace is given in any case"),
        pytest.param(leaving(running("worker-0"), 1), "gone", True, id="its node is gone"),
        pytest.param(leaving(running("worker-0"), 500), "most silent", False, id="most nodes are silent: the network"),
    ],
)
def test_when_a_pod_is_removed_by_force(pod: PodView, nodes: str | None, *, forced: bool) -> None:
    fleets = {
        None: None,
        "silent": (NodeView("n0", ready=False, not_ready_since=ago(40)), NodeView("n1"), NodeView("n2")),
        "gone": (NodeView("n1"), NodeView("n2")),
        "most silent": (NodeView("n0", ready=False), NodeView("n1", ready=False), NodeView("n2")),
    }
    status = JobStatus(phase="Restarting", observed_generation=1, attempt=1)
    rounds = attempt([], number=1).status.rounds
    s = accepted(pods=(pod,), nodes=fleets[nodes], status=replace(status, rounds=rounds))
    made = plan(s, NOW)
    assert kinds(made) == (["Delete worker-0-0 by force"] if forced else [])
    assert made.wake_at is not None


def test_a_culprit_told_by_others_may_end_by_itself() -> None:
    s = attempt(
        [told("worker-0", "Peer", at=ago(1)), running("worker-1")],
        training=heard(first_death=death("worker-1", signal="SIGKILL")),
    )
    made = plan(s, NOW)
    status = after(s, made)
    assert (status.phase, kinds(made), made.wake_at) == (
        "Restarting",
        ["Delete worker-0-0"],
        NOW + timedelta(seconds=10),
    )
    s = replace(s, status=status, pods=(running("worker-1"),))
    assert kinds(plan(s, NOW + timedelta(seconds=9))) == []
    assert kinds(plan(s, NOW + timedelta(seconds=10))) == ["Delete worker-1-0"]


def test_final_phases_are_the_end() -> None:
    for phase in FINAL:
        status = JobStatus(phase=phase, completion_time=ago(5))
        s = accepted(status=status, pods=(exited("worker-0", 1), running("worker-1")))
        assert plan(s, NOW).actions == ()
