"""How pods fit on nodes together: what is free, pods that ask for the same, and the search for a way to pack them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from dtj_operator.api.observed import NodeView
from dtj_operator.gang.demand import SLOT, Amounts, Demand, HostPort, Load
from dtj_operator.gang.filtering import mismatch

LOOKS = 20_000
"""At how many nodes the search for a packing looks, each counted as often as it is looked at, before it gives up. One
group of equal pods is placed at the first look, so this only bounds mixtures, to a second or so."""

NO_LIMIT = 1 << 20
"""Of pods on a node that says nothing about its slots, when they ask for nothing."""

ROUNDING = 1e-6
"""A micro-core or a millionth of a byte: what sums of decimal fractions may be off by."""


class Room:
    """What is free on a node while pods are placed."""

    def __init__(self, node: NodeView) -> None:
        self.node = node
        self.free: Amounts = dict(node.allocatable)
        self.host_ports: set[HostPort] = set()

    def take(self, requests: Amounts, host_ports: Collection[HostPort], count: int = 1) -> None:
        """Take that much `count` times; a negative count gives it back."""
        for name, amount in requests.items():
            self.free[name] = self.free.get(name, 0.0) - amount * count
        if count > 0:
            self.host_ports.update(host_ports)
        else:
            self.host_ports.difference_update(host_ports)

    def capacity(self, demand: Demand) -> int:
        """How many pods like this one fit in what is free."""
        if demand.host_ports & self.host_ports:
            return 0
        return capacity(demand, self.free)


def capacity(demand: Demand, free: Amounts) -> int:
    """How many such pods these amounts hold, whatever host ports are taken already; one at most where it needs some."""
    most = 1 if demand.host_ports else NO_LIMIT
    for name, amount in demand.requests.items():
        if amount > 0 and (name in free or name != SLOT):
            most = min(most, int((free.get(name, 0.0) + ROUNDING) // amount))
    return max(most, 0)


class Group(Struct, frozen=True):
    """Pods that ask for the same."""

    demand: Demand
    pods: tuple[str, ...]


def pack(groups: Sequence[Group], rooms: Sequence[Room], avoid: Collection[str] = ()) -> list[dict[str, int]] | None:
    """How many pods of each group go to each node, by name, so that all fit together; None where no way was found.

    None is certain for one group. For several it may mean that the search was given up. `rooms` stay as they are.
    """
    allowed = [[room for room in rooms if mismatch(g.demand, room.node, avoid) is None] for g in groups]
    return _Search().spread(groups, allowed)


def rooms_of(nodes: Iterable[NodeView], loads: Iterable[Load]) -> list[Room]:
    """The nodes with what the pods bound to them leave free."""
    rooms = {node.name: Room(node) for node in nodes}
    for load in loads:
        if load.node in rooms:
            rooms[load.node].take(load.requests, load.host_ports)
    return list(rooms.values())


def groups_of(demands: Mapping[str, Demand], nodes: Sequence[NodeView]) -> list[Group]:
    """Equal pods together, those that are hardest to place first."""
    groups: list[tuple[Demand, list[str]]] = []
    for pod, demand in demands.items():
        known = next((pods for each, pods in groups if each == demand), None)
        if known is None:
            groups.append((demand, [pod]))
        else:
            known.append(pod)
    return sorted((Group(d, tuple(pods)) for d, pods in groups), key=lambda g: -_share(g.demand, nodes))


def _share(demand: Demand, nodes: Sequence[NodeView]) -> float:
    """The largest part of the largest node that one pod takes of any resource."""
    shares = [1.0 if demand.host_ports else 0.0]
    for name, amount in demand.requests.items():
        largest = max((node.allocatable.get(name, 0.0) for node in nodes), default=0.0)
        shares.append(amount / largest if largest else amount)
    return max(shares)


class _Search:
    """One search, which goes on until its looks are used up."""

    def __init__(self) -> None:
        self._looks = 0

    def spread(self, groups: Sequence[Group], allowed: Sequence[list[Room]]) -> list[dict[str, int]] | None:
        """How many pods of each group go to each node; None where no way was found."""
        if not groups:
            return []
        (group, *others), (rooms, *others_allowed) = groups, allowed
        # One at least: a group that no node may take must end the search among the ways of those before it.
        self._looks += max(len(rooms), 1)
        capacities = {room.node.name: room.capacity(group.demand) for room in rooms}
        rooms = sorted(rooms, key=lambda room: _preference(room, group, capacities[room.node.name]))
        for counts in _ways([capacities[room.node.name] for room in rooms], len(group.pods)):
            taken = [(room, count) for room, count in zip(rooms, counts, strict=True) if count]
            for room, count in taken:
                room.take(group.demand.requests, group.demand.host_ports, count)
            rest = self.spread(others, others_allowed)
            for room, count in taken:
                room.take(group.demand.requests, group.demand.host_ports, -count)
            if rest is not None:
                return [{room.node.name: count for room, count in taken}, *rest]
            if self._looks >= LOOKS:
                return None
        return None


def _preference(room: Room, group: Group, capacity: int) -> tuple[bool, int, int, str]:
    """Nodes to fill first: none whose devices would lie idle, few of them, and of those the fullest."""
    wasted = any("/" in name and free > 0 and name not in group.demand.requests for name, free in room.free.items())
    return wasted, -min(capacity, len(group.pods)), capacity, room.node.name


def _ways(capacities: Sequence[int], count: int) -> Iterator[tuple[int, ...]]:
    """Every way to put `count` equal pods into these capacities, the fullest first places first."""
    behind = [0] * len(capacities)
    for place in reversed(range(len(capacities) - 1)):
        behind[place] = behind[place + 1] + capacities[place + 1]
    if not capacities or behind[0] + capacities[0] < count:
        return
    counts = _filled(capacities, count)
    while True:
        yield tuple(counts)
        # The last place from which one more can move behind it.
        moved = 0
        for place in reversed(range(len(capacities))):
            if counts[place] and moved < behind[place]:
                break
            moved += counts[place]
        else:
            return
        counts[place:] = [counts[place] - 1, *_filled(capacities[place + 1 :], moved + 1)]


def _filled(capacities: Sequence[int], count: int) -> list[int]:
    counts = []
    for capacity in capacities:
        counts.append(min(capacity, count))
        count -= counts[-1]
    return counts
