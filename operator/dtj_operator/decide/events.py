"""Events of a job, from the difference of two statuses: one for each transition, and so none twice."""

from collections.abc import Iterator

from dtj_operator.api.status import ConditionType, JobStatus
from dtj_operator.decide.actions import Emit
from dtj_operator.decide.conditions import condition, says

WARNINGS: tuple[tuple[ConditionType, str], ...] = (
    ("Accepted", "False"),
    ("Supervised", "False"),
    ("Stalled", "True"),
    ("CheckpointReady", "False"),
    ("Isolated", "False"),
)
"""Conditions whose turn to that value is an Event of its own; what the phase says is told with the phase."""

ASKED_FOR = ("NoSupervisor", "PolicyOff", "NoCheckpoint", "HostNetwork")
"""Reasons that the manifest itself names: no warning."""

NEEDS_SOMEBODY = ("CannotFit", "ClaimMissing", "GroupRefused", "SchedulerUnavailable", "Forbidden")
"""What a gang waits for that doesn't come by itself."""


def events(before: JobStatus, after: JobStatus) -> tuple[Emit, ...]:
    """What a person should read of the way from one status to the next."""
    return (*_of_phase(before, after), *_of_evaluator(before, after), *_of_conditions(before, after))


def _of_phase(before: JobStatus, after: JobStatus) -> Iterator[Emit]:
    words = after.reason or after.phase
    if after.gang.missed > before.gang.missed:
        yield Emit("Warning", "Missed", words)
    elif after.phase == "Failed" and before.phase != "Failed":
        failed = condition(after, "Failed")
        yield Emit("Warning", failed.reason if failed else "Failed", words)
    elif says(after, "Suspended", "Suspending") and not says(before, "Suspended", "Suspending"):
        yield Emit("Normal", "Suspending", words)
    elif after.attempt > before.attempt:
        failure = after.last_failure if after.last_failure != before.last_failure else None
        yield Emit("Warning", failure.failure_class, words) if failure else Emit("Normal", "Restarting", words)
    elif after.phase not in (before.phase, "Pending"):
        yield Emit("Warning" if _is_helpless(after) else "Normal", after.phase, words)
    elif after.gang.waiting_for not in (None, before.gang.waiting_for) and after.gang.admitted_at is None:
        said = condition(after, "GangScheduled")
        # That a gang waits for its turn was told with the phase; what it lacks is worth an Event.
        if before.gang.waiting_for is not None or (said is not None and said.reason != "Waiting"):
            yield Emit("Warning" if _is_helpless(after) else "Normal", said.reason if said else "Waiting", words)


def _is_helpless(status: JobStatus) -> bool:
    said = condition(status, "GangScheduled")
    return status.phase == "Queued" and said is not None and said.reason in NEEDS_SOMEBODY


def _of_evaluator(before: JobStatus, after: JobStatus) -> Iterator[Emit]:
    """The end of a task outside the gang, which moves no phase."""
    failure, stays = after.last_failure, (after.attempt, after.phase) == (before.attempt, before.phase)
    if failure is not None and failure != before.last_failure and stays:
        yield Emit("Warning", failure.failure_class, f"{failure.role}-{failure.index}: {failure.message}")


def _of_conditions(before: JobStatus, after: JobStatus) -> Iterator[Emit]:
    for kind, value in WARNINGS:
        old, new = condition(before, kind), condition(after, kind)
        if new is None or new.status != value or (old is not None and (old.status, old.reason) == (value, new.reason)):
            continue
        yield Emit("Normal" if new.reason in ASKED_FOR else "Warning", new.reason, new.message or kind)
