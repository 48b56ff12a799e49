"""An attempt under way: when it counts as running, what is told of it, and what takes too long."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from dtj_operator.api.observed import Facts, ForeignChild, PodView, Situation, TrainingView
from dtj_operator.api.reasons import Reason
from dtj_operator.api.status import CheckpointStatus, Condition, LastFailure, Phase, Progress, RoundOf
from dtj_operator.decide.actions import Create
from dtj_operator.decide.conditions import condition
from dtj_operator.decide.plan import plan
from dtj_worker.contract import VerdictKind
from tests.decide.situations import (
    LONG_AGO,
    NOW,
    after,
    ago,
    attempt,
    exited,
    heard,
    kinds,
    pod,
    running,
    said,
    spec,
    told,
)

BOTH = [running("worker-0", started_at=ago(50)), running("worker-1", started_at=ago(50))]
LATE = [running("worker-0", started_at=ago(61)), running("worker-1", started_at=ago(61))]


def starting(pods: list[PodView], seconds: float = 100, **fields: Any) -> Situation:
    """An attempt whose gang was formed so many seconds ago; nothing was heard of supervisors before."""
    s = attempt(pods, phase="Starting", **fields)
    timeline = [replace(s.status.timeline[0], start=ago(seconds))]
    conditions = [c for c in s.status.conditions if c.type != "Supervised"]
    return replace(s, status=replace(s.status, timeline=timeline, conditions=conditions))


@pytest.mark.parametrize(
    ("s", "phase", "supervised", "training", "reason"),
    [
        pytest.param(
            starting([BOTH[0], pod("worker-1", "Bound")]),
            "Starting",
            None,
            "False Starting",
            "not all containers ran within 900 s: worker-1 has not started on n1",
            id="a container is still to start",
        ),
        pytest.param(
            starting(BOTH), "Starting", None, "False Starting", "all containers run; no step yet", id="all run"
        ),
        pytest.param(
            starting(BOTH, training=heard(None, stage="Rendezvous")),
            "Starting",
            "True AllRegistered",
            "False Starting",
            "all containers run; no step yet",
            id="rendezvous",
        ),
        pytest.param(
            starting(BOTH, training=heard(1)),
            "Running",
            "True AllRegistered",
            "True StepsMade",
            "step 1 was reported",
            id="the first step",
        ),
        pytest.param(
            starting(BOTH, training=heard(60, resumed_from_step=60)),
            "Starting",
            "True AllRegistered",
            "False Starting",
            "all containers run; no step yet",
            id="a restored step is none that was made",
        ),
        pytest.param(
            starting(BOTH, training=heard(60, number=5)),
            "Starting",
            None,
            "False Starting",
            "all containers run; no step yet",
            id="a word about another attempt",
        ),
        pytest.param(
            starting(LATE),
            "Running",
            "False NotRegistered",
            "True ContainersRunning",
            "all trainers run; without supervisors nothing tells their steps",
            id="no supervisor for a minute",
        ),
        pytest.param(
            starting(LATE, facts=Facts(started_at=ago(59))),
            "Starting",
            None,
            "False Starting",
            "all containers run; no step yet",
            id="a minute that this process has seen",
        ),
        pytest.param(
            starting(BOTH, job=spec(supervisor="None")),
            "Running",
            "False NoSupervisor",
            "True ContainersRunning",
            "all trainers run; without supervisors nothing tells their steps",
            id="none was asked for",
        ),
    ],
)
def test_when_an_attempt_is_running(
    s: Situation, phase: str, supervised: str | None, training: str, reason: str
) -> None:
    made = plan(s, NOW)
    status = after(s, made)
    assert (status.phase, said(status, "Supervised"), said(status, "Training")) == (phase, supervised, training)
    assert made.reason == reason


@pytest.mark.parametrize(
    ("image", "advice"),
    [
        (None, "the template sets a command, and this operator was given no supervisor image to inject"),
        ("dtj/worker", "which the supervisor is put in front of; it needs the image's python3, 3.11 or newer"),
    ],
)
def test_what_helps_against_a_missing_supervisor_depends_on_the_operator(image: str | None, advice: str) -> None:
    template = {"spec": {"containers": [{"name": "trainer", "image": "a", "command": ["python", "train.py"]}]}}
    facts = Facts(started_at=LONG_AGO, supervisor_image=image)
    s = starting(LATE, job=spec(template=template), facts=facts)
    told = condition(after(s, plan(s, NOW)), "Supervised")
    assert told is not None
    assert told.message.endswith(advice)


def test_a_program_that_reports_no_steps_runs_a_minute_after_its_strategy_stands() -> None:
    s = starting(BOTH, training=heard(None, stage="Built"))
    built = plan(s, NOW)
    status = after(s, built)
    assert (status.phase, said(status, "Training")) == ("Starting", "Unknown StrategyBuilt")
    later = replace(s, status=status, training=heard(None, seconds=-60, stage="Built"))
    assert plan(later, NOW + timedelta(seconds=59)).status is None
    status = after(later, plan(later, NOW + timedelta(seconds=60)))
    assert (status.phase, said(status, "Training")) == ("Running", "True ContainersRunning")
    dead = replace(
        later, training=heard(None, seconds=-60, stage="Built", tasks={"worker-0": "Built", "worker-1": "Dead"})
    )
    assert after(dead, plan(dead, NOW + timedelta(seconds=60))).phase == "Starting"


@pytest.mark.parametrize(
    ("s", "kind", "reason"),
    [
        pytest.param(
            starting(
                [BOTH[0], pod("worker-1", "Bound", waiting_reason="ImagePullBackOff", waiting_message="no such tag")],
                900,
            ),
            "Image",
            "worker-1 did not start: not all containers ran within 900 s: "
            "worker-1 ImagePullBackOff on n1: no such tag: failure 1 of 10, attempt 1 now, all 2 pods replaced",
            id="an image that can't be pulled",
        ),
        pytest.param(
            starting(
                [
                    pod("worker-0", "Bound"),
                    pod("worker-1", "Bound", waiting_reason="CreateContainerConfigError", waiting_message="configmap"),
                ],
                900,
            ),
            "Image",
            "worker-1 did not start: not all containers ran within 900 s: worker-0 has not started on n0; "
            "worker-1 CreateContainerConfigError on n1: configmap: failure 1 of 10, attempt 1 now, all 2 pods replaced",
            id="a config map that is not there",
        ),
        pytest.param(
            starting(
                [running(f"worker-{i}", started_at=ago(300)) for i in range(2)],
                training=heard(None, stage="Waiting", tasks={"worker-0": "Registered", "worker-1": "Waiting"}),
            ),
            "Rendezvous",
            "worker-1 did not register: 1 of 2 tasks registered within 300 s; missing: worker-1; DNS and worker-0 "
            "must be in its reach, which a NetworkPolicy may deny: failure 1 of 10, attempt 1 now, all 2 pods replaced",
            id="a supervisor that does not come",
        ),
    ],
)
def test_what_takes_too_long(s: Situation, kind: str, reason: str) -> None:
    made = plan(s, NOW)
    failure = after(s, made).last_failure
    assert failure is not None
    assert (made.reason, failure.failure_class) == (reason, kind)
    early = plan(s, NOW - timedelta(seconds=2))
    assert after(s, early).last_failure is None
    assert early.wake_at == NOW


def test_silence_is_no_sign_that_a_supervisor_did_not_register() -> None:
    """An operator that was away for an hour declares nobody lost."""
    waits = heard(None, seconds=16, stage="Waiting", tasks={"worker-0": "Registered"})
    s = starting([running(f"worker-{i}", started_at=ago(3000)) for i in range(2)], training=waits)
    assert after(s, plan(s, NOW)).last_failure is None


def test_why_a_start_takes_its_time_is_told() -> None:
    s = starting([BOTH[0], pod("worker-1", "Bound", waiting_reason="ErrImagePull", waiting_message="no such tag")])
    status = after(s, plan(s, NOW))
    assert (status.reason, status.ready) == ("worker-1 ErrImagePull on n1: no such tag", "1/2")


def running_job(training: TrainingView | None, **status: Any) -> Situation:
    s = attempt([running("worker-0"), running("worker-1")], training=training, status=status)
    first = after(s, plan(s, NOW))
    known = replace(first, progress=Progress(at=ago(20), step=400, loss=1.0), clock=replace(first.clock, since=ago(20)))
    return replace(s, status=replace(known, **status))


@pytest.mark.parametrize(
    ("training", "since_told", "step"),
    [
        pytest.param(heard(412, loss=0.5), 20, 400, id="not every step is told"),
        pytest.param(heard(412, loss=0.5), 30, 412, id="but twice a minute"),
        pytest.param(heard(412, checkpoint_step=410), 1, 412, id="and with every checkpoint"),
        pytest.param(heard(400, loss=1.0), 500, 400, id="no news"),
    ],
)
def test_how_often_progress_is_told(training: TrainingView, since_told: float, step: int) -> None:
    s = running_job(heard(400, loss=1.0))
    told = Progress(at=ago(since_told), step=400, loss=1.0)
    s = replace(s, training=training, status=replace(s.status, progress=told))
    made = plan(s, NOW)
    assert after(s, made).progress is not None
    assert (after(s, made).progress or told).step == step
    if step == 400 and since_told == 20:
        assert made.status is None
        assert made.wake_at == NOW + timedelta(seconds=10)
    s = replace(s, status=after(s, made))
    assert plan(s, NOW).status is None


@pytest.mark.parametrize(
    ("pods", "training", "phase", "step"),
    [
        pytest.param(
            [running("worker-0"), exited("worker-1")], heard(412), "Restarting", 412, id="as far as was heard"
        ),
        pytest.param(
            [running("worker-0"), told("worker-1", "Program", step=413)],
            heard(412),
            "Restarting",
            413,
            id="as its end tells",
        ),
        pytest.param(
            [told("worker-0", "Program", step=411), running("worker-1")], heard(412), "Restarting", 412, id="never back"
        ),
        pytest.param([running("worker-0"), exited("worker-1")], None, "Restarting", 400, id="no more than was told"),
        pytest.param(
            [running("worker-0"), told("worker-1", "Config", step=413)], None, "Failed", 413, id="the job fails"
        ),
        pytest.param(
            [told("worker-0", "Done", step=420), told("worker-1", "Done", step=420)],
            heard(412),
            "Succeeded",
            420,
            id="the job succeeds",
        ),
        pytest.param(
            [told("worker-0", "Done", step=420), running("worker-1")], heard(412), "Running", 420, id="its chief does"
        ),
    ],
)
def test_where_an_attempt_has_ended_is_told(
    pods: list[PodView], training: TrainingView | None, phase: str, step: int
) -> None:
    status = {"progress": Progress(at=ago(20), step=400, epoch=3, eta=NOW + timedelta(seconds=60))}
    s = attempt(pods, training=training, status=status)
    ended = after(s, plan(s, NOW))
    assert ended.phase == phase
    assert ended.progress is not None
    assert (ended.progress.step, ended.progress.eta) == (step, None)
    assert plan(replace(s, status=ended), NOW).status is None


def test_a_new_attempt_tells_of_no_step_of_the_one_before() -> None:
    s = attempt([running("worker-0"), told("worker-1", "Program", step=413)], training=heard(412))
    s = replace(s, status=after(s, plan(s, NOW)), pods=())
    s = replace(s, status=after(s, plan(s, NOW)))
    assert s.status.progress is not None
    s = replace(s, pods=(running("worker-0", 1, started_at=ago(9)), running("worker-1", 1, started_at=ago(9))))
    begun = after(s, plan(s, NOW))
    assert (begun.phase, begun.attempt, begun.progress) == ("Starting", 1, None)
    first = after(s, plan(replace(s, status=begun, training=heard(1, number=1)), NOW))
    assert first.progress is not None
    assert first.progress.step == 1


def test_the_end_is_foretold_by_the_pace_of_the_attempt() -> None:
    """The first step was 3000 s ago, at epoch 2 of 10; now it is epoch 6."""
    s = attempt(
        [running("worker-0"), running("worker-1")],
        training=heard(
            412, seconds=0, epoch=6, epochs=10, resumed_from_step=100, resumed_from_epoch=2, loss=float("nan")
        ),
    )
    progress = after(s, plan(s, NOW)).progress
    assert progress is not None
    assert (progress.eta, progress.loss) == (NOW + timedelta(seconds=3000), None)


@pytest.mark.parametrize("epochs", [10**9, 2**53])
def test_an_end_beyond_all_calendars_is_not_foretold(epochs: int) -> None:
    """As of a program that trains until something else stops it."""
    s = attempt(
        [running("worker-0"), running("worker-1")], training=heard(412, epoch=1, epochs=epochs, resumed_from_epoch=0)
    )
    progress = after(s, plan(s, NOW)).progress
    assert progress is not None
    assert (progress.epochs, progress.eta) == (epochs, None)


def test_a_checkpoint_is_told_at_once() -> None:
    s = running_job(heard(412, checkpoint_step=410, checkpoint_epoch=2))
    status = after(s, plan(s, NOW))
    assert status.checkpoint == CheckpointStatus(step=410, epoch=2, at=NOW, claim=None)
    assert said(status, "CheckpointReady") == "True Verified"


@pytest.mark.parametrize("end", ["Done", "Program"])
def test_the_chiefs_verdict_tells_of_a_checkpoint_that_its_stream_did_not(end: VerdictKind) -> None:
    """The pod's end may be seen before the stream's last line was read."""
    chief = told("worker-0", end, checkpoint_step=420, checkpoint_epoch=3)
    s = attempt([chief, running("worker-1")], training=heard(412, checkpoint_step=410, checkpoint_epoch=2))
    status = after(s, plan(s, NOW))
    assert status.checkpoint == CheckpointStatus(step=420, epoch=3, at=NOW, claim=None)


def test_a_verdict_about_another_attempt_tells_of_no_checkpoint() -> None:
    before = told("worker-0", "Program", round_=7, checkpoint_step=420).verdict
    s = attempt([running("worker-0", verdict=before), running("worker-1")], training=heard(412, checkpoint_step=410))
    status = after(s, plan(s, NOW))
    assert status.checkpoint is not None
    assert status.checkpoint.step == 410


@pytest.mark.parametrize(
    ("training", "condition", "says"),
    [
        (heard(412, seconds=70), "Training", "Unknown ProgressUnknown"),
        (heard(412, seconds_since_step=301), "Stalled", "True NoStep"),
        (heard(412, seconds_since_step=30), "Stalled", None),
        (heard(412, stage="Evaluating", seconds_since_step=900), "Stalled", None),
        (heard(412, notice="NothingSaved: no model was seen"), "CheckpointReady", "False NothingSaved"),
    ],
)
def test_what_is_worth_knowing(training: TrainingView, condition: Any, says: str | None) -> None:
    s = running_job(training)
    status = after(s, plan(s, NOW))
    assert said(status, condition) == says
    assert (status.phase, status.restarts.total) == ("Running", 0)


def test_what_was_worth_knowing_passes() -> None:
    silent = running_job(heard(412, seconds=70))
    s = replace(silent, status=after(silent, plan(silent, NOW)), training=heard(413))
    assert said(after(s, plan(s, NOW)), "Training") == "True StepsMade"
    stalled = running_job(heard(412, seconds_since_step=301))
    s = replace(stalled, status=after(stalled, plan(stalled, NOW)), training=heard(413, seconds_since_step=1))
    assert said(after(s, plan(s, NOW)), "Stalled") == "False StepsMade"


def test_a_process_that_just_began_does_not_miss_a_word() -> None:
    s = replace(running_job(heard(400)), training=None, facts=Facts(started_at=ago(5)))
    assert said(after(s, plan(s, NOW)), "Training") == "True StepsMade"


def test_counts_are_held_back_and_told_in_time() -> None:
    s = running_job(heard(400, loss=1.0))
    less = replace(s, pods=(running("worker-0"), replace(running("worker-1"), stage="Bound")))
    less = replace(less, status=replace(less.status, clock=replace(less.status.clock, since=ago(4))))
    made = plan(less, NOW)
    assert (made.status, made.wake_at) == (None, NOW + timedelta(seconds=6))
    assert after(less, plan(less, NOW + timedelta(seconds=6))).ready == "1/2"


def written(s: Situation) -> Situation:
    """The job, whose status was written just now."""
    return replace(s, status=replace(s.status, clock=replace(s.status.clock, since=NOW)))


def test_what_supervisors_say_is_written_once_a_second_at_most() -> None:
    """A stream may tell another checkpoint, or another trouble, with each of its five lines a second."""
    s = written(running_job(heard(412, checkpoint_step=410)))
    soon = NOW + timedelta(seconds=0.2)
    for training in (heard(412, checkpoint_step=411), heard(412, notice="NothingSaved: no model was seen")):
        made = plan(replace(s, training=training), soon)
        assert (made.status, made.actions, made.wake_at) == (None, (), NOW + timedelta(seconds=1))
    due = replace(s, training=heard(412, notice="NothingSaved: no model was seen"))
    made = plan(due, NOW + timedelta(seconds=1))
    assert said(after(due, made), "CheckpointReady") == "False NothingSaved"
    assert [type(action).__name__ for action in made.actions] == ["Emit"]


def test_a_move_takes_with_it_what_was_held_back() -> None:
    s = written(running_job(heard(412, checkpoint_step=410)))
    ended = replace(s, pods=(running("worker-0"), exited("worker-1", 1)), training=heard(412, checkpoint_step=411))
    status = after(ended, plan(ended, NOW + timedelta(seconds=0.2)))
    assert status.attempt == 1
    assert status.checkpoint is not None
    assert status.checkpoint.step == 411


def test_a_loss_is_told_as_a_person_reads_it() -> None:
    s = running_job(heard(412, checkpoint_step=410, loss=0.007751937984496124))
    s = replace(s, status=replace(s.status, checkpoint=None))
    progress = after(s, plan(s, NOW)).progress
    assert progress is not None
    assert progress.loss == 0.00775194


@pytest.mark.parametrize("phase", ["Starting", "Running"])
@pytest.mark.parametrize(
    ("lost", "isolated", "foreign", "made"),
    [
        pytest.param("Service", "PolicyApplied", (), ["Service"], id="its addresses"),
        pytest.param("NetworkPolicy", "PolicyApplied", (), ["NetworkPolicy"], id="its isolation"),
        pytest.param("Secret", "PolicyApplied", (), [], id="nobody can see whether it is there"),
        pytest.param("NetworkPolicy", "PolicyOff", (), [], id="one that was asked for since"),
        pytest.param(
            "Service",
            "PolicyApplied",
            (ForeignChild("Service", "mnist-peers", terminating=True),),
            [],
            id="somebody else has its name",
        ),
    ],
)
def test_what_an_attempt_needs_and_someone_deleted_is_made_again(
    phase: Phase, lost: str, isolated: Reason, foreign: tuple[ForeignChild, ...], made: list[str]
) -> None:
    s = attempt([running("worker-0"), running("worker-1")], phase, training=heard(None))
    policy = Condition("Isolated", "True", isolated, LONG_AGO)
    s = replace(s, status=replace(s.status, conditions=[*s.status.conditions, policy]))
    s = replace(s, children=frozenset(child for child in s.children if child[0] != lost), foreign_names=foreign)
    assert [a.manifest["kind"] for a in plan(s, NOW).actions if isinstance(a, Create)] == made


def test_a_job_that_runs_needs_nothing() -> None:
    s = running_job(heard(400, loss=1.0))
    made = plan(s, NOW)
    assert (made.status, kinds(made)) == (None, [])


def test_kept_pods_stay_and_other_old_ones_go() -> None:
    culprit = exited("worker-1", 1)
    s = attempt([running("worker-0"), culprit])
    status = after(s, plan(s, NOW))
    old = (exited("worker-0", 143), culprit)
    new = [running("worker-0", 1), running("worker-1", 1)]
    s = attempt([*old, *new], number=1, status={"last_failure": status.last_failure})
    assert kinds(plan(s, NOW)) == ["Delete worker-0-0"]
    none = attempt([*old, *new], job=spec(keepFailedPods=0), number=1, status={"last_failure": status.last_failure})
    assert kinds(plan(none, NOW)) == ["Delete worker-0-0", "Delete worker-1-0"]


@pytest.mark.parametrize(("keep", "gone"), [(1, ["worker-0-1", "worker-0-0"]), (2, ["worker-0-0"]), (3, [])])
def test_the_last_culprits_stay(keep: int, gone: list[str]) -> None:
    culprits = [exited("worker-0", 1, round_=n) for n in (2, 1, 0)]
    s = attempt([culprits[0]], number=2)
    last = after(s, plan(s, NOW)).last_failure
    pods = [*culprits, running("worker-0", 3), running("worker-1", 3)]
    job = spec(keepFailedPods=keep)
    s = attempt(pods, job=job, number=3, status={"last_failure": replace(last, pod="mnist-worker-0-2")})  # type: ignore[type-var]
    assert kinds(plan(s, NOW)) == [f"Delete {name}" for name in gone]


@pytest.mark.parametrize(
    ("keep", "culprit", "gone"),
    [
        pytest.param(2, "evaluator-0-0", ["worker-0-1"], id="the evaluator's last of all"),
        pytest.param(3, "evaluator-0-0", [], id="all three"),
        pytest.param(1, "evaluator-0-0", ["worker-1-2", "worker-0-1"], id="the evaluator's alone"),
        pytest.param(2, "worker-1-2", ["worker-0-1"], id="a worker's after it"),
    ],
)
def test_an_evaluators_pod_is_kept_beside_those_of_the_gang(keep: int, culprit: str, gone: list[str]) -> None:
    """Of two failed attempts a worker's pod each, of the evaluator one; its rounds have nothing to do with theirs."""
    old = [exited("worker-1", 1, 2), exited("worker-0", 1, 1), exited("evaluator-0", 1, 0 if culprit[0] == "e" else 3)]
    new = [running("worker-0", 4), running("worker-1", 4), running("evaluator-0", 5)]
    job = spec(keepFailedPods=keep, roles={"evaluator": {"replicas": 1}})
    role, index, _ = culprit.split("-")
    last = LastFailure(
        at=ago(60), attempt=3, failure_class="Application", role=role, index=int(index), pod=f"mnist-{culprit}",
        exit_code=1,
    )  # fmt: skip
    s = attempt([*old, *new], job=job, number=4, status={"last_failure": last})
    rounds = {**s.status.rounds, "evaluator": [RoundOf("0", 5)]}
    s = replace(s, status=replace(s.status, rounds=rounds))
    assert sorted(kinds(plan(s, NOW))) == sorted(f"Delete {name}" for name in gone)


def test_time_is_counted_and_lost_training_taken_off() -> None:
    """Trained for 3000 s since the first step, saved 1000 s ago: a failure now loses those 1000."""
    saved = CheckpointStatus(step=300, at=ago(1000))
    s = attempt(
        [running("worker-0"), running("worker-1")],
        training=heard(412, checkpoint_step=300),
        status={"checkpoint": saved},
    )
    s = replace(s, status=replace(s.status, clock=replace(s.status.clock, trained_seconds=2940)))
    ended = replace(s, pods=(running("worker-0"), exited("worker-1", 1)))
    status = after(ended, plan(ended, NOW))
    assert status.clock.active_seconds == 160
    assert status.clock.trained_seconds == 2000
    assert status.goodput == round(2000 / (NOW - LONG_AGO).total_seconds(), 3)
