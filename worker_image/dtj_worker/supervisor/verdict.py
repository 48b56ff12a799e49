"""How a task ended: from the child's exit, its last words and why it was stopped, to Verdict, Death and exit code."""

import dataclasses
import os
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from dtj_worker.contract import (
    EXIT_CONFIG,
    EXIT_DONE,
    EXIT_PEER,
    EXIT_SAVED,
    EXIT_STOPPED,
    Death,
    Verdict,
    VerdictKind,
    one_line,
)

EXIT_CODES: dict[VerdictKind, int] = {
    "Done": EXIT_DONE,
    "Saved": EXIT_SAVED,
    "Stopped": EXIT_STOPPED,
    "Config": EXIT_CONFIG,
    "Peer": EXIT_PEER,
}

TENSORFLOW_LOG = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IWEF] |[IWEF]\d{4} |WARNING: All log messages before absl"
)

COLLECTIVE_ERROR = re.compile(
    r"UnavailableError|AbortedError|Collective ops is aborted|Collective instance \d+ expected"
    r"|in the collective instance|DeadlineExceededError|Collective has timed out"
)
"""What TensorFlow raises on the tasks that survive a peer (seen with 2.21): a consequence, never the cause."""


UNLOADABLE = re.compile(
    r"(SyntaxError|IndentationError|TabError|ModuleNotFoundError): |ImportError: cannot import name "
)
"""What says that the program itself is wrong. Not all of ImportError: a library that can't be opened may be there on
another node."""


@dataclass(frozen=True)
class Exit:
    """How a process ended: exactly one of both."""

    code: int | None = None
    signal: str | None = None

    def __str__(self) -> str:
        return f"killed by {self.signal}" if self.signal else f"exited {self.code}"

    @classmethod
    def of(cls, status: int) -> "Exit":
        """From the status that `waitpid` gives."""
        code = os.waitstatus_to_exitcode(status)
        if code >= 0:
            return cls(code=code)
        try:
            return cls(signal=signal.Signals(-code).name)
        except ValueError:
            return cls(signal=f"signal {-code}")  # A real-time signal.


@dataclass(frozen=True)
class Ending:
    """Why the supervisor ends its task: a deadline, a peer's death, a request. `with_stacks`: its stacks are wanted."""

    kind: VerdictKind
    message: str
    blames: str | None = None
    with_stacks: bool = False


@dataclass(frozen=True)
class Evidence:
    """What is known when the child has ended. `errors` are the last lines of its standard error."""

    exit: Exit
    problem: str | None = None
    refused: str | None = None
    errors: Sequence[str] = ()
    out_of_memory: bool = False
    has_peers: bool = False
    step: int | None = None
    is_loading: bool = False
    """A Python that has come neither to a strategy nor to a step."""


def judge(task: str, attempt: int, evidence: Evidence, ending: Ending | None) -> Verdict:
    """The Verdict on a child that has ended, by itself or because of `ending`."""
    end = evidence.exit
    found = Verdict(attempt, "child", "Program", task, end.code, end.signal, evidence.step)
    if ending:
        saved = ending.kind == "Stopped" and end.code == EXIT_SAVED
        return dataclasses.replace(
            found, by="supervisor", kind="Saved" if saved else ending.kind, message=ending.message, blames=ending.blames
        )
    if end.code == EXIT_DONE:
        return dataclasses.replace(found, kind="Done", message="done")
    if evidence.refused:
        return dataclasses.replace(found, kind="Config", message=evidence.refused)
    said = evidence.problem or exception_in(evidence.errors)
    message = said or _last_words(evidence)
    if evidence.out_of_memory and end.signal == "SIGKILL":
        message = "killed by the kernel: the container is out of memory"
        return dataclasses.replace(found, kind="Memory", message=message)
    if said and "ResourceExhaustedError" in said:
        return dataclasses.replace(found, kind="Memory", message=message)
    if said and evidence.has_peers and COLLECTIVE_ERROR.search(said):
        return dataclasses.replace(found, kind="Peer", message=message)
    return dataclasses.replace(found, message=message, unloadable=_is_unloadable(evidence))


def without_child(task: str, attempt: int, ending: Ending) -> Verdict:
    """The Verdict of a task whose program was never started."""
    return Verdict(attempt, "supervisor", ending.kind, task, message=ending.message, blames=ending.blames)


def after(verdict: Verdict, first: Death) -> Verdict:
    """The same end, once it is known that another task died before and may well have caused it."""
    if first.task == verdict.task or verdict.by != "child" or verdict.kind not in ("Program", "Peer"):
        return verdict
    message = f"{because(first)}; then here: {verdict.message}"
    return dataclasses.replace(verdict, kind="Peer", message=message, blames=first.task)


def death(verdict: Verdict) -> Death:
    """The same end as the chief's supervisor is told it."""
    message = one_line(verdict.message)
    end = verdict.exit_code, verdict.signal
    return Death(verdict.task, verdict.kind, *end, verdict.step, message, verdict.unloadable)


def because(first: Death) -> str:
    """A peer's death as the reason for one's own end."""
    if first.message.startswith(("exited ", "killed by ")):
        return f"{first.task} {first.message}"
    if first.signal or first.exit_code is None:
        return f"{first.task}: {first.message}"
    return f"{first.task} exited {first.exit_code}: {first.message}"


def exit_code(verdict: Verdict) -> int:
    """The supervisor's own exit code. It repeats the Verdict for people and decides nothing."""
    if verdict.kind in EXIT_CODES:
        return EXIT_CODES[verdict.kind]
    if verdict.signal and verdict.signal in signal.Signals.__members__:
        return 128 + signal.Signals[verdict.signal]
    return verdict.exit_code or 1


def exception_in(errors: Sequence[str]) -> str | None:
    """The line of the exception that ended a Python program, or of the fault that did.

    What TensorFlow's threads and Python's clean-up still raise after it is noise: the line before says so.
    """
    found = None
    for number, line in enumerate(errors):
        if line.startswith("Fatal Python error: "):
            found = line
        if not line.startswith("Traceback (most recent call last):"):
            continue
        before = errors[number - 1] if number else ""
        if found is not None and before.startswith(("Exception ignored", "Exception in thread", "Error in ")):
            continue
        found = next(
            (after for after in errors[number + 1 :] if after.strip() and not after.startswith((" ", "\t"))), found
        )
    return found


def _is_unloadable(evidence: Evidence) -> bool:
    """Whether an error that lies in the program was the very last thing: one that it caught may have ended nothing."""
    said = evidence.problem or _last_line(evidence.errors) or ""
    return evidence.is_loading and evidence.exit.code == 1 and UNLOADABLE.match(said) is not None


def _last_words(evidence: Evidence) -> str:
    said = _last_line(evidence.errors)
    if said and evidence.exit.code is not None:
        return f"{evidence.exit}; its last line on stderr: {said}"
    return str(evidence.exit)


def _last_line(errors: Sequence[str]) -> str | None:
    said = [line.strip() for line in errors if line.strip() and not TENSORFLOW_LOG.match(line)]
    return said[-1] if said else None
