"""What a decision may ask for: the plan, its actions, and the values that lead to them. Who decides stands in the modules beside."""

from typing import Any, Literal

from dtj_worker.contract import Task
from msgspec import Struct

from dtj_operator.api.status import FailureClass, JobStatus, Time


class Create(Struct, frozen=True):
    """Make a child. A 409 counts as done only if the live object has our job's UID and, for a pod, the wanted round."""

    manifest: dict[str, Any]


class Delete(Struct, frozen=True):
    """Delete one incarnation of a child: the UID is a precondition. `force` sets grace 0 (only where behaviour.md allows it)."""

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
    """Create a role's first pod as a dry run with strict field validation; the answer lies in the store under `template_hash`."""

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
    """The whole outcome of one reconcile: the next status (None: unchanged), what to do after it was written, when to look again."""

    status: JobStatus | None
    actions: tuple[Action, ...] = ()
    wake_at: Time | None = None
    reason: str = ""


class Failure(Struct, frozen=True):
    """Why an attempt ended: its class, its culprit, and what is known of both. `signature` is equal for failures that look the same."""

    kind: FailureClass
    task: Task | None
    attempt: int
    pod: str | None = None
    node: str | None = None
    exit_code: int | None = None
    signal: str | None = None
    step: int | None = None
    message: str = ""
    signature: str = ""


class Ruling(Struct, frozen=True):
    """What a failure leads to. `recreate` are the tasks whose pods are replaced; `counts_as` the counter that rises."""

    action: Literal["Restart", "Fail", "Ignore"]
    recreate: tuple[Task, ...]
    not_before: Time | None
    counts_as: Literal["failures", "disruptions", "stalls"] | None
    reason: str


class Deadline(Struct, frozen=True):
    """An instant after which a wait has a name: what was waited for and who is to blame."""

    name: str
    due: Time
    blames: str
