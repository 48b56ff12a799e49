"""The training program as a process: started in a session of its own, heard, ended with all its descendants, reaped.

Why it ends, and what its end means, is decided elsewhere.
"""

import collections
import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from dtj_worker.codec import ContractError, decode
from dtj_worker.contract import ENV_REPORT_FD, ENV_REPORT_PIPE
from dtj_worker.reports import STACKS_SIGNAL, Report
from dtj_worker.supervisor import log
from dtj_worker.supervisor.loop import Loop
from dtj_worker.supervisor.verdict import Exit

TAIL_LINES = 200
LINE_BYTES = 4096

STACKS_SECONDS = 3.0
"""Time for a program to write the stacks of all its threads before it is killed."""

GONE_SECONDS = 10.0
"""Time for what was killed to go; what sits in the kernel for longer (a dead disk, a driver) is left behind."""

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


class Child:
    """One process and what it says. Once `exit` is known, `is_gone` tells whether its descendants have gone too."""

    def __init__(
        self, loop: Loop, command: Sequence[str], environ: Mapping[str, str], hear: Callable[[Report], None]
    ) -> None:
        """Start it; OSError if the system refuses. Only from the main thread: the child dies with its parent thread."""
        self.exit: Exit | None = None
        self.is_gone = False
        self._loop = loop
        self._hear = hear
        self._waiting = b""
        self._kill_at: float | None = None
        self._killed_at: float | None = None
        self._swept_until: float | None = None
        self._reports, reports_end = os.pipe()
        errors, errors_end = os.pipe()
        try:
            self._process = subprocess.Popen(
                command,
                env={**environ, ENV_REPORT_FD: str(reports_end), ENV_REPORT_PIPE: str(os.fstat(reports_end).st_ino)},
                stderr=errors_end,
                pass_fds=(reports_end,),
                start_new_session=True,
                preexec_fn=_die_with(os.getpid()),  # noqa: PLW1509 - between fork and exec it makes two system calls
            )
        finally:
            os.close(reports_end)
            os.close(errors_end)
        os.set_blocking(self._reports, False)
        loop.watch(self._reports, self._read_reports)
        self._tail = Tail(errors)

    @property
    def errors(self) -> list[str]:
        """The last lines of its standard error, once they have all come, or after a second."""
        return self._tail.lines()

    def stop(self, grace_seconds: float) -> None:
        """SIGTERM to the program alone, which may need its helpers to save. `look` sends SIGKILL after the grace."""
        self._signal(signal.SIGTERM)
        self._kill_at = self._loop.now + grace_seconds

    def stop_with_stacks(self) -> None:
        """Let it write its stacks; `look` kills it then. Works while a rendezvous holds the GIL: the handler is C."""
        if not self.dump_stacks() and _catches(self._process.pid, signal.SIGABRT):
            # A Python with PYTHONFAULTHANDLER alone. It ends with the signal, and must not leave a core of gigabytes.
            with contextlib.suppress(OSError):
                _, hard = resource.prlimit(self._process.pid, resource.RLIMIT_CORE)
                resource.prlimit(self._process.pid, resource.RLIMIT_CORE, (0, hard))
            self._signal(signal.SIGABRT)
        self._kill_at = self._loop.now + STACKS_SECONDS

    def dump_stacks(self) -> bool:
        """Ask each process of the program that knows how to write its threads' stacks; whether any does. It runs on."""
        number = signal.Signals[STACKS_SIGNAL]
        able = [pid for pid, _, session in _processes() if session == self._process.pid and _catches(pid, number)]
        for pid in able:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        return bool(able)

    def kill(self) -> None:
        """At once, with its process group."""
        if self._killed_at is None:
            self._killed_at = self._loop.now
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._signal(signal.SIGKILL)

    def look(self) -> None:
        """Reap whatever has ended; kill what outstays its grace; after the program's end, all that it left behind."""
        now = self._loop.now
        left = self._reap()
        if self.exit is None:
            if self._kill_at is not None and now >= self._kill_at:
                self.kill()
            if self._killed_at is not None and now - self._killed_at > GONE_SECONDS:
                self.exit, self.is_gone = Exit(signal="SIGKILL"), True
            return
        if self.is_gone:
            return
        if self._swept_until is None:
            self._swept_until = now + GONE_SECONDS
            self.kill()
            self._hear_the_rest()
            left = self._reap()
        if left and now < self._swept_until:
            for pid, parent, _ in _processes():
                if parent == os.getpid():
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)
        else:
            self.is_gone = True

    def _reap(self) -> bool:
        """Whether any child is left. Orphans are ours as well: of process 1, or of the sub-reaper."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._process.pid:
                self.exit = Exit.of(status)
                self._process.returncode = os.waitstatus_to_exitcode(status)

    def _signal(self, number: int) -> None:
        if self.exit is None:  # Unreaped, so the number is no other process's yet.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    def _hear_the_rest(self) -> None:
        self._loop.watch(self._reports, None)
        # Bounded: what the program left behind may hold the pipe and write on.
        for _ in range(64):
            if not self._read_reports():
                break
        os.close(self._reports)

    def _read_reports(self) -> bool:
        """Whether there was anything."""
        try:
            data = os.read(self._reports, 65536)
        except BlockingIOError:
            return False
        if not data:
            self._loop.watch(self._reports, None)
        *lines, rest = (self._waiting + data).split(b"\n")
        self._waiting = rest[:LINE_BYTES]
        for line in lines:
            with contextlib.suppress(ContractError):  # A program's own words on our pipe are no reason to end it.
                self._hear(decode(Report, line))
        return bool(data)


class Tail:
    """Copies a child's standard error to ours and keeps its last lines.

    A thread of its own: where the reader of the log is slow, the child has to wait for it, and not the supervisor.
    """

    def __init__(self, source: int) -> None:
        self._lines: collections.deque[bytes] = collections.deque(maxlen=TAIL_LINES)
        self._thread = threading.Thread(target=self._copy, args=(source,), daemon=True)
        self._thread.start()

    def lines(self) -> list[str]:
        self._thread.join(1.0)
        return [line.decode(errors="replace") for line in list(self._lines)]

    def _copy(self, source: int) -> None:
        rest = b""
        while data := os.read(source, 65536):
            *lines, rest = (rest + data).split(b"\n")
            self._lines.extend(line[:LINE_BYTES] for line in lines)
            rest = rest[:LINE_BYTES]
            with contextlib.suppress(OSError):
                log.errors.copy(data)
        os.close(source)
        self._lines.append(rest)


def adopt_orphans() -> str | None:
    """Become the parent of all descendants that lose theirs, as process 1 is anyway. A sentence where that can't be."""
    if os.getpid() == 1:
        return None
    if not sys.platform.startswith("linux") or ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        return "this system hides processes that the program leaves behind; only its process group is ended with it"
    return None


def _die_with(supervisor: int) -> Callable[[], None] | None:
    """For the child, between fork and exec: SIGKILL when the supervisor dies, since nobody would end it then."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None).prctl

    def before_exec() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != supervisor:
            os._exit(1)

    return before_exec


def _processes() -> Iterator[tuple[int, int, int]]:
    """Number, parent and session of each process; none where there is no /proc."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            # The name in parentheses may hold anything, spaces and parentheses too.
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            yield int(entry.name), int(fields[1]), int(fields[3])


def _catches(pid: int, number: int) -> bool:
    """Whether the process has a handler for the signal, which would end it otherwise."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        mask = Path(f"/proc/{pid}/status").read_text(errors="replace").partition("\nSigCgt:")[2].split()[0]
        return bool(int(mask, 16) >> (number - 1) & 1)
    return False
