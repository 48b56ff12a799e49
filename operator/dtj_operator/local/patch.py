"""Merge patch, JSON patch and strategic merge patch: pure functions that never change what they are given.

What a JSON patch does is `jsonpatch.py`'s business, apply is `fieldmanager/`'s business.
"""

import json
from collections import deque
from collections.abc import Callable
from typing import Any, Literal

from dtj_operator.local.failures import ApiFailure, bad_request, unexpected, unsupported_media_type
from dtj_operator.local.jsonpatch import operated
from dtj_operator.local.shapes.shape import Shape

Json = dict[str, Any]
PatchType = Literal["merge", "json", "strategic", "apply"]

_TYPES: dict[str, PatchType] = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
    "application/apply-patch+json": "apply",
}
_FOR_CUSTOM_KINDS = (
    "application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml",
)  # fmt: skip
_GO_MAP = "map[string]interface {}"
_ORDER = "$setElementOrder/"
_RETAINED = "$retainKeys"
_PRIMITIVES = "$deleteFromPrimitiveList/"


def type_of(content_type: str) -> PatchType:
    """The patch's kind by its media type; 415 for another."""
    found = _TYPES.get(content_type.partition(";")[0].strip())
    if found is None:
        raise ApiFailure(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    return found


def is_apply(content_type: str) -> bool:
    return _TYPES.get(content_type.partition(";")[0].strip()) == "apply"


def patched(patch_type: PatchType, current: Json, patch: Any, shape: Shape) -> Json:
    """The object after the patch. 415 for a strategic merge of a custom kind, 422 for a JSON patch whose test fails."""
    match patch_type:
        case "json":
            return json_patched(current, patch)
        case "strategic":
            if shape.custom:
                raise unsupported_media_type(_FOR_CUSTOM_KINDS)
            if not isinstance(patch, dict):
                raise bad_request(_not_decoded(patch, _GO_MAP))
            return strategic_patched(current, patch, shape)
        case _:
            return _object(merge_patched(current, _object(patch)))


def merge_patched(current: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(current) if isinstance(current, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patched(result.get(key), value)
    return result


def json_patched(current: Json, operations: Any) -> Json:
    """RFC 6902; all of it or nothing."""
    if not isinstance(operations, list):
        raise bad_request(f"error decoding patch: {_not_decoded(operations, '[]handlers.jsonPatchOp')}")
    try:
        document = operated(current, operations)
    except (KeyError, IndexError, ValueError, TypeError):
        # kube-apiserver keeps to itself which operation it was.
        told = "the server rejected our request due to an error in our request"
        raise ApiFailure(422, "Invalid", told, {}) from None
    return _object(document)


def strategic_patched(current: Any, patch: Json, shape: Shape | None) -> Json:
    """Kubernetes' own merge: lists of the built-in types merge by the key of their items."""
    directive = patch.get("$patch")
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise unexpected(f"unknown patch type: {directive} in map: {_go_map(patch)}")
    for key, value in patch.items():
        if key.startswith((_RETAINED, _PRIMITIVES, _ORDER)) and not isinstance(value, list):
            raise bad_request(f"error decoding patch: {key} must be a list")
    result = dict(current) if isinstance(current, dict) else {}
    if (kept := patch.get(_RETAINED)) is not None:
        result = {key: value for key, value in result.items() if key in kept}
    for key, value in patch.items():
        if key.startswith(_PRIMITIVES):
            field = key.removeprefix(_PRIMITIVES)
            if isinstance(there := result.get(field), list):
                result[field] = [one for one in there if one not in value]
        elif key.startswith("$"):
            continue
        elif value is None:
            result.pop(key, None)
        else:
            result[key] = _merged_value(result.get(key), value, _inner(shape, key))
    for key, order in patch.items():
        if key.startswith(_ORDER) and isinstance(result.get(key.removeprefix(_ORDER)), list):
            field = key.removeprefix(_ORDER)
            result[field] = _ordered(result[field], order, _inner(shape, field))
    return result


def _merged_value(current: Any, value: Any, shape: Shape | None) -> Any:
    if isinstance(value, dict):
        return strategic_patched({} if shape is not None and shape.replaced else current, value, shape)
    if not isinstance(value, list) or shape is None or not shape.rule.merges:
        return value
    if shape.rule.is_set:
        both = [*(current or []), *(one for one in value if one not in (current or []))]
        return _interleaved(both, current or [], value, _hashable)
    return _merged_list(current or [], value, shape)


def _merged_list(current: list[Json], patch: list[Any], shape: Shape) -> list[Json]:
    if not all(isinstance(item, dict) for item in patch):
        raise bad_request("error decoding patch: the items of a list that merges by a key must be objects")
    if any(item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if "$patch" not in item]
    key = shape.rule.merge_key
    result = list(current)
    for item in patch:
        if key not in item:
            raise unexpected(f"map: {_go_map(item)} does not contain declared merge key: {key}")
        at = next((index for index, one in enumerate(result) if one.get(key) == item[key]), None)
        if item.get("$patch") == "delete":
            result = [one for one in result if one.get(key) != item[key]]
        elif at is None:
            result.append(strategic_patched({}, item, shape.items))
        else:
            result[at] = strategic_patched(result[at], item, shape.items)
    named = [item for item in patch if "$patch" not in item]
    return _interleaved(result, current, named, lambda item: _hashable(item.get(key)))


def _go_map(content: Json) -> str:
    return f"map[{' '.join(f'{name}:{value}' for name, value in sorted(content.items()))}]"


def _interleaved(items: list[Any], before: list[Any], patch: list[Any], identity: Callable[[Any], Any]) -> list[Any]:
    """The items in kube-apiserver's order: the patch's in its order, and before each what stood before it already."""
    places = {identity(one): place for place, one in enumerate(before)}
    by_identity = {identity(one): one for one in items}
    named = [identity(one) for one in patch if identity(one) in by_identity]
    others = deque(one for one in by_identity if one not in named)
    result = []
    for one in named:
        while one in places and others and places[others[0]] < places[one]:
            result.append(by_identity[others.popleft()])
        result.append(by_identity[one])
    return [*result, *(by_identity[one] for one in others)]


def _ordered(items: list[Any], order: list[Any], shape: Shape | None) -> list[Any]:
    """Items named by the order stand in it; the others keep their places among them."""
    key = shape.rule.merge_key if shape is not None else ""

    def identity(item: Any) -> Any:
        return _hashable(item.get(key) if isinstance(item, dict) else item)

    places = {identity(one): place for place, one in enumerate(order)}
    named = iter(sorted((one for one in items if identity(one) in places), key=lambda one: places[identity(one)]))
    return [next(named) if identity(one) in places else one for one in items]


def _hashable(key: Any) -> Any:
    """What a client took for a key. Decoding the result refuses what can be none, and says where."""
    return json.dumps(key, sort_keys=True) if isinstance(key, (dict, list)) else key


def _inner(shape: Shape | None, key: str) -> Shape | None:
    if shape is None:
        return None
    return shape.at(key)


def _object(value: Any) -> Json:
    if not isinstance(value, dict):
        raise bad_request(f"error decoding patch: {_not_decoded(value, _GO_MAP)}")
    return value


def not_a_map(value: Any) -> ApiFailure:
    """An apply's body that is no object."""
    told = f"error unmarshaling JSON: while decoding JSON: {_not_decoded(value, _GO_MAP)}"
    return bad_request(f"error decoding patch: {told}")


def _not_decoded(value: Any, wanted: str) -> str:
    names = {list: "array", dict: "object", str: "string", bool: "bool", int: "number", float: "number"}
    return f"json: cannot unmarshal {names.get(type(value), 'null')} into Go value of type {wanted}"
