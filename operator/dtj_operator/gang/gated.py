"""The built-in gang scheduler's marks: pods gated, and pinned to their gang's nodes. Whose turn it is: `builtin.py`."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from dtj_operator.api import names
from dtj_operator.api.observed import Admit, Facts, Situation, Wait
from dtj_operator.api.status import has_finished, round_of
from dtj_operator.desired import affinity
from dtj_operator.desired.overlay import mapping
from dtj_operator.desired.pods import avoided_hosts
from dtj_operator.desired.topology import Topology
from dtj_operator.gang.base import GangState, binding, wanted_pods
from dtj_operator.gang.demand import demand
from dtj_operator.gang.filtering import mismatch
from dtj_operator.gang.packing import capacity


class BuiltIn(Struct, frozen=True):
    name: str = "BuiltIn"
    replaces_single_pods: bool = True

    def available(self, facts: Facts) -> str | None:
        if facts.has_node_rights:
            return None
        return "the operator may not look at nodes (builtinGang.enabled of its chart is off)"

    def group(self, s: Situation, topology: Topology) -> dict[str, Any] | None:
        return None

    def mark(self, s: Situation, topology: Topology, pod: dict[str, Any]) -> dict[str, Any]:
        """Gated and, in a gang that forms as a whole, pinned to its nodes. The evaluator is no member."""
        labels = mapping(mapping(pod.get("metadata")).get("labels"))
        if labels.get(names.LABEL_ROLE) == "evaluator":
            return pod
        hosts = pins(s, topology)
        if hosts:
            pod = affinity.requiring(pod, affinity.on_hosts(hosts, are=True))
        elif _has_another_node(s, pod):
            pod = affinity.requiring(pod, avoided_hosts(s))
        spec = mapping(pod.get("spec"))
        gates = spec.get("schedulingGates")
        foreign = gates if isinstance(gates, list) else []
        return {**pod, "spec": {**spec, "schedulingGates": [*foreign, {"name": names.GATE}]}}

    def state(self, s: Situation, topology: Topology) -> GangState:
        if s.status.gang.admitted_at is not None:
            return binding(s, topology)
        told = s.admission.shortfall if isinstance(s.admission, Wait) else "waiting for its turn"
        words = self.available(s.facts) or told
        return GangState(bound=0, needed=len(topology.gang), is_admitted=False, waiting_for=words)


def pins(s: Situation, t: Topology) -> tuple[str, ...]:
    """The host names that the gang's pods are pinned to; none where the scheduler is free to choose.

    Pods of the round that exist already know them: an operator that was killed half-way goes on with the same set. A
    pod that is made anew beside living peers is free, since the old set has lost a node.
    """
    formed = s.status.gang.formed
    unfinished = (task for task in t.gang if not has_finished(s.status, task))
    if formed is not None and any(round_of(s.status, task) <= formed for task in unfinished):
        return ()
    told = next((pod.pinned for pod in wanted_pods(s, t).values() if pod.pinned), ())
    return told or (s.admission.nodes if isinstance(s.admission, Admit) else ())


def pinned(pod: Mapping[str, Any]) -> tuple[str, ...]:
    """The host names that a pod's manifest pins it to: `mark` puts them last into every term, after the user's own."""
    for term in affinity.required_terms(pod) or ():
        expressions = mapping(term).get("matchExpressions")
        last = mapping(expressions[-1]) if isinstance(expressions, list) and expressions else {}
        hosts = last.get("values")
        if last.get("key") == affinity.HOST_NAME and last.get("operator") == "In" and isinstance(hosts, list):
            return tuple(str(host) for host in hosts)
    return ()


def _has_another_node(s: Situation, pod: dict[str, Any]) -> bool:
    """Whether the pod would fit on some node that is not avoided, were that one empty."""
    avoid = s.status.recovery.excluded_nodes
    if not avoid or s.nodes is None:
        return False
    needs = demand(pod)
    return any(mismatch(needs, node, avoid) is None and capacity(needs, node.allocatable) for node in s.nodes)
