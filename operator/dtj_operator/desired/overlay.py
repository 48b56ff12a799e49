"""A role's pod template: the job's template with the role's laid over it. What the platform adds is in `defaults.py`.

Total: a template is whatever the user wrote, and what makes no sense is passed on, for the API server to refuse it with
its own words.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from dtj_operator.api.spec import JobSpec
from dtj_worker.contract import Role

TRAINER = "trainer"


class ListRule(Struct, frozen=True):
    """How two lists of one field are merged: entries with equal `keys` are one; without keys, new entries are appended.

    `is_union`: an entry holds one of several alternatives (a volume's source, a variable's value), so fields that only
    the lower entry has are dropped, as `retainKeys` does in Kubernetes.
    """

    keys: Mapping[str, Hashable] = {}
    """Each key with the value that its absence means."""
    is_union: bool = False


_BY_NAME = ListRule({"name": None})
_LIST_RULES: Mapping[str, ListRule] = {
    # Kubernetes' own merge keys (`x-kubernetes-patch-merge-key`, `x-kubernetes-list-map-keys` of its OpenAPI).
    "containers": _BY_NAME,
    "initContainers": _BY_NAME,
    "imagePullSecrets": _BY_NAME,
    "schedulingGates": _BY_NAME,
    "resourceClaims": ListRule({"name": None}, is_union=True),
    "claims": ListRule({"name": None, "request": ""}),
    "volumes": ListRule({"name": None}, is_union=True),
    "env": ListRule({"name": None}, is_union=True),
    "volumeMounts": ListRule({"mountPath": None}),
    "volumeDevices": ListRule({"devicePath": None}),
    "ports": ListRule({"containerPort": None, "protocol": "TCP"}),
    "hostAliases": ListRule({"ip": None}),
    "topologySpreadConstraints": ListRule({"topologyKey": None, "whenUnsatisfiable": "DoNotSchedule"}),
    # Kubernetes replaces these two as a whole. A role that adds a toleration or a resolver option wants the shared
    # ones too, so here they are added up; null takes all away.
    "tolerations": ListRule(),
    "options": _BY_NAME,
}


def role_template(spec: JobSpec, role: Role) -> dict[str, Any]:
    """The pod template (metadata, spec) of a role; nulls that took something away are still in it (`without_nulls`)."""
    own = getattr(spec.roles, role)
    merged = overlay(spec.template, None if own is None else own.template)
    return merged if isinstance(merged, dict) else {}


def templates_with(spec: JobSpec, role: Role, names: Iterable[str]) -> str:
    """The path of the template, or templates, from which a role's pods have the fields of these names."""
    own = getattr(spec.roles, role)
    laid = {"spec.template": spec.template, f"spec.roles.{role}.template": None if own is None else own.template}
    wanted = set(names)
    found = [path for path, template in laid.items() if wanted & set(_field_names(template))]
    return " and ".join(found or [path for path, template in laid.items() if template is not None])


def overlay(under: Any, over: Any) -> Any:
    """`over` laid over `under`: mappings are merged, lists by their field's rule, all else is replaced.

    Null takes away what is under it, and stays in the result, so that it also takes away what is laid under it later.
    """
    if over is None:
        return under
    if not isinstance(under, dict) or not isinstance(over, dict):
        return over
    merged = dict(under)
    for name, value in over.items():
        rule = _LIST_RULES.get(name)
        if name not in merged or value is None:
            merged[name] = value
        elif rule is not None and isinstance(value, list) and isinstance(merged[name], list):
            merged[name] = _lists(merged[name], value, rule)
        else:
            merged[name] = overlay(merged[name], value)
    return merged


def without_nulls(value: Any) -> Any:
    """The value without the fields that are null; lists keep theirs, since a place in a list may have a meaning."""
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    return [without_nulls(v) for v in value] if isinstance(value, list) else value


def trainer_name(spec: JobSpec, template: Mapping[str, Any]) -> str | None:
    """Which container trains: the one the spec names, else `trainer`, else the first; None where there is none."""
    names = [c["name"] for c in containers(template) if isinstance(c.get("name"), str)]
    if spec.trainer_container is not None:
        return spec.trainer_container if spec.trainer_container in names else None
    return TRAINER if TRAINER in names else next(iter(names), None)


def trainer(spec: JobSpec, template: Mapping[str, Any]) -> dict[str, Any]:
    """The trainer container of a template; empty when there is none."""
    name = trainer_name(spec, template)
    return next((c for c in containers(template) if name is not None and c.get("name") == name), {})


def containers(template: Mapping[str, Any], field: str = "containers") -> list[dict[str, Any]]:
    """The entries of a template's container list that are containers at all."""
    found = mapping(template.get("spec")).get(field)
    return [c for c in found if isinstance(c, dict)] if isinstance(found, list) else []


def mapping(value: Any) -> dict[str, Any]:
    """The value where it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def _field_names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _field_names(inner)


def _lists(under: Sequence[Any], over: Sequence[Any], rule: ListRule) -> list[Any]:
    if not rule.keys:
        return [*under, *(entry for entry in over if entry not in under)]
    merged = list(under)
    places: dict[Hashable, int] = {}
    for place, entry in enumerate(under):
        if (key := _key(entry, rule)) is not None:
            places.setdefault(key, place)
    for entry in over:
        # Each place is taken once: a name given twice stays twice, so that the API server can refuse it.
        taken = places.pop(_key(entry, rule), None)
        if taken is None:
            merged.append(entry)
        else:
            lower = {k: v for k, v in merged[taken].items() if k in entry} if rule.is_union else merged[taken]
            merged[taken] = overlay(lower, entry)
    return merged


def _key(entry: Any, rule: ListRule) -> Hashable:
    """What tells one entry from another; None where it lacks that or isn't a mapping."""
    if not isinstance(entry, dict):
        return None
    values = tuple(entry.get(name, default) for name, default in rule.keys.items())
    return values if all(isinstance(v, str | int) for v in values) else None
