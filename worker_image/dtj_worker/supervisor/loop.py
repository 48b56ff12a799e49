"""One thread for all that a supervisor waits for: descriptors, signals, results of threads; not what they mean.

asyncio would do as well and takes 8 MiB, a third of what a supervisor may have.
"""

import collections
import contextlib
import errno
import functools
import selectors
import signal
import socket
import threading
import time
from collections.abc import Callable
from typing import TypeVar

TICK_SECONDS = 0.25
"""Deadlines are looked at this often when nothing happens."""

INPUT_BYTES = 16 * 1024
OUTPUT_BYTES = 256 * 1024
"""A connection that has more than this waiting, either way, is closed: its other side is broken or hostile."""

Result = TypeVar("Result")


class Loop:
    """Calls back when something happens; every call comes in the one thread that calls `wait`.

    `now` is the time of the present round, by a clock that never goes back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.now = clock()
        self._clock = clock
        self._selector = selectors.DefaultSelector()
        self._mail: collections.deque[Callable[[], object]] = collections.deque()
        self._bell, self._rope = socket.socketpair()
        self._has_signals = False
        for end in (self._bell, self._rope):
            end.setblocking(False)
        self.watch(self._bell, self._heard_bell)

    def wait(self) -> None:
        """Until something has happened and its callbacks have run, or a tick has passed."""
        happened = self._selector.select(TICK_SECONDS)
        self.now = self._clock()
        for key, events in happened:
            for event, callback in zip((selectors.EVENT_WRITE, selectors.EVENT_READ), key.data, strict=True):
                # An earlier callback may have closed the descriptor, and its number may be another's by now.
                if events & event and callback and self._selector.get_map().get(key.fd) == key:
                    callback()

    def watch(
        self,
        source: int | socket.socket,
        reading: Callable[[], object] | None,
        writing: Callable[[], object] | None = None,
    ) -> None:
        """Call `reading` while there is something to read, `writing` while there is room; both None: forget it."""
        events = (selectors.EVENT_READ if reading else 0) | (selectors.EVENT_WRITE if writing else 0)
        known = source in self._selector.get_map()
        if events and known:
            self._selector.modify(source, events, (writing, reading))
        elif events:
            self._selector.register(source, events, (writing, reading))
        elif known:
            self._selector.unregister(source)

    def on_signal(self, number: int, callback: Callable[[], None]) -> None:
        """Only from the main thread. The callback runs in the loop, not in the handler."""
        signal.signal(number, lambda *_: self._mail.append(callback))
        signal.set_wakeup_fd(self._rope.fileno(), warn_on_full_buffer=False)
        self._has_signals = True

    def in_thread(self, work: Callable[[], Result], then: Callable[[Result | Exception], None]) -> None:
        """Do what may block (names, disks) in a thread that nobody waits for; `then` gets its result or exception."""

        def body() -> None:
            result: Result | Exception
            try:
                result = work()
            except Exception as error:
                result = error
            self._post(lambda: then(result))

        try:
            threading.Thread(target=body, daemon=True).start()
        except RuntimeError as refusal:  # The container may have no more threads; its program has them all.
            self._post(functools.partial(then, OSError(errno.EAGAIN, str(refusal))))

    def close(self) -> None:
        """Hear no more; the connections that are still watched are closed."""
        if self._has_signals:
            signal.set_wakeup_fd(-1)
        for source in [key.fileobj for key in self._selector.get_map().values()]:
            if isinstance(source, socket.socket):
                source.close()
        self._selector.close()
        self._rope.close()

    def _post(self, letter: Callable[[], object]) -> None:
        self._mail.append(letter)
        with contextlib.suppress(OSError):  # A full bell rings anyway, and a closed loop needs nothing.
            self._rope.send(b"\0")

    def _heard_bell(self) -> None:
        self._bell.recv(4096)
        while self._mail:
            self._mail.popleft()()


class Stream:
    """A connection with bounded buffers: `received` holds what came and wasn't taken, `send` keeps what can't go yet.

    `on_bytes` runs when something came, `on_end` once, when the other side has gone or broke a bound. Both may be
    replaced while the conversation goes on. Closing from this side calls neither.
    """

    def __init__(self, loop: Loop, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.received = bytearray()
        self.on_bytes: Callable[[], object] = lambda: None
        self.on_end: Callable[[str], object] = lambda _: None
        self.is_open = True
        self._loop = loop
        self._connection = connection
        self._waiting = bytearray()
        self.is_finishing = False
        self._shut = False
        self._dropped_bytes = 0
        loop.watch(connection, self._read)

    @property
    def is_blocked(self) -> bool:
        """Whether something that was sent has not left yet."""
        return bool(self._waiting)

    def send(self, data: bytes) -> None:
        if not self.is_open:
            return
        self._waiting += data
        if len(self._waiting) > OUTPUT_BYTES:
            self._end("it doesn't read")
        else:
            self._write()

    def take_lines(self) -> list[bytes]:
        """The whole lines that came, without their ends."""
        *lines, rest = self.received.split(b"\n")
        self.received = bytearray(rest)
        return [bytes(line) for line in lines]

    def finish(self) -> None:
        """Say no more once what was sent has left. What still comes is dropped: a reset would overtake it."""
        self.is_finishing = True
        self.on_bytes = self._drop
        self._write()

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._loop.watch(self._connection, None)
            self._connection.close()

    def _read(self) -> None:
        try:
            data = self._connection.recv(INPUT_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self._end(error.strerror or str(error))
            return
        if not data:
            self._end("connection closed")
            return
        self.received += data
        self.on_bytes()
        if len(self.received) > INPUT_BYTES:
            self._end("it says too much at once")

    def _drop(self) -> None:
        self._dropped_bytes += len(self.received)
        self.received.clear()
        if self._dropped_bytes > OUTPUT_BYTES:
            self._end("it doesn't stop")

    def _write(self) -> None:
        if not self.is_open:
            return
        try:
            while self._waiting:
                del self._waiting[: self._connection.send(self._waiting)]
            if self.is_finishing and not self._shut:
                self._shut = True
                self._connection.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            pass
        except OSError as error:
            self._end(error.strerror or str(error))
            return
        self._loop.watch(self._connection, self._read, self._write if self._waiting else None)

    def _end(self, reason: str) -> None:
        if self.is_open:
            self.close()
            self.on_end(reason)
