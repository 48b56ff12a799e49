"""The next status when an attempt or the job ends or is stopped: one verb a move. Steps decide whether it moves.

Every decision to stop or replace pods raises rounds in the same value as the counters, so a crash after the status was
written loses nothing: the deletes follow from the rounds.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from dtj_operator.api.bounds import cut
from dtj_operator.api.observed import Situation
from dtj_operator.api.reasons import Reason
from dtj_operator.api.status import Attempt, GangStatus, JobStatus, LastFailure, Phase, RoleStatus, Time
from dtj_operator.decide import cordons
from dtj_operator.decide.actions import Failure, Ruling
from dtj_operator.decide.conditions import says, with_condition
from dtj_operator.decide.figures import last_progress
from dtj_operator.decide.members import Members, finished_outside, raised, with_finished
from dtj_operator.decide.starts import TIMELINE
from dtj_worker.contract import Task


def restarting(s: Situation, m: Members, outcome: str, words: str, now: Time, *, step: int | None = None) -> JobStatus:
    """The attempt is over: its number, and the rounds of the whole gang, rise."""
    gang = replace(s.status.gang, admitted_at=None, queued_at=None, waiting_for=None)
    status = replace(
        s.status,
        phase="Restarting",
        reason=cut(words),
        attempt=s.status.attempt + 1,
        rounds=raised(s.status, m.topology.tasks, m.topology.gang),
        finished=finished_outside(s.status, m.topology.gang),
        gang=gang,
        timeline=_closed(s.status, outcome, now),
        progress=last_progress(s, step, now),
    )
    status = with_condition(status, "GangScheduled", "False", "BackingOff", words, now=now)
    return with_condition(_not_stalled(status, now), "Training", "False", "Restarting", words, now=now)


def restarting_after(s: Situation, m: Members, failure: Failure, ruling: Ruling, now: Time) -> JobStatus:
    """A failure is counted in the same value that stops its attempt."""
    status = restarting(s, m, failure.kind, f"{failure}: {ruling}", now, step=failure.step)
    status = _with_failure(status, failure, ruling, now)
    return replace(status, recovery=cordons.left(status.recovery, failure, m.gang.values()))


def restarted_alone(s: Situation, m: Members, failure: Failure, not_before: Time | None, now: Time) -> JobStatus:
    """A task outside the gang gets a new pod; the attempt goes on."""
    name, running = str(failure.task), s.status.recovery.not_before
    # The gang may be backing off, and does not come back earlier for this.
    latest = max((due for due in (not_before, running) if due is not None), default=None)
    return replace(
        s.status,
        rounds=raised(s.status, m.topology.tasks, [failure.task]),
        starts=s.status.starts | {name: s.status.starts.get(name, 0) + 1},
        roles=_evaluator_unscheduled(s.status),
        recovery=replace(s.status.recovery, not_before=latest),
        last_failure=_last(failure, now),
    )


def ended_alone(s: Situation, failure: Failure, now: Time) -> JobStatus:
    """A task that stays ended: nobody makes it a new pod."""
    status = replace(s.status, finished=with_finished(s.status, [failure.task]))
    return replace(status, last_failure=_last(failure, now))


def requested(s: Situation, m: Members, now: Time) -> JobStatus:
    """A restart that the user asked for; no budget knows of it."""
    status = restarting(s, m, "Requested", f"restart requested: attempt {s.status.attempt + 1} now", now)
    recovery = replace(status.recovery, not_before=None)
    return replace(status, restart_request=s.spec.restart_request if s.spec else None, recovery=recovery)


def failed(s: Situation, reason: Reason, words: str, outcome: str, now: Time, *, step: int | None = None) -> JobStatus:
    status = _final(s, "Failed", words, outcome, now, step=step)
    return with_condition(status, "Failed", "True", reason, words, now=now)


def failed_after(s: Situation, failure: Failure, ruling: Ruling, now: Time) -> JobStatus:
    words = f"{failure}: {ruling}"
    status = failed(s, ruling.fails_as or "Configuration", words, failure.kind, now, step=failure.step)
    return _with_failure(status, failure, ruling, now)


def succeeding(s: Situation, m: Members, done: Iterable[Task], words: str, now: Time) -> JobStatus:
    """The success policy holds; what still runs gets its time to end."""
    begun = s.status.gang.admitted_at or now
    chief = m.wanted.get(m.topology.chief)
    timeline = s.status.timeline
    if not timeline or timeline[-1].attempt != s.status.attempt:
        # A gang may run to its end between two looks at it.
        timeline = [*timeline, Attempt(attempt=s.status.attempt, start=begun)][-TIMELINE:]
    status = replace(
        s.status,
        phase="Running",
        reason=cut(words),
        chief_finished_at=now,
        finished=with_finished(s.status, done),
        start_time=s.status.start_time or begun,
        timeline=timeline,
        progress=last_progress(s, chief.verdict.step if chief and chief.verdict else None, now),
    )
    if any(task.role == "evaluator" and task not in m.finished for task in m.topology.tasks):
        return with_condition(status, "Training", "True", "EvaluatorFinishing", words, now=now)
    return status


def succeeded(s: Situation, reason: Reason, words: str, now: Time) -> JobStatus:
    status = _final(s, "Succeeded", words, "Succeeded", now)
    return with_condition(status, "Complete", "True", reason, words, now=now)


def suspending(s: Situation, m: Members, now: Time) -> JobStatus:
    """Every task, the evaluator too, is to stop; what runs next is a new attempt."""
    words = "the job is being suspended"
    has_begun = s.status.gang.admitted_at is not None
    status = restarting(s, m, "Suspended", words, now) if has_begun else replace(s.status, phase="Restarting")
    status = replace(
        status,
        reason=words,
        rounds=raised(s.status, m.topology.tasks, m.topology.tasks),
        recovery=replace(status.recovery, not_before=None),
        finished={},
        roles=_evaluator_unscheduled(s.status),
    )
    return with_condition(status, "Suspended", "False", "Suspending", "the job's pods are being stopped", now=now)


def suspended(s: Situation, now: Time) -> JobStatus:
    gang = GangStatus(scheduler=s.status.gang.scheduler, formed=s.status.gang.formed)
    # Everything may change now: what was frozen is taken down again at the next admission.
    recovery = replace(s.status.recovery, not_before=None)
    status = replace(
        s.status, phase="Suspended", reason="spec.suspend is true", gang=gang, recovery=recovery, frozen=None
    )
    # Another image may come with or without a supervisor.
    status = replace(status, conditions=[c for c in status.conditions if c.type != "Supervised"])
    status = with_condition(status, "Training", "False", "Ended", "", now=now)
    return with_condition(status, "Suspended", "True", "Suspended", "no pod of the job runs", now=now)


def resumed(s: Situation, now: Time) -> JobStatus:
    """Back to the start: the manifest may have changed meanwhile, so it is looked at as if it were new."""
    status = replace(s.status, phase="Pending", reason="resumed")
    return with_condition(status, "Suspended", "False", "Resumed", "spec.suspend is false", now=now)


def _final(s: Situation, phase: Phase, words: str, outcome: str, now: Time, *, step: int | None = None) -> JobStatus:
    gang = replace(s.status.gang, admitted_at=None, waiting_for=None, not_before=None)
    status = replace(
        s.status,
        phase=phase,
        reason=cut(words),
        completion_time=now,
        cleanup="Pending",
        gang=gang,
        timeline=_closed(s.status, outcome, now),
        progress=last_progress(s, step, now),
        recovery=replace(s.status.recovery, not_before=None),
    )
    return with_condition(_not_stalled(status, now), "Training", "False", "Ended", words, now=now)


def _evaluator_unscheduled(status: JobStatus) -> dict[str, RoleStatus]:
    """The counts with no evaluator scheduled: by this the new pod is known as one that was never made."""
    own = status.roles.get("evaluator")
    return status.roles if own is None else {**status.roles, "evaluator": replace(own, scheduled=0)}


def _not_stalled(status: JobStatus, now: Time) -> JobStatus:
    if not says(status, "Stalled", "NoStep"):
        return status
    return with_condition(status, "Stalled", "False", "Ended", "", now=now)


def _with_failure(status: JobStatus, failure: Failure, ruling: Ruling, now: Time) -> JobStatus:
    return replace(status, restarts=ruling.restarts, recovery=ruling.recovery, last_failure=_last(failure, now))


def _last(failure: Failure, now: Time) -> LastFailure:
    return LastFailure(
        at=now,
        attempt=failure.attempt,
        failure_class=failure.kind,
        role=failure.task.role,
        index=failure.task.index,
        pod=failure.pod,
        node=failure.node,
        exit_code=failure.exit_code,
        signal=failure.signal,
        step=failure.step,
        message=cut(failure.message or str(failure)),
    )


def _closed(status: JobStatus, outcome: str, now: Time) -> list[Attempt]:
    """The timeline with the present attempt's end; one that ended before its gang was formed appears here first."""
    last = status.timeline[-1] if status.timeline else None
    if last is not None and last.attempt == status.attempt:
        closed = last if last.end is not None else replace(last, end=now, outcome=outcome)
        return [*status.timeline[:-1], closed]
    if status.gang.admitted_at is None:
        return status.timeline
    made = Attempt(attempt=status.attempt, start=status.gang.admitted_at, end=now, outcome=outcome)
    return [*status.timeline, made][-TIMELINE:]
