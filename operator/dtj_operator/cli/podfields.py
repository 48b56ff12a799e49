"""Fields and types inside what a job takes over from pods and claims, which the CRD's schema lets pass unread.

They are looked up in the types that the embedded API server has; whether a value makes sense is for a cluster to say.
"""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from dtj_operator.api.quantity import parse
from dtj_operator.api.schema import Parts, field_path
from dtj_operator.local.shapes.shape import Form, Shape, built_in_shape

Json = dict[str, Any]

_EXPECTED: Mapping[Form, tuple[tuple[type, ...], str]] = {
    "object": ((dict,), "an object"),
    "map": ((dict,), "an object"),
    "list": ((list,), "a list"),
    "string": ((str,), "a text"),
    "integer": ((int,), "an integer"),
    "number": ((int, float), "a number"),
    "boolean": ((bool,), "true or false"),
    "int-or-string": ((int, str), "an integer or a text"),
    "quantity": ((str, int, float), "an amount such as 500m or 2Gi"),
}


def pod_field_faults(manifest: Json) -> Iterator[str]:
    """A line for each unknown field and each value of a type that its field can't hold."""
    spec = manifest.get("spec")
    if not isinstance(spec, dict):
        return
    roles, checkpoint = spec.get("roles"), spec.get("checkpoint")
    yield from _faults("V1PodTemplateSpec", ("spec", "template"), spec.get("template"))
    for role, own in roles.items() if isinstance(roles, dict) else ():
        if isinstance(own, dict):
            yield from _faults("V1PodTemplateSpec", ("spec", "roles", str(role), "template"), own.get("template"))
    if isinstance(checkpoint, dict):
        at = ("spec", "checkpoint")
        yield from _faults("V1Volume", (*at, "volume"), checkpoint.get("volume"))
        claim = checkpoint.get("volumeClaimTemplate")
        yield from _faults("V1PersistentVolumeClaimTemplate", (*at, "volumeClaimTemplate"), claim)


def _faults(type_: str, at: Parts, value: Any) -> Iterator[str]:
    for path, what in _within(built_in_shape(type_), at, value):
        line = f"{field_path(path)}: {what}"
        # Names in a manifest may hold what would break the line or colour a terminal.
        yield line if line.isprintable() else line.encode("unicode_escape").decode()


def _within(shape: Shape, at: Parts, value: Any) -> Iterator[tuple[Parts, str]]:
    # A null is nothing to Kubernetes; in a role's template it takes away what the job's has.
    if shape.form == "any" or value is None:
        return
    types, expected = _EXPECTED[shape.form]
    # A `bool` is an `int` to Python.
    if type(value) not in types:
        # YAML reads `value: 3` as a number and `value: yes` as true.
        quoted = "; put it in quotes" if shape.form == "string" and not isinstance(value, dict | list) else ""
        yield at, f"expected {expected}, got {_shown(value)}{quoted}"
    elif shape.form == "object":
        for name, inner in value.items():
            field = shape.at(name)
            if field is None:
                near = difflib.get_close_matches(name, shape.fields, n=1)
                yield (*at, name), "unknown field" + (f"; did you mean {near[0]}?" if near else "")
            else:
                yield from _within(field, (*at, name), inner)
    elif shape.form == "quantity" and not _is_quantity(value):
        yield at, f"expected {expected}, got {_shown(value)}"
    elif shape.items is not None:
        inside = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in inside:
            yield from _within(shape.items, (*at, key), inner)


def _is_quantity(value: str | float) -> bool:
    try:
        parse(str(value))
    except ValueError:
        return False
    return True


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return "a list" if isinstance(value, list) else "an object"
    return str(value).lower() if isinstance(value, bool) else f"{value!r:.60}"
