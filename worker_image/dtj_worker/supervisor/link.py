"""A peer's side of what `peers.py` describes: registers with the chief's supervisor, then speaks and listens."""

import math
import socket
from collections.abc import Callable

from dtj_worker.codec import ContractError, decode, encode
from dtj_worker.contract import HEARTBEAT_SECONDS, PATH_JOIN, TaskSpec
from dtj_worker.supervisor import reach
from dtj_worker.supervisor.loop import Loop, Stream
from dtj_worker.supervisor.peers import SILENCE_SECONDS, Join, Order, Word, cluster_of

CONNECT_SECONDS = 5.0
RETRY_SECONDS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Between two tries. Hundreds of peers may wait for a chief whose image is still being pulled."""


class Link:
    """Tries until it is registered, and again when the connection ends; whether that matters is for others to say."""

    def __init__(
        self, loop: Loop, spec: TaskSpec, token: str, obey: Callable[[Order], None], lost: Callable[[str], None]
    ) -> None:
        """`lost(why)`: a registered connection has ended."""
        self.is_registered = False
        self.problem = "it was not tried yet"
        """Why it isn't registered, for people."""
        self.refused = False
        """The chief says that this task can never register; `problem` has its reason."""
        self._loop, self._spec, self._token = loop, spec, token
        self._obey, self._lost = obey, lost
        self._stream: Stream | None = None
        self._told: Word | None = None
        self._tries = 0
        self._try_at = self._told_at = self._heard_at = loop.now

    @property
    def is_open(self) -> bool:
        return self._stream is not None

    def look(self, word: Word) -> None:
        """Register if it isn't; tell the state where it has changed or a heartbeat is due."""
        now = self._loop.now
        if self._stream is None:
            if now >= self._try_at and not self.refused:
                self._try_at = math.inf  # Until this try has come back.
                self._loop.in_thread(self._connect, self._connected)
        elif now - self._heard_at > SILENCE_SECONDS:
            self._stream.close()
            self._end(f"silent for {SILENCE_SECONDS:g} s")
        elif self.is_registered and (word != self._told or now - self._told_at >= HEARTBEAT_SECONDS):
            self.tell(word)

    def tell(self, word: Word) -> None:
        """Now, if there is a connection."""
        self._told, self._told_at = word, self._loop.now
        if self._stream and self.is_registered:
            self._stream.send(encode(word).encode() + b"\n")

    def finish(self) -> None:
        """Close the connection once what was sent has left."""
        if self._stream:
            self._stream.finish()

    def _connect(self) -> socket.socket:
        return socket.create_connection(reach.split(self._spec.chief_status), CONNECT_SECONDS)

    def _connected(self, result: socket.socket | Exception) -> None:
        if isinstance(result, Exception):
            self.problem = reach.failure(result) if isinstance(result, OSError) else str(result)
            self._retry()
            return
        spec = self._spec
        self._heard_at = self._loop.now
        self.problem = "it took the connection and has not answered"
        self._stream = Stream(self._loop, result)
        self._stream.on_bytes, self._stream.on_end = self._hear_answer, self._end
        body = encode(Join(spec.uid, spec.task, spec.attempt, cluster_of(spec))).encode()
        head = (
            f"POST {PATH_JOIN} HTTP/1.1\r\nHost: {spec.chief_status}\r\nConnection: Upgrade\r\nUpgrade: dtj\r\n"
            f"Authorization: Bearer {self._token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._stream.send(head.encode() + body)

    def _hear_answer(self) -> None:
        head, is_whole, rest = bytes(self._stream.received if self._stream else b"").partition(b"\r\n\r\n")
        if not is_whole or self._stream is None:
            return
        status = head.split(b" ")[1:2]
        if status == [b"101"]:
            self._stream.received = bytearray(rest)
            self._stream.on_bytes = self._hear
            self.is_registered, self._told, self.problem, self._tries = True, None, "", 0
            self._hear()
            return
        # The chief closes after its answer; until then the reason may still be on its way.
        why = " ".join(rest.decode(errors="replace").split()) or head[:80].decode(errors="replace")
        self.problem = f"it refused: {why[:200]}"
        self.refused = status == [b"422"]

    def _hear(self) -> None:
        self._heard_at = self._loop.now
        for line in self._stream.take_lines() if self._stream else []:
            try:
                order = decode(Order, line)
            except ContractError as error:
                if self._stream:
                    self._stream.close()
                self._end(f"it speaks another language: {error}"[:200])
                return
            self._obey(order)

    def _end(self, why: str) -> None:
        self._stream = None
        self._retry()
        was_registered, self.is_registered = self.is_registered, False
        self.problem = self.problem or why
        if was_registered:
            self._lost(why)

    def _retry(self) -> None:
        self._try_at = self._loop.now + RETRY_SECONDS[min(self._tries, len(RETRY_SECONDS) - 1)]
        self._tries += 1
