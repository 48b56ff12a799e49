"""What the operator says of a job: status types, phases, conditions and their reasons, counters. What to say is decided in `decide/`."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal

from dtj_worker.contract import Task
from msgspec import Meta, Struct, field

Time = datetime
"""An instant, always aware and in UTC."""

Phase = Literal["Pending", "Queued", "Starting", "Running", "Restarting", "Suspended", "Succeeded", "Failed"]
FINAL: tuple[Phase, ...] = ("Succeeded", "Failed")

ConditionType = Literal[
    "Accepted", "GangScheduled", "Supervised", "Training", "Stalled", "CheckpointReady", "Isolated", "Suspended", "Complete", "Failed"
]
FailureClass = Literal[
    "Disruption", "Preempted", "Application", "OutOfMemory", "UnevenSteps", "Configuration", "Image", "Rendezvous", "Stall"
]

Indexes = Annotated[str, Meta(pattern=r"^(\d+(-\d+)?(,\d+(-\d+)?)*)?$", description="A set of indexes as ranges, such as 0-2,4.")]
MESSAGE_BYTES = 1024


class Fields(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base of every record of the status; absent means the default."""


class Condition(Fields):
    type: ConditionType
    status: Literal["True", "False", "Unknown"]
    reason: str
    last_transition_time: Time
    message: str = ""
    observed_generation: int | None = None


class RoundOf(Fields):
    indexes: Indexes
    round: int


class Restarts(Fields):
    """How often attempts ended otherwise than well; these numbers never fall."""

    failures: int = 0
    disruptions: int = 0
    stalls: int = 0
    total: int = 0


class RecoveryState(Fields):
    """What the next ruling needs to know of the past; these numbers fall when a newer verified checkpoint appears."""

    failures_since_progress: int = 0
    disruptions_since_progress: int = 0
    stalls_since_progress: int = 0
    signature: str | None = None
    signature_step: int | None = None
    signature_count: int = 0
    signature_nodes: list[str] = []
    checkpoint_step_at_failure: int | None = None
    node_failures: dict[str, int] = {}
    excluded_nodes: list[str] = []
    not_before: Time | None = None


class Clock(Fields):
    """Unsuspended seconds from admission (for activeDeadlineSeconds) and seconds with steps, up to `since`; what runs is added to it."""

    active_seconds: float = 0
    trained_seconds: float = 0
    since: Time | None = None


class RoleStatus(Fields):
    desired: int = 0
    scheduled: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class Progress(Fields):
    at: Time
    epoch: int | None = None
    epochs: int | None = None
    step: int | None = None
    loss: float | None = None
    examples_per_second: float | None = None
    eta: Time | None = None


class CheckpointStatus(Fields):
    """The newest verified checkpoint."""

    step: int | None = None
    epoch: int | None = None
    at: Time | None = None
    claim: str | None = None


class LastFailure(Fields):
    at: Time
    attempt: int
    failure_class: FailureClass = field(name="class")
    role: str | None = None
    index: int | None = None
    pod: str | None = None
    node: str | None = None
    exit_code: int | None = None
    signal: str | None = None
    step: int | None = None
    message: str = ""


class GangStatus(Fields):
    """`formed` is the highest round whose pods were all bound together: a missing pod of that round or below is lost, above it to be created."""

    scheduler: str | None = None
    group: str | None = None
    queued_at: Time | None = None
    formed: int | None = None
    admitted_at: Time | None = None
    wait_seconds: float | None = None
    missed: int = 0
    not_before: Time | None = None
    waiting_for: str | None = None


class Attempt(Fields):
    """One start of the trainers. `outcome` is a failure class, Succeeded, Suspended or Requested; absent while it runs."""

    attempt: int
    start: Time
    first_step: Time | None = None
    end: Time | None = None
    outcome: str | None = None
    resumed_from_step: int | None = None
    resumed_from_epoch: int | None = None


class JobStatus(Fields):
    phase: Phase = "Pending"
    reason: str | None = None
    observed_generation: int = 0
    conditions: list[Condition] = []
    strategy: str | None = None
    strategy_reason: str | None = None
    replicas_in_sync: int | None = None
    global_batch_size: int | None = None
    attempt: int = 0
    rounds: dict[str, list[RoundOf]] = {}
    starts: dict[str, int] = {}
    finished: dict[str, Indexes] = {}
    chief_finished_at: Time | None = None
    restarts: Restarts = field(default_factory=Restarts)
    recovery: RecoveryState = field(default_factory=RecoveryState)
    restart_request: str | None = None
    clock: Clock = field(default_factory=Clock)
    roles: dict[str, RoleStatus] = {}
    progress: Progress | None = None
    checkpoint: CheckpointStatus | None = None
    last_failure: LastFailure | None = None
    gang: GangStatus = field(default_factory=GangStatus)
    timeline: list[Attempt] = []
    goodput: float | None = None
    start_time: Time | None = None
    completion_time: Time | None = None
    cleanup: Literal["Pending"] | None = None
    ready: str | None = None
    frozen: str | None = None
    """Hash of what may not change once the job has started (templates, which CEL cannot compare)."""


def indexes(text: str) -> frozenset[int]:
    """The set that ranges such as `0-2,4` name."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def ranges(numbers: Iterable[int]) -> str:
    """A set of indexes in ranges, shortest form: {0, 1, 2, 4} is `0-2,4`."""
    parts: list[list[int]] = []
    for n in sorted(set(numbers)):
        if parts and parts[-1][1] == n - 1:
            parts[-1][1] = n
        else:
            parts.append([n, n])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def round_of(status: JobStatus, task: Task) -> int:
    """The round of a task's one wanted pod; 0 before any was raised."""
    for entry in status.rounds.get(task.role, ()):
        if task.index in indexes(entry.indexes):
            return entry.round
    return 0


def has_finished(status: JobStatus, task: Task) -> bool:
    """Whether the task ended 0 in the current attempt."""
    return task.index in indexes(status.finished.get(task.role, ""))
