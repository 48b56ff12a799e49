"""CustomResourceDefinitions: their defaults, and the kinds they make the server serve.

What is wrong with one is `definitionchecks.py`'s business.
"""

import functools
from typing import TYPE_CHECKING, Any

import msgspec

from dtj_operator.local.admission.filling import fill
from dtj_operator.local.custom.rules import CustomRules
from dtj_operator.local.kinds import Kind
from dtj_operator.local.store import Change

if TYPE_CHECKING:
    from dtj_operator.local.state import State

Json = dict[str, Any]

STORAGE = "customresourcedefinitions.apiextensions.k8s.io"


def default(body: Json) -> None:
    spec = body.setdefault("spec", {})
    spec.setdefault("conversion", {"strategy": "None"})
    names = spec.setdefault("names", {})
    if kind := names.get("kind"):
        fill(names, "singular", kind.lower())
        fill(names, "listKind", f"{kind}List")


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
