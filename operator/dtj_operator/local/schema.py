"""Structural schemas of custom resources: everything wrong with a value.

Defaults are `api/schema.py`'s, CEL rules `custom/expressions.py`'s.

The sentences are those of kube-apiserver, which come from go-openapi's validation.
"""

import datetime
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from dtj_operator.local.failures import (
    FieldFault,
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
    type_invalid,
)

Json = dict[str, Any]

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_ABSENT: Any = object()
_LARGEST_WHOLE = 2.0**53
_TOLERANCE = 1e-9


def faults(schema: Json, value: Any, old: Any = _ABSENT, path: str = "") -> Iterator[FieldFault]:
    """All faults of a value. What an update left as it was is not judged again (KEP-4008, ratcheting)."""
    if old is not _ABSENT and value == old and type(value) is type(old):
        return
    if value is None and schema.get("nullable"):
        return
    wrong_type = _type_fault(schema, value, path)
    if wrong_type is not None:
        yield wrong_type
        if "enum" in schema:
            yield not_supported(path, value, [str(one) for one in schema["enum"]])
        return
    yield from _scalar_faults(schema, value, path)
    if isinstance(value, dict):
        yield from _object_faults(schema, value, old, path)
    elif isinstance(value, list):
        yield from _list_faults(schema, value, old, path)
    yield from _combination_faults(schema, value, path)


def _type_fault(schema: Json, value: Any, path: str) -> FieldFault | None:
    if schema.get("x-kubernetes-int-or-string"):
        fits = isinstance(value, int | str) and not isinstance(value, bool)
        wanted = "integer,string"
    elif schema.get("type"):
        wanted = schema["type"]
        accepted = TYPES[wanted]
        fits = isinstance(value, accepted) and (bool in accepted or not isinstance(value, bool))
        if wanted == "integer" and isinstance(value, float):
            fits = value.is_integer()
    else:
        return None
    if fits:
        return None
    given = _type_name(value)
    return type_invalid(path, given, f'{path} in body must be of type {wanted}: "{given}"')


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    for name, accepted in TYPES.items():
        if isinstance(value, accepted) and (bool in accepted or not isinstance(value, bool)):
            return name
    return "object"


def _scalar_faults(schema: Json, value: Any, path: str) -> Iterator[FieldFault]:
    if "enum" in schema and value not in schema["enum"]:
        yield not_supported(path, value, [str(one) for one in schema["enum"]])
    if isinstance(value, str):
        yield from _string_faults(schema, value, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number_faults(schema, value, path)


def _string_faults(schema: Json, value: str, path: str) -> Iterator[FieldFault]:
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        yield too_long(path, schema["maxLength"])
        return
    if "minLength" in schema and len(value) < schema["minLength"]:
        yield invalid(path, value, f"{path} in body should be at least {schema['minLength']} chars long")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield invalid(path, value, f"{path} in body should match '{schema['pattern']}'")
    if schema.get("format") == "date-time" and not _is_time(value):
        yield invalid(path, value, f'{path} in body must be of type date-time: "{value}"')


def _number_faults(schema: Json, value: float, path: str) -> Iterator[FieldFault]:
    low, high, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if low is not None:
        exclusive = bool(schema.get("exclusiveMinimum"))
        if value < low or (exclusive and value == low):
            bound = "greater than" if exclusive else "greater than or equal to"
            yield invalid(path, value, f"{path} in body should be {bound} {low:g}")
    if high is not None:
        exclusive = bool(schema.get("exclusiveMaximum"))
        if value > high or (exclusive and value == high):
            bound = "less than" if exclusive else "less than or equal to"
            yield invalid(path, value, f"{path} in body should be {bound} {high:g}")
    if step and not _is_multiple(value, step):
        yield invalid(path, value, f"{path} in body should be a multiple of {step:g}")


def _is_multiple(value: float, step: float) -> bool:
    """As go-openapi has it: of a fraction, but for what floats make of the quotient."""
    if isinstance(value, int) and float(step).is_integer():
        return value % int(step) == 0
    try:
        quotient = 1 / step * value if step < 1 else value / step
    except OverflowError:
        return False
    if not abs(quotient) < _LARGEST_WHOLE:
        return False
    whole = round(quotient)
    return quotient == whole or abs(quotient - whole) < _TOLERANCE * abs(whole)


def _object_faults(schema: Json, value: Json, old: Any, path: str) -> Iterator[FieldFault]:
    before = old if isinstance(old, dict) else {}
    properties = schema.get("properties") or {}
    for name in schema.get("required") or []:
        if name not in value:
            yield required(_join(path, name))
    for name, inner in properties.items():
        if name in value:
            yield from faults(inner, value[name], before.get(name, _ABSENT), _join(path, name))
    extra = [name for name in value if name not in properties]
    inner = schema.get("additionalProperties")
    if isinstance(inner, dict):
        for name in extra:
            yield from faults(inner, value[name], before.get(name, _ABSENT), _join(path, name))
    if "maxProperties" in schema and len(value) > schema["maxProperties"]:
        yield too_many(path, len(value), schema["maxProperties"])
    if "minProperties" in schema and len(value) < schema["minProperties"]:
        yield invalid(path, value, f"{path} in body should have at least {schema['minProperties']} properties")


def _list_faults(schema: Json, value: list[Any], old: Any, path: str) -> Iterator[FieldFault]:
    if "maxItems" in schema and len(value) > schema["maxItems"]:
        yield too_many(path, len(value), schema["maxItems"])
        return
    if "minItems" in schema and len(value) < schema["minItems"]:
        yield invalid(path, len(value), f"{path} in body should have at least {schema['minItems']} items")
    before = correlated(schema, value, old)
    inner = schema.get("items") or {}
    for index, item in enumerate(value):
        yield from faults(inner, item, before[index], f"{path}[{index}]")
    yield from _duplicate_faults(schema, value, path)


def correlated(schema: Json, value: list[Any], old: Any) -> list[Any]:
    """For each item of a list that merges by keys, the old item of the same keys; else nothing."""
    keys = schema.get("x-kubernetes-list-map-keys")
    if not keys or not isinstance(old, list):
        return [_ABSENT] * len(value)
    by_key = {_identity(item, keys): item for item in old}
    return [by_key.get(_identity(item, keys), _ABSENT) for item in value]


def is_absent(value: Any) -> bool:
    return value is _ABSENT


def _duplicate_faults(schema: Json, value: list[Any], path: str) -> Iterator[FieldFault]:
    kind = schema.get("x-kubernetes-list-type")
    keys = schema.get("x-kubernetes-list-map-keys") or []
    if kind not in ("map", "set"):
        return
    seen = set()
    for index, item in enumerate(value):
        identity = _identity(item, keys) if kind == "map" else msgspec.json.encode(item)
        if identity in seen:
            shown = {key: item.get(key) for key in keys} if kind == "map" and isinstance(item, dict) else item
            yield duplicate(f"{path}[{index}]", shown)
        seen.add(identity)


def _identity(item: Any, keys: list[str]) -> bytes:
    return msgspec.json.encode([item.get(key) for key in keys] if isinstance(item, dict) else item)


def _combination_faults(schema: Json, value: Any, path: str) -> Iterator[FieldFault]:
    for inner in schema.get("allOf") or []:
        yield from faults(inner, value, path=path)
    fitting = {
        name: sum(not any(faults(inner, value, path=path)) for inner in schema.get(name) or [])
        for name in ("anyOf", "oneOf")
    }
    shown = f'"{path}"'
    if schema.get("anyOf") and not fitting["anyOf"]:
        yield invalid(path, value, f"{shown} must validate at least one schema (anyOf)")
    if schema.get("oneOf") and fitting["oneOf"] != 1:
        found = f"Found {fitting['oneOf']} valid alternatives" if fitting["oneOf"] else "Found none valid"
        yield invalid(path, value, f"{shown} must validate one and only one schema (oneOf). {found}")
    if "not" in schema and not any(faults(schema["not"], value, path=path)):
        yield invalid(path, value, f"{shown} must not validate the schema (not)")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _is_time(text: str) -> bool:
    try:
        return datetime.datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False
