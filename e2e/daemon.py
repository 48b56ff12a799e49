"""A program of the cluster that runs until it is stopped, with its log; and waiting for what it brings about."""

import contextlib
import os
import select
import shlex
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path


class Daemon:
    """Started in a session of its own, so that Ctrl-C on a terminal is told to nobody but the one who ends it all."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        *,
        network: str | None = None,
        cgroup: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.name = name
        self.log = log
        self._environment = {**os.environ, **(environment or {})}
        # Not `ip netns exec`: that hides /sys/fs/cgroup.
        into = ["nsenter", f"--net=/run/netns/{network}", "--"] if network else []
        self._command = [*into, *map(str, command)]
        if cgroup:
            entered = f"echo $$ > {shlex.quote(str(cgroup))} && exec {shlex.join(self._command)}"
            self._command = ["sh", "-c", entered]
        self._number = log.with_suffix(".pid")

    def start(self) -> None:
        """Not as a `Popen`: another process of the namespace may end it, and this one end before it."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        writing = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        streams = [
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(self.log), writing, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        command = self._command
        pid = os.posix_spawnp(command[0], command, self._environment, file_actions=streams, setsid=True)
        self._number.write_text(str(pid))

    def stop(self, seconds: float = 20) -> None:
        """Ask it to end, and make it end when it does not; nothing where it does not run."""
        self._end(signal.SIGTERM, seconds)
        self.kill()

    def kill(self) -> None:
        self._end(signal.SIGKILL)
        self._reaped()
        self._number.unlink(missing_ok=True)

    def check(self) -> None:
        """Raise if it has ended by itself."""
        if (status := self._reaped()) is not None:
            code = os.waitstatus_to_exitcode(status)
            raise RuntimeError(f"{self.name} ended with {code}; the end of {self.log}:\n{tail(self.log)}")

    def _reaped(self) -> int | None:
        """How it ended, told once, to the process that started it."""
        with contextlib.suppress(FileNotFoundError, ChildProcessError):
            pid, status = os.waitpid(int(self._number.read_text()), os.WNOHANG)
            return status if pid else None
        return None

    def _end(self, by: signal.Signals, seconds: float | None = None) -> None:
        """Send a signal, and wait so long for the end."""
        try:
            handle = os.pidfd_open(int(self._number.read_text()))
        except (FileNotFoundError, ProcessLookupError):  # it was never started, or has ended and was reaped
            return
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, by)
            select.select([handle], [], [], seconds)
        os.close(handle)


def tail(log: Path, lines: int = 15) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def wait(what: str, holds: Callable[[], bool], seconds: float, *needs: Daemon) -> None:
    """Until it holds; at once an error when one of those that it needs has ended."""
    deadline = time.monotonic() + seconds
    while not holds():
        for daemon in needs:
            daemon.check()
        if time.monotonic() > deadline:
            ends = "\n".join(f"the end of {daemon.log}:\n{tail(daemon.log)}" for daemon in needs)
            raise TimeoutError(f"{what}: not within {seconds:.0f} s\n{ends}")
        time.sleep(0.1)  # sockets and health endpoints are to be asked; they tell nobody
