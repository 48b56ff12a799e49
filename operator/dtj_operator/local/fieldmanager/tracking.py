"""The `managedFields` entries of an object: read, written, and kept right by ordinary writes.

Applying is `apply.py`'s business.

Objects are tracked from the first write that names its `fieldManager`, or the first apply: kubectl names one always,
controllers that don't are spared the work.
"""

from typing import Any, NamedTuple

from dtj_operator.local.fieldmanager import fieldsets
from dtj_operator.local.fieldmanager.fieldsets import MEMBER, FieldSet
from dtj_operator.local.shapes.shape import Shape

Json = dict[str, Any]

# Nobody owns these.
_UNOWNED_METADATA = (
    "name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields", "resourceVersion",
    "deletionTimestamp", "deletionGracePeriodSeconds",
)  # fmt: skip


class Manager(NamedTuple):
    """Who writes. `operation` is `Apply` or `Update`."""

    name: str
    operation: str
    api_version: str
    time: str
    subresource: str

    @property
    def identity(self) -> tuple[str, str, str, str]:
        return self.name, self.operation, self.api_version, self.subresource


class Entry(NamedTuple):
    manager: Manager
    fields: FieldSet


def track_create(shape: Shape, body: Json, manager: Manager) -> None:
    """Give a new object its first entry."""
    # Go's empty value of a built-in type has these already, so they count as found and not as added.
    empty: Json = {"metadata": {}}
    if not shape.custom:
        empty |= {"spec": {"containers": []} if shape.name == "V1Pod" else {}, "status": {}}
    fields = fieldsets.changed(shape, empty, owned_part(shape, body, ""))
    write_entries(body, [Entry(manager, fields)])


def track_update(shape: Shape, body: Json, old: Json, manager: Manager) -> None:
    """What the write changed belongs to its manager and no longer to the others; what it removed to nobody."""
    new_part = owned_part(shape, body, manager.subresource)
    taken = fieldsets.changed(shape, owned_part(shape, old, manager.subresource), new_part)
    entries, own = [], taken
    # A client may rewrite the entries themselves, as kubectl does when it goes over to server-side apply.
    base = body if body["metadata"].get("managedFields") else old
    for entry in read_entries(base):
        if entry.manager.identity == manager.identity:
            kept = fieldsets.existing(entry.fields, shape, body, old)
            own = fieldsets.union(kept, taken)
            if own == entry.fields:
                manager = entry.manager
        else:
            rest = fieldsets.existing(fieldsets.difference(entry.fields, taken), shape, body, old)
            entries.append(Entry(entry.manager, rest))
    write_entries(body, [*entries, Entry(manager, own)])


def same_but_for_times(body: Json, old: Json) -> bool:
    """Whether a write would change nothing that anybody reads."""
    if body == old:
        return True
    return _without_times(body) == _without_times(old)


def read_entries(body: Json) -> list[Entry]:
    found = []
    for entry in body["metadata"].get("managedFields") or []:
        if not entry:
            # `managedFields: [{}]` is how a client ends the tracking of an object.
            continue
        manager = Manager(
            entry.get("manager", ""), entry["operation"], entry["apiVersion"], entry.get("time", ""),
            entry.get("subresource", ""),
        )  # fmt: skip
        found.append(Entry(manager, fieldsets.from_v1(entry.get("fieldsV1") or {})))
    return found


def write_entries(body: Json, entries: list[Entry]) -> None:
    """Those that own anything; applied ones first, then by time."""
    kept = [entry for entry in entries if entry.fields]
    kept.sort(key=lambda entry: (entry.manager.operation, entry.manager.time, entry.manager.name))
    listed = []
    for manager, fields in kept:
        written: Json = {"manager": manager.name, "operation": manager.operation, "apiVersion": manager.api_version}
        written |= {"time": manager.time, "fieldsType": "FieldsV1", "fieldsV1": fieldsets.to_v1(fields)}
        if manager.subresource:
            written["subresource"] = manager.subresource
        listed.append(written)
    if listed:
        body["metadata"]["managedFields"] = listed
    else:
        body["metadata"].pop("managedFields", None)


def owned_part(shape: Shape, body: Json, subresource: str) -> Json:
    """What of the object a write to the resource or to its status can own."""
    has_status = "status" in shape.fields
    part = {key: value for key, value in body.items() if key not in ("apiVersion", "kind", "metadata")}
    if subresource == "status":
        part = {"status": part["status"]} if "status" in part else {}
    elif has_status:
        part.pop("status", None)
    metadata = {key: value for key, value in body["metadata"].items() if key not in _UNOWNED_METADATA}
    return {**part, "metadata": metadata}


def without_empty_metadata(fields: FieldSet) -> FieldSet:
    """`metadata` itself belongs to nobody, only what lies in it."""
    metadata = {key: inner for key, inner in fields.get("f:metadata", {}).items() if key != MEMBER}
    rest = {key: inner for key, inner in fields.items() if key != "f:metadata"}
    return {**rest, "f:metadata": metadata} if metadata else rest


def _without_times(body: Json) -> Json:
    metadata = body["metadata"]
    entries = [
        {key: value for key, value in entry.items() if key != "time"} for entry in metadata.get("managedFields") or []
    ]
    return {**body, "metadata": {**metadata, "managedFields": entries}}
