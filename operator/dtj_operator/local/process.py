"""Commands as processes that this one cannot outlive: the kubelet's side of `node/runtime.py` and `node/shim.py`."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Self

import msgspec

from dtj_operator.local.node.runtime import CONNECT, ISOLATED, LISTEN, RUN, Request
from dtj_operator.local.node.shim import Stage


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """What to run. `log` is a file that gets its output, each line with its time (`node/shim.py`)."""

    words: tuple[str, ...]
    environment: Mapping[str, str]
    folder: str
    log: str


class NotStarted(Exception):
    """The command can't be started: its folder, its program or the machine is the reason, and `errno` says why."""

    def __init__(self, stage: Stage, errno: int) -> None:
        super().__init__(f"{stage}: {os.strerror(errno)}")
        self.stage = stage
        self.errno = errno


class NoIsolation(Exception):
    """This machine does not let us have a network of our own; the message says why."""


class Process:
    """One container's command and all that descends from it."""

    def __init__(self, channel: socket.socket, heard: bytearray, pid: int) -> None:
        self._channel = channel
        self.pid = pid
        """Of the command itself."""
        self._end = asyncio.create_task(self._wait(heard), name=f"end of process {pid}")

    @classmethod
    async def start(cls, channel: socket.socket, command: Command) -> Self:
        """NotStarted if it can't be."""
        channel.setblocking(False)
        heard = bytearray()
        try:
            # Where the other end is closed, what it said before may still be read.
            with suppress(OSError):
                await asyncio.get_running_loop().sock_sendall(channel, msgspec.json.encode(command) + b"\n")
            answer = await _word(channel, heard)
        except BaseException:
            channel.close()
            raise
        if "pid" in answer:
            return cls(channel, heard, answer["pid"])
        channel.close()
        if "errno" not in answer:
            raise RuntimeError("the container runtime has ended")
        raise NotStarted(answer["stage"], answer["errno"])

    def send(self, number: int) -> None:
        """A signal to the command alone. SIGKILL ends all that it has started, too."""
        # What has ended is not there to be told. No stream of asyncio does here: where a write finds the other end
        # closed, it drops what is still to be read, which is how the command ended.
        with suppress(OSError):
            self._channel.send(bytes([number]))

    async def ended(self) -> int:
        """The exit code, 128 + n for signal n, once nothing of it is left. May be awaited by many, and cancelled."""
        return await asyncio.shield(self._end)

    async def kill(self) -> None:
        """End it at once, with its whole tree."""
        self.send(signal.SIGKILL)
        await self.ended()

    async def _wait(self, heard: bytearray) -> int:
        # Where the shim itself was killed, the kernel kills the command with it.
        with self._channel:
            answer = await _word(self._channel, heard)
        return int(answer.get("exit", 128 + signal.SIGKILL))


class Runtime:
    """The process that starts all others. Nothing it has started outlives this process, however it ends."""

    def __init__(self, requests: socket.socket, *, is_isolated: bool) -> None:
        self._requests = requests
        self.is_isolated = is_isolated

    async def run(self, command: Command) -> Process:
        return await Process.start(self._channel(RUN), command)

    async def listen(self, port: int) -> socket.socket:
        """A socket that listens on 127.0.0.1 where the containers are. OSError as usual."""
        return await self._opened(LISTEN, port)

    async def connect(self, port: int) -> socket.socket:
        """A connection to a port of 127.0.0.1 where the containers are."""
        return await self._opened(CONNECT, port)

    async def _opened(self, request: Request, port: int) -> socket.socket:
        with self._channel(request) as channel:
            channel.sendall(str(port).encode())
            data, descriptors, _, _ = await asyncio.to_thread(socket.recv_fds, channel, 16, 1)
        if not data:
            raise ConnectionError("the container runtime has ended")
        if not descriptors:
            raise OSError(int(data), os.strerror(int(data)))
        opened = socket.socket(fileno=descriptors[0])
        opened.setblocking(False)
        return opened

    def _channel(self, request: Request) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._requests, [request], [theirs.fileno()])
            except OSError:
                ours.close()
                raise ConnectionError("the container runtime has ended") from None
        return ours


@asynccontextmanager
async def runtime(log: Path, *, isolated: bool = False) -> AsyncIterator[Runtime]:
    """A runtime for the time of the context. NoIsolation where it was asked for and can't be had."""
    program, ours = _program(log, isolated=isolated)
    try:
        first = (await asyncio.to_thread(ours.recv, 4096)).decode()
        if not first:
            raise RuntimeError(f"the container runtime did not start: {_tail(log)}")
        if first.strip():
            raise NoIsolation(first.strip())
        yield Runtime(ours, is_isolated=isolated)
    finally:
        # Not closed alone: a thread may still be waiting for its first word, and would keep it open.
        ours.shutdown(socket.SHUT_RDWR)
        ours.close()
        await asyncio.to_thread(program.wait)


def _program(log: Path, *, isolated: bool) -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair()
    options = [ISOLATED] if isolated else []
    with theirs, log.open("ab") as output:
        program = subprocess.Popen(
            # -P: a module of the folder that we happen to be in must not take the place of one of ours.
            [sys.executable, "-P", "-m", "dtj_operator.local.node.runtime", str(theirs.fileno()), *options],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    return program, ours


async def _word(channel: socket.socket, heard: bytearray) -> dict[str, Any]:
    """The next line of JSON that a shim says; empty when there is none to come. `heard` is what was read beyond it."""
    while b"\n" not in heard:
        try:
            data = await asyncio.get_running_loop().sock_recv(channel, 4096)
        except OSError:
            # It ended with signals unread, and all that it said has been read.
            data = b""
        if not data:
            return {}
        heard += data
    line, _, heard[:] = heard.partition(b"\n")
    word: dict[str, Any] = json.loads(line)
    return word


def _tail(log: Path) -> str:
    return log.read_text()[-2000:]
