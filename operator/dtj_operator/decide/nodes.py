"""Which nodes a job avoids, because its failures point to them. Where pods go instead is `gang`'s business."""

from msgspec.structs import replace

from dtj_operator.api.observed import Situation
from dtj_operator.api.status import RecoveryState
from dtj_operator.decide.actions import Failure

MOST_NODES = 16
FAILURES = 2
"""Failures of its own after which a node is avoided."""


def with_failure(state: RecoveryState, failure: Failure) -> RecoveryState:
    """The memory of failures by node, this one included; the newest stay."""
    if failure.node is None:
        return state
    others = {name: count for name, count in state.node_failures.items() if name != failure.node}
    newest = {**others, failure.node: state.node_failures.get(failure.node, 0) + 1}
    return replace(state, node_failures=dict(list(newest.items())[-MOST_NODES:]))


def excluded(s: Situation, failure: Failure, state: RecoveryState, *, last_try: bool) -> list[str]:
    """The nodes to avoid after this failure; `last_try`: once more like this and the program is to blame."""
    node = failure.node
    if node is None or node in state.excluded_nodes or s.spec is None or not s.spec.recovery.exclude_nodes:
        return state.excluded_nodes
    is_suspect = failure.node_refused or last_try or state.node_failures.get(node, 0) >= FAILURES
    if not is_suspect or not _is_another(s, {node, *state.excluded_nodes}):
        return state.excluded_nodes
    return [*state.excluded_nodes, node][-MOST_NODES:]


def has_elsewhere(s: Situation, failure: Failure) -> bool:
    """Whether the failure could be tried on another node for sure: nodes are seen, and another one is there."""
    if s.nodes is None or failure.node is None or s.spec is None or not s.spec.recovery.exclude_nodes:
        return False
    return _is_another(s, {failure.node})


def _is_another(s: Situation, avoided: set[str]) -> bool:
    """A node is avoided only where another is seen; not seen at all, to avoid it is a wish, which nothing waits for."""
    if s.nodes is None:
        return True
    return any(node.ready and not node.unschedulable and node.name not in avoided for node in s.nodes)
