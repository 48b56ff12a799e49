"""What a program tells its supervisor, one Report a line through an inherited pipe, and the fault a demo asked for.

Standard library only and importable without TensorFlow. Reporting never fails and never holds up a program: without a
supervisor it does nothing, and a step that finds the pipe full is dropped. What counts as a step is known elsewhere.
"""

import atexit
import functools
import math
import os
import re
import select
import signal
import stat
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import NoReturn, SupportsFloat

from dtj_worker.codec import decode, encode
from dtj_worker.contract import ENV_REPORT_FD, ENV_REPORT_PIPE, ENV_TASK, EXIT_CONFIG, Fault, TaskSpec, one_line
from dtj_worker.reports import Report, ReportKind

STEP_SECONDS = 0.1
"""Step reports are at least this far apart; the newest one is kept and written before anything else that is said."""

PATIENCE_SECONDS = 5.0
"""How long a report other than a step waits for a supervisor that doesn't read."""


class Reporter:
    """The child's half of the conversation. Only the process that made it speaks; its forks are silent."""

    def __init__(self, descriptor: int | None, fault: Fault | None = None) -> None:
        self._descriptor = descriptor
        self._fault = fault
        self._owner = os.getpid()
        self._lock = threading.RLock()
        self._reached = 0
        self._written_at = -math.inf
        self._waiting: tuple[Report, SupportsFloat | None] | None = None
        self._phase = self._notice = ""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> "Reporter":
        """The reporter of this process, silent without a supervisor's pipe; ContractError if DTJ_TASK doesn't parse."""
        task = environ.get(ENV_TASK)
        spec = decode(TaskSpec, task) if task else None
        pipe = _pipe(environ.get(ENV_REPORT_FD, ""), environ.get(ENV_REPORT_PIPE))
        made = cls(pipe, spec.fault if spec and spec.attempt == 0 else None)
        atexit.register(made.flush)
        return made

    def constructing(self, name: str) -> None:
        """A strategy's constructor was entered; it may hang, holding the GIL, until all peers are there."""
        self._tell("Constructing", message=name)

    def built(self, replicas: int, global_batch: int | None) -> None:
        """The strategy stands. `global_batch` in examples, None where nobody has said it yet."""
        self._tell("Built", replicas=replicas, global_batch=global_batch)

    def reports(self) -> None:
        """`fit` or `dtj.loop` was entered: steps will follow."""
        self._phase = "Training"
        self._tell("Reports")

    def restored(self, step: int, epoch: int) -> None:
        """Training goes on after this step, in this epoch (from 0)."""
        self._reached = step
        self._tell("Restored", step=step, epoch=epoch)

    def step(
        self,
        step: int,
        epoch: int,
        epochs: int | None = None,
        loss: SupportsFloat | None = None,
        examples_per_s: float | None = None,
    ) -> None:
        """Step number `step` (from 1, over the whole job) has ended. The loss is computed only when it is written."""
        before, self._reached = self._reached, step
        report = Report("Step", step, epoch, epochs, examples_per_s=examples_per_s)
        if self._fault and before < self._fault.step <= step:
            self._waiting = (report, loss)
            self.flush()
            self._fire(self._fault)
            return
        with self._lock:
            self._waiting = (report, loss)
            if time.monotonic() - self._written_at >= STEP_SECONDS:
                self._write_step(patience=0)

    def saved(self, step: int, epoch: int) -> None:
        """A checkpoint of this step is on disk and verified; `epoch` is where training would go on."""
        self._tell("Saved", step=step, epoch=epoch)
        if self._notice.startswith("NothingSaved"):
            self.notice("")

    def phase(self, name: str) -> str:
        """What the program does now: Training, Evaluating, Saving, Exporting, or empty where no step is to be expected.

        Told when it changes. Returns what it did before.
        """
        before, self._phase = self._phase, name
        if name != before:
            self._tell("Phase", message=name)
        return before

    def busy(self, what: str) -> None:
        """Something long that isn't a step, as "download"; empty when it is over."""
        self._tell("Busy", message=what)

    def notice(self, message: str) -> None:
        """One sentence that people should know and that is no failure; empty when it no longer holds.

        One that begins with `NothingSaved` holds until the first save.
        """
        self._notice = message
        self._tell("Notice", message=message)

    def problem(self, message: str) -> None:
        """The exception that ends the program."""
        self._tell("Problem", message=message, process=os.getpid())

    def refused(self, message: str) -> NoReturn:
        """A fault of configuration: told to the supervisor and on stderr; the process ends without any tear-down."""
        self._tell("Refused", message=message)
        print(f"dtj: {message}", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(EXIT_CONFIG)

    def flush(self) -> None:
        """Write the newest step if it hasn't been."""
        with self._lock:
            self._write_step(PATIENCE_SECONDS)

    def _tell(self, kind: ReportKind, message: str | None = None, **numbers: int | None) -> None:
        with self._lock:
            self._write_step(PATIENCE_SECONDS)
            line = None if message is None else one_line(message)
            self._write(Report(kind, message=line, **numbers), PATIENCE_SECONDS)

    def _write_step(self, patience: float) -> None:
        if self._waiting is None or self._descriptor is None:
            return
        (report, loss), self._waiting = self._waiting, None
        self._written_at = time.monotonic()
        self._write(replace(report, loss=_finite(loss)), patience)

    def _write(self, report: Report, patience: float) -> None:
        if self._descriptor is None or os.getpid() != self._owner:
            return
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        # A pipe is writable when PIPE_BUF bytes fit, and a report is shorter: the write is whole and doesn't block.
        if any(events & select.POLLOUT for _, events in poll.poll(patience * 1000)):
            try:
                os.write(self._descriptor, f"{encode(report)}\n".encode())
            except OSError:
                self._descriptor = None

    def _fire(self, fault: Fault) -> None:
        self._fault = None
        if fault.exit_code is not None:
            os._exit(fault.exit_code)
        number = signal.Signals[fault.signal or "SIGKILL"]
        os.kill(os.getppid() if number == signal.SIGTERM else os.getpid(), number)


@functools.cache
def reporter() -> Reporter:
    """The one reporter of this process: callbacks, loops and the program's own calls share its memory."""
    return Reporter.from_environment()


def first_line(error: Exception) -> str:
    """What an exception says, for people: without its further lines, and what TensorFlow puts around it."""
    line = next(iter(str(error).splitlines()), "") or type(error).__name__
    return re.sub(r"^\{\{.*?\}\} | \[Op:\w+\]$", "", line)


def _pipe(number: str, inode: str | None) -> int | None:
    """The descriptor, if it is the supervisor's pipe: a grandchild inherits the variable, but rarely what it names."""
    if not number.isdecimal():
        return None
    try:
        found = os.fstat(int(number))
        if not (stat.S_ISFIFO(found.st_mode) or stat.S_ISSOCK(found.st_mode)) or inode not in (None, str(found.st_ino)):
            return None
        os.set_inheritable(int(number), False)
    except OSError:
        return None
    return int(number)


def _finite(loss: SupportsFloat | None) -> float | None:
    # JSON has no NaN: the status would be refused by the API server.
    value = math.nan if loss is None else float(loss)
    return value if math.isfinite(value) else None
