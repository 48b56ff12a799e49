"""The sentences for what happens to a job: tables of statuses."""

import itertools
from datetime import UTC, datetime

import pytest

from dtj_operator.api.status import Attempt, Condition, JobStatus, LastFailure, Progress, Restarts
from dtj_operator.cli import story

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def failure(**how: object) -> LastFailure:
    fields = {"at": NOW, "attempt": 0, "failure_class": "Application", "role": "worker", "index": 1, **how}
    return LastFailure(**fields)  # type: ignore[arg-type]  # the table's rows are of its fields


@pytest.mark.parametrize(
    ("outcome", "last", "told"),
    [
        (
            "Application",
            failure(step=60, signal="SIGKILL", message="killed by SIGKILL"),
            "attempt 0 failed at step 60 by SIGKILL of worker 1 (Application)",
        ),
        (
            "Application",
            failure(exit_code=1, message="ValueError: no\nmore"),
            "attempt 0 failed by exit code 1 of worker 1 (Application): ValueError: no",
        ),
        ("Image", failure(failure_class="Image", role=None), "attempt 0 failed because of an unknown task (Image)"),
        # Of an earlier attempt: says nothing of this one.
        ("Stall", failure(attempt=3), "attempt 0 failed: Stall"),
        ("Suspended", None, "attempt 0 ended: Suspended"),
    ],
)
def test_the_end_of_an_attempt(outcome: str, last: LastFailure | None, told: str) -> None:
    assert story.ended(Attempt(attempt=0, start=NOW, outcome=outcome), last) == told


@pytest.mark.parametrize(
    ("fault", "last", "is_it"),
    [
        ("worker:1@step=60", failure(signal="SIGKILL", step=59), True),
        ("worker:1@step=60", None, False),
        ("worker:1@step=60", failure(signal="SIGKILL", index=0), False),
        ("worker:1@step=60", failure(signal="SIGKILL", attempt=1), False),
        ("worker:1@step=60", failure(signal="SIGSEGV"), False),
        ("worker:1@step=60", failure(exit_code=1), False),
        ("worker:1@step=60:exit=3", failure(exit_code=3), True),
        ("worker:1@step=60:exit=3", failure(exit_code=1), False),
        # An end that is no failure.
        ("worker:1@step=60:exit=0", None, True),
        ("worker:1@step=60:SIGTERM", failure(failure_class="Preempted", exit_code=75), True),
        ("worker:1@step=60:SIGTERM", failure(exit_code=1), False),
    ],
)
def test_whether_a_failure_is_the_one_that_was_asked_for(fault: str, last: LastFailure | None, is_it: bool) -> None:
    assert story.is_of(fault, JobStatus(last_failure=last)) is is_it


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (JobStatus(progress=Progress(at=NOW, step=48)), "the job ended, and the last step heard of was 48"),
        (JobStatus(), "the job ended, and no step was heard of"),
        (JobStatus(attempt=1), "attempt 0 ended before it"),
    ],
)
def test_a_fault_that_never_came(status: JobStatus, told: str) -> None:
    assert story.never_came("worker:1@step=60", status) == f"--fail worker:1@step=60 never came: {told}"


@pytest.mark.parametrize(
    ("step", "epoch", "told"),
    [
        (55, 5, "attempt 1 resumed at epoch 5 (step 55)"),
        (55, None, "attempt 1 resumed (step 55)"),
        (None, None, "attempt 1 began at the first step: there was no checkpoint yet"),
    ],
)
def test_the_beginning_of_an_attempt(step: int | None, epoch: int | None, told: str) -> None:
    attempt = Attempt(attempt=1, start=NOW, first_step=NOW, resumed_from_step=step, resumed_from_epoch=epoch)
    assert story.resumed(attempt) == told


def test_each_milestone_is_told_once() -> None:
    first = Attempt(attempt=0, start=NOW, first_step=NOW)
    over = Attempt(attempt=0, start=NOW, first_step=NOW, end=NOW, outcome="Application")
    second = Attempt(attempt=1, start=NOW)
    stepping = Attempt(attempt=1, start=NOW, first_step=NOW, resumed_from_step=10, resumed_from_epoch=1)
    done = Attempt(attempt=1, start=NOW, first_step=NOW, end=NOW, outcome="Succeeded", resumed_from_step=10)
    statuses = [
        JobStatus(),
        JobStatus(timeline=[first]),
        JobStatus(timeline=[over], last_failure=failure(step=12, signal="SIGKILL")),
        JobStatus(timeline=[over, second], last_failure=failure(step=12, signal="SIGKILL")),
        JobStatus(timeline=[over, stepping]),
        JobStatus(timeline=[over, done]),
    ]
    told = [line for before, after in itertools.pairwise(statuses) for line in story.milestones(before, after)]
    assert told == [
        "attempt 0 failed at step 12 by SIGKILL of worker 1 (Application)",
        "attempt 1 resumed at epoch 1 (step 10)",
    ]


def test_how_far_it_is() -> None:
    progress = Progress(at=NOW, epoch=9, epochs=10, step=100, loss=0.017857, examples_per_second=511.7)
    status = JobStatus(phase="Running", progress=progress)
    assert story.where(status) == "Running, step 100, epoch 10 of 10, loss 0.01786, 512 examples/s"
    assert story.where(JobStatus(phase="Queued")) == "Queued"


def test_the_end() -> None:
    restarts = Restarts(failures=1, disruptions=2, total=3)
    status = JobStatus(phase="Succeeded", reason="worker-0 exited 0", restarts=restarts)
    assert (
        story.conclusion(status, 33.6)
        == "Succeeded after 34 s, 3 restarts (1 failure, 2 disruptions): worker-0 exited 0"
    )


@pytest.mark.parametrize(
    ("reason", "told"), [("Invalid", "spec: no"), ("TemplateRefused", "spec: no"), ("WaitingForPredecessor", None)]
)
def test_what_is_not_accepted(reason: str, told: str | None) -> None:
    refused = Condition(type="Accepted", status="False", reason=reason, last_transition_time=NOW, message="spec: no")
    assert story.refusal(JobStatus(conditions=[refused])) == told
    assert story.refusal(JobStatus()) is None


@pytest.mark.parametrize(
    ("line", "is_spoken"),
    [
        ("test accuracy 0.967", True),
        ("  ", False),
        ("2026-11-30 22:37:39.243594: W tensorflow/core/framework/x.cc:1] Local rendezvous", False),
        ("I0000 00:00:1796078664.300375   17938 coordination_service.cc:221] Initializing", False),
        ("dtj-worker: worker-0: done", False),
        ("dtj: a save every epoch; a restart loses no step", False),
        # The end of a message of several lines, when a peer has ended before.
        ("WARNING: All log messages before absl::InitializeLog() is called are written to STDERR", False),
        ("/job:worker/replica:0/task:1", False),
        ("The tasks have crashed. Check the task logs for an earlier error, or scheduler events", False),
    ],
)
def test_what_the_program_said_itself(line: str, is_spoken: bool) -> None:
    assert story.is_spoken(line) == is_spoken


def test_the_last_words_of_a_program_are_few() -> None:
    assert story.last_words("test accuracy 0.967\n") == "test accuracy 0.967"
    assert len(story.last_words("x" * 9_000_000)) == story.LAST_WORDS + 1
