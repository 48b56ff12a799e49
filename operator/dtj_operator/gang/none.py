"""The backend without a gang: pods are created at once, and the cluster's scheduler binds each when it can."""

from typing import Any

from msgspec import Struct

from dtj_operator.api.observed import Facts, Situation
from dtj_operator.desired.topology import Topology
from dtj_operator.gang.base import GangState, binding


class NoGang(Struct, frozen=True):
    name: str = "None"
    replaces_single_pods: bool = True

    def available(self, facts: Facts) -> str | None:
        return None

    def group(self, s: Situation, topology: Topology) -> dict[str, Any] | None:
        return None

    def mark(self, s: Situation, topology: Topology, pod: dict[str, Any]) -> dict[str, Any]:
        return pod

    def state(self, s: Situation, topology: Topology) -> GangState:
        return binding(s, topology)
