"""Process 1 of one container: starts the command, keeps its log, ends with its whole tree.

On its channel to the kubelet it is sent one line of JSON, what to start, then one byte per signal; it says one line
when the command runs or can't be started, and one when all has ended. When the channel closes, the kubelet is gone,
however it died: then everything here is killed.
"""

import contextlib
import ctypes
import errno
import json
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Literal

LINE_BYTES = 16 * 1024
"""A longer line is logged in parts, as container runtimes do."""
SWEEP_SECONDS = 10.0
"""How long after its end the command's descendants are killed and waited for; what then still lives can't be killed."""

Stage = Literal["folder", "program", "machine"]
"""At what the start of a command failed. The machine's is that of files and processes of ours."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_CHUNK = 64 * 1024
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def serve(kubelet: socket.socket) -> None:
    """Until the container has ended or the kubelet has."""
    told = _first_line(kubelet)
    if told is None:
        return
    waker, wake = os.pipe()
    for end in (waker, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        container = Container(told, Log(str(told["log"])))
    except NotStarted as why:
        _say(kubelet, {"stage": why.stage, "errno": why.errno})
        return
    except OSError as why:
        refuse(kubelet, why)
        return
    _say(kubelet, {"pid": container.pid})
    _watch(kubelet, container, waker)
    container.end()
    _say(kubelet, {"exit": container.code if container.code is not None else 128 + signal.SIGKILL})


def refuse(kubelet: socket.socket, why: OSError) -> None:
    """There is no log, or no process, to start the command with."""
    stage: Stage = "machine"
    _say(kubelet, {"stage": stage, "errno": why.errno})


def _watch(kubelet: socket.socket, container: "Container", waker: int) -> None:
    """Until the command has ended or must be killed."""
    poll = select.poll()
    for file in (kubelet.fileno(), container.output, waker):
        poll.register(file, select.POLLIN)
    while container.code is None:
        for file, _ in poll.poll():
            if file == kubelet.fileno():
                orders = kubelet.recv(64)
                if not orders:
                    return
                for number in orders:
                    container.send(number)
            elif file == waker:
                os.read(waker, 4096)
                container.reap()
            elif not container.copy():
                poll.unregister(file)


class NotStarted(Exception):
    """The command can't be started: its Stage, and the system's number for why."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.stage, _, number = words.partition(" ")
        self.errno = int(number)


class Container:
    """The command, while it and what it started live."""

    def __init__(self, told: dict[str, object], log: "Log") -> None:
        self._log = log
        self.code: int | None = None
        self.output, inlet = os.pipe()
        self.pid, error = _spawn(told, inlet)
        os.close(inlet)
        if error:
            os.waitpid(self.pid, 0)
            raise NotStarted(error)
        os.set_blocking(self.output, False)

    def send(self, number: int) -> None:
        if self.code is None:
            _kill(self.pid, number)

    def copy(self) -> bool:
        """What it has written goes to the log; whether there may be more."""
        try:
            data = os.read(self.output, _CHUNK)
        except BlockingIOError:
            return True
        self._log.take(data)
        return bool(data)

    def reap(self) -> bool:
        """Whether any child is left. Orphans of the command are our children too."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.pid:
                code = os.waitstatus_to_exitcode(status)
                self.code = code if code >= 0 else 128 - code

    def end(self) -> None:
        """As the kernel does when process 1 of a container has ended: all the others are killed."""
        until = time.monotonic() + SWEEP_SECONDS
        if sys.platform != "linux":
            with contextlib.suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)
        while self.reap() and time.monotonic() < until:
            if self.code is None:
                _kill(self.pid, signal.SIGKILL)
            for pid in _children():
                _kill(pid, signal.SIGKILL)
            time.sleep(0.005)
        while select.select([self.output], [], [], 0)[0] and self.copy():
            pass
        self._log.close()


class Log:
    """Lines with their time, `F` for whole ones and `P` for parts: `2026-11-30T22:06:08.123456Z F text`."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._rest = b""

    def take(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        head = _time()
        told = [part for line in lines for part in _parts(head, line)]
        while len(self._rest) > LINE_BYTES:
            told.append(head + b"P " + self._rest[:LINE_BYTES] + b"\n")
            self._rest = self._rest[LINE_BYTES:]
        self._write(b"".join(told))

    def close(self) -> None:
        if self._rest:
            self._write(_time() + b"P " + self._rest + b"\n")
        os.close(self._file)

    def _write(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError:
            # A full disk costs the log, not the program.
            return


def _spawn(told: dict[str, object], output: int) -> tuple[int, str]:
    """The command's process, and what kept it from becoming the command, in NotStarted's words."""
    words, folder, environment = told["words"], told["folder"], told["environment"]
    assert isinstance(words, list)
    assert isinstance(folder, str)
    assert isinstance(environment, dict)
    us = os.getpid()
    reading, failing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(failing)
        with os.fdopen(reading) as errors:
            return pid, errors.read()
    stage = "folder"
    try:
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != us:
            os._exit(1)
        signal.set_wakeup_fd(-1)
        for number in _IGNORED_BY_PYTHON:
            signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(folder)
        stage = "program"
        os.execvpe(words[0], words, environment)
    except OSError as error:
        os.write(failing, f"{stage} {error.errno}".encode())
    except ValueError:
        # A NUL in a word or in the environment.
        os.write(failing, f"{stage} {errno.EINVAL}".encode())
    finally:
        os._exit(127)


def _first_line(kubelet: socket.socket) -> dict[str, object] | None:
    text = bytearray()
    while not text.endswith(b"\n"):
        data = kubelet.recv(_CHUNK)
        if not data:
            return None
        text += data
    told: dict[str, object] = json.loads(text)
    return told


def _say(kubelet: socket.socket, word: dict[str, object]) -> None:
    try:
        kubelet.sendall(json.dumps(word).encode() + b"\n")
    except OSError:
        # It is gone: nobody needs the word.
        return


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _children() -> list[int]:
    """Our own children; none where there is no /proc."""
    us, found = os.getpid(), []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            # The name in parentheses may hold anything, spaces and parentheses too.
            parent = (entry / "stat").read_bytes().rpartition(b")")[2].split()[1]
        except (OSError, IndexError):
            continue
        if int(parent) == us:
            found.append(int(entry.name))
    return found


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _parts(head: bytes, line: bytes) -> list[bytes]:
    cut = [line[at : at + LINE_BYTES] for at in range(0, len(line), LINE_BYTES)] or [b""]
    return [head + (b"P " if at < len(cut) - 1 else b"F ") + part + b"\n" for at, part in enumerate(cut)]


def _time() -> bytes:
    now = time.time_ns()
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now // 10**9))
    return f"{seconds}.{now // 1000 % 10**6:06d}Z ".encode()
