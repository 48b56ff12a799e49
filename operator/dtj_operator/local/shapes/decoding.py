"""A request's body read as its type: unknown fields dropped, wrong types refused, quantities made canonical."""

import copy
from typing import Any

from dtj_operator.local import quantity
from dtj_operator.local.shapes import models
from dtj_operator.local.shapes.shape import Shape

Json = dict[str, Any]

_ACCEPTS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "int-or-string": (int, str),
    "quantity": (str, int, float),
    "object": (dict,),
    "map": (dict,),
    "list": (list,),
}
_ZEROS: Json = {
    "string": "",
    "integer": 0,
    "number": 0,
    "boolean": False,
    "int-or-string": 0,
    "quantity": "0",
    "map": {},
    "list": [],
}
_NOTHING: Any = object()
_NO_QUANTITY = f"quantities must match the regular expression '{quantity.PATTERN}'"
_GO_TYPES = {"string": "string", "integer": "int32", "number": "float64", "boolean": "bool", "map": "map[string]string"}


class Undecodable(Exception):
    """The body has a value of a type that the field cannot hold; built-in kinds only."""


class Decoder:
    """Reads one body. `unknown` collects the paths of what the type does not have.

    A built-in type drops nulls and empty lists and maps, as Go's `omitempty` does; a custom one keeps them for its
    schema to judge, and leaves wrong types to validation. A partial body, as server-side apply takes it, gets no zero
    values in the place of required fields.
    """

    def __init__(self, *, partial: bool = False) -> None:
        self.unknown: list[str] = []
        self._partial = partial

    def read(self, shape: Shape, value: Any, path: str = "", owner: str = "", stored: Any = _NOTHING) -> Any:
        """`stored` is the object that a patch began with: what the patch left as it was is not read again."""
        form = shape.form
        if form == "any" or value is stored:
            return value
        if value is None and not shape.custom:
            # Within lists and maps, where Go puts the zero value of the type.
            return dict(shape.zeros) if form == "object" else copy.copy(_ZEROS[form])
        if isinstance(value, bool) and shape.name == models.SCHEMA and path.endswith(".additionalProperties"):
            return value
        if shape.custom and isinstance(value, float) and value.is_integer():
            # Go writes it so.
            return int(value)
        if not _fits(form, value):
            if shape.custom:
                return value
            raise Undecodable(_mismatch(shape, value, path, owner))
        match form:
            case "object":
                return self._object(shape, value, path, stored)
            case "map":
                items = shape.items
                assert items is not None
                return {key: self.read(items, one, f"{path}[{key}]", owner) for key, one in value.items()}
            case "list":
                return self._list(shape, value, path, owner)
            case "quantity":
                return _quantity(value)
            case _:
                return value

    def _object(self, shape: Shape, value: Json, path: str, stored: Any) -> Json:
        read: Json = {}
        fields = shape.fields
        before = stored if isinstance(stored, dict) else {}
        for key, one in value.items():
            field = fields.get(key)
            if field is not None and type(one) in field.plain_types:
                read[key] = one
                continue
            inner_path = f"{path}.{key}" if path else key
            if field is None:
                if shape.preserves:
                    read[key] = one
                else:
                    self.unknown.append(inner_path)
                continue
            if one is None and not field.custom:
                if field.form == "any":
                    read[key] = one
                continue
            decoded = self.read(field, one, inner_path, shape.name, before.get(key, _NOTHING))
            if decoded or field.custom or field.form not in ("list", "map"):
                read[key] = decoded
        return read if self._partial else {**shape.zeros, **read}

    def _list(self, shape: Shape, value: list[Any], path: str, owner: str) -> list[Any]:
        items = shape.items
        assert items is not None
        return [self.read(items, one, f"{path}[{index}]", owner) for index, one in enumerate(value)]


def _fits(form: str, value: Any) -> bool:
    accepted = _ACCEPTS[form]
    return isinstance(value, accepted) and (bool in accepted or not isinstance(value, bool))


def _quantity(value: str | int | float) -> str:
    try:
        return quantity.canonical(str(value))
    except ValueError:
        raise Undecodable(_NO_QUANTITY) from None


def _mismatch(shape: Shape, value: Any, path: str, owner: str) -> str:
    """As Go's decoder says it: the struct, the path without indexes, and the Go type."""
    given = {
        str: "string",
        bool: "bool",
        int: "number",
        float: "number",
        list: "array",
        dict: "object",
        type(None): "null",
    }[type(value)]
    if shape.form == "quantity":
        return _NO_QUANTITY
    if isinstance(value, float):
        given = f"number {value}"
    wanted = _GO_TYPES.get(shape.form) or _go_class(shape)
    if shape.form == "integer" and path.rpartition(".")[2] in models.WIDE:
        wanted = "int64"
    plain = ".".join(part.partition("[")[0] for part in path.split("."))
    where = f"Go struct field {_go_name(owner)}.{plain}" if owner else "Go value"
    return f"json: cannot unmarshal {given} into {where} of type {wanted}"


def _go_class(shape: Shape) -> str:
    name = f"v1.{_go_name(shape.name)}" if shape.name.startswith("V1") else shape.name.replace("str", "string")
    return f"[]{name}" if shape.form == "list" else name


def _go_name(name: str) -> str:
    return name.removeprefix("Core").removeprefix("Events").removeprefix("V1")
