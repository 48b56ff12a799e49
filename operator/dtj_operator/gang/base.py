"""What a gang backend is: how it groups and marks pods, and reads what became of them. `choose.py` picks one."""

from typing import Any, Protocol

from msgspec import Struct

from dtj_operator.api.observed import Facts, PodView, Situation
from dtj_operator.api.status import Time, has_finished, round_of
from dtj_operator.desired.topology import Topology
from dtj_worker.contract import Task


class GangState(Struct, frozen=True):
    """How far the gang is: `bound` of `needed` tasks have a node; `waiting_for` says in words what is missing."""

    bound: int
    needed: int
    is_admitted: bool
    group: str | None = None
    admitted_at: Time | None = None
    waiting_for: str | None = None

    @property
    def is_bound(self) -> bool:
        return self.bound >= self.needed


class Gang(Protocol):
    """A backend. It builds manifests and reads views and never calls the API: a new one is one file and its test."""

    @property
    def name(self) -> str: ...

    @property
    def replaces_single_pods(self) -> bool:
        """Whether a lost pod may be recreated alone beside its living peers."""

    def available(self, facts: Facts) -> str | None:
        """None when this backend can work here, else why not."""

    def group(self, s: Situation, topology: Topology) -> dict[str, Any] | None:
        """The group object to create before the pods; None where there is none."""

    def mark(self, s: Situation, topology: Topology, pod: dict[str, Any]) -> dict[str, Any]:
        """The pod with what binds it to its gang: gates, scheduler name, labels, affinity."""

    def state(self, s: Situation, topology: Topology) -> GangState:
        """What is bound and what is waited for, of the pods of each task's wanted round."""


def wanted_pods(s: Situation, t: Topology) -> dict[Task, PodView]:
    """The one wanted pod of each task of the gang, as far as it exists and stays."""
    found = {(pod.task, pod.round): pod for pod in s.pods if pod.deleting_since is None}
    wanted = ((task, round_of(s.status, task)) for task in t.gang)
    return {task: found[task, round_] for task, round_ in wanted if (task, round_) in found}


def binding(s: Situation, t: Topology) -> GangState:
    """How many tasks of an admitted gang have a node, and what the others wait for. One that has ended 0 needs none."""
    pods = wanted_pods(s, t)
    missing = [task for task in t.gang if task not in pods and not has_finished(s.status, task)]
    unbound = [pod for pod in pods.values() if pod.node is None]
    bound = len(t.gang) - len(missing) - len(unbound)
    told = next((pod for pod in unbound if pod.waiting_message), None)
    gated = next((pod for pod in unbound if pod.gates), None)
    words = f"{bound} of {len(t.gang)} pods have a node"
    if told is not None:
        words += f"; {told.task}: {told.waiting_message}"
    elif gated is not None:
        words += f"; {gated.task} is held by {', '.join(gated.gates)}"
    elif missing:
        words += f"; {missing[0]} has no pod yet"
    waits = bool(missing or unbound)
    return GangState(
        bound=bound,
        needed=len(t.gang),
        is_admitted=True,
        admitted_at=s.status.gang.admitted_at,
        waiting_for=words if waits else None,
    )
