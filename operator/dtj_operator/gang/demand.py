"""What a pod asks of a node: effective requests, host ports, and the nodes it allows. Nodes are not looked at here.

Total: a template may hold anything, and what makes no sense asks for nothing.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from dtj_operator.api.quantity import amounts
from dtj_operator.desired.affinity import required_terms
from dtj_operator.desired.overlay import containers, mapping

Amounts = dict[str, float]
"""By resource, in base units: cores, bytes, pieces."""
HostPort = tuple[str, int]
"""Protocol and port. Addresses are left out: a pod that takes a port of one address is taken to take it of all."""

SLOT = "pods"


class Requirement(Struct, frozen=True):
    """One expression over a node's labels, or over its name."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    is_on_name: bool = False


class Toleration(Struct, frozen=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class Demand(Struct, frozen=True):
    """What one pod needs. `terms` are alternatives of requirements; None: any node will do."""

    requests: Amounts = {}
    host_ports: frozenset[HostPort] = frozenset()
    selector: dict[str, str] = {}
    terms: tuple[tuple[Requirement, ...], ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    on_trust: tuple[str, ...] = ()
    """What else it asks for that is not looked at when it is placed, in people's words."""


class Load(Struct, frozen=True):
    """What a bound pod takes from its node."""

    node: str
    requests: Amounts
    host_ports: frozenset[HostPort] = frozenset()


def demand(pod: Mapping[str, Any]) -> Demand:
    """What a pod of this manifest needs."""
    spec = mapping(pod.get("spec"))
    terms = required_terms(pod)
    return Demand(
        requests=effective_requests(pod),
        host_ports=_host_ports(pod),
        selector={str(k): str(v) for k, v in mapping(spec.get("nodeSelector")).items()},
        terms=None if terms is None else tuple(_term(mapping(term)) for term in terms),
        tolerations=tuple(_toleration(entry) for entry in _mappings(spec.get("tolerations"))),
        on_trust=tuple(_on_trust(spec)),
    )


def load(pod: Mapping[str, Any]) -> Load | None:
    """What a pod takes from its node, terminating or not; None where it has no node or nothing of it runs any more."""
    node = mapping(pod.get("spec")).get("nodeName")
    if not node or mapping(pod.get("status")).get("phase") in ("Succeeded", "Failed"):
        return None
    return Load(str(node), effective_requests(pod), _host_ports(pod))


def effective_requests(pod: Mapping[str, Any]) -> Amounts:
    """What the scheduler reserves for a pod, its slot on the node included.

    The larger of the containers' sum and the init containers' peak, native sidecars counted in both from their place on
    (KEP-753); what the pod states as a whole takes that sum's place (KEP-2837); the overhead comes on top. A container
    that was resized counts with the most of what it asks for and what it has (KEP-1287).
    """
    status = mapping(pod.get("status"))
    running = _sum(_requests(c, status, "containerStatuses") for c in containers(pod))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in containers(pod, "initContainers"):
        asked = _requests(container, status, "initContainerStatuses")
        if container.get("restartPolicy") == "Always":
            sidecars = _sum([sidecars, asked])
        else:
            peak = _most([peak, _sum([sidecars, asked])])
    spec = mapping(pod.get("spec"))
    whole = _most([_sum([running, sidecars]), peak]) | _stated(mapping(spec.get("resources")))
    return _sum([whole, amounts(spec.get("overhead"))]) | {SLOT: 1.0}


def _requests(container: Mapping[str, Any], status: Mapping[str, Any], field: str) -> Amounts:
    asked = _stated(mapping(container.get("resources")))
    name = container.get("name")
    seen = next((c for c in _mappings(status.get(field)) if name is not None and c.get("name") == name), {})
    has = [amounts(seen.get("allocatedResources")), amounts(mapping(seen.get("resources")).get("requests"))]
    return _most([asked, *has])


def _stated(resources: Mapping[str, Any]) -> Amounts:
    # A limit without a request is the request too.
    return amounts(resources.get("limits")) | amounts(resources.get("requests"))


def _host_ports(pod: Mapping[str, Any]) -> frozenset[HostPort]:
    on_host = mapping(pod.get("spec")).get("hostNetwork") is True
    found = set()
    sidecars = [c for c in containers(pod, "initContainers") if c.get("restartPolicy") == "Always"]
    for container in [*containers(pod), *sidecars]:
        for entry in _mappings(container.get("ports")):
            port = entry.get("hostPort") or (entry.get("containerPort") if on_host else None)
            if isinstance(port, int) and port:
                found.add((str(entry.get("protocol") or "TCP"), port))
    return frozenset(found)


def _toleration(entry: Mapping[str, Any]) -> Toleration:
    key, operator, value, effect = (str(entry.get(name) or "") for name in ("key", "operator", "value", "effect"))
    return Toleration(key, operator or "Equal", value, effect)


def _term(term: Mapping[str, Any]) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(str(e.get("key")), str(e.get("operator")), _strings(e.get("values")), is_on_name)
        for field, is_on_name in (("matchExpressions", False), ("matchFields", True))
        for e in _mappings(term.get(field))
    )


def _on_trust(spec: Mapping[str, Any]) -> Iterable[str]:
    affinity = mapping(spec.get("affinity"))
    if any("persistentVolumeClaim" in v or "ephemeral" in v for v in _mappings(spec.get("volumes"))):
        yield "where its volumes can be mounted"
    if spec.get("resourceClaims"):
        yield "its resource claims"
    if affinity.get("podAffinity") or affinity.get("podAntiAffinity"):
        yield "its affinity to other pods"
    if spec.get("topologySpreadConstraints"):
        yield "its topology spread"


def _sum(those: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for each in those:
        for name, amount in each.items():
            total[name] = total.get(name, 0.0) + amount
    return total


def _most(those: Iterable[Amounts]) -> Amounts:
    most: Amounts = {}
    for each in those:
        for name, amount in each.items():
            most[name] = max(most.get(name, 0.0), amount)
    return most


def _mappings(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _strings(value: Any) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, list) else ()
