"""The decision about one job: a tuple of steps over what is known of it; the first that applies decides.

A step is a function `(situation, members, now) → Plan | None`. Its plan either moves the job (another status, and then
the steps are asked again with it) or does what the present status needs (actions). So actions follow from the status
alone, and can be derived again after a crash.

    not ours, being deleted, unreadable     here and in acceptance.py
    finished, succeeded, attempt ended,
      evaluator ended, deadline passed      ending.py; who: failure.py, what follows: recovery.py, when: deadlines.py
    suspended, restart requested            suspension.py
    not acceptable                          acceptance.py
    restarting, queued, released            forming.py
    starting, running                       running.py

The statuses they move to are made in `starts.py` and `ends.py`; what a status tells besides, in `report.py` and
`figures.py`.
"""

from collections.abc import Callable

from msgspec.structs import replace

from dtj_operator.api.bounds import bounded
from dtj_operator.api.names import MANAGER
from dtj_operator.api.observed import Situation
from dtj_operator.api.status import FINAL, JobStatus, Time
from dtj_operator.decide import acceptance, deadlines, ending, figures, forming, report, running, suspension
from dtj_operator.decide.actions import Emit, Plan
from dtj_operator.decide.clock import rolled
from dtj_operator.decide.events import events
from dtj_operator.decide.members import Members, members

Step = Callable[[Situation, Members, Time], Plan | None]

STEPS: tuple[Step, ...] = (
    ending.succeeded,
    ending.attempt_ended,
    ending.evaluator_ended,
    ending.deadline_passed,
    suspension.suspended,
    suspension.restart_requested,
    acceptance.not_acceptable,
    forming.restarting,
    forming.queued,
    forming.released,
    running.starting,
    running.running,
)

MOST_MOVES = 16
"""More moves in one look than any job can make; only a fault of ours would reach it, and must not spin for ever."""


def plan(s: Situation, now: Time) -> Plan:
    """What to do about the job now. Total: whatever the situation is, there is a plan."""
    if s.spec is not None and s.spec.managed_by != MANAGER:
        return Plan(None, reason=f"not ours: managed by {s.spec.managed_by}")
    if s.deleting:
        return Plan(None, reason="being deleted: garbage collection takes its children")
    before = s.status
    s = _noticed(s, now)
    emits = list(events(before, s.status))
    moves: list[str] = []
    found = _ask(s, now)
    while found.status is not None and found.status != s.status and len(moves) < MOST_MOVES:
        moved = _noticed(_moved(s, found.status), now)
        emits += events(s.status, moved.status)
        moves.append(found.reason)
        s, found = moved, _ask(moved, now)
    return _written(s, before, replace(found, reason="; ".join(moves) or found.reason), emits, now)


def _ask(s: Situation, now: Time) -> Plan:
    """The first step that applies."""
    early = ending.finished(s, now) or acceptance.unreadable(s, now)
    if early is not None:
        return early
    m = members(s, now)
    for step in STEPS:
        found = step(s, m, now)
        if found is not None:
            return found
    return Plan(None, reason="nothing to do")


def _moved(s: Situation, status: JobStatus) -> Situation:
    """The situation with the next status.

    That status answers a refusal, which leads to one move and not to one after the other. And an admission holds for
    one release: a gang that comes back queues anew.
    """
    gives_up = s.status.gang.admitted_at is not None and status.gang.admitted_at is None
    return replace(s, status=status, refusals=(), admission=None if gives_up else s.admission)


def _noticed(s: Situation, now: Time) -> Situation:
    """The situation with what its status must know before anything is decided from it."""
    status = s.status
    if status.observed_generation == 0 and s.spec is not None:
        # A job that is seen for the first time has restarted nothing yet.
        status = replace(status, restart_request=s.spec.restart_request)
    s = replace(s, status=status)
    if s.spec is not None and status.phase in ("Starting", "Running"):
        return replace(s, status=report.seen(s, members(s, now), now))
    return replace(s, status=report.edited(s, now)) if status.phase == "Suspended" else s


def _written(s: Situation, before: JobStatus, found: Plan, emits: list[Emit], now: Time) -> Plan:
    """The plan with the status as it is to be written, and the time of the next look."""
    m = members(s, now) if s.spec is not None else None
    due = None
    if before.phase not in FINAL:
        s = replace(s, status=replace(s.status, observed_generation=s.generation))
        if m is not None:
            status, due = figures.told(s, m, before, now)
            s = replace(s, status=status)
        s = replace(s, status=bounded(s.status))
        if s.status != before:
            s = replace(s, status=rolled(before, s.status, now))
    times = [time for time in (due, deadlines.wake_at(s, m, now)) if time is not None]
    return Plan(
        status=s.status if s.status != before else None,
        # What is held back is told when it is written.
        actions=(*found.actions, *(emits if s.status != before else ())),
        wake_at=min(times, default=None),
        reason=found.reason,
    )
