"""CustomResourceDefinitions: their defaults and checks as objects, and the kinds they make the server serve."""

import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from dtj_operator.local import schema as schemas
from dtj_operator.local.admission import metadata
from dtj_operator.local.custom.expressions import Expressions
from dtj_operator.local.custom.rules import CustomRules
from dtj_operator.local.failures import FieldFault, invalid, not_supported, required
from dtj_operator.local.kinds import Kind
from dtj_operator.local.store import Change

if TYPE_CHECKING:
    from dtj_operator.local.state import State

Json = dict[str, Any]

STORAGE = "customresourcedefinitions.apiextensions.k8s.io"
_SCOPES = ("Cluster", "Namespaced")


def default(body: Json) -> None:
    spec = body.setdefault("spec", {})
    spec.setdefault("conversion", {"strategy": "None"})
    names = spec.setdefault("names", {})
    if kind := names.get("kind"):
        names.setdefault("singular", kind.lower())
        names.setdefault("listKind", f"{kind}List")


def fresh(body: Json) -> None:
    """Accepted and established at once: no other controller has a say here."""
    at = body["metadata"].get("creationTimestamp")
    conditions = [
        {"type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": "no conflicts found"},
        {"type": "Established", "status": "True", "reason": "InitialNamesAccepted",
         "message": "the initial names have been accepted"},
    ]  # fmt: skip
    spec = body["spec"]
    body["status"] = {
        "conditions": [{**one, "lastTransitionTime": at} for one in conditions],
        "acceptedNames": spec.get("names", {}),
        "storedVersions": [version.get("name", "") for version in spec.get("versions") or [] if version.get("storage")],
    }


def faults(body: Json, old: Json | None) -> list[FieldFault]:
    """Of a definition: names, versions, structural schemas, CEL that does not compile."""
    spec = body["spec"]
    names = spec.get("names") or {}
    found = [required(f"spec.names.{field}") for field in ("plural", "kind") if not names.get(field)]
    if not spec.get("group"):
        found.append(required("spec.group"))
    wanted = f"{names.get('plural', '')}.{spec.get('group', '')}"
    if body["metadata"].get("name") != wanted:
        told = 'must be spec.names.plural+"."+spec.group'
        found.append(invalid("metadata.name", body["metadata"].get("name", ""), told))
    versions = spec.get("versions") or []
    if sum(bool(version.get("storage")) for version in versions) != 1:
        told = "must have exactly one version marked as storage version"
        found.append(invalid("spec.versions", [version.get("name") for version in versions], told))
    for index, version in enumerate(versions):
        if not version.get("name"):
            found.append(required(f"spec.versions[{index}].name"))
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        # The schema of an only version is that of the whole definition, to kube-apiserver.
        path = f"spec.versions[{index}].schema.openAPIV3Schema"
        if schema is not None and len(versions) == 1:
            path = "spec.validation.openAPIV3Schema"
        if schema is None:
            found.append(required(path, "schemas are required"))
            continue
        found += _schema_faults(msgspec.json.encode(schema), path)
    if spec.get("scope") not in _SCOPES:
        found.append(not_supported("spec.scope", spec.get("scope"), _SCOPES))
    if old is not None:
        found += _fixed_faults(spec, old["spec"])
    return found


def _fixed_faults(spec: Json, old: Json) -> Iterator[FieldFault]:
    names, old_names = spec.get("names") or {}, old.get("names") or {}
    for path, value, before in (
        ("spec.group", spec.get("group"), old.get("group")),
        ("spec.scope", spec.get("scope"), old.get("scope")),
        ("spec.names.kind", names.get("kind"), old_names.get("kind")),
        ("spec.names.plural", names.get("plural"), old_names.get("plural")),
    ):
        if value != before:
            yield invalid(path, value, metadata.IMMUTABLE)


class Definitions:
    """Keeps the served kinds in step with the stored definitions."""

    def __init__(self, state: "State") -> None:
        self._state = state
        self._served: dict[str, list[Kind]] = {}
        state.store.listen(self._changed)

    def _changed(self, change: Change) -> None:
        if change.storage != STORAGE:
            return
        name = change.entry.name
        if change.type == "DELETED":
            self._remove_objects(name)
        for kind in self._served.pop(name, []):
            self._state.kinds.drop(kind)
            self._state.custom_rules.pop(kind.served_as, None)
        if change.type != "DELETED":
            self._serve(name, change.entry.decode()["spec"])

    def _serve(self, name: str, spec: Json) -> None:
        for version in spec["versions"]:
            if not version.get("served"):
                continue
            kind = _kind(name, spec, version)
            self._state.kinds.add(kind)
            has_status = "status" in kind.subresources
            self._state.custom_rules[kind.served_as] = _rules(msgspec.json.encode(version), has_status=has_status)
            self._served.setdefault(name, []).append(kind)

    def _remove_objects(self, storage: str) -> None:
        """Objects of a deleted definition go with it, whatever their finalizers."""
        for entry in list(self._state.store.entries(storage)):
            self._state.store.remove(storage, entry)


# What follows from a schema takes longer to find out than all else that a server does at its start, and simulations
# start thousands of servers with the same one.
@functools.lru_cache(maxsize=16)
def _rules(version: bytes, *, has_status: bool) -> CustomRules:
    given = msgspec.json.decode(version)
    schema, columns = given["schema"]["openAPIV3Schema"], given.get("additionalPrinterColumns") or []
    return CustomRules(schema, has_status=has_status, columns=columns)


@functools.lru_cache(maxsize=16)
def _schema_faults(schema: bytes, path: str) -> tuple[FieldFault, ...]:
    given = msgspec.json.decode(schema)
    return (*_structural_faults(given, path), *Expressions(given).compile_faults(path))


def _kind(name: str, spec: Json, version: Json) -> Kind:
    names = spec["names"]
    subresources = version.get("subresources") or {}
    return Kind(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        singular=names.get("singular", names["kind"].lower()),
        namespaced=spec.get("scope") == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=("status",) if "status" in subresources else (),
        custom=True,
        selectable=tuple(one["jsonPath"].removeprefix(".") for one in version.get("selectableFields") or ()),
        storage=name,
    )


def _structural_faults(schema: Json, path: str) -> Iterator[FieldFault]:
    """What keeps a schema from being structural, or from being run at all."""
    kind = schema.get("type")
    if kind and kind not in schemas.TYPES:
        yield not_supported(f"{path}.type", kind, sorted(schemas.TYPES))
    try:
        re.compile(schema.get("pattern", ""))
    except re.error as why:
        yield invalid(f"{path}.pattern", schema["pattern"], f"must be a valid regular expression, but isn't: {why}")
    if not kind and not (
        schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    ):
        where = "the root" if path.endswith("openAPIV3Schema") else "specified object fields"
        yield required(f"{path}.type", f"must not be empty for {where}")
    for name, inner in (schema.get("properties") or {}).items():
        if path.endswith("openAPIV3Schema") and name == "metadata":
            continue
        yield from _structural_faults(inner, f"{path}.properties[{name}]")
    for key in ("additionalProperties", "items"):
        if isinstance(schema.get(key), dict):
            yield from _structural_faults(schema[key], f"{path}.{key}")
