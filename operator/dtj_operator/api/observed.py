"""What the operator sees: slim records of pods and nodes, and the Situation that every decision reads."""

from typing import Any, Literal

from msgspec import Struct

from dtj_operator.api.spec import JobSpec
from dtj_operator.api.status import JobStatus, Time
from dtj_worker.contract import Task, TrainingStatus, Verdict


class JobKey(Struct, frozen=True, order=True):
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class ContainerEnd(Struct, frozen=True):
    """How a trainer container ended, as the kubelet says."""

    exit_code: int
    signal: int | None = None
    reason: str = ""
    message: str = ""
    finished_at: Time | None = None


PodStage = Literal["Gated", "Unbound", "Bound", "Running", "Succeeded", "Failed"]
"""Gated: scheduling gates left. Unbound: no node yet. Bound: a node, and not all containers started. Running: all did.
Succeeded, Failed: the trainer container ended 0, or otherwise, or the pod's phase says so; sidecars never matter."""


class PodView(Struct, frozen=True):
    """One pod of a job. `task` and `round` come from its labels; `disrupted_by` is why it was disrupted or evicted."""

    name: str
    uid: str
    task: Task
    round: int
    stage: PodStage
    owner_uid: str | None = None
    node: str | None = None
    address: str | None = None
    status_address: str | None = None
    ready: bool = False
    gates: tuple[str, ...] = ()
    created_at: Time | None = None
    bound_at: Time | None = None
    started_at: Time | None = None
    deleting_since: Time | None = None
    lingers: bool = False
    """The trainer has ended, and another container runs on: the pod holds its node until it is deleted."""
    grace_seconds: int = 30
    trainer: ContainerEnd | None = None
    verdict: Verdict | None = None
    waiting_reason: str | None = None
    waiting_message: str = ""
    waiting_container: str | None = None
    disrupted_by: str | None = None
    disruption_message: str = ""
    phase_reason: str | None = None
    pinned: tuple[str, ...] = ()
    """The host names that the gang scheduler pinned the pod to (`gang.pinning.pinned` reads them from a manifest)."""

    @property
    def is_over(self) -> bool:
        """Nothing of the trainer runs any more."""
        return self.stage in ("Succeeded", "Failed")


class NodeView(Struct, frozen=True):
    """One node as the gang scheduler and the lost-node rule need it; quantities in base units: cores, bytes, pieces."""

    name: str
    ready: bool = True
    not_ready_since: Time | None = None
    unschedulable: bool = False
    labels: dict[str, str] = {}
    taints: tuple[tuple[str, str, str], ...] = ()
    allocatable: dict[str, float] = {}


class GroupView(Struct, frozen=True):
    """A gang's group object of a foreign scheduler."""

    name: str
    uid: str
    phase: str = ""
    message: str = ""


class ProbeResult(Struct, frozen=True):
    """The API server's answer to a dry-run create of a role's pod: the object with its defaults, or a refusal."""

    code: int
    message: str = ""
    pod: dict[str, Any] | None = None
    heard_at: Time | None = None
    """When the answer came; an old refusal is asked for again."""


class TrainingView(Struct, frozen=True):
    """The newest word of the chief's supervisor and when this process heard it."""

    status: TrainingStatus
    heard_at: Time


class Admit(Struct, frozen=True):
    """The gang fits now, on these nodes by host name (empty: whatever the scheduler chooses)."""

    nodes: tuple[str, ...] = ()
    on_trust: tuple[str, ...] = ()
    """What was not looked at, in people's words, such as the resource claims of a role."""


class Wait(Struct, frozen=True):
    """The gang does not fit; the shortfall in people's words."""

    shortfall: str
    can_never_fit: bool = False


Admission = Admit | Wait


class ForeignChild(Struct, frozen=True):
    """An object that has a name we need and isn't ours."""

    kind: str
    name: str
    terminating: bool
    owner: str | None = None
    """Kind and name of its controller, where it has one that still lives."""
    is_left: bool = False
    """Its owner was a job that is gone: garbage collection takes it."""


class ClaimView(Struct, frozen=True):
    """What was found when the existing claim that a spec names was last looked for."""

    name: str
    access_modes: tuple[str, ...] | None
    """None: there is no such claim."""
    seen_at: Time | None = None


class Facts(Struct, frozen=True):
    """What is true of this cluster and this operator, apart from any job."""

    namespace: str = "dtj-system"
    has_node_rights: bool = False
    has_autoscaler: bool = False
    local: bool = False
    """On the embedded cluster: pods have no network of their own and `ANNOTATION_STATUS_ADDRESS` is honoured."""
    supervisor_image: str | None = None
    labels_of_operator: dict[str, str] = {}
    monitoring: tuple[dict[str, Any], ...] = ()
    """NetworkPolicyPeers that may read the status port beside the operator."""
    token_key: bytes = b""
    started_at: Time | None = None


class Situation(Struct, frozen=True):
    """Everything a decision about one job may depend on, but the time.

    `spec` is None only while the object can't be parsed at all (the CRD's schema rules that out where it is installed);
    `faults` are the faults of the manifest that Python found. `pods` are all pods that carry the job's label and its
    UID as owner, terminating ones included.
    """

    key: JobKey
    uid: str
    resource_version: str
    generation: int
    created_at: Time
    spec: JobSpec | None
    status: JobStatus
    faults: tuple[str, ...] = ()
    annotations: dict[str, str] = {}
    deleting: bool = False
    pods: tuple[PodView, ...] = ()
    gone: frozenset[str] = frozenset()
    """Names of the job's pods that this process knows to be deleted: no pod is ever made under one of them again."""
    nodes: tuple[NodeView, ...] | None = None
    group: GroupView | None = None
    training: TrainingView | None = None
    admission: Admission | None = None
    probes: dict[str, ProbeResult] = {}
    unanswered: str | None = None
    """Why the last question about a pod has no answer, as code and reason: an API server in trouble."""
    children: frozenset[tuple[str, str, str, str]] = frozenset()
    """(kind, name, uid, digest of what it was made as, or "") of our own children but pods that exist."""
    foreign_names: tuple[ForeignChild, ...] = ()
    predecessors: tuple[PodView, ...] = ()
    """Pods of an earlier job of this name in which a trainer may still run: they bear our tasks' addresses."""
    claim: ClaimView | None = None
    """The existing claim that the spec names, or named before an edit; None where it has not been looked for."""
    refusals: tuple[str, ...] = ()
    """The API's own words of creates that were refused since the last status (quota, admission), newest last."""
    facts: Facts = Facts()
