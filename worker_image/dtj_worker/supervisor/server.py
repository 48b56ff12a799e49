"""The status port: a small HTTP server that no client can hang or crash. What the answers say comes from elsewhere.

Bounds instead of trust: each request has a deadline, a size and a place among few; a reader that doesn't keep up loses
its place. After one answer the connection is closed.
"""

import hmac
import math
import socket
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace

from dtj_worker.codec import encode
from dtj_worker.contract import HEARTBEAT_SECONDS, PATH_HEALTH, PATH_JOIN, PATH_METRICS, PATH_TRAINING, TrainingStatus
from dtj_worker.supervisor.loop import Loop, Stream

HEAD_BYTES = 8 * 1024
BODY_BYTES = 4 * 1024
REQUEST_SECONDS = 10.0
"""From the connection to the last byte of the answer."""

MAX_REQUESTS = 64
MAX_READERS = 8
CHANGE_SECONDS = 0.5
BLOCKED_SECONDS = 15.0

PLAIN = "text/plain; charset=utf-8"
WORDS = {
    101: "Switching Protocols",
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    409: "Conflict",
    413: "Content Too Large",
    422: "Unprocessable Content",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class Refusal(Exception):
    """An answer other than 200: its status, and one line that says why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True)
class Answers:
    """What the port has to say. None where this task says nothing: only the chief streams and takes joins."""

    metrics: Callable[[], str]
    training: Callable[[], TrainingStatus] | None = None
    join: Callable[[bytes, Stream], None] | None = None
    """Takes the body and the connection over; raises Refusal instead."""


class Server:
    """Listens from its construction on; `look` keeps the deadlines and feeds the readers of the training stream."""

    def __init__(self, loop: Loop, listening: socket.socket, token: str, answers: Answers) -> None:
        listening.setblocking(False)
        self._loop = loop
        self._listening = listening
        self._token = token
        self._answers = answers
        self._requests: dict[Stream, float] = {}
        self._readers: dict[Stream, _Reader] = {}
        loop.watch(listening, self._accept)

    def look(self) -> None:
        """End what has taken too long; write the training status where it has changed or is due."""
        now = self._loop.now
        for stream, started in list(self._requests.items()):
            if now - started <= REQUEST_SECONDS:
                continue
            if stream.is_finishing:
                self._drop(stream)
            else:
                self._requests[stream] = now
                self._answer(stream, 408, f"no whole request within {REQUEST_SECONDS:g} s")
        due = {s: r for s, r in self._readers.items() if now - r.sent_at >= CHANGE_SECONDS}
        if due and self._answers.training:
            status = self._answers.training()
            for stream, reader in due.items():
                reader.feed(stream, status, now)
                if now - reader.sent_at > BLOCKED_SECONDS:
                    self._drop(stream)

    def close(self) -> None:
        """Take no more connections; the readers get the last state of things."""
        self._loop.watch(self._listening, None)
        self._listening.close()
        for stream, reader in list(self._readers.items()):
            if self._answers.training:
                reader.feed(stream, self._answers.training(), math.inf)
        for stream in [*self._requests, *self._readers]:
            stream.finish()

    @property
    def is_quiet(self) -> bool:
        """Whether nobody is connected any more."""
        return not self._requests and not self._readers

    def _accept(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except (BlockingIOError, ConnectionError):
            return  # It has gone again.
        except OSError:  # Out of descriptors: whoever has waited longest makes room.
            self._drop_oldest()
            return
        if len(self._requests) >= MAX_REQUESTS:
            self._drop_oldest()
        stream = Stream(self._loop, connection)
        stream.on_bytes = lambda: self._hear(stream)
        stream.on_end = lambda _: self._drop(stream)
        self._requests[stream] = self._loop.now

    def _hear(self, stream: Stream) -> None:
        try:
            self._serve(stream)
        except Refusal as refusal:
            self._answer(stream, refusal.status, str(refusal))
        except Exception:
            # Whatever a client manages to break, it breaks its own request.
            traceback.print_exc(file=sys.stderr)
            self._answer(stream, 500, "the supervisor's log has the reason")

    def _serve(self, stream: Stream) -> None:
        head, end, body = bytes(stream.received).partition(b"\r\n\r\n")
        if len(head) > HEAD_BYTES:
            raise Refusal(431, f"more than {HEAD_BYTES} bytes of headers")
        if not end:
            return
        method, path, headers = _parse(head)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or "transfer-encoding" in headers:
            raise Refusal(400, "a body needs a Content-Length")
        if len(length) > 9 or int(length) > BODY_BYTES:
            raise Refusal(413, f"more than {BODY_BYTES} bytes of body")
        if len(body) < int(length):
            return
        self._route(stream, method, path, headers, body[: int(length)])

    def _route(self, stream: Stream, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        if path == PATH_HEALTH and method == "GET":
            self._answer(stream, 200, "ok")
            return
        expected = f"Bearer {self._token}".encode()
        if not hmac.compare_digest(headers.get("authorization", "").encode(), expected):
            raise Refusal(401, "the job's token is needed: Authorization: Bearer …")
        if path not in (PATH_HEALTH, PATH_METRICS, PATH_TRAINING, PATH_JOIN):
            raise Refusal(404, f"nothing at {path[:80]}")
        if method != ("POST" if path == PATH_JOIN else "GET"):
            raise Refusal(405, f"{method[:10]} is not for {path}")
        if path == PATH_METRICS:
            self._answer(stream, 200, self._answers.metrics(), "text/plain; version=0.0.4; charset=utf-8")
        elif path == PATH_TRAINING and self._answers.training:
            self._start_reading(stream)
        elif path == PATH_JOIN and self._answers.join:
            stream.received.clear()
            self._answers.join(body, stream)
            self._requests.pop(stream, None)
        else:
            raise Refusal(404, "the supervisor of the chief serves this")

    def _start_reading(self, stream: Stream) -> None:
        if len(self._readers) >= MAX_READERS:
            raise Refusal(503, f"{MAX_READERS} clients read this already")
        del self._requests[stream]
        stream.on_bytes = stream.received.clear
        stream.send(_head(200, "application/x-ndjson"))
        self._readers[stream] = _Reader()

    def _answer(self, stream: Stream, status: int, text: str, content: str = PLAIN) -> None:
        body = text.encode(errors="replace") + (b"" if text.endswith("\n") else b"\n")
        stream.send(_head(status, content, len(body)) + body)
        stream.finish()

    def _drop_oldest(self) -> None:
        if self._requests:
            self._drop(min(self._requests, key=self._requests.__getitem__))

    def _drop(self, stream: Stream) -> None:
        stream.close()
        self._requests.pop(stream, None)
        self._readers.pop(stream, None)


class _Reader:
    """One client of the training stream: what it was sent last, and when."""

    def __init__(self) -> None:
        self.sent_at = -math.inf
        self._sent: TrainingStatus | None = None

    def feed(self, stream: Stream, status: TrainingStatus, now: float) -> None:
        # An age changes by itself and is no news. Who hasn't taken the last line gets the newest later, none between.
        news = replace(status, seconds_since_step=None)
        if (news != self._sent or now - self.sent_at >= HEARTBEAT_SECONDS) and not stream.is_blocked:
            self._sent, self.sent_at = news, now
            stream.send(encode(status).encode() + b"\n")


def _parse(head: bytes) -> tuple[str, str, dict[str, str]]:
    first, *rest = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise Refusal(400, "not a request of HTTP/1.1")
    pairs = (line.partition(":") for line in rest)
    return words[0], words[1].partition("?")[0], {name.strip().lower(): value.strip() for name, _, value in pairs}


def _head(status: int, content: str, length: int | None = None) -> bytes:
    size = "" if length is None else f"Content-Length: {length}\r\n"
    return f"HTTP/1.1 {status} {WORDS[status]}\r\nContent-Type: {content}\r\n{size}Connection: close\r\n\r\n".encode()
