"""Why pods do not fit, in people's words: what is missing, where most of it is, and whether it could ever fit."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec import Struct

from dtj_operator.gang.demand import SLOT, Demand
from dtj_operator.gang.filtering import mismatch
from dtj_operator.gang.packing import ROUNDING, Group, Room, capacity

NAMED_NODES = 5
"""How many nodes a message names."""


class Shortfall(Struct, frozen=True):
    """`waiting` says what is missing now; `never`, why these nodes could not hold the pods even when they are empty."""

    waiting: str
    never: str | None = None

    @property
    def words(self) -> str:
        return self.never or self.waiting


def shortfall(groups: Sequence[Group], rooms: Sequence[Room], avoid: Collection[str] = ()) -> Shortfall:
    """Why these pods were not placed: the first group that has no room of its own, else that all together have none."""
    for group in groups:
        missing = _of_group(group, rooms, avoid)
        if missing is not None:
            return missing
    return Shortfall("waiting for the whole gang: there is room for each role alone, not for all of them together")


def _of_group(group: Group, rooms: Sequence[Room], avoid: Collection[str]) -> Shortfall | None:
    faults = [(room, mismatch(group.demand, room.node, avoid)) for room in rooms]
    ever = [room for room, fault in faults if fault is None or fault.passes]
    now = [room for room, fault in faults if fault is None]
    if not ever:
        out = _out(fault.words for _, fault in faults if fault is not None)
        return Shortfall(f"waiting for a node for these pods: {out}", f"can never fit: {out}")
    never = _never(group, ever)
    if not now:
        out = _out(fault.words for _, fault in faults if fault is not None)
        return Shortfall(f"waiting for a node for these pods: {out}", never)
    held = {room.node.name: room.capacity(group.demand) for room in now}
    if sum(held.values()) >= len(group.pods):
        return None
    if not any(held.values()):
        return Shortfall(_waiting_for_one(group.demand, now), never)
    room_for = sorted(((n, name) for name, n in held.items() if n), key=lambda pair: (-pair[0], pair[1]))
    named = ", ".join(f"{name}: {n}" for n, name in room_for[:NAMED_NODES])
    more = f", {len(room_for) - NAMED_NODES} more" if len(room_for) > NAMED_NODES else ""
    return Shortfall(
        f"waiting for {_pods(group, now)}: there is room for {sum(held.values())} now ({named}{more})", never
    )


def _never(group: Group, rooms: Sequence[Room]) -> str | None:
    """Why these nodes can't hold the group even when they are empty; None where they can."""
    demand = group.demand
    for name, amount in _scarcest_first(demand, rooms, are_empty=True):
        largest = max(room.node.allocatable.get(name, 0.0) for room in rooms)
        if amount > largest and name != SLOT:
            return f"can never fit: {_amount(name, amount)} per pod, largest node has {_figure(name, largest)}"
    held = [capacity(demand, room.node.allocatable) for room in rooms]
    if not any(held):
        return f"can never fit: {_all_of(demand)} per pod, and no node has all of that"
    if sum(held) < len(group.pods):
        return f"can never fit: {_pods(group, rooms)}, and all nodes together hold {sum(held)}"
    return None


def _waiting_for_one(demand: Demand, rooms: Sequence[Room]) -> str:
    """What not even one pod finds on any node."""
    for name, amount in _scarcest_first(demand, rooms, are_empty=False):
        freest = min(rooms, key=lambda room: (-room.free.get(name, 0.0), room.node.name))
        has = max(freest.free.get(name, 0.0), 0.0)
        if has + ROUNDING < amount and (name != SLOT or SLOT in freest.free):
            there = f"the freest has {_figure(name, has)} ({freest.node.name})"
            return f"waiting for {_amount(name, amount)} on one node: {there}"
    if any(capacity(demand, room.free) for room in rooms):
        ports = ", ".join(f"{port}/{protocol}" for protocol, port in sorted(demand.host_ports))
        return f"waiting for host port {ports} on one node: it is taken on each that has room"
    return f"waiting for {_all_of(demand)} on one node: none has all of that free"


def _scarcest_first(demand: Demand, rooms: Sequence[Room], *, are_empty: bool) -> list[tuple[str, float]]:
    """What the pod asks for, first what the fewest nodes could give; devices before what every node has."""

    def nodes_with(name: str, amount: float) -> int:
        return sum((room.node.allocatable if are_empty else room.free).get(name, 0.0) >= amount for room in rooms)

    asked = [(name, amount) for name, amount in demand.requests.items() if amount > 0]
    return sorted(asked, key=lambda pair: (nodes_with(*pair), "/" not in pair[0], pair[0]))


def _pods(group: Group, rooms: Sequence[Room]) -> str:
    """The group by number and by what is scarcest for it."""
    noun = "pod" if len(group.pods) == 1 else "pods"
    asked = [pair for pair in _scarcest_first(group.demand, rooms, are_empty=False) if pair[0] != SLOT]
    if not asked:
        return f"{len(group.pods)} {noun}"
    each = " each" if len(group.pods) > 1 else ""
    return f"{len(group.pods)} {noun} with {_amount(*asked[0])}{each}"


def _all_of(demand: Demand) -> str:
    asked = [_amount(name, amount) for name, amount in sorted(demand.requests.items()) if amount > 0 and name != SLOT]
    return " and ".join(asked) or "a pod's place"


def _out(reasons: Iterable[str]) -> str:
    """How many nodes are out for which reason."""
    counted = Counter(reasons).most_common(NAMED_NODES)
    told = ", ".join(f"{n} {'node is' if n == 1 else 'nodes are'} {words}" for words, n in counted)
    return told or "the cluster has no node"


def _amount(name: str, amount: float) -> str:
    """What is asked for, as `8 × nvidia.com/gpu` or `64 GiB of memory`; rounded up, what is there is rounded down."""
    if name == SLOT:
        return "a pod's place"
    if _is_bytes(name):
        return f"{_bytes(amount, math.ceil)} of {name}"
    return f"{math.ceil(amount * 1000) / 1000:g} × {name}"


def _figure(name: str, amount: float) -> str:
    return _bytes(amount, math.floor) if _is_bytes(name) else f"{math.floor(amount * 1000 + 1e-6) / 1000:g}"


def _is_bytes(name: str) -> bool:
    return name in ("memory", "ephemeral-storage") or name.startswith("hugepages-")


def _bytes(amount: float, rounded: Callable[[float], int]) -> str:
    unit, size = ("GiB", 2**30) if amount >= 2**30 else ("MiB", 2**20)
    return f"{rounded(amount / size * 10) / 10:g} {unit}"
