"""A drain that goes from node to node: a gang that it sent away waits until the gang's other nodes are left alone.

Without the wait a rolling upgrade of the nodes would restart the gang once for each of them.
"""

from collections.abc import Iterable
from datetime import timedelta

from msgspec.structs import replace

from dtj_operator.api.bounds import CORDONED, NODES
from dtj_operator.api.observed import PodView, Situation
from dtj_operator.api.status import RecoveryState, Time
from dtj_operator.decide.actions import Deadline, Failure

QUIET = timedelta(seconds=60)
"""After the last new cordon among the nodes of the attempt that ended."""
LONGEST = timedelta(minutes=5)
"""After the attempt's end."""
UNSEEN = timedelta(seconds=30)
"""After the attempt's end: so long the nodes may stay unknown, whose watch began with it."""
ANY = "*"
"""In the place of nodes that nobody knows, and of more than a status should hold: on so many, a drain comes to most."""


def left(state: RecoveryState, failure: Failure, gang: Iterable[PodView]) -> RecoveryState:
    """With the nodes of the attempt that has ended, if it was taken away and did not fail by itself."""
    if failure.kind not in ("Disruption", "Preempted"):
        return replace(state, left_nodes=[], cordoned=[])
    if failure.node is None:
        # Its pod was gone before it was seen to go, as where the drain took the operator's process along.
        return replace(state, left_nodes=[ANY], cordoned=[])
    nodes = {failure.node, *(pod.node for pod in gang if pod.node)}
    return replace(state, left_nodes=sorted(nodes) if len(nodes) <= NODES else [ANY], cordoned=[])


def new(s: Situation, now: Time) -> list[str]:
    """Those of these nodes that are cordoned and were not when it was last looked."""
    state = s.status.recovery
    if len(state.cordoned) >= CORDONED or _ended_at(s, now) + LONGEST <= now:
        return []
    left = [node for node in s.nodes or () if node.name in state.left_nodes or ANY in state.left_nodes]
    return [node.name for node in left if node.unschedulable and node.name not in state.cordoned]


def waited_for(s: Situation, cordoned: list[str], now: Time) -> RecoveryState:
    """With these nodes noted, and the time until which the next attempt waits because of them."""
    state = s.status.recovery
    noted, last = [*state.cordoned, *cordoned][:CORDONED], _ended_at(s, now) + LONGEST
    due = last if len(noted) == CORDONED else min(now + QUIET, last)
    return replace(state, cordoned=noted, not_before=max(due, state.not_before or due))


def unseen(s: Situation, now: Time) -> Deadline | None:
    """When the next attempt no longer waits for a look at the nodes; None where there is nothing to wait for."""
    if s.status.phase != "Restarting" or not s.status.recovery.left_nodes:
        return None
    if s.nodes is not None or not s.facts.has_node_rights:
        return None
    return Deadline("nodes", _ended_at(s, now) + UNSEEN, "the cluster's nodes are not known")


def _ended_at(s: Situation, now: Time) -> Time:
    last = s.status.timeline[-1].end if s.status.timeline else None
    return last or now
