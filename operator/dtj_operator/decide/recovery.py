"""What an ended attempt leads to: restart, fail or ignore; the counters then. Who did it is `failure.py`'s business.

Budgets count since progress, and progress is one thing only: a newer verified checkpoint than at the last failure.
"""

import signal
import zlib
from datetime import timedelta

from msgspec.structs import replace

from dtj_operator.api.observed import Situation
from dtj_operator.api.policies import FailureRule
from dtj_operator.api.reasons import Reason
from dtj_operator.api.status import FailureClass, JobStatus, RecoveryState, Restarts, Time
from dtj_operator.decide import nodes
from dtj_operator.decide.actions import Counter, Failure, Ruling
from dtj_operator.decide.words import all_pods, memory_advice, signature

SAME_OUT_OF_MEMORY = 2
"""More memory does not come from trying again; once is allowed for a neighbour's fault."""
JITTER = 0.1

COUNTS: dict[FailureClass, Counter | None] = {
    "Disruption": "disruptions",
    "Preempted": "disruptions",
    "Application": "failures",
    "OutOfMemory": "failures",
    "UnevenSteps": "failures",
    "Configuration": None,
    "Image": "failures",
    "Rendezvous": "failures",
    "Stall": "stalls",
}

GivesUp = tuple[Reason, str]
"""Why the job fails: the condition's reason, and a sentence."""


def rule(s: Situation, failure: Failure, pods: int, now: Time, *, may_ignore: bool = False) -> Ruling:
    """What the failure leads to when a restart replaces that many pods. The spec must be there."""
    own = matching(s, failure, may_ignore=may_ignore)
    action = own.action if own else None
    progressed = has_progressed(s.status)
    before = s.status.recovery
    if action == "Ignore":
        return Ruling("Ignore", None, before, s.status.restarts, "ignored by a rule of recovery.rules")
    counter = COUNTS[failure.kind] or ("failures" if action == "Restart" else None)
    if action == "RestartUncounted":
        counter = None
    state = _counted(s, failure, counter, progressed=progressed)
    restarts = _risen(s.status.restarts, counter, uncounted=action == "RestartUncounted")
    ruling = Ruling("Restart", counter, state, restarts, "")
    gives_up = _gives_up(s, failure, action, ruling)
    if gives_up is not None:
        reason, why = gives_up
        state = replace(state, not_before=None)
        return replace(ruling, action="Fail", recovery=state, reason=why, fails_as=reason)
    wait = _wait(s, counter, state, restarts, progressed=progressed)
    state = replace(state, not_before=now + wait if wait else None)
    when = f"in {round(wait.total_seconds())} s" if wait else "now"
    how_often = _how_often(s, counter, state, restarts)
    replaced = f"{all_pods(pods)} replaced"
    return Ruling(
        "Restart", counter, state, restarts, f"{how_often}, attempt {s.status.attempt + 1} {when}, {replaced}"
    )


def has_progressed(status: JobStatus) -> bool:
    """Whether there is a newer verified checkpoint than at the last failure."""
    step = status.checkpoint.step if status.checkpoint else None
    before = status.recovery.checkpoint_step_at_failure
    return step is not None and (before is None or step > before)


def matching(s: Situation, failure: Failure, *, may_ignore: bool) -> FailureRule | None:
    """The first rule of the job that all of its criteria make fit."""
    rules = s.spec.recovery.rules if s.spec else []
    return next((r for r in rules if _fits(r, failure) and (may_ignore or r.action != "Ignore")), None)


def backoff(uid: str, count: int, initial_seconds: float, max_seconds: float) -> timedelta:
    """0 for the first, then doubling waits with a jitter that differs from job to job, so that not all come at once."""
    if count <= 1:
        return timedelta(0)
    seconds = min(initial_seconds * 2.0 ** min(count - 2, 40), max_seconds)
    # Not drawn but derived: the same situation must always lead to the same plan.
    return timedelta(seconds=seconds * (1 + JITTER * zlib.crc32(f"{uid}/{count}".encode()) / 2**32))


def _fits(r: FailureRule, failure: Failure) -> bool:
    return (
        (not r.roles or failure.task.role in r.roles)
        and (not r.exit_codes or _exit_code(failure) in r.exit_codes)
        and (not r.reasons or failure.kind in r.reasons or failure.reason in r.reasons)
        and (r.message_pattern is None or _found(r.message_pattern, failure.message or failure.what))
    )


def _exit_code(failure: Failure) -> int | None:
    """The code that a shell, and the kubelet, would tell: 128 and the number of the signal."""
    if failure.signal is None:
        return failure.exit_code
    if failure.signal in signal.Signals.__members__:
        return 128 + signal.Signals[failure.signal]
    number = failure.signal.removeprefix("signal ")
    return 128 + int(number) if number.isdecimal() and len(number) <= 3 else None


def _found(pattern: str, message: str) -> bool:
    import re2  # noqa: PLC0415 - 5 MB that hardly any job needs

    try:
        return re2.search(pattern, message) is not None
    except re2.error:
        return False  # `faults.py` refuses such a pattern; one in an older object must not stop the job's loop.


def _counted(s: Situation, failure: Failure, counter: Counter | None, *, progressed: bool) -> RecoveryState:
    """What is remembered of the failures so far, this one included."""
    state = s.status.recovery
    if progressed:
        state = RecoveryState(
            node_failures=state.node_failures,
            excluded_nodes=state.excluded_nodes,
            checkpoint_step_at_failure=state.checkpoint_step_at_failure,
        )
    if s.status.checkpoint is not None and s.status.checkpoint.step is not None:
        state = replace(state, checkpoint_step_at_failure=s.status.checkpoint.step)
    if counter == "disruptions":
        state = replace(state, disruptions_since_progress=state.disruptions_since_progress + 1)
    elif counter == "stalls":
        state = replace(state, stalls_since_progress=state.stalls_since_progress + 1)
    elif counter == "failures":
        state = replace(state, failures_since_progress=state.failures_since_progress + 1)
        state = nodes.with_failure(_with_signature(s, failure, state), failure)
    last_try = counter == "failures" and state.signature is not None
    last_try = last_try and state.signature_count >= _same_limit(s, failure) - 1
    return replace(state, excluded_nodes=nodes.excluded(s, failure, state, last_try=last_try))


def _with_signature(s: Situation, failure: Failure, state: RecoveryState) -> RecoveryState:
    """Whether it is the same failure again: equal to look at, at the same step beyond the restored one."""
    resumed = s.status.timeline[-1].resumed_from_step if s.status.timeline else None
    is_known = failure.step is not None and failure.step > (resumed or 0)
    if not is_known and failure.kind != "OutOfMemory":
        return replace(state, signature=None, signature_step=None, signature_count=0, signature_nodes=[])
    look = signature(failure)
    same_place = failure.kind == "OutOfMemory" or state.signature_step == failure.step
    is_same = state.signature == look and same_place
    seen_on = state.signature_nodes if is_same else []
    if failure.node is not None and failure.node not in seen_on:
        seen_on = [*seen_on, failure.node][-nodes.MOST_NODES :]
    return replace(
        state,
        signature=look,
        signature_step=failure.step,
        signature_count=state.signature_count + 1 if is_same else 1,
        signature_nodes=seen_on,
    )


def _gives_up(s: Situation, failure: Failure, action: str | None, ruling: Ruling) -> GivesUp | None:
    """Why the job fails instead of the restart that the ruling counts."""
    if s.spec is None or action == "RestartUncounted":
        return None
    if action == "Fail":
        return "FailedByRule", "a rule of recovery.rules says Fail"
    if not failure.heals and action != "Restart":
        return _incurable(failure), "no restart can heal it"
    limits, counter, state = s.spec.recovery, ruling.counts_as, ruling.recovery
    if counter == "disruptions" and state.disruptions_since_progress > limits.max_disruptions_without_progress:
        allowed = limits.max_disruptions_without_progress
        return "DisruptionsExhausted", f"more than {allowed} disruptions without a newer checkpoint"
    if counter == "stalls" and state.stalls_since_progress > limits.max_stalls:
        return "StallsExhausted", f"more than {limits.max_stalls} stalls without a newer checkpoint"
    if counter != "failures":
        return None
    if _is_the_program(s, failure, state):
        if failure.kind == "OutOfMemory":
            return "OutOfMemory", f"{state.signature_count} times in a row; {memory_advice(failure)}"
        return "SameFailure", f"{state.signature_count} times the same: it is the program"
    if state.failures_since_progress > limits.max_restarts:
        return "RestartsExhausted", f"more than {limits.max_restarts} failures without a newer checkpoint"
    if limits.max_restarts_total is not None and ruling.restarts.failures > limits.max_restarts_total:
        return "RestartsExhausted", f"more than {limits.max_restarts_total} failures in all"
    return None


def _incurable(failure: Failure) -> Reason:
    if failure.kind == "UnevenSteps":
        return "UnevenSteps"
    if failure.kind == "Image":
        return "Image"
    return "NothingToRestore" if failure.message.startswith("NothingToRestore") else "Configuration"


def _is_the_program(s: Situation, failure: Failure, state: RecoveryState) -> bool:
    """Whether the same failure came often enough, and elsewhere too where there is an elsewhere."""
    if state.signature is None or state.signature_count < _same_limit(s, failure):
        return False
    elsewhere_was_tried = len(state.signature_nodes) > 1 or failure.node in s.status.recovery.excluded_nodes
    return elsewhere_was_tried or not nodes.has_elsewhere(s, failure)


def _same_limit(s: Situation, failure: Failure) -> int:
    if failure.kind == "OutOfMemory" or s.spec is None:
        return SAME_OUT_OF_MEMORY
    return s.spec.recovery.max_same_failure


def _risen(restarts: Restarts, counter: Counter | None, *, uncounted: bool) -> Restarts:
    return Restarts(
        failures=restarts.failures + (counter == "failures"),
        disruptions=restarts.disruptions + (counter == "disruptions"),
        stalls=restarts.stalls + (counter == "stalls"),
        total=restarts.total + (counter is not None or uncounted),
    )


def _wait(
    s: Situation, counter: Counter | None, state: RecoveryState, restarts: Restarts, *, progressed: bool
) -> timedelta:
    """How long the next attempt waits: the first since progress not at all."""
    if s.spec is None:
        return timedelta(0)
    own = s.spec.recovery.backoff
    since_progress = {
        "failures": state.failures_since_progress,
        "disruptions": state.disruptions_since_progress,
        "stalls": state.stalls_since_progress,
    }
    # An uncounted restart has no counter to go by: it waits a little from the second on, so that it can't spin.
    count = since_progress[counter] if counter else 1 if progressed or restarts.total == 1 else 2
    return backoff(s.uid, count, own.initial_seconds, own.max_seconds)


def _how_often(s: Situation, counter: Counter | None, state: RecoveryState, restarts: Restarts) -> str:
    if s.spec is None or counter is None:
        return "uncounted"
    if counter == "failures":
        return f"failure {state.failures_since_progress} of {s.spec.recovery.max_restarts}"
    if counter == "stalls":
        return f"stall {state.stalls_since_progress} of {s.spec.recovery.max_stalls}"
    return f"disruption {restarts.disruptions}"
