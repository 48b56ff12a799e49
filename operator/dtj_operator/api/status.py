"""What the operator says of a job: the types of `status`, phases, conditions. What to say is decided in `decide/`.

Why a condition holds is named in `reasons.py`; how the document stays small is `bounds.py`'s business.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from dtj_operator.api.fields import Fields, about
from dtj_worker.contract import Task

Time = Annotated[datetime, Meta(tz=True)]
"""An instant, always aware and in UTC."""

Phase = Literal["Pending", "Queued", "Starting", "Running", "Restarting", "Suspended", "Succeeded", "Failed"]
FINAL: tuple[Phase, ...] = ("Succeeded", "Failed")

ConditionType = Literal[
    "Accepted",
    "GangScheduled",
    "Supervised",
    "Training",
    "Stalled",
    "CheckpointReady",
    "Isolated",
    "Suspended",
    "Complete",
    "Failed",
]
FailureClass = Literal[
    "Disruption",
    "Preempted",
    "Application",
    "OutOfMemory",
    "UnevenSteps",
    "Configuration",
    "Image",
    "Rendezvous",
    "Stall",
]

Indexes = Annotated[str, Meta(pattern=r"^(\d+(-\d+)?(,\d+(-\d+)?)*)?$", max_length=4096)]
"""A set of indexes as ranges, such as `0-2,4`."""


class Condition(Fields, frozen=True):
    type: Annotated[ConditionType, about("What is said to hold.")]
    status: Annotated[Literal["True", "False", "Unknown"], about("Whether it holds.")]
    reason: Annotated[str, Meta(min_length=1, max_length=64), about("Why, as one CamelCase word.")]
    last_transition_time: Annotated[Time, about("Since when the status is this one.")]
    message: Annotated[str, about("Why, as a sentence.")] = ""
    observed_generation: Annotated[int | None, about("Generation of the spec that this was seen with.")] = None


class RoundOf(Fields, frozen=True):
    indexes: Annotated[Indexes, about("Tasks of the role, as ranges.")]
    round: Annotated[int, about("Round of their one wanted pod.")]


class Restarts(Struct, frozen=True, rename="camel"):
    """How often attempts ended otherwise than well; the numbers never fall. Zeros are written too."""

    failures: Annotated[int, about("Ends that the program or its surroundings caused.")] = 0
    disruptions: Annotated[int, about("Lost nodes, deleted pods, preemption.")] = 0
    stalls: Annotated[int, about("Ends because no step was made.")] = 0
    total: Annotated[int, about("All of them.")] = 0


class RecoveryState(Fields, frozen=True):
    """What the next ruling must know of the past; its counters fall when a newer verified checkpoint appears."""

    failures_since_progress: Annotated[int, about("Counts towards recovery.maxRestarts.")] = 0
    disruptions_since_progress: Annotated[int, about("Counts towards maxDisruptionsWithoutProgress.")] = 0
    stalls_since_progress: Annotated[int, about("Counts towards recovery.maxStalls.")] = 0
    signature: Annotated[str | None, about("What the last failure looked like.")] = None
    signature_step: Annotated[int | None, about("The step it came at.")] = None
    signature_count: Annotated[int, about("How often in a row; counts towards recovery.maxSameFailure.")] = 0
    signature_nodes: Annotated[list[str], about("Nodes it was seen on.")] = field(default_factory=list)
    checkpoint_step_at_failure: Annotated[int | None, about("Newest verified checkpoint at the last failure.")] = None
    node_failures: Annotated[dict[str, int], about("Failures of its own per node, the newest 16.")] = field(
        default_factory=dict
    )
    excluded_nodes: Annotated[list[str], about("Nodes that this job avoids.")] = field(default_factory=list)
    not_before: Annotated[Time | None, about("No restart before this time.")] = None
    left_nodes: Annotated[list[str], about("Nodes of the attempt that a disruption ended, until the next begins.")] = (
        field(default_factory=list)
    )
    cordoned: Annotated[list[str], about("Those of them that were cordoned; each new one delays the restart.")] = field(
        default_factory=list
    )


class Clock(Fields, frozen=True):
    """Times that suspension stops. What has run since `since` is to be added."""

    active_seconds: Annotated[float, about("Unsuspended seconds since admission.")] = 0
    trained_seconds: Annotated[float, about("Seconds with steps.")] = 0
    since: Annotated[Time | None, about("Up to when both are counted; absent: the clock stands.")] = None


class RoleStatus(Fields, frozen=True):
    desired: Annotated[int, about("Tasks of the role.")] = 0
    scheduled: Annotated[int, about("Those whose pod has a node.")] = 0
    running: Annotated[int, about("Those whose containers run.")] = 0
    succeeded: Annotated[int, about("Those that ended 0.")] = 0
    failed: Annotated[int, about("Those that ended otherwise.")] = 0


class Progress(Fields, frozen=True):
    at: Annotated[Time, about("When this was heard.")]
    epoch: Annotated[int | None, about("Epoch under way, from 0.")] = None
    epochs: Annotated[int | None, about("How many there will be.")] = None
    step: Annotated[int | None, about("Newest finished step of the whole training, from 1.")] = None
    loss: Annotated[float | None, about("Newest loss.")] = None
    examples_per_second: Annotated[float | None, about("Examples per second over all replicas.")] = None
    eta: Annotated[Time | None, about("When training ends if it goes on like this.")] = None


class CheckpointStatus(Fields, frozen=True):
    """The newest verified checkpoint."""

    step: Annotated[int | None, about("Steps it holds.")] = None
    epoch: Annotated[int | None, about("Epochs it holds.")] = None
    at: Annotated[Time | None, about("When it was heard of.")] = None
    claim: Annotated[str | None, about("Claim it lies on.")] = None


class LastFailure(Fields, frozen=True):
    """The culprit of the last attempt that failed."""

    at: Annotated[Time, about("When it was seen.")]
    attempt: Annotated[int, about("The attempt that it ended.")]
    failure_class: Annotated[FailureClass, about("Kind of failure; it decides what follows.")] = field(name="class")
    role: Annotated[str | None, about("Role of the culprit.")] = None
    index: Annotated[int | None, about("Index of the culprit.")] = None
    pod: Annotated[str | None, about("Pod of the culprit.")] = None
    node: Annotated[str | None, about("Node it ran on.")] = None
    exit_code: Annotated[int | None, about("Exit code of its program.")] = None
    signal: Annotated[str | None, about("Signal that ended its program.")] = None
    step: Annotated[int | None, about("Step it had reached.")] = None
    message: Annotated[str, about("What happened, as a sentence.")] = ""


class GangStatus(Fields, frozen=True):
    scheduler: Annotated[str | None, about("Who places the gang.")] = None
    group: Annotated[str | None, about("Its group object, where it has one.")] = None
    queued_at: Annotated[Time | None, about("Since when it waits.")] = None
    formed: Annotated[int | None, about("Highest round whose pods were all bound together.")] = None
    """A missing pod of that round or below is lost, above it to be created."""
    admitted_at: Annotated[Time | None, about("When it was released.")] = None
    wait_seconds: Annotated[float | None, about("How long it waited the last time.")] = None
    missed: Annotated[int, about("Releases in a row after which not all pods got a node.")] = 0
    refused: Annotated[int, about("Refusals by the quota in a row.")] = 0
    not_before: Annotated[Time | None, about("No release before this time.")] = None
    waiting_for: Annotated[str | None, about("What is missing.")] = None


class Attempt(Fields, frozen=True):
    """One start of the trainers."""

    attempt: Annotated[int, about("Its number, from 0.")]
    start: Annotated[Time, about("When it began.")]
    first_step: Annotated[Time | None, about("When its first step was heard of.")] = None
    end: Annotated[Time | None, about("When it ended.")] = None
    outcome: Annotated[
        str | None, about("A failure class, Succeeded, Suspended or Requested; absent while it runs.")
    ] = None
    resumed_from_step: Annotated[int | None, about("Step of the checkpoint it began with.")] = None
    resumed_from_epoch: Annotated[int | None, about("Epoch of the checkpoint it began with.")] = None


class JobStatus(Fields, frozen=True):
    """What the operator knows of the job. Only the operator writes it."""

    # A factory's value is written even when it is the default: people and columns read these three from the start.
    phase: Annotated[Phase, about("Where the job stands.")] = field(default_factory=lambda: "Pending")
    observed_generation: Annotated[int, about("Generation of the spec that this speaks of.")] = field(
        default_factory=int
    )
    attempt: Annotated[int, about("Number of the current start of the trainers, from 0.")] = field(default_factory=int)
    reason: Annotated[str | None, about("Why the phase is this one, as a sentence.")] = None
    conditions: Annotated[
        list[Condition],
        Meta(
            max_length=16,
            extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        ),
        about("What holds of the job, each with its reason."),
    ] = field(default_factory=list)
    strategy: Annotated[str | None, about("The strategy that was taken.")] = None
    strategy_reason: Annotated[str | None, about("Why it was taken.")] = None
    replicas_in_sync: Annotated[int | None, about("Replicas that train together, as the program says.")] = None
    global_batch_size: Annotated[int | None, about("Examples per step over all replicas.")] = None
    rounds: Annotated[dict[str, list[RoundOf]], about("The one wanted pod of each task, by role.")] = field(
        default_factory=dict
    )
    starts: Annotated[dict[str, int], about("Lone restarts of single tasks.")] = field(default_factory=dict)
    finished: Annotated[dict[str, Indexes], about("Tasks of this attempt that ended 0, by role.")] = field(
        default_factory=dict
    )
    chief_finished_at: Annotated[Time | None, about("When the chief succeeded.")] = None
    restarts: Annotated[Restarts, about("How often it ended otherwise than well.")] = field(default_factory=Restarts)
    recovery: Annotated[RecoveryState, about("What the next restart depends on.")] = field(
        default_factory=RecoveryState
    )
    restart_request: Annotated[str | None, about("The last spec.restartRequest that was handled.")] = None
    clock: Annotated[Clock, about("Seconds counted so far.")] = field(default_factory=Clock)
    roles: Annotated[dict[str, RoleStatus], about("Pods by role.")] = field(default_factory=dict)
    progress: Annotated[Progress | None, about("How far the training is.")] = None
    checkpoint: Annotated[CheckpointStatus | None, about("The newest verified checkpoint.")] = None
    last_failure: Annotated[LastFailure | None, about("The last failure and its culprit.")] = None
    gang: Annotated[GangStatus, about("How the gang got its places.")] = field(default_factory=GangStatus)
    timeline: Annotated[list[Attempt], about("The newest attempts, 20 at most.")] = field(default_factory=list)
    goodput: Annotated[float | None, about("Share of the time since startTime that went into kept steps.")] = None
    start_time: Annotated[Time | None, about("When the gang was first fully bound.")] = None
    completion_time: Annotated[Time | None, about("When the job became final.")] = None
    cleanup: Annotated[Literal["Pending"] | None, about("Present while objects of a final job are left.")] = None
    ready: Annotated[str | None, about("Running tasks of all, such as 3/4.")] = None
    frozen: Annotated[str | None, about("Hash of what may not change once the job has started.")] = None


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
