"""Sets of fields in the form of `managedFields`, and what one, two or a set of objects mean in it.

Pure; nothing is changed in place.

A set is a nested dict keyed as FieldsV1 is: `f:<field>`, `k:<keys of a list's item>`, `v:<item of a set>`. Within this
package a field that is itself a member carries the key ".", also where FieldsV1 leaves it out because nothing lies
below it.
"""

import json
from collections.abc import Iterator
from typing import Any

from dtj_operator.local.shapes.shape import Shape

FieldSet = dict[str, Any]

MEMBER = "."
# Objects whose members can have owners of their own; what has no schema is taken for a map.
OPEN_FORMS = ("object", "map", "any")
# A port's protocol is a key and may be left out.
_KEY_DEFAULTS = {"protocol": "TCP"}


def from_v1(fields: FieldSet) -> FieldSet:
    if not fields:
        return {MEMBER: {}}
    return {key: {} if key == MEMBER else from_v1(inner) for key, inner in fields.items()}


def to_v1(fields: FieldSet) -> FieldSet:
    if fields.keys() == {MEMBER}:
        return {}
    return {key: {} if key == MEMBER else to_v1(fields[key]) for key in sorted(fields)}


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    if not one or not other:
        return one or other
    both = dict(one)
    for key, inner in other.items():
        both[key] = union(both[key], inner) if key in both else inner
    return both


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    both: FieldSet = {}
    for key in one.keys() & other.keys():
        inner = intersection(one[key], other[key])
        if inner or key == MEMBER:
            both[key] = inner
    return both


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """What the first has and the second has not, member by member."""
    left: FieldSet = {}
    for key, inner in one.items():
        if key not in other:
            left[key] = inner
        elif key != MEMBER and (rest := difference(inner, other[key])):
            left[key] = rest
    return left


def of_value(shape: Shape | None, value: Any) -> FieldSet:
    """The fields that someone who applies this value sets."""
    if not _descends(shape, value) or not value:
        return {MEMBER: {}}
    assert shape is not None
    found: FieldSet = {}
    for key, inner_shape, inner in _children(shape, value):
        below = of_value(inner_shape, inner)
        # The items of a list are members themselves, and so are the keys of a map; the fields of a type are not.
        # What has no schema is taken for a map.
        is_member = key[0] != "f" or shape.form != "object" or (inner_shape is not None and inner_shape.form == "any")
        found[key] = {**below, MEMBER: {}} if is_member else below
    return found


def changed(shape: Shape | None, old: Any, new: Any) -> FieldSet:
    """The fields that lead from the old value to the new one; those that fell away are not among them."""
    if old is new or (old == new and type(old) is type(new)):
        return {}
    if not _descends(shape, new):
        return {MEMBER: {}}
    if not isinstance(old, type(new)):
        return {**_added(shape, new), MEMBER: {}}
    assert shape is not None
    before = {key: inner for key, _, inner in _children(shape, old)}
    found: FieldSet = {}
    for key, inner_shape, inner in _children(shape, new):
        if key not in before:
            found[key] = {**_added(inner_shape, inner), MEMBER: {}}
        elif below := changed(inner_shape, before[key], inner):
            found[key] = below
    return found


def existing(fields: FieldSet, shape: Shape | None, value: Any, old: Any) -> FieldSet:
    """The set without what the value no longer has, of what the old one had."""
    if value is old:
        return fields
    if fields.keys() == {MEMBER} or not _descends(shape, value):
        return {MEMBER: {}} if MEMBER in fields else {}
    assert shape is not None
    before = {key: inner for key, _, inner in _children(shape, old)} if isinstance(old, type(value)) else {}
    present = {key: (inner_shape, inner, before.get(key)) for key, inner_shape, inner in _children(shape, value)}
    left: FieldSet = {MEMBER: {}} if MEMBER in fields else {}
    for key, inner in fields.items():
        if key in present and (rest := existing(inner, *present[key])):
            left[key] = rest
    return left


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """Each member as kubectl prints it: `.spec.containers[name="trainer"].image`."""
    for key in sorted(fields):
        if key == MEMBER:
            if fields.keys() == {MEMBER} or prefix.endswith("]"):
                yield prefix
            continue
        yield from paths(fields[key], prefix + _printed(key))


def item_key(shape: Shape, item: Any) -> str:
    """The key of an item of a list that merges."""
    if shape.rule.is_set or not isinstance(item, dict):
        return "v:" + json.dumps(item, separators=(",", ":"))
    keys = {key: item.get(key, _KEY_DEFAULTS.get(key)) for key in sorted(shape.rule.keys)}
    return "k:" + json.dumps({key: value for key, value in keys.items() if value is not None}, separators=(",", ":"))


def _added(shape: Shape | None, value: Any) -> FieldSet:
    if not _descends(shape, value) or not value:
        return {MEMBER: {}}
    assert shape is not None
    return {
        key: {**_added(inner_shape, inner), MEMBER: {}} for key, inner_shape, inner in _children(shape, value)
    }  # fmt: skip


def _descends(shape: Shape | None, value: Any) -> bool:
    """Whether the value's parts can have owners of their own."""
    if shape is None or shape.atomic:
        return False
    if isinstance(value, dict):
        return shape.form in OPEN_FORMS
    return isinstance(value, list) and shape.form == "list" and bool(shape.rule.keys or shape.rule.is_set)


def _children(shape: Shape, value: Any) -> Iterator[tuple[str, Shape | None, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"f:{key}", shape.at(key), inner
    else:
        for item in value:
            yield item_key(shape, item), shape.items, item


def _printed(key: str) -> str:
    kind, _, rest = key.partition(":")
    if kind == "f":
        return f".{rest}"
    if kind == "v":
        return f"[={rest}]"
    keys = json.loads(rest)
    return "[" + ",".join(f"{name}={json.dumps(value)}" for name, value in keys.items()) + "]"
