"""What there is to tell of a job: the sentences for a change of its status, and those at its end. Pure."""

import re

from dtj_operator.api.fault import parse_fault
from dtj_operator.api.status import FINAL, Attempt, JobStatus, LastFailure

ENDED_WELL = ("Succeeded", "Suspended", "Requested")
"""Outcomes of attempts that are no failures."""

LAST_WORDS = 1000
"""So many characters of a program's last line are told again."""

_NOISE = re.compile(
    r"dtj-worker: |dtj: "
    r"|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [EFIW] |[EFIW]\d{4} \d\d:\d\d:\d\d|(WARNING|INFO|ERROR):"
    r"|/job:\w+/|The tasks have crashed|To enable the following instructions|Additional GRPC error|:\{\"created\""
    r"|.*\[type\.googleapis\.com/tensorflow"
)
"""Lines in a trainer's log that its program did not print: ours, TensorFlow's, and what follows those."""


def milestones(before: JobStatus, after: JobStatus) -> list[str]:
    """What has happened between two statuses that belongs into the story: how attempts failed and resumed."""
    known = {attempt.attempt: attempt for attempt in before.timeline}
    told: list[str] = []
    for attempt in after.timeline:
        old = known.get(attempt.attempt)
        if attempt.outcome is not None and (old is None or old.outcome is None) and attempt.outcome != "Succeeded":
            told.append(ended(attempt, after.last_failure))
        if attempt.first_step is not None and (old is None or old.first_step is None) and attempt.attempt > 0:
            told.append(resumed(attempt))
    return told


def ended(attempt: Attempt, failure: LastFailure | None) -> str:
    """`attempt 0 failed at step 60 by SIGKILL of worker 1 (Application)`."""
    head = f"attempt {attempt.attempt}"
    if attempt.outcome in ENDED_WELL:
        return f"{head} ended: {attempt.outcome}"
    if failure is None or failure.attempt != attempt.attempt:
        return f"{head} failed: {attempt.outcome}"
    return f"{head} failed{_cause(failure)} ({failure.failure_class}){_because(failure)}"


def resumed(attempt: Attempt) -> str:
    """`attempt 1 resumed at epoch 5 (step 50)`."""
    if not attempt.resumed_from_step:
        return f"attempt {attempt.attempt} began at the first step: there was no checkpoint yet"
    epoch = "" if attempt.resumed_from_epoch is None else f" at epoch {attempt.resumed_from_epoch}"
    return f"attempt {attempt.attempt} resumed{epoch} (step {attempt.resumed_from_step})"


def conclusion(status: JobStatus, seconds: float) -> str:
    """`Succeeded after 34 s, 1 restart (1 failure): worker-0 exited 0`."""
    told = restarts(status)
    again = f", {told}" if told else ""
    reason = f": {status.reason}" if status.reason else ""
    return f"{status.phase} after {seconds:.0f} s{again}{reason}"


def restarts(status: JobStatus) -> str:
    """`2 restarts (1 failure, 1 disruption)`; empty where there was none."""
    told = status.restarts
    kinds = (("failure", told.failures), ("disruption", told.disruptions), ("stall", told.stalls))
    of = ", ".join(_number(count, kind) for kind, count in kinds if count)
    return f"{_number(told.total, 'restart')} ({of})" if told.total else ""


def where(status: JobStatus) -> str:
    """`Running, step 56, epoch 5 of 10, loss 0.0179`: for a line that is repeated while it goes on."""
    progress = status.progress
    parts: list[str] = [status.phase]
    if progress is not None and progress.step is not None:
        parts.append(f"step {progress.step}")
        if progress.epoch is not None:
            # Counted from 0, told from 1; behind the last epoch there is none under way.
            of = "" if progress.epochs is None else f" of {progress.epochs}"
            parts.append(f"epoch {min(progress.epoch + 1, progress.epochs or progress.epoch + 1)}{of}")
        if progress.loss is not None:
            parts.append(f"loss {progress.loss:.4g}")
        if progress.examples_per_second:
            parts.append(f"{progress.examples_per_second:.0f} examples/s")
    return ", ".join(parts)


def refusal(status: JobStatus) -> str | None:
    """Why the operator won't accept the job as it stands; None while it does, has not looked yet, or waits."""
    found = next((c for c in status.conditions if c.type == "Accepted" and c.status == "False"), None)
    # An earlier job's objects go by themselves.
    return None if found is None or found.reason == "WaitingForPredecessor" else found.message or found.reason


def is_of(fault: str, status: JobStatus) -> bool:
    """Whether the last failure is the one that a fault such as `worker:1@step=60:SIGTERM` was to cause.

    Whose end it was and how: the step is no sign, since a killed program may not have told its last one. An exit with 0
    is no failure, so nothing says that it came; it counts as come.
    """
    task, wanted = parse_fault(fault)
    if wanted.exit_code == 0:
        return True
    last = status.last_failure
    if last is None or (last.attempt, last.role, last.index) != (0, task.role, task.index):
        return False
    if wanted.signal == "SIGTERM":
        # To the supervisor, as when a node is drained.
        return last.failure_class == "Preempted"
    return (last.signal, last.exit_code) == (wanted.signal, wanted.exit_code)


def never_came(fault: str, status: JobStatus) -> str:
    """`--fail worker:1@step=1000 never came: the job ended, and the last step heard of was 48`."""
    if status.attempt:
        # Faults come in attempt 0 alone.
        return f"--fail {fault} never came: attempt 0 ended before it"
    step = None if status.progress is None else status.progress.step
    # Not "at step": the status is a look now and then, and the last steps may lie behind the last look.
    heard = "no step was heard of" if step is None else f"the last step heard of was {step}"
    return f"--fail {fault} never came: the job ended, and {heard}"


def is_final(status: JobStatus) -> bool:
    return status.phase in FINAL


def is_spoken(line: str) -> bool:
    """Whether a line of a trainer's log is one that its program printed."""
    return bool(line.strip()) and not _NOISE.match(line)


def last_words(line: str) -> str:
    """A line of a program as the one that is told again at the end: a program may print megabytes without a break."""
    words = line.strip()
    return words if len(words) <= LAST_WORDS else f"{words[:LAST_WORDS]}…"


def _cause(failure: LastFailure) -> str:
    step = "" if failure.step is None else f" at step {failure.step}"
    who = f"{failure.role} {failure.index}" if failure.role is not None else "an unknown task"
    if failure.signal is not None:
        return f"{step} by {failure.signal} of {who}"
    if failure.exit_code is not None:
        return f"{step} by exit code {failure.exit_code} of {who}"
    return f"{step} because of {who}"


def _because(failure: LastFailure) -> str:
    """What it said itself, where that is more than how it ended."""
    lines = failure.message.splitlines()
    is_known = not lines or lines[0] in (f"killed by {failure.signal}", f"exited {failure.exit_code}")
    return "" if is_known else f": {lines[0]}"


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
