"""When a pod that does not go away, or the node under it, counts as lost. Without sight of nodes, only the former."""

from datetime import timedelta

from dtj_operator.api.observed import NodeView, PodView, Situation
from dtj_operator.api.status import Time
from dtj_operator.decide.actions import Deadline
from dtj_operator.decide.hearing import heard_of

TERMINATION_EXTRA_SECONDS = 120
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
NODE_UNSEEN = timedelta(seconds=40)
"""For how long a bound pod's node may not be seen yet; what Kubernetes' own pod garbage collection waits."""


def termination(s: Situation, pod: PodView) -> Deadline | None:
    """When a pod that was told to go is removed by force: its node no longer does it, or hangs."""
    if pod.deleting_since is None:
        return None
    node = _node_of(s, pod)
    own = s.spec.recovery.termination_seconds if s.spec else None
    seconds = pod.grace_seconds + TERMINATION_EXTRA_SECONDS if own is None else own
    if node is not None and not node.ready:
        seconds = min(seconds, pod.grace_seconds)
    due = pod.deleting_since + timedelta(seconds=seconds)
    gone_at = _node_gone_at(s, pod)
    if gone_at is not None:
        due = min(due, max(pod.deleting_since, gone_at))
    return Deadline("termination", due, f"{pod.name} does not go away")


def may_force(s: Situation, pod: PodView, now: Time) -> bool:
    """Whether to remove the pod by force. Never while most nodes are silent: then it is the network, not the nodes."""
    due = termination(s, pod)
    return due is not None and due.due <= now and not _most_nodes_are_silent(s)


def lost_node(s: Situation, pod: PodView) -> Deadline | None:
    """When a pod is given up because its node is not ready and its supervisor silent. Only where nodes are seen."""
    node = _node_of(s, pod)
    gone_at = _node_gone_at(s, pod)
    if gone_at is not None:
        return Deadline("lost node", gone_at, f"its node {pod.node} is gone")
    if s.spec is None or node is None or node.ready or node.not_ready_since is None or _most_nodes_are_silent(s):
        return None
    heard = [t for t in (s.facts.started_at, heard_of(s, pod.task)) if t is not None]
    since = max([node.not_ready_since, *heard])
    seconds = s.spec.recovery.lost_node_seconds
    return Deadline("lost node", since + timedelta(seconds=seconds), f"its node {pod.node} is not ready and silent")


def _most_nodes_are_silent(s: Situation) -> bool:
    nodes = s.nodes or ()
    return sum(not node.ready for node in nodes) * 2 > len(nodes)


def _node_of(s: Situation, pod: PodView) -> NodeView | None:
    return next((node for node in s.nodes or () if node.name == pod.node), None)


def _node_gone_at(s: Situation, pod: PodView) -> Time | None:
    """Since when the pod's node counts as gone; None while it is there, or nodes are not seen."""
    if not s.nodes or pod.node is None:
        return None
    node = _node_of(s, pod)
    if node is not None:
        return pod.bound_at or s.created_at if _is_out_of_service(node) else None
    # Nodes and pods are watched apart: a pod may be seen on a new node before the node itself is.
    return (pod.bound_at or s.created_at) + NODE_UNSEEN


def _is_out_of_service(node: NodeView) -> bool:
    return any(key == OUT_OF_SERVICE for key, _, _ in node.taints)
