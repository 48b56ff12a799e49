"""What operator, supervisor and training program say to each other: records, paths, exit codes and shared defaults.

Standard library only, so that the supervisor stays small and the operator may import it. Every record travels as JSON;
ages are in seconds, never wall-clock times, since the clocks of pods and operator differ. Behaviour lives elsewhere.
"""

import dataclasses
import re
import typing
from dataclasses import dataclass, field
from typing import Literal

from dtj_worker.codec import ContractError, decode, encode

VERSION = 1
"""The operator accepts its own version of this contract and the one before: an upgrade leaves old workers running."""

TENSORFLOW_PORT = 2222
STATUS_PORT = 2280
PORTS_PER_TASK = 8
"""Attempt k listens on TensorFlow port base + k mod 8, so that an older attempt's straggler can't reach it."""

STATUS_BYTES = 64 * 1024
MESSAGE_BYTES = 1024
TERMINATION_BYTES = 4096
"""Kubernetes cuts a container's termination message at 4 KiB."""

# Environment of the trainer container (set by the operator) and of the child (set by the supervisor).
ENV_TASK = "DTJ_TASK"
ENV_TOKEN = "DTJ_TOKEN"
ENV_GRACE_SECONDS = "DTJ_GRACE_SECONDS"
ENV_REPORT_FD = "DTJ_REPORT_FD"
"""Child only: the number of an inherited descriptor that takes Report records, one JSON object a line."""
ENV_REPORT_PIPE = "DTJ_REPORT_PIPE"
"""Child only: the inode of that pipe. A process further down, which didn't inherit it, may have another one there."""
ENV_RESTORE = "DTJ_RESTORE"
"""Child only: a Restore record, the one checkpoint that this attempt starts from; absent when it starts from zero."""
ENV_CHECKPOINT_FOLDER = "DTJ_CHECKPOINT_FOLDER"
"""Child only: the folder of this attempt, where it writes its checkpoints; absent when the job keeps none."""
ENV_TERMINATION_LOG = "DTJ_TERMINATION_LOG"
"""Where the supervisor writes its Verdict; absent in a real pod, where it is /dev/termination-log."""
INSTALL_OPTION = "--install"
"""`dtj-worker --install FILE` writes the supervisor's zipapp there, readable for every user, and ends: what the init
container does that injects it into a foreign image."""

# The status port. All but /healthz ask for `Authorization: Bearer <DTJ_TOKEN>`.
PATH_HEALTH = "/healthz"
PATH_METRICS = "/metrics"
PATH_TRAINING = "/v1/training"
"""GET on the chief's supervisor: a stream of TrainingStatus records, one a line; one at every change (at most two a
second) and one every HEARTBEAT_SECONDS at the latest."""
PATH_JOIN = "/v1/join"
"""POST on the chief's supervisor by every other one: registers a task and keeps the connection as its sign of life."""
HEARTBEAT_SECONDS = 5.0

# Exit codes repeat the Verdict for people; they never decide anything.
EXIT_DONE = 0
EXIT_SAVED = 42
EXIT_CONFIG = 64
EXIT_PEER = 75
EXIT_STOPPED = 143

Strategy = Literal["None", "OneDevice", "Mirrored", "CentralStorage", "MultiWorkerMirrored", "ParameterServer", "TPU"]
Keras = Literal["Auto", "Keras3", "Legacy"]
Role = Literal["chief", "worker", "ps", "evaluator"]
ROLES: tuple[Role, ...] = typing.get_args(Role)

Stage = Literal[
    "Waiting", "Registered", "Program", "Rendezvous", "Built", "Training", "Evaluating", "Saving", "Done", "Dead"
]
"""How far a task's trainer is. Waiting: its supervisor isn't registered; Registered: it is, and the child isn't
started; Program: the child runs; Rendezvous: in a strategy's constructor; Built: the strategy stands; Training: at
least one step was made; Done and Dead: the child ended 0, or otherwise."""

VerdictKind = Literal["Done", "Saved", "Stopped", "Peer", "Config", "Rendezvous", "Stall", "Memory", "Program"]
"""Done: exit 0. Saved, Stopped: asked to stop, with and without a checkpoint of that moment. Peer: died of another's
death. Config: can't heal by a restart. Rendezvous, Stall: a deadline. Memory: the kernel's or TensorFlow's
out-of-memory. Program: any other end."""


class ConfigFault(Exception):
    """What no restart heals; the message is one line for people. Ends a task with Verdict Config."""


@dataclass(frozen=True, order=True)
class Task:
    """One member of a job, as in `worker-3`; sorts by role and index."""

    role: Role
    index: int

    def __str__(self) -> str:
        return f"{self.role}-{self.index}"

    @classmethod
    def parse(cls, text: str) -> "Task":
        """`worker-3` or `worker:3`; raises ContractError for anything else."""
        role, _, index = text.replace(":", "-").rpartition("-")
        if role not in ROLES or not re.fullmatch("[0-9]{1,19}", index):
            raise ContractError(
                f"{text!r} is no task: expected a role ({', '.join(ROLES)}) and a number, as in worker-0"
            )
        return cls(role, int(index))


@dataclass(frozen=True)
class Fault:
    """A failure to inject into one task of attempt 0; its child fires it once that step is reported."""

    step: int
    signal: str | None = None
    """SIGKILL hits the trainer, SIGTERM its supervisor, as the kubelet would. None with an exit code."""
    exit_code: int | None = None


@dataclass(frozen=True)
class Batch:
    per_replica: int | None = None
    global_size: int | None = None
    allow_change: bool = False


@dataclass(frozen=True)
class Communication:
    implementation: str = "Auto"
    cross_device_ops: str | None = None
    bytes_per_pack: int | None = None
    heartbeat_seconds: int = 30
    timeout_seconds: int | None = None


@dataclass(frozen=True)
class Preflight:
    network: bool = True
    node_check: bool = False


@dataclass(frozen=True)
class CheckpointPlan:
    """Where and when to keep checkpoints; `directory` is the job's own folder, `<directory>/<namespace>/<job>`."""

    directory: str
    every: int | Literal["epoch"] = "epoch"
    keep: int = 2
    on_existing: Literal["Auto", "Resume", "StartFresh", "Fail"] = "Auto"
    resume_from: str | None = None
    access: Literal["Chief", "Shared"] = "Shared"
    allow_restart_from_zero: bool = False
    progressed: bool = False
    """Whether a verified checkpoint of this job was seen before: then none left is a failure, not a fresh start."""


@dataclass(frozen=True)
class Limits:
    """Seconds a supervisor waits before it ends its task with a name for what was missing (behaviour.md, Deadlines)."""

    registration_seconds: float = 1200
    program_seconds: float = 3600
    rendezvous_seconds: float = 300
    first_step_seconds: float = 3600
    stall_seconds: float = 1800
    operator_word_seconds: float = 60
    grace_seconds: float = 30


@dataclass(frozen=True)
class TaskSpec:
    """What one pod's supervisor must know; `DTJ_TASK` holds that of the pod's first attempt.

    Addresses are `host:port` and the only source of ports: the embedded cluster rewrites them. `peers` lists the
    training cluster's TensorFlow addresses by task, as TF_CONFIG does; `chief` is the task whose supervisor aggregates,
    `chief_status` where it listens.
    """

    namespace: str
    job: str
    uid: str
    task: str
    attempt: int
    strategy: Strategy
    chief: str
    chief_status: str
    status: str
    peers: dict[str, str]
    keras: Keras = "Auto"
    success_policy: Literal["Chief", "AllWorkers"] = "Chief"
    batch: Batch = Batch()
    communication: Communication = Communication()
    preflight: Preflight = Preflight()
    checkpoint: CheckpointPlan | None = None
    limits: Limits = Limits()
    fault: Fault | None = None
    contract: int = VERSION


@dataclass(frozen=True)
class Death:
    """The first trainer that ended otherwise than 0, by the clock of the chief's supervisor."""

    task: str
    kind: VerdictKind
    exit_code: int | None = None
    signal: str | None = None
    step: int | None = None
    message: str = ""
    unloadable: bool = False


@dataclass(frozen=True)
class TrainingStatus:
    """The whole attempt as the chief's supervisor sees it; `tasks` maps each task of the gang to its stage."""

    attempt: int
    stage: Stage
    reports: bool = False
    step: int | None = None
    epoch: int | None = None
    epochs: int | None = None
    loss: float | None = None
    examples_per_s: float | None = None
    checkpoint_step: int | None = None
    checkpoint_epoch: int | None = None
    resumed_from_step: int | None = None
    resumed_from_epoch: int | None = None
    replicas: int | None = None
    global_batch: int | None = None
    strategy: str | None = None
    seconds_since_step: float | None = None
    tasks: dict[str, Stage] = field(default_factory=dict)
    first_death: Death | None = None
    notice: str | None = None
    """One sentence about what is worth knowing and no failure, such as `NothingSaved: …`."""
    contract: int = VERSION


@dataclass(frozen=True)
class Verdict:
    """How a task's trainer ended: line 2 of the termination message, after one for people."""

    attempt: int
    by: Literal["supervisor", "child"]
    kind: VerdictKind
    task: str
    exit_code: int | None = None
    signal: str | None = None
    step: int | None = None
    message: str = ""
    blames: str | None = None
    """The task that this one died of, where it is known (kind Peer)."""
    unloadable: bool = False
    """A Python program that ended, before it began anything, of a syntax error or a missing import (kind Program)."""
    checkpoint_step: int | None = None
    checkpoint_epoch: int | None = None
    """The last checkpoint of this attempt, in the chief's verdict: the stream may end before all of it was read."""

    def termination_message(self) -> str:
        """Both lines, within Kubernetes' limit; the message is cut, the record never."""
        for room in (MESSAGE_BYTES, 200, 0):
            cut = dataclasses.replace(self, message=one_line(self.message, room))
            text = f"{cut.message or cut.kind}\n{encode(cut)}\n"
            if len(text.encode()) <= TERMINATION_BYTES:
                return text
        raise ContractError("a verdict's task name is too long for a termination message")


def one_line(message: str, room: int = MESSAGE_BYTES) -> str:
    """A message for people on one line and within so many bytes, without what a terminal would obey."""
    line = " ".join("".join(c if c.isprintable() else " " for c in message).split())
    return line.encode()[:room].decode(errors="ignore")


def parse_verdict(termination_message: str) -> Verdict | None:
    """The Verdict in a termination message; None where there is none (a foreign program, a kill, a cut message)."""
    lines = termination_message.splitlines()
    if len(lines) < 2:
        return None
    try:
        return decode(Verdict, lines[1])
    except ContractError:
        return None
