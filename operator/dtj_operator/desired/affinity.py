"""Node affinity added to what the user asked for. Which nodes a pod needs or avoids is decided elsewhere."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dtj_operator.api.observed import NodeView
from dtj_operator.desired.overlay import mapping

HOST_NAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def host_name(node: NodeView) -> str:
    """What the node's host name label says; cloud providers let it differ from the node's name."""
    return node.labels.get(HOST_NAME, node.name)


def host_names(nodes: Sequence[NodeView] | None, names: Iterable[str]) -> list[str]:
    """The host names of nodes by name; a node that is not seen is taken to be labelled with its name."""
    labels = {node.name: host_name(node) for node in nodes or ()}
    return [labels.get(name, name) for name in names]


def on_hosts(hosts: Iterable[str], *, are: bool) -> dict[str, Any]:
    """The requirement to be on one of these hosts, or on none of them."""
    return {"key": HOST_NAME, "operator": "In" if are else "NotIn", "values": list(hosts)}


def requiring(pod: dict[str, Any], requirement: dict[str, Any]) -> dict[str, Any]:
    """The pod with a requirement added to each of its terms: they are alternatives, and one without it a way out."""
    terms = required_terms(pod)
    if terms is None:
        return _with(pod, REQUIRED, {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]})
    return _with(pod, REQUIRED, {"nodeSelectorTerms": [_and(term, requirement) for term in terms]})


def preferring(pod: dict[str, Any], requirement: dict[str, Any]) -> dict[str, Any]:
    """The pod with a preference of the greatest weight added to its own."""
    own = _node_affinity(pod).get(PREFERRED)
    ours = {"weight": 100, "preference": {"matchExpressions": [requirement]}}
    return _with(pod, PREFERRED, [*(own if isinstance(own, list) else []), ours])


def required_terms(pod: Mapping[str, Any]) -> list[Any] | None:
    """The alternatives of which a node must match one; None where the pod requires nothing."""
    terms = mapping(_node_affinity(pod).get(REQUIRED)).get("nodeSelectorTerms")
    return terms if isinstance(terms, list) else None


def _and(term: Any, requirement: dict[str, Any]) -> Any:
    if not isinstance(term, dict) or not (term.get("matchExpressions") or term.get("matchFields")):
        return term  # An empty term matches no node; with our requirement in it, it would.
    own = term.get("matchExpressions")
    return {**term, "matchExpressions": [*(own if isinstance(own, list) else []), requirement]}


def _node_affinity(pod: Mapping[str, Any]) -> dict[str, Any]:
    return mapping(mapping(mapping(pod.get("spec")).get("affinity")).get("nodeAffinity"))


def _with(pod: dict[str, Any], field: str, value: Any) -> dict[str, Any]:
    spec = mapping(pod.get("spec"))
    node_affinity = {**_node_affinity(pod), field: value}
    return {**pod, "spec": {**spec, "affinity": {**mapping(spec.get("affinity")), "nodeAffinity": node_affinity}}}
