"""What a scenario sees: a cluster in which jobs are submitted and hurt. The same stories run on every kind of world."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal, Protocol

from msgspec import Struct

from dtj_operator.api.observed import JobKey, Situation
from dtj_operator.api.reasons import Reason
from dtj_operator.api.status import Attempt, Condition, ConditionType
from dtj_worker.contract import Task

Json = dict[str, Any]
Verb = Literal["create", "delete", "list", "patch"]
Ability = Literal["Gpus", "Nodes", "Memory", "Images", "Programs", "Processes", "PodSecurity", "Policies", "ApiServer"]
"""Gpus: three nodes have four each. Nodes: lose them. Memory: have a trainer killed for its memory. Images: pull them.
Programs: run any, not only `counter.py`. Processes: signal each of a pod's. PodSecurity: it is enforced. Policies:
network policies are. ApiServer: restart it."""


class KillTrainer(Struct, frozen=True):
    """SIGKILL for the training program alone; its supervisor lives on to tell of it."""

    task: Task


class KillSupervisor(Struct, frozen=True):
    """SIGKILL for the container's first process: nobody is left to tell."""

    task: Task


class AskToStop(Struct, frozen=True):
    """SIGTERM for the supervisor, as before a preemption that takes no pod away."""

    task: Task


class ExhaustMemory(Struct, frozen=True):
    """The kernel kills the trainer's container for its memory."""

    task: Task


class DeletePod(Struct, frozen=True):
    """What `kubectl delete pod` does."""

    task: Task


class Evict(Struct, frozen=True):
    """A pod is taken away through the eviction API, as a drain does."""

    task: Task


class LoseNode(Struct, frozen=True):
    """The node under a task answers no more; its trainer may run on, unheard."""

    task: Task


class KillOperator(Struct, frozen=True):
    """SIGKILL for the operator; its Deployment starts another."""


class UpgradeOperator(Struct, frozen=True):
    """A new version of the operator takes over; the old one is asked to stop."""


class RestartApiServer(Struct, frozen=True):
    """The API server is gone for some seconds, and all watches with it."""


HurtPod = KillTrainer | KillSupervisor | AskToStop | ExhaustMemory | DeletePod | Evict | LoseNode
Hurt = HurtPod | KillOperator | UpgradeOperator | RestartApiServer
Holds = Callable[[Situation], bool]


class World(Protocol):
    """A cluster with our operator in it. Seconds are the world's own: virtual ones in a simulation."""

    name: str

    def can(self, ability: Ability) -> bool:
        """Whether this kind of world knows of such a thing."""

    async def submit(self, manifest: Json) -> JobKey:
        """Create a job, and wait for nothing."""

    async def until(self, job: JobKey, holds: Holds, within: float = 60) -> Situation:
        """The first situation seen that holds; AssertionError with the last one when the time is over."""

    async def gone(self, job: JobKey, within: float = 60) -> None:
        """Wait until the job and everything it owns no longer exist."""

    async def hurt(self, job: JobKey, what: Hurt) -> None:
        """Let it happen to the job's wanted pod of that task, at once."""

    async def edit(self, job: JobKey, patch: Json) -> None:
        """Merge-patch the job; a refusal is raised as Refused."""

    async def delete(self, job: JobKey) -> None:
        """What `kubectl delete` does, without waiting."""

    async def create(self, manifest: Json) -> Json:
        """Any other object; a refusal is raised as Refused."""

    async def remove(self, kind: str, name: str) -> None:
        """Delete any other object of the job's namespace."""

    async def change(self, kind: str, name: str, patch: Json) -> None:
        """Merge-patch any other object."""

    async def cordon(self, node: str, *, cordoned: bool = True) -> None:
        """What `kubectl cordon` and `uncordon` do."""

    async def drain(self, node: str) -> None:
        """What `kubectl drain` does: cordon it, and evict every pod that is there."""

    async def objects(self, kind: str) -> list[Json]:
        """All objects of a kind in the job's namespace."""

    async def log(self, job: JobKey, task: Task) -> str:
        """What the task's wanted pod has printed."""

    async def prints(self, job: JobKey, task: Task, pattern: str, within: float = 60) -> None:
        """Wait until the task's wanted pod has printed what a regular expression finds."""

    def now(self) -> datetime:
        """By the clock that times the attempts of jobs."""


class Refused(Exception):
    """The API server refused; code and message are its own."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


NAMESPACE = "dtj-scenarios"
"""Of all jobs. Whatever is in it is the scenarios' own, and may be deleted."""


def counting(
    name: str = "count",
    *,
    workers: int = 2,
    steps: int = 40,
    step_seconds: float = 0.05,
    checkpoint_every: int = 10,
    arguments: tuple[str, ...] = (),
    fault: str | None = None,
    annotations: dict[str, str] | None = None,
    roles: Json | None = None,
    pod: Json | None = None,
    trainer: Json | None = None,
    beside: tuple[Json, ...] = (),
    finalizers: tuple[str, ...] = (),
    **spec: Any,
) -> Json:
    """A job of `tests/programs/counter.py`; `pod`, `trainer` and further fields of the spec are laid over it.

    `beside` are containers next to the trainer, `finalizers` those of its pods.
    """
    program = [
        "counter.py",
        f"--steps={steps}",
        f"--step-seconds={step_seconds}",
        f"--checkpoint-every={checkpoint_every}",
    ]
    image = {"image": "dtj/worker:latest", "imagePullPolicy": "IfNotPresent"}
    container = {"name": "trainer", **image, "args": [*program, *arguments], **(trainer or {})}
    noted = {**(annotations or {}), **({"dtj.dev/fault": fault} if fault else {})}
    return {
        "apiVersion": "dtj.dev/v1alpha1",
        "kind": "DistributedTrainingJob",
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": noted},
        "spec": {
            "strategy": "MultiWorkerMirrored",
            "roles": {"worker": {"replicas": workers}, **(roles or {})},
            "template": {
                "metadata": {"finalizers": list(finalizers)},
                "spec": {"containers": [container, *beside], **(pod or {})},
            },
            "checkpoint": {"persistentVolumeClaim": "checkpoints"},
            **spec,
        },
    }


GPUS = 4
"""Of each node; every world has three nodes."""
GPU = "nvidia.com/gpu"


def on(gpus: int) -> Json:
    """What a trainer says that takes so many devices."""
    return {"resources": {"limits": {GPU: str(gpus)}}}


RESTRICTED: Json = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
"""Has a namespace refuse what Kubernetes' strictest rules for pods don't allow."""
NO_FINALIZERS: Json = {"metadata": {"finalizers": None}}
"""Lets an object go that waits for somebody."""

CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "checkpoints", "namespace": NAMESPACE},
    "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
}
"""Every world starts with it."""


def is_over(s: Situation) -> bool:
    """Succeeded or Failed, and nothing left to clean up."""
    return s.status.phase in ("Succeeded", "Failed") and s.status.cleanup is None


def in_phase(*phases: str) -> Holds:
    return lambda s: s.status.phase in phases


def step_reached(step: int) -> Holds:
    """At least this step was reported by the chief's supervisor, in whatever attempt."""
    return lambda s: s.status.progress is not None and (s.status.progress.step or 0) >= step


def checkpoint_reached(step: int) -> Holds:
    return lambda s: s.status.checkpoint is not None and (s.status.checkpoint.step or 0) >= step


def trains(attempt: int) -> Holds:
    """This attempt has made a step."""
    return lambda s: _newest(s, attempt) is not None


def resumed(attempt: int) -> Holds:
    """This attempt has made a step and began at a checkpoint."""

    def holds(s: Situation) -> bool:
        found = _newest(s, attempt)
        return found is not None and found.resumed_from_step is not None

    return holds


def _newest(s: Situation, attempt: int) -> Attempt | None:
    newest = s.status.timeline[-1] if s.status.timeline else None
    return newest if newest and newest.attempt == attempt and newest.first_step else None


def says(condition: ConditionType, status: str, reason: Reason | None = None) -> Holds:
    """A condition of the job has this status, and this reason if one is named."""

    def holds(s: Situation) -> bool:
        found = condition_of(s, condition)
        return found is not None and found.status == status and reason in (None, found.reason)

    return holds


def condition_of(s: Situation, type_: ConditionType) -> Condition | None:
    return next((one for one in s.status.conditions if one.type == type_), None)


def why_failed(s: Situation) -> str | None:
    """The reason of the condition Failed."""
    failed = condition_of(s, "Failed")
    return failed.reason if failed and failed.status == "True" else None
