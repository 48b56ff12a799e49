"""How much of a quota an object uses: pods their effective requests and limits, everything else one of its kind."""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from dtj_operator.local.kinds import Kind
from dtj_operator.local.quantity import value_of

Json = dict[str, Any]
Amounts = dict[str, Fraction]

# Kinds that a quota may count under their plain name too.
_COUNTED = frozenset({
    "configmaps", "persistentvolumeclaims", "pods", "resourcequotas", "secrets", "services",
})  # fmt: skip
_PLAIN_REQUESTS = ("cpu", "memory", "ephemeral-storage")


def used_by(kind: Kind, body: Json) -> Amounts:
    """By the names that quotas use: `pods`, `requests.cpu`, `cpu`, `requests.nvidia.com/gpu`, `count/pods`."""
    one = Fraction(1)
    used: Amounts = {f"count/{kind.resource}": one}
    if kind.storage == "pods":
        if (body.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            # An ended pod uses nothing but its name.
            return used
        used |= pod_usage(body["spec"])
    if kind.storage in _COUNTED:
        used[kind.storage] = one
    if kind.storage == "persistentvolumeclaims":
        requests = ((body.get("spec") or {}).get("resources") or {}).get("requests") or {}
        if "storage" in requests:
            used["requests.storage"] = value_of(requests["storage"])
    return used


def pod_usage(spec: Json) -> Amounts:
    """Effective requests and limits of a pod in a quota's names."""
    used: Amounts = {}
    for name, amount in _effective(spec, "requests").items():
        used[f"requests.{name}"] = amount
        if name in _PLAIN_REQUESTS:
            used[name] = amount
    for name, amount in _effective(spec, "limits").items():
        if name in _PLAIN_REQUESTS:
            used[f"limits.{name}"] = amount
    return used


def add(one: Amounts, other: Amounts, sign: int = 1) -> Amounts:
    return {
        name: one.get(name, Fraction(0)) + sign * other.get(name, Fraction(0)) for name in one.keys() | other.keys()
    }


def _effective(spec: Json, field: str) -> Amounts:
    """The larger of the init containers' peak and the containers' sum; native sidecars count in both (KEP-753)."""
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or []:
        amounts = _amounts(container, field)
        if container.get("restartPolicy") == "Always":
            sidecars = add(sidecars, amounts)
            peak = _larger(peak, sidecars)
        else:
            peak = _larger(peak, add(sidecars, amounts))
    total = _sum(sidecars, (_amounts(container, field) for container in spec.get("containers") or []))
    overhead = {name: value_of(amount) for name, amount in (spec.get("overhead") or {}).items()}
    return add(_larger(peak, total), overhead)


def _amounts(container: Json, field: str) -> Amounts:
    given = (container.get("resources") or {}).get(field) or {}
    return {name: value_of(amount) for name, amount in given.items()}


def _sum(start: Amounts, others: Iterable[Amounts]) -> Amounts:
    total = start
    for other in others:
        total = add(total, other)
    return total


def _larger(one: Amounts, other: Amounts) -> Amounts:
    nothing = Fraction(0)
    return {name: max(one.get(name, nothing), other.get(name, nothing)) for name in one.keys() | other.keys()}
