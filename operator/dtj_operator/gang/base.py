"""What a gang backend is: how it groups and marks pods and reads what became of them, and which backend a job gets."""

from typing import Any, Protocol

from dtj_operator.api.observed import Facts, Situation
from dtj_operator.api.status import Time
from dtj_operator.desired.topology import Topology
from msgspec import Struct


class GangState(Struct, frozen=True):
    """How far the gang is. `bound` of `needed` tasks have a node; `waiting_for` says in people's words what is missing."""

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
    """A backend. It builds manifests and reads views; it never calls the API, so adding one touches one file and its test."""

    name: str
    replaces_single_pods: bool
    """Whether a lost pod may be recreated alone beside its living peers."""

    def available(self, facts: Facts) -> str | None:
        """None when this backend can work here, else why not."""

    def group(self, s: Situation, topology: Topology) -> dict[str, Any] | None:
        """The group object to create before the pods; None where there is none."""

    def mark(self, s: Situation, topology: Topology, pod: dict[str, Any]) -> dict[str, Any]:
        """The pod with what binds it to its gang: gates, scheduler name, labels, affinity."""

    def state(self, s: Situation, topology: Topology) -> GangState:
        """What is bound and what is waited for, of the pods of each task's wanted round."""
