"""The job's own time: how long it was active, and how much of its training was kept."""

from msgspec.structs import replace

from dtj_operator.api.status import FINAL, Attempt, Clock, JobStatus, Time
from dtj_operator.decide.conditions import says


def rolled(before: JobStatus, after: JobStatus, now: Time) -> JobStatus:
    """The status with its clock up to `now`: what has run since the last status is added, lost training is taken off.

    The clock starts with the first admission and stands while the job is suspended, until it is admitted again.
    """
    clock = before.clock
    active, trained = clock.active_seconds, clock.trained_seconds
    if clock.since is not None:
        passed = max((now - clock.since).total_seconds(), 0.0)
        active += passed
        trained += passed if _trains(before) else 0.0
    trained = max(trained - _lost_seconds(before, after, now), 0.0)
    runs = _runs(after) and (clock.since is not None or after.gang.admitted_at is not None)
    rolled_to = Clock(round(active, 3), round(trained, 3), now if runs else None)
    return replace(after, clock=rolled_to, goodput=_goodput(after, trained, now))


def current_attempt(status: JobStatus) -> Attempt | None:
    """The attempt under way, in the timeline since its gang was formed."""
    last = status.timeline[-1] if status.timeline else None
    return last if last is not None and last.attempt == status.attempt and last.end is None else None


def _runs(status: JobStatus) -> bool:
    stands = says(status, "Suspended", "Suspending", "Suspended")
    return status.phase not in FINAL and not stands


def _trains(status: JobStatus) -> bool:
    attempt = current_attempt(status)
    return status.phase == "Running" and attempt is not None and attempt.first_step is not None


def _lost_seconds(before: JobStatus, after: JobStatus, now: Time) -> float:
    """Training of an attempt that ended otherwise than well: all since its last checkpoint has to be done again."""
    ended = current_attempt(before)
    outcome = next((a.outcome for a in after.timeline if ended is not None and a.attempt == ended.attempt), None)
    if ended is None or ended.first_step is None or outcome in (None, "Succeeded"):
        return 0.0
    saved_at = after.checkpoint.at if after.checkpoint else None
    return (now - max(ended.first_step, saved_at or ended.first_step)).total_seconds()


def _goodput(status: JobStatus, trained: float, now: Time) -> float | None:
    if status.start_time is None or not any(attempt.first_step for attempt in status.timeline):
        return None
    return round(trained / max((now - status.start_time).total_seconds(), trained, 0.001), 3)
