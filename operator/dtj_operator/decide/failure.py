"""Who ended an attempt and of what kind that was, told from pods, their Verdicts and the chief's supervisor.

What it leads to is `recovery.py`'s business, when a wait is too long `deadlines.py`'s.
"""

import signal
from datetime import timedelta

from msgspec import Struct
from msgspec.structs import replace

from dtj_operator.api import names
from dtj_operator.api.observed import PodView, Situation
from dtj_operator.api.status import Time
from dtj_operator.decide import hearing, lost
from dtj_operator.decide.actions import Failure
from dtj_operator.decide.members import Members
from dtj_operator.decide.told import as_told, failure_of, first_death, missed
from dtj_operator.decide.words import at_step, collective, is_own_limit, is_refusal, no_program
from dtj_worker.contract import Task, VerdictKind

PEERS_FIRST = timedelta(seconds=10)
"""How long to wait for the culprit's own end while only those are seen that died of it."""
NEVER_HEAL = ("InvalidImageName", "ErrImageNeverPull")

# The order of culprits (behaviour.md, Failures): what was done to a pod, the first death by the chief's clock, then
# causes before what dies of them.
DISRUPTED, OUT_OF_MEMORY, FIRST_DEATH, ASKED_TO_STOP, MEMORY, CONFIGURATION, SIGNAL, EXIT, COLLECTIVE, PEER = range(10)

RANKS: dict[VerdictKind, int] = {
    "Saved": ASKED_TO_STOP,
    "Stopped": ASKED_TO_STOP,
    "Peer": PEER,
    "Config": CONFIGURATION,
    "Memory": MEMORY,
    "Rendezvous": EXIT,
    "Stall": EXIT,
}


class End(Struct, frozen=True):
    """The end of one task of the gang, and its place among the culprits."""

    rank: int
    at: Time | None
    failure: Failure


def culprit(s: Situation, m: Members, now: Time) -> Failure | None:
    """The failure that ended the attempt; None while it goes on, or while the culprit's own end may still show up."""
    ends = [end for task in m.topology.gang if (end := _end(s, m, task, now)) is not None]
    if not ends:
        return None
    first = min(ends, key=lambda end: _place(s, end))
    death = first_death(s, m)
    if death is not None and first.rank > FIRST_DEATH:
        own = next((end for end in ends if end.failure.task == death.task), None)
        pod = m.wanted.get(death.task)
        if own is not None:
            first = replace(own, rank=FIRST_DEATH)
        elif pod is not None and (pod.deleting_since or pod.disrupted_by):
            # Taken away, it was asked to stop, and said so; its containers have just not been seen to end.
            first = End(DISRUPTED, pod.deleting_since, _disrupted(s, m, death.task, pod))
        else:
            first = End(FIRST_DEATH, first.at, death)
    is_told_by_others = first.rank in (FIRST_DEATH, PEER)
    silent = missed(s, m, first.failure.task, by_chief=first.rank == FIRST_DEATH) if is_told_by_others else None
    if (silent or first.rank == PEER) and _may_still_show_up(s, m, first, now):
        return None
    return silent or _uneven(s, m, first.failure) or first.failure


def unstarted(s: Situation, m: Members, blames: str) -> Failure | None:
    """The task whose containers did not start in time: one that waits for something comes first."""
    waiting = m.not_running()
    if not waiting:
        return None
    task, pod = min(waiting.items(), key=lambda item: (item[1].waiting_reason is None, item[0]))
    return failure_of(s, m, task, pod, "Image", what=f"did not start: {blames}", reason=pod.waiting_reason or "")


def unregistered(s: Situation, m: Members, blames: str) -> Failure | None:
    """The first task whose supervisor the chief's has not seen in time. Why not, it alone knows, and can't tell."""
    missing = hearing.unregistered(s, m)
    if not missing:
        return None
    first = missing[0]
    pod = m.wanted.get(first)
    hint = f"; DNS and {m.topology.chief} must be in its reach, which a NetworkPolicy may deny"
    return failure_of(s, m, first, pod, "Rendezvous", what=f"did not register: {blames}{hint}")


def evaluator_end(s: Situation, m: Members, task: Task, now: Time) -> Failure | None:
    """How the evaluator ended, otherwise than 0. It is no member of the gang: nobody dies of it."""
    counts = s.status.roles.get("evaluator")
    was_there = names.pod(s.key.name, task, m.rounds[task]) in s.gone or (counts is not None and counts.scheduled > 0)
    if task not in m.wanted and was_there:
        return failure_of(s, m, task, None, "Disruption", what="was deleted by someone")
    end = _end(s, m, task, now)
    return end.failure if end else None


def _end(s: Situation, m: Members, task: Task, now: Time) -> End | None:
    """How a task ended, otherwise than 0; None while it runs, is still to be made, or has ended 0."""
    if task in m.finished:
        return None
    pod = m.wanted.get(task)
    if pod is None:
        # A pod of a round that was never bound as a whole is still to be made.
        was_there = s.status.gang.formed is not None and m.rounds[task] <= s.status.gang.formed
        missing = failure_of(s, m, task, None, "Disruption", what="was deleted by someone")
        return End(DISRUPTED, None, missing) if was_there and task in m.topology.gang else None
    if pod.stage == "Succeeded":
        return None
    if pod.stage == "Failed":
        return _ended_pod(s, m, task, pod)
    # A gang that is not formed yet loses no attempt by it: it is taken back.
    if pod.deleting_since is not None and s.status.phase != "Queued" and _counts_as_gone(s, pod, now):
        return End(DISRUPTED, pod.deleting_since, _disrupted(s, m, task, pod))
    node = lost.lost_node(s, pod)
    if node is not None and node.due <= now:
        on_lost_node = failure_of(s, m, task, pod, "Disruption", what=f"was lost: {node.blames}")
        return End(DISRUPTED, node.due, on_lost_node)
    if pod.waiting_reason in NEVER_HEAL:
        what = f"can't start: {pod.waiting_reason}: {pod.waiting_message}"
        never = failure_of(s, m, task, pod, "Image", what=what, reason=pod.waiting_reason, heals=False)
        return End(CONFIGURATION, None, never)
    return None


def _counts_as_gone(s: Situation, pod: PodView, now: Time) -> bool:
    """A pod on its way out that ran may still save and say how it ended; one that never ran has nothing to say."""
    due = lost.termination(s, pod)
    return pod.stage != "Running" or (due is not None and due.due <= now)


def _disrupted(s: Situation, m: Members, task: Task, pod: PodView) -> Failure:
    reason = pod.disrupted_by or ""
    what = f"was disrupted ({reason}): {pod.disruption_message}" if reason else "was deleted by someone"
    refused = is_refusal(reason)
    what = what.removesuffix(": ")
    return failure_of(s, m, task, pod, "Disruption", what=what, reason=reason, node_refused=refused)


def _ended_pod(s: Situation, m: Members, task: Task, pod: PodView) -> End:
    """The end of a pod whose trainer ended otherwise than 0."""
    at = pod.trainer.finished_at if pod.trainer else None
    end, verdict = pod.trainer, pod.verdict
    is_disrupted = pod.disrupted_by is not None and not is_own_limit(pod.disrupted_by, pod.disruption_message)
    if is_disrupted or pod.deleting_since is not None:
        return End(DISRUPTED, at, _disrupted(s, m, task, pod))
    reason = pod.disrupted_by or (end.reason if end else "") or pod.phase_reason or ""
    message = verdict.message if verdict else (end.message if end else "") or pod.disruption_message
    if reason == "OOMKilled":
        step = verdict.step if verdict else hearing.step(s)
        what = f"ran out of memory{at_step(step)}"
        told = failure_of(s, m, task, pod, "OutOfMemory", what=what, step=step, message=message, reason=reason)
        return End(OUT_OF_MEMORY, at, told)
    if verdict is not None and verdict.kind != "Done":
        told = replace(as_told(s, m, task, pod, verdict, message=message), reason=reason)
        rank = RANKS.get(verdict.kind, SIGNAL if verdict.signal else EXIT)
        return End(CONFIGURATION if told.kind == "Configuration" else rank, at, told)
    if no_program(reason, message):
        what = f"can't run: {message}"
        absent = failure_of(s, m, task, pod, "Configuration", what=what, message=message, reason=reason, heals=False)
        return End(CONFIGURATION, at, replace(absent, exit_code=end.exit_code if end else None))
    step = hearing.step(s)
    number = end.signal if end else None
    name = _signal(number) if number else None
    code = end.exit_code if end and not number else None
    what = f"killed by {name}" if name else f"exited {code}" if code is not None else f"failed: {reason or 'no reason'}"
    what += at_step(step)
    failure = failure_of(s, m, task, pod, "Application", what=what, step=step, message=message, reason=reason)
    rank = SIGNAL if name else COLLECTIVE if collective(message) else EXIT
    return End(rank, at, replace(failure, exit_code=code, signal=name))


def _may_still_show_up(s: Situation, m: Members, first: End, now: Time) -> bool:
    """Whether to wait a little for the culprit of those that only lost a peer."""
    others = any(not pod.is_over for pod in m.gang.values())
    # A node's clock may be ahead: then there is no telling how long ago it was, and nothing is waited for.
    return others and first.at is not None and first.at <= now < first.at + PEERS_FIRST


def _uneven(s: Situation, m: Members, failure: Failure) -> Failure | None:
    """The failure as what it is when a task made fewer steps than its peers, which then wait for it in vain."""
    if m.topology.strategy != "MultiWorkerMirrored" or failure.kind not in ("Application", "Rendezvous", "Stall"):
        return None
    furthest = max((n for n in (failure.step, hearing.step(s)) if n is not None), default=None)
    for task, pod in m.gang.items():
        made = pod.verdict.step if pod.stage == "Succeeded" and pod.verdict else None
        if made is None or furthest is None or task == failure.task:
            continue
        if made < furthest or (made == furthest and failure.kind == "Stall"):
            what = f"made {made} steps, {failure.task} is at {furthest}; give every worker the same number"
            return replace(failure_of(s, m, task, pod, "UnevenSteps", what=what, step=made), heals=False)
    return None


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _place(s: Situation, end: End) -> tuple[int, Time, Task]:
    """By rank, then the earliest end; one whose time is not known comes first."""
    return end.rank, end.at or s.created_at, end.failure.task
