"""The built-in gang scheduler: which waiting gang is admitted, to which nodes. How its pods are marked: `gated.py`."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from dtj_operator.api.observed import Admission, Admit, JobKey, NodeView, Situation, Wait
from dtj_operator.api.status import FINAL, Time, has_finished
from dtj_operator.desired.affinity import host_name
from dtj_operator.desired.checkpoints import missing_claim
from dtj_operator.desired.pods import pod
from dtj_operator.desired.probes import probe_of
from dtj_operator.desired.topology import Topology, spec_of
from dtj_operator.gang.base import wanted_pods
from dtj_operator.gang.demand import Demand, Load, demand
from dtj_operator.gang.gated import pins
from dtj_operator.gang.placement import place
from dtj_operator.gang.shortfall import Shortfall
from dtj_worker.contract import Role, Task


class WaitingGang(Struct, frozen=True):
    """A gang that has no pods yet. `avoid` names nodes that its failures point to."""

    key: JobKey
    created_at: Time
    demands: dict[str, Demand]
    """By task."""
    priority: int = 0
    not_before: Time | None = None
    avoid: tuple[str, ...] = ()
    topology_key: str | None = None


class ReleasedGang(Struct, frozen=True):
    """A gang that was admitted and is not all bound: what its unbound pods will take, on which hosts (none: any)."""

    key: JobKey
    demands: dict[str, Demand]
    hosts: tuple[str, ...] = ()


class Fleet(Struct, frozen=True):
    """All nodes, what every bound and non-terminal pod takes from them, and what is promised."""

    nodes: tuple[NodeView, ...]
    loads: tuple[Load, ...] = ()
    released: tuple[ReleasedGang, ...] = ()
    has_autoscaler: bool = False


def admit(waiting: Iterable[WaitingGang], fleet: Fleet, now: Time) -> dict[JobKey, Admission]:
    """An answer for every waiting gang: at most one is admitted, the first in order that fits.

    Order: priority, then creation. Nobody else is admitted beside it; the next pass sees it among the released.
    """
    loads = [*fleet.loads, *_promised(fleet)]
    answers: dict[JobKey, Admission] = {}
    refused: list[tuple[WaitingGang, Wait]] = []
    first: WaitingGang | None = None
    for gang in sorted(waiting, key=lambda gang: (-gang.priority, gang.created_at, gang.key)):
        if gang.not_before is not None and gang.not_before > now:
            answers[gang.key] = Wait(f"waiting until {gang.not_before:%H:%M:%S} UTC for its next try")
        elif first is not None:
            # What other namespaces run is not this one's to read.
            other = first.key if first.key.namespace == gang.key.namespace else "a job of another namespace"
            answers[gang.key] = Wait(f"waiting behind {other}, which is being released")
        else:
            # Jobs of a sweep ask for the same; what has no room for one has none for the others.
            known = next((answer for other, answer in refused if _asks_the_same(gang, other)), None)
            answers[gang.key] = answer = known or _answer(gang, fleet, loads)
            if isinstance(answer, Admit):
                first = gang
            elif known is None:
                refused.append((gang, answer))
    return answers


def waiting_gang(s: Situation, t: Topology) -> WaitingGang | None:
    """The gang of a queued job; None where it does not wait, or the API server was not yet asked what its pods need.

    Nor does it wait for room while its claim is missing: room that it can't use would be kept from others.
    """
    if s.status.phase != "Queued" or s.status.gang.admitted_at is not None or missing_claim(s) is not None:
        return None
    roles: dict[Role, Task] = {}
    for task in t.gang:
        roles.setdefault(task.role, task)
    answers = {role: probe_of(s, role) for role in roles}
    if any(answer is None for answer in answers.values()):
        return None
    demands = {role: _demand(s, t, task) for role, task in roles.items()}
    priorities = [answer.pod.get("spec", {}).get("priority") for answer in answers.values() if answer and answer.pod]
    return WaitingGang(
        key=s.key,
        created_at=s.created_at,
        demands={str(task): demands[task.role] for task in t.gang},
        priority=max((p for p in priorities if isinstance(p, int)), default=0),
        not_before=s.status.gang.not_before,
        avoid=tuple(s.status.recovery.excluded_nodes),
        topology_key=spec_of(s).gang.topology_key,
    )


def released_gang(s: Situation, t: Topology) -> ReleasedGang | None:
    """What an admitted gang will still take from the nodes; None where it takes no more.

    From the moment of its admission on: until the job's status says so too, only the answer in the store does.
    """
    if s.status.phase in (*FINAL, "Suspended"):
        return None
    admitted = s.status.gang.admitted_at is not None or (s.status.phase == "Queued" and isinstance(s.admission, Admit))
    if not admitted:
        return None
    bound = {task for task, view in wanted_pods(s, t).items() if view.node is not None}
    unbound = [task for task in t.gang if task not in bound and not has_finished(s.status, task)]
    by_role = {task.role: _demand(s, t, task) for task in unbound}
    demands = {str(task): by_role[task.role] for task in unbound}
    return ReleasedGang(s.key, demands, pins(s, t)) if demands else None


def _demand(s: Situation, t: Topology, task: Task) -> Demand:
    """What a task's pod needs, as the API server would make it; where it would not say, as the template asks."""
    answer = probe_of(s, task.role)
    made = answer.pod if answer is not None and answer.pod is not None else pod(s, t, task, 0, 0)
    return demand(made)


def _promised(fleet: Fleet) -> Iterable[Load]:
    """What released gangs will take, as if they were bound already."""
    loads = list(fleet.loads)
    for gang in fleet.released:
        hosts = set(gang.hosts)
        nodes = [node for node in fleet.nodes if not hosts or host_name(node) in hosts]
        placed = place(gang.demands, nodes, loads)
        if isinstance(placed, Shortfall):
            # It does not fit any more. As much of it as does keeps its room, until the gang is taken back.
            placed = _one_by_one(gang.demands, nodes, loads)
        taken = [
            Load(node, gang.demands[task].requests, gang.demands[task].host_ports) for task, node in placed.items()
        ]
        loads += taken
        yield from taken


def _one_by_one(demands: Mapping[str, Demand], nodes: Sequence[NodeView], loads: Sequence[Load]) -> dict[str, str]:
    """A node for as many of these pods as find one."""
    found: dict[str, str] = {}
    for task, needs in demands.items():
        taken = (Load(node, demands[other].requests, demands[other].host_ports) for other, node in found.items())
        placed = place({task: needs}, nodes, [*loads, *taken])
        found |= placed if isinstance(placed, dict) else {}
    return found


def _asks_the_same(one: WaitingGang, other: WaitingGang) -> bool:
    return (one.demands, one.avoid, one.topology_key) == (other.demands, other.avoid, other.topology_key)


def _answer(gang: WaitingGang, fleet: Fleet, loads: Sequence[Load]) -> Admission:
    found = _placed(gang, fleet, loads, gang.avoid)
    if isinstance(found, Shortfall) and found.never is not None and gang.avoid:
        # No other node could ever hold it, so the nodes it has failed on must do.
        found = _placed(gang, fleet, loads, ())
    if isinstance(found, Shortfall):
        # An autoscaler may bring larger nodes than there are.
        never = None if fleet.has_autoscaler else found.never
        return Wait(never or found.waiting, can_never_fit=never is not None)
    used = set(found.values())
    trust = {f"{task.rpartition('-')[0]}: {what}" for task, needs in gang.demands.items() for what in needs.on_trust}
    hosts = sorted(host_name(node) for node in fleet.nodes if node.name in used)
    return Admit(nodes=tuple(hosts), on_trust=tuple(sorted(trust)))


def _placed(
    gang: WaitingGang, fleet: Fleet, loads: Sequence[Load], avoid: Collection[str]
) -> Mapping[str, str] | Shortfall:
    """A place for the gang, in one topology domain where it asks for one."""
    if gang.topology_key is None:
        return place(gang.demands, fleet.nodes, loads, avoid)
    domains: dict[str, list[NodeView]] = {}
    for node in fleet.nodes:
        if gang.topology_key in node.labels:
            domains.setdefault(node.labels[gang.topology_key], []).append(node)
    shortfalls = []
    # Small domains first, to leave large ones to those who need them.
    for _, nodes in sorted(domains.items(), key=lambda domain: (len(domain[1]), domain[0])):
        found = place(gang.demands, nodes, loads, avoid)
        if not isinstance(found, Shortfall):
            return found
        shortfalls.append(found)
    if not shortfalls:
        missing = f"no node has the label {gang.topology_key}"
        return Shortfall(f"waiting for a node for these pods: {missing}", f"can never fit: {missing}")
    # The largest domain tells most, and one where the gang may fit some day more than one where it never will.
    best = next((each for each in reversed(shortfalls) if each.never is None), shortfalls[-1])
    within = f" within one {gang.topology_key}"
    return Shortfall(best.waiting + within, None if best.never is None else best.never + within)
