"""How the supervisors of a job speak to each other: the records they send, and the chief's side of it.

All speak with the chief's alone, one JSON record a line. Every other one registers by POST /v1/join, which becomes a
connection for both ways (HTTP's own `Upgrade`) and is its sign of life: peers send Words, the chief's sends Orders.
What an order leads to is decided by who gets it.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dtj_worker.codec import ContractError, decode, encode
from dtj_worker.contract import HEARTBEAT_SECONDS, VERSION, Death, Stage, Task, TaskSpec
from dtj_worker.reports import Restore
from dtj_worker.supervisor.loop import Loop, Stream
from dtj_worker.supervisor.server import Refusal

SILENCE_SECONDS = 4 * HEARTBEAT_SECONDS
"""Less than TensorFlow's own heartbeat allows (30 s), so that a lost node is named before its peers die of it."""


@dataclass(frozen=True)
class Join:
    """What a supervisor says of itself when it registers. `cluster` stands for all tasks and addresses it knows of."""

    uid: str
    task: str
    attempt: int
    cluster: str
    contract: int = VERSION


@dataclass(frozen=True)
class Word:
    """A peer's state, at every change and as its heartbeat; `death` comes once, with its child's bad end."""

    stage: Stage
    busy: str = ""
    death: Death | None = None


@dataclass(frozen=True)
class Order:
    """The chief's word. Start: start the child of this attempt. Stop: `death` ends it. Finish: the chief is done.

    Beat: nothing but a heartbeat, and who is busy with what, which holds the others' rendezvous deadlines.
    """

    kind: Literal["Start", "Stop", "Finish", "Beat"]
    attempt: int
    restore: Restore | None = None
    death: Death | None = None
    busy: str = ""


@dataclass
class Member:
    """A task as the chief's supervisor sees it. The chief itself is one without a stream."""

    stage: Stage = "Waiting"
    busy: str = ""
    stream: Stream | None = None
    heard_at: float = 0.0


class Gang:
    """The chief's side: who is there, how far each is, who died first by this one clock."""

    def __init__(
        self, loop: Loop, spec: TaskSpec, died: Callable[[Death], None], lost: Callable[[str, str], None]
    ) -> None:
        """`died(death)`: a peer says that its child has; `lost(task, why)`: a peer has gone without saying anything."""
        self.members = {task: Member() for task in sorted(spec.peers, key=Task.parse)}
        self.first_death: Death | None = None
        self._loop = loop
        self._spec = spec
        self._died = died
        self._lost = lost
        self._start: Order | None = None
        self._beat_at = 0.0
        self._told_busy = ""

    @property
    def missing(self) -> list[str]:
        """The tasks that haven't registered."""
        return [task for task, member in self.members.items() if member.stage == "Waiting"]

    @property
    def is_alone(self) -> bool:
        """Whether no peer is connected."""
        return not any(member.stream for member in self.members.values())

    @property
    def busy(self) -> str:
        """Whose program says that it is busy before it creates its strategy, and with what."""
        return ", ".join(f"{task}: {m.busy}" for task, m in self.members.items() if m.busy and m.stage == "Program")

    def join(self, body: bytes, stream: Stream) -> None:
        """Register a peer and take its connection over. Refusal says why not: 409 may heal, 422 can't."""
        try:
            join = decode(Join, body)
        except ContractError as error:
            raise Refusal(400, str(error)) from None
        self._check(join)
        member = self.members[join.task]
        if member.stream:
            member.stream.close()  # Half-open: its pod was replaced, and no packet told us.
        member.stream, member.stage, member.busy, member.heard_at = stream, "Registered", "", self._loop.now
        stream.on_bytes = lambda: self._hear(join.task, stream)
        stream.on_end = lambda why: self._end(join.task, why)
        stream.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: dtj\r\n\r\n")
        if self._start:
            self._send(stream, self._start)

    def order(self, order: Order) -> None:
        """To every peer that is connected."""
        if order.kind == "Start":
            self._start = order
        for member in self.members.values():
            if member.stream:
                self._send(member.stream, order)

    def record(self, death: Death) -> Death:
        """Note a death; returns the first. One that came of another's gives way to one with a cause of its own."""
        self.members[death.task].stage = "Dead"
        if self.first_death is None or (self.first_death.kind == "Peer" and death.kind != "Peer"):
            self.first_death = death
        return self.first_death

    def ends_with(self, task: str) -> bool:
        """Whether the death of this task ends the attempt. ParameterServer trains on without a worker."""
        return not (self._spec.strategy == "ParameterServer" and Task.parse(task).role == "worker")

    def look(self) -> None:
        """Send heartbeats; give up those that have been silent for too long."""
        now = self._loop.now
        if self.busy != self._told_busy or now - self._beat_at >= HEARTBEAT_SECONDS:
            self._beat_at, self._told_busy = now, self.busy
            self.order(Order("Beat", self._spec.attempt, busy=self.busy))
        for task, member in self.members.items():
            if member.stream and now - member.heard_at > SILENCE_SECONDS:
                member.stream.close()
                self._end(task, f"silent for {SILENCE_SECONDS:g} s")

    def finish(self) -> None:
        """Close every connection once what was sent has left."""
        for member in self.members.values():
            if member.stream:
                member.stream.finish()

    def _check(self, join: Join) -> None:
        spec = self._spec
        if join.uid != spec.uid:
            raise Refusal(409, f"this is the chief of another job ({spec.namespace}/{spec.job}, uid {spec.uid})")
        if join.attempt != spec.attempt:
            raise Refusal(409, f"{join.task} is of attempt {join.attempt}, this is attempt {spec.attempt}")
        if join.task not in self.members or join.task == spec.task:
            raise Refusal(422, f"{join.task} is no peer of {spec.task} among this job's {len(self.members)} tasks")
        if join.cluster != cluster_of(spec):
            raise Refusal(422, f"{join.task} and {spec.task} disagree on the job's tasks and addresses")
        if self._start and self.ends_with(join.task):
            raise Refusal(409, f"attempt {join.attempt} has started with another {join.task}")

    def _hear(self, task: str, stream: Stream) -> None:
        member = self.members[task]
        member.heard_at = self._loop.now
        for line in stream.take_lines():
            try:
                word = decode(Word, line)
                if word.death and word.death.task != task:
                    raise ContractError("it tells of another's death")
            except ContractError as error:
                stream.close()
                self._end(task, f"it speaks another language: {error}"[:200])
                return
            member.stage, member.busy = word.stage, word.busy
            if word.death:
                self._died(word.death)

    def _end(self, task: str, why: str) -> None:
        member = self.members[task]
        member.stream = None
        if member.stage not in ("Done", "Dead"):
            member.stage = "Dead" if self._start else "Waiting"
            self._lost(task, why)

    def _send(self, stream: Stream, order: Order) -> None:
        stream.send(encode(order).encode() + b"\n")


def cluster_of(spec: TaskSpec) -> str:
    """All tasks and addresses of a job as one word, which is the same wherever they are."""
    text = "\n".join(f"{task}={address}" for task, address in sorted(spec.peers.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
