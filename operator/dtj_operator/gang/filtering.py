"""Whether a pod may go to a node at all, whatever is free there: readiness, cordon, taints, selector, affinity."""

from collections.abc import Collection

from msgspec import Struct

from dtj_operator.api.observed import NodeView
from dtj_operator.gang.demand import Demand, Requirement, Toleration

_OWN_TAINTS = "node.kubernetes.io/"


class Mismatch(Struct, frozen=True):
    """Why a node is out, as it goes on after "the node is"; `passes`: by itself or by whoever runs the node."""

    words: str
    passes: bool


def mismatch(demand: Demand, node: NodeView, avoid: Collection[str] = ()) -> Mismatch | None:
    """Why this node is not for this pod; None where it is. `avoid` holds names of nodes. What lasts is told first."""
    if not _matches(demand, node):
        return Mismatch("outside the pods' node selector or affinity", passes=False)
    taints = [t for t in node.taints if t[2] != "PreferNoSchedule" and not _tolerates(demand.tolerations, t)]
    foreign = [t for t in taints if not t[0].startswith(_OWN_TAINTS)]
    if foreign:
        key, value, effect = foreign[0]
        return Mismatch(f"tainted {key}{'=' if value else ''}{value}:{effect}", passes=False)
    if node.name in avoid:
        return Mismatch("avoided after failures there", passes=False)
    if node.unschedulable:
        return Mismatch("cordoned", passes=True)
    if not node.ready:
        return Mismatch("not ready", passes=True)
    return Mismatch(f"tainted {taints[0][0]}", passes=True) if taints else None


def _matches(demand: Demand, node: NodeView) -> bool:
    if any(node.labels.get(key) != value for key, value in demand.selector.items()):
        return False
    # An empty term matches no node.
    return demand.terms is None or any(term and all(_holds(r, node) for r in term) for term in demand.terms)


def _holds(requirement: Requirement, node: NodeView) -> bool:
    labels = {"metadata.name": node.name} if requirement.is_on_name else node.labels
    found = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return found in requirement.values
        case "NotIn":
            return found not in requirement.values
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
        case "Gt" | "Lt":
            return _compares(requirement, found)
        case _:
            return False


def _compares(requirement: Requirement, found: str | None) -> bool:
    try:
        have, bound = int(found or ""), int(requirement.values[0])
    except (ValueError, IndexError):
        return False
    return have > bound if requirement.operator == "Gt" else have < bound


def _tolerates(tolerations: Collection[Toleration], taint: tuple[str, str, str]) -> bool:
    key, value, effect = taint
    return any(
        t.effect in ("", effect)
        and (t.key == key or (not t.key and t.operator == "Exists"))
        and (t.operator == "Exists" or t.value == value)
        for t in tolerations
    )
