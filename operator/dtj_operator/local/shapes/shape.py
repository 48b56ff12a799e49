"""One view of a type for decoding, patching and applying, whether built in or from a custom resource's schema."""

import functools
from collections.abc import Callable
from typing import Any, Literal

from dtj_operator.local.shapes import merging, models
from dtj_operator.local.shapes.merging import ListRule

Json = dict[str, Any]
Form = Literal["object", "map", "list", "string", "integer", "number", "boolean", "quantity", "int-or-string", "any"]

_SCALARS: dict[str, Form] = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "bytes": "string",
    "datetime": "string",
    "quantity": "quantity",
    "int-or-string": "int-or-string",
    "object": "any",
}
# What a scalar's value may be without any conversion; `bool` is not an `int` here.
_PLAIN_TYPES: dict[Form, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int,),
    "boolean": (bool,),
    "int-or-string": (int, str),
}
_ZEROS: Json = {"str": "", "int": 0, "bool": False, "int-or-string": 0}
# What Go always writes, although nobody has to give it.
_ALWAYS: dict[str, Json] = {
    "CoreV1Event": {"source": {}, "firstTimestamp": None, "lastTimestamp": None, "eventTime": None,
                    "reportingComponent": "", "reportingInstance": ""},
    "EventsV1Event": {"deprecatedSource": {}, "deprecatedFirstTimestamp": None, "deprecatedLastTimestamp": None},
    "V1ContainerStatus": {"state": {}, "lastState": {}},
    "V1Endpoint": {"conditions": {}},
    "V1PodCondition": {"lastProbeTime": None, "lastTransitionTime": None},
}  # fmt: skip
_ATOMIC = ListRule()


class Shape:
    """`fields` are known only to objects, `items` to lists and maps.

    Built-in types refer to each other in circles, so both are made when asked for.
    """

    def __init__(
        self,
        form: Form,
        *,
        name: str = "",
        fields: Callable[[], dict[str, "Shape"]] = dict,
        items: Callable[[], "Shape | None"] = lambda: None,
        rule: ListRule = _ATOMIC,
        atomic: bool = False,
        replaced: bool = False,
        preserves: bool = False,
        custom: bool = False,
        zeros: Callable[[], Json] = dict,
    ) -> None:
        self.form = form
        self.plain_types = _PLAIN_TYPES.get(form, ())
        self.name = name
        self.rule = rule
        self.atomic = atomic
        self.replaced = replaced
        self.preserves = preserves
        self.custom = custom
        self._fields = fields
        self._items = items
        self._zeros = zeros

    @functools.cached_property
    def fields(self) -> dict[str, "Shape"]:
        return self._fields()

    @functools.cached_property
    def items(self) -> "Shape | None":
        return self._items()

    def at(self, key: str) -> "Shape | None":
        """Of a member; whatever lies within what has no schema has none either."""
        if self.form == "any":
            return self
        if self.form == "map":
            return self.items
        return self.fields.get(key) or (_WITHOUT_SCHEMA if self.preserves else None)

    @functools.cached_property
    def zeros(self) -> Json:
        """What Go makes of required fields of a built-in type that were left out."""
        return self._zeros()


_WITHOUT_SCHEMA = Shape("any", preserves=True, custom=True)


@functools.cache
def built_in_shape(name: str) -> Shape:
    """The shape of a built-in type by the client's class name."""

    def fields() -> dict[str, Shape]:
        return {one.name: _field_shape(name, one) for one in models.definition(name).fields}

    def zeros() -> Json:
        required = (field for field in models.definition(name).fields if field.required)
        return {field.name: _ZEROS[field.type] for field in required if field.type in _ZEROS} | _ALWAYS.get(name, {})

    return Shape("object", name=name, fields=fields, atomic=name in merging.ATOMIC_OBJECTS, zeros=zeros)


def custom_shape(schema: Json, *, root: bool = False) -> Shape:
    """The shape of a structural schema. A root, like an embedded resource, knows its type header and metadata."""
    keeps = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    if schema.get("x-kubernetes-int-or-string"):
        return Shape("int-or-string", custom=True)
    match schema.get("type"):
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            inner = schema["additionalProperties"]
            return Shape("map", items=lambda: custom_shape(inner), atomic=_is_atomic(schema), custom=True)
        case "object":
            return Shape(
                "object",
                fields=lambda: _custom_fields(schema, root or bool(schema.get("x-kubernetes-embedded-resource"))),
                atomic=_is_atomic(schema),
                preserves=keeps,
                custom=True,
            )
        case "array":
            inner = schema.get("items") or {}
            return Shape("list", items=lambda: custom_shape(inner), rule=_custom_rule(schema), custom=True)
        case "string" | "integer" | "number" | "boolean" as form:
            return Shape(form, custom=True)
        case _:
            return Shape("any", preserves=True, custom=True)


def _field_shape(owner: str, field: models.Field) -> Shape:
    path = f"{owner}.{field.name}"
    notation = field.type
    if notation.startswith("List["):
        inner = notation.removeprefix("List[").removesuffix("]")
        rule = merging.RULES.get(path, _ATOMIC)
        return Shape("list", name=inner, items=lambda: _plain_shape(inner), rule=rule)
    if notation.startswith("Dict["):
        inner = notation.removeprefix("Dict[str, ").removesuffix("]")
        return Shape("map", name=inner, items=lambda: _plain_shape(inner), atomic=path in merging.ATOMIC_FIELDS)
    if path in merging.REPLACED_FIELDS:
        return _replaced(notation)
    if path == "V1ObjectMeta.managedFields":
        return Shape("any", preserves=True)
    return _plain_shape(notation)


def _replaced(notation: str) -> Shape:
    plain = built_in_shape(notation)
    return Shape("object", name=notation, fields=lambda: plain.fields, atomic=plain.atomic, replaced=True,
                 zeros=lambda: plain.zeros)  # fmt: skip


def _plain_shape(notation: str) -> Shape:
    if notation.startswith("List["):
        inner = notation.removeprefix("List[").removesuffix("]")
        return Shape("list", name=inner, items=lambda: _plain_shape(inner))
    form = _SCALARS.get(notation)
    return built_in_shape(notation) if form is None else Shape(form, preserves=form == "any")


def _custom_fields(schema: Json, with_header: bool) -> dict[str, Shape]:
    fields = {name: custom_shape(inner) for name, inner in (schema.get("properties") or {}).items()}
    if with_header:
        fields |= {"apiVersion": Shape("string"), "kind": Shape("string"), "metadata": built_in_shape("V1ObjectMeta")}
    return fields


def _custom_rule(schema: Json) -> ListRule:
    match schema.get("x-kubernetes-list-type"):
        case "map":
            keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
            return ListRule(keys=keys, merge_key=keys[0] if keys else "")
        case "set":
            return merging.SET
        case _:
            return _ATOMIC


def _is_atomic(schema: Json) -> bool:
    return schema.get("x-kubernetes-map-type") == "atomic"
