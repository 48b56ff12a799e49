"""What a decision may ask for: the plan, its actions, and the values that lead to them. Who decides stands beside."""

from typing import Any, Literal

from msgspec import Struct

from dtj_operator.api.reasons import Reason
from dtj_operator.api.status import FailureClass, JobStatus, RecoveryState, Restarts, Time
from dtj_worker.contract import Task


class Create(Struct, frozen=True):
    """Make a child. A 409 counts as done only if the live object has our job's UID and, for a pod, the wanted round."""

    manifest: dict[str, Any]


class Delete(Struct, frozen=True):
    """Delete one incarnation of a child: the UID is a precondition. `force` sets grace 0."""

    kind: str
    name: str
    uid: str
    force: bool = False


class DeleteJob(Struct, frozen=True):
    """Delete the job itself, when its time to live after the end is over."""

    name: str
    uid: str


class Ungate(Struct, frozen=True):
    """Remove our scheduling gate from a pod and leave foreign ones."""

    name: str
    uid: str


class Probe(Struct, frozen=True):
    """Create a role's first pod as a dry run with strict field validation; the answer is kept under `template_hash`.

    A transient answer (no connection, 429, 5xx) is no answer: it is not kept, and the key is looked at again later.
    """

    role: str
    template_hash: str
    manifest: dict[str, Any]


class Emit(Struct, frozen=True):
    """Post one Event about the job; at most once, lost if the operator dies before."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


Action = Create | Delete | DeleteJob | Ungate | Probe | Emit


class Plan(Struct, frozen=True):
    """The outcome of one reconcile: the next status (None: unchanged), what to do then, when to look again.

    A step's plan is either a move to another status, without actions, or (status None) what the present one needs.
    """

    status: JobStatus | None
    actions: tuple[Action, ...] = ()
    wake_at: Time | None = None
    reason: str = ""


class Failure(Struct, frozen=True):
    """Why an attempt ended: its class, its culprit, and what is known of both. As text: who did what, where."""

    kind: FailureClass
    task: Task
    attempt: int
    what: str
    """What the task did, as the rest of a sentence: `killed by SIGKILL at step 412`."""
    pod: str
    node: str | None = None
    exit_code: int | None = None
    signal: str | None = None
    step: int | None = None
    message: str = ""
    """The program's own last words, or the cluster's."""
    reason: str = ""
    """Kubernetes' word for it, such as OOMKilled; rules may name it."""
    heals: bool = True
    """Whether a restart may help at all."""
    node_refused: bool = False
    """The node itself refused the pod: it is avoided from the first time on."""

    def __str__(self) -> str:
        return f"{self.task} {self.what}"


Counter = Literal["failures", "disruptions", "stalls"]


class Ruling(Struct, frozen=True):
    """What a failure leads to, and the counters as they stand afterwards. As text: the reason."""

    action: Literal["Restart", "Fail", "Ignore"]
    counts_as: Counter | None
    recovery: RecoveryState
    restarts: Restarts
    reason: str
    fails_as: Reason | None = None

    def __str__(self) -> str:
        return self.reason


class Deadline(Struct, frozen=True):
    """An instant after which a wait has a name: what was waited for and who is to blame."""

    name: str
    due: Time
    blames: str
