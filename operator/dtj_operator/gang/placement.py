"""Where pods go: a node for each so that all fit together, or the shortfall in words. Who comes first is elsewhere."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from dtj_operator.api.observed import NodeView
from dtj_operator.gang.demand import Demand, Load
from dtj_operator.gang.packing import groups_of, pack, rooms_of
from dtj_operator.gang.shortfall import Shortfall, shortfall


def place(
    demands: Mapping[str, Demand], nodes: Sequence[NodeView], loads: Iterable[Load], avoid: Collection[str] = ()
) -> dict[str, str] | Shortfall:
    """A node's name for each pod by name, so that all of them fit beside what runs there; else why not.

    Per node, never a sum over the cluster. `avoid` holds names of nodes that must not be used.
    """
    rooms = rooms_of(nodes, loads)
    groups = groups_of(demands, nodes)
    packed = pack(groups, rooms, avoid)
    if packed is None:
        return shortfall(groups, rooms, avoid)
    placed: dict[str, str] = {}
    for group, counts in zip(groups, packed, strict=True):
        on = [node for node, count in counts.items() for _ in range(count)]
        placed |= dict(zip(group.pods, on, strict=True))
    return placed
