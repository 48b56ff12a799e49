"""The figures of a status: pods counted, the progress of the training; and how often it is written for what is told."""

import math
from datetime import timedelta

from msgspec.structs import replace

from dtj_operator.api.bounds import cut
from dtj_operator.api.observed import Situation
from dtj_operator.api.status import FINAL, ConditionType, JobStatus, Progress, RoleStatus, Time
from dtj_operator.decide import deadlines, hearing
from dtj_operator.decide.clock import current_attempt
from dtj_operator.decide.conditions import condition, says
from dtj_operator.decide.members import Members
from dtj_operator.gang.choose import choose
from dtj_worker.contract import TrainingStatus

PROGRESS_EVERY = timedelta(seconds=30)
COUNTS_EVERY = timedelta(seconds=10)
WORDS_EVERY = timedelta(seconds=1)
"""Between two writes of what supervisors say. They may say another thing five times a second, true or not."""


def told(s: Situation, m: Members, before: JobStatus, now: Time) -> tuple[JobStatus, Time | None]:
    """The status to be written, and when what is held back is due; a written status has the newest of everything."""
    counted = _counted(s, m)
    complete = replace(counted, progress=_progress(s, counted))
    if complete == before:
        return before, None
    # The evaluator's count is what tells a lost evaluator from one that was never made.
    moves = _steady(s.status) != _steady(before) or _evaluator_scheduled(counted) != _evaluator_scheduled(before)
    if moves or before.clock.since is None:
        return complete, None
    dues = []
    if s.status != before:
        dues.append(before.clock.since + WORDS_EVERY)
    if counted != s.status:
        dues.append(before.clock.since + COUNTS_EVERY)
    if complete.progress != counted.progress:
        dues.append(counted.progress.at + PROGRESS_EVERY if counted.progress else now)
    return (complete, None) if min(dues) <= now else (before, min(dues))


def last_progress(s: Situation, step: int | None, now: Time) -> Progress | None:
    """The progress of the present attempt at its end: all that was heard of it, up to the step that its end tells.

    Steps that took no time were never told, and of an attempt that is over no end is foretold.
    """
    known = _progress(s, s.status)
    if step is not None and (known is None or known.step is None or known.step < step):
        known = replace(known or Progress(at=now), at=now, step=step)
    return None if known is None else replace(known, eta=None)


def _counted(s: Situation, m: Members) -> JobStatus:
    """Pods by role, and why those that start take their time. Of a final job none runs: what still does is stopped."""
    is_over = s.status.phase in FINAL
    roles: dict[str, RoleStatus] = {}
    for role in dict.fromkeys(task.role for task in m.topology.tasks):
        tasks = [task for task in m.topology.tasks if task.role == role]
        pods = [m.wanted[task] for task in tasks if task in m.wanted and task not in m.finished]
        done = sum(task in m.finished for task in tasks)
        roles[role] = RoleStatus(
            desired=len(tasks),
            scheduled=done + sum(pod.node is not None for pod in pods),
            running=0 if is_over else sum(pod.stage == "Running" for pod in pods),
            succeeded=done + sum(pod.stage == "Succeeded" for pod in pods),
            failed=sum(pod.stage == "Failed" for pod in pods),
        )
    gang = [count for role, count in roles.items() if role != "evaluator"]
    # A task that ended 0 counts for an attempt that goes on, or has succeeded; of a failed job it is of no use.
    there = 0 if s.status.phase == "Failed" else sum(count.running + count.succeeded for count in gang)
    ready = f"{there}/{len(m.topology.gang)}"
    return _with_waits(s, m, replace(s.status, roles=roles, ready=ready))


def _with_waits(s: Situation, m: Members, status: JobStatus) -> JobStatus:
    """What a released gang, or a starting attempt, waits for: who, where, why."""
    if s.spec is not None and status.phase == "Queued" and status.gang.admitted_at is not None:
        words = choose(s.spec, s.facts)[0].state(s, m.topology).waiting_for or "the gang is being bound"
        status = replace(status, gang=replace(status.gang, waiting_for=cut(words)))
        return _with_words(status, "GangScheduled", words)
    if status.phase == "Starting" and says(status, "Training", "Starting"):
        waits = deadlines.schedule(s, m)
        return _with_words(status, "Training", waits.blames.partition(": ")[2] if waits else "all containers run")
    return status


def _with_words(status: JobStatus, kind: ConditionType, words: str) -> JobStatus:
    said = condition(status, kind)
    if said is None:
        return status
    conditions = [replace(c, message=cut(words)) if c is said else c for c in status.conditions]
    return replace(status, reason=cut(words), conditions=conditions)


def _progress(s: Situation, status: JobStatus) -> Progress | None:
    """The newest word about the training; the last one stands while there is no newer."""
    is_under_way = status.phase in ("Starting", "Running") and status.chief_finished_at is None
    if s.training is None or not hearing.speaks(s) or not is_under_way:
        return status.progress
    training, old = s.training.status, status.progress
    new = Progress(
        at=s.training.heard_at,
        epoch=training.epoch,
        epochs=training.epochs,
        step=training.step,
        loss=_finite(training.loss),
        examples_per_second=_finite(training.examples_per_s),
        eta=_eta(s, status, training),
    )
    has_news = training.step is not None and (old is None or replace(new, at=old.at, eta=old.eta) != old)
    return new if has_news else old


def _eta(s: Situation, status: JobStatus, training: TrainingStatus) -> Time | None:
    """When all epochs are done at the pace of this attempt so far."""
    attempt = current_attempt(status)
    if s.training is None or attempt is None or attempt.first_step is None or not training.epoch or not training.epochs:
        return None
    made = training.epoch - (attempt.resumed_from_epoch or 0)
    left = training.epochs - training.epoch
    if made <= 0 or left < 0:
        return None
    try:
        return s.training.heard_at + (s.training.heard_at - attempt.first_step) / made * left
    except OverflowError:
        return None  # A program that trains until something else stops it has more epochs than the calendar has days.


def _finite(number: float | None) -> float | None:
    """As a person reads it, in six digits; JSON knows neither NaN nor infinity."""
    return float(f"{number:.6g}") if number is not None and math.isfinite(number) else None


def _steady(status: JobStatus) -> JobStatus:
    """What no word of a supervisor changes by itself: without the facts of an attempt, and what is said about them."""
    return replace(status, checkpoint=None, conditions=[], timeline=[], replicas_in_sync=None, global_batch_size=None)


def _evaluator_scheduled(status: JobStatus) -> int:
    role = status.roles.get("evaluator")
    return role.scheduled if role else 0
