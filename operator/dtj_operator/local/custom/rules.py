"""The rules of one version of a custom kind, made from its definition."""

import re
from typing import Any

import msgspec

from dtj_operator.api.schema import defaulted
from dtj_operator.local import schema as schemas
from dtj_operator.local.admission import metadata, names
from dtj_operator.local.custom.expressions import Expressions
from dtj_operator.local.failures import FieldFault, invalid
from dtj_operator.local.shapes.shape import Shape, custom_shape

Json = dict[str, Any]

# Of a value with one of these faults, rules could not even be asked.
_BLOCKING = frozenset({
    "FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid",
})  # fmt: skip
_WITHIN_STATUS = re.compile(r" status\.(?=[\w.\[\]]+ in body )")
_NAMES: Json = {"name": {"type": "string"}, "generateName": {"type": "string"}}
_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


class CustomRules:
    """Implements `admission.rules.Rules` by a structural schema and its CEL rules."""

    def __init__(self, schema: Json, *, has_status: bool, columns: list[Json]) -> None:
        self.schema = schema
        self.columns = columns
        self._has_status = has_status
        self._shape = custom_shape(schema, root=True)
        self._expressions = Expressions(_with_name(schema))

    @property
    def shape(self) -> Shape:
        return self._shape

    def default(self, body: Json, old: Json | None) -> None:
        filled = defaulted(self.schema, body, old)
        body.clear()
        body.update(filled)

    def on_create(self, body: Json) -> None:
        if self._has_status:
            body.pop("status", None)
        body["metadata"]["generation"] = 1

    def on_update(self, body: Json, old: Json, subresource: str) -> None:
        if subresource == "status":
            for key in {*body, *old} - {"metadata", "status"}:
                _carry(body, old, key)
            managed = body["metadata"].get("managedFields")
            body["metadata"] = old["metadata"] | ({"managedFields": managed} if managed else {})
        elif self._has_status:
            _carry(body, old, "status")
        generation = old["metadata"].get("generation", 1)
        body["metadata"]["generation"] = generation + (1 if self._spec(body) != self._spec(old) else 0)

    def faults(self, body: Json, old: Json | None, subresource: str) -> list[FieldFault]:
        found = metadata.faults(body["metadata"], names.subdomain_faults, old["metadata"] if old is not None else None)
        # Metadata has been judged, and schemas may narrow only its name.
        new_part, old_part = self._judged(body), self._judged(old) if old is not None else None
        if old_part is None:
            broken = list(schemas.faults(self.schema, new_part))
        else:
            broken = list(schemas.faults(self.schema, new_part, old_part))
        if subresource == "status":
            # It is validated by itself, so that its sentences begin within it.
            broken = [msgspec.structs.replace(one, message=_WITHIN_STATUS.sub(" ", one.message)) for one in broken]
        if any(fault.reason in _BLOCKING for fault in broken):
            return [*found, *broken, invalid("", None, _NOT_CHECKED)] if self._expressions.any else found + broken
        return found + broken + self._expressions.faults(new_part, old_part)

    def _spec(self, body: Json) -> Json:
        """What the generation counts: everything but metadata, and but status where that is written apart."""
        apart = ("metadata", "status") if self._has_status else ("metadata",)
        return {key: value for key, value in body.items() if key not in apart}

    def _judged(self, body: Json) -> Json:
        metadata_part = {key: body["metadata"][key] for key in ("name", "generateName") if key in body["metadata"]}
        return {**body, "metadata": metadata_part}


def _with_name(schema: Json) -> Json:
    """The schema as rules see it: an object's name is always there for them."""
    properties = schema.get("properties") or {}
    own = properties.get("metadata") or {}
    named = {"type": "object", **own, "properties": {**_NAMES, **(own.get("properties") or {})}}
    return {**schema, "properties": {**properties, "metadata": named}}


def _carry(body: Json, old: Json, key: str) -> None:
    if key in old:
        body[key] = old[key]
    else:
        body.pop(key, None)
