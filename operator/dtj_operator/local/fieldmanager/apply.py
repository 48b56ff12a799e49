"""Server-side apply: what is sent is merged in, what is left out now is removed, what others own is a conflict."""

from typing import Any

from dtj_operator.local.failures import ApiFailure, quoted
from dtj_operator.local.fieldmanager import fieldsets, tracking
from dtj_operator.local.fieldmanager.fieldsets import MEMBER, FieldSet
from dtj_operator.local.fieldmanager.tracking import Entry, Manager
from dtj_operator.local.shapes.shape import Shape

Json = dict[str, Any]

# Owns what an object had before anybody applied it, where nothing was tracked.
_BEFORE = "before-first-apply"


def managed_from_scratch(shape: Shape, applied: Json, manager: Manager) -> list[Json]:
    """The entries of an object that this apply creates."""
    holder: Json = {"metadata": {}}
    tracking.write_entries(holder, [Entry(manager, _applied_fields(shape, applied, manager))])
    return list(holder["metadata"].get("managedFields", []))


def merged(shape: Shape, old: Json, applied: Json, manager: Manager, *, force: bool) -> Json:
    """The object after the apply, its entries included. 409 with every conflict unless forced."""
    fields = _applied_fields(shape, applied, manager)
    entries = tracking.read_entries(old) or [_before(shape, old, manager)]
    others = [entry for entry in entries if entry.manager.identity != manager.identity]
    previous = next((entry for entry in entries if entry.manager.identity == manager.identity), None)

    part = tracking.owned_part(shape, applied, manager.subresource)
    body = _merge(shape, old, part)
    taken = fieldsets.intersection(fieldsets.changed(shape, old, body), fields)
    conflicts = [(entry.manager, clash) for entry in others if (clash := fieldsets.intersection(entry.fields, taken))]
    if conflicts and not force:
        raise _conflict(conflicts)
    others = [Entry(entry.manager, fieldsets.difference(entry.fields, taken)) for entry in others]

    if previous is not None:
        kept = fields
        for entry in others:
            kept = fieldsets.union(kept, entry.fields)
        body = _without(shape, body, fieldsets.difference(previous.fields, kept), kept)
        if previous.fields == fields:
            manager = previous.manager
    others = [Entry(entry.manager, fieldsets.existing(entry.fields, shape, body, old)) for entry in others]
    body = {**body, "metadata": dict(body["metadata"])}
    tracking.write_entries(body, [*others, Entry(manager, fields)])
    return body


def _applied_fields(shape: Shape, applied: Json, manager: Manager) -> FieldSet:
    part = tracking.owned_part(shape, applied, manager.subresource)
    if not part["metadata"]:
        del part["metadata"]
    return tracking.without_empty_metadata(fieldsets.of_value(shape, part)) if part else {}


def _before(shape: Shape, old: Json, manager: Manager) -> Entry:
    part = tracking.owned_part(shape, old, "")
    fields = tracking.without_empty_metadata(fieldsets.of_value(shape, part))
    return Entry(Manager(_BEFORE, "Update", manager.api_version, manager.time, ""), fields)


def _merge(shape: Shape | None, old: Any, new: Any) -> Any:
    if shape is None or shape.atomic or old is None:
        return new
    if isinstance(new, dict) and isinstance(old, dict) and shape.form in fieldsets.OPEN_FORMS:
        both = dict(old)
        for key, value in new.items():
            both[key] = _merge(shape.at(key), old.get(key), value)
        return both
    if (
        isinstance(new, list)
        and isinstance(old, list)
        and shape.form == "list"
        and (shape.rule.keys or shape.rule.is_set)
    ):
        by_key = {fieldsets.item_key(shape, item): item for item in new}
        present = {fieldsets.item_key(shape, item) for item in old}
        both_lists = []
        for item in old:
            key = fieldsets.item_key(shape, item)
            both_lists.append(_merge(shape.items, item, by_key[key]) if key in by_key else item)
        return both_lists + [item for key, item in by_key.items() if key not in present]
    return new


def _without(shape: Shape | None, value: Any, gone: FieldSet, kept: FieldSet) -> Any:
    """The value less the members of `gone`; a parent stays as long as something of it is kept."""
    if not gone or shape is None:
        return value
    if isinstance(value, dict):
        left = {}
        for key, inner in value.items():
            remains, rest = _remains(shape.at(key), inner, gone.get(f"f:{key}"), kept.get(f"f:{key}", {}))
            if remains:
                left[key] = rest
        return left
    if isinstance(value, list) and shape.form == "list":
        items = []
        for item in value:
            name = fieldsets.item_key(shape, item)
            remains, rest = _remains(shape.items, item, gone.get(name), kept.get(name, {}))
            if remains:
                items.append(rest)
        return items
    return value


def _remains(shape: Shape | None, value: Any, gone: FieldSet | None, kept: FieldSet) -> tuple[bool, Any]:
    if gone is None:
        return True, value
    if not kept and (MEMBER in gone or not isinstance(value, dict | list)):
        return False, None
    rest = _without(shape, value, gone, kept)
    return bool(rest) or bool(kept) or rest == value, rest


def _conflict(conflicts: list[tuple[Manager, FieldSet]]) -> ApiFailure:
    found = [(manager, path) for manager, fields in conflicts for path in fieldsets.paths(fields)]
    found.sort(key=lambda one: (_named(one[0]), one[1]))
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {_named(manager)}", "field": path}
        for manager, path in found
    ]
    if len(found) == 1:
        manager, path = found[0]
        told = f"Apply failed with 1 conflict: conflict with {_named(manager)}: {path}"
    else:
        lines = []
        for manager, fields in sorted(conflicts, key=lambda one: one[0].name):
            lines.append(f"conflicts with {_named(manager)}:")
            lines += [f"- {path}" for path in fieldsets.paths(fields)]
        told = f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)
    return ApiFailure(409, "Conflict", told, {"causes": causes})


def _named(manager: Manager) -> str:
    named = quoted(manager.name)
    if manager.subresource:
        named += f' with subresource "{manager.subresource}"'
    if manager.operation == "Update":
        named += f" using {manager.api_version}"
    return named
