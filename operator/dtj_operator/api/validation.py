"""What the CRD's schema and rules refuse of a manifest, in people's words. Imports what only the extra `cli` has."""

import difflib
import functools
from collections.abc import Iterator
from typing import Any

import jsonschema_rs

from dtj_operator.api import names
from dtj_operator.api.crd import schema
from dtj_operator.api.schema import Parts, RuleSet, declared, defaulted, field_path, unknown_fields

_METADATA = (
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
)
_POD_FIELDS = (
    "affinity",
    "containers",
    "hostNetwork",
    "imagePullSecrets",
    "initContainers",
    "nodeSelector",
    "priorityClassName",
    "runtimeClassName",
    "schedulerName",
    "securityContext",
    "serviceAccountName",
    "tolerations",
    "volumes",
)
"""Of a pod's fields those that are likely to be looked for in the job itself."""
_KINDS = {
    "object": "an object",
    "array": "a list",
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "nothing",
}


def refusals(manifest: Any, old: Any = None) -> list[str]:
    """What an API server would refuse of a new object, or of a change of the `old` one, or drop from it."""
    if not isinstance(manifest, dict):
        return [f"a manifest is an object with apiVersion, kind, metadata and spec, not {_shown(manifest)}"]
    whole, types, rules = _checks()
    filled = defaulted(whole, manifest)
    found = [*_head_faults(filled), *_schema_faults(types, declared(whole, filled)), *_unknown_faults(whole, filled)]
    broken_rules = rules.broken(filled, None if old is None else defaulted(whole, old))
    # A rule that trips over a value of the wrong type says nothing new.
    return [*found, *(f"{broken.path}: {broken.message}" for broken in broken_rules if not (broken.is_error and found))]


@functools.cache
def _checks() -> tuple[dict[str, Any], jsonschema_rs.Validator, RuleSet]:
    """Schema and rules, made ready once: it takes a hundred times as long as to check a manifest."""
    whole = schema()
    return whole, jsonschema_rs.validator_for(whole), RuleSet(whole)


def _head_faults(manifest: dict[str, Any]) -> Iterator[str]:
    """What every object of Kubernetes must have."""
    for field, wanted in (("apiVersion", names.API_VERSION), ("kind", names.KIND)):
        if manifest.get(field) != wanted:
            yield f"{field}: expected {wanted}, got {_shown(manifest.get(field))}"
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
        yield "metadata.name: required"
    if not isinstance(metadata, dict):
        return
    for field in metadata:
        if field not in _METADATA:
            yield f"metadata.{field}: unknown field{_near(str(field), _METADATA)}"
    for field in ("labels", "annotations"):
        values = metadata.get(field)
        if values is not None and not isinstance(values, dict):
            yield f"metadata.{field}: expected an object, got {_shown(values)}"
        for name, value in values.items() if isinstance(values, dict) else ():
            if not isinstance(value, str):
                path = field_path(("metadata", field, str(name)))
                yield f"{path}: expected a text, got {_shown(value)}; put it in quotes"


def _schema_faults(types: jsonschema_rs.Validator, manifest: Any) -> Iterator[str]:
    if "spec" not in manifest:
        yield "spec: required; it says which roles the job has and what they run"
    for error in types.iter_errors(manifest):
        path: Parts = tuple(error.instance_path)
        if path and path[0] in ("spec", "status"):
            yield _in_words(path, error)


def _in_words(path: Parts, error: jsonschema_rs.ValidationError) -> str:
    kind: Any = error.kind
    at = field_path(path)
    value: Any = error.instance
    match kind.name:
        case "required":
            return f"{field_path((*path, kind.property))}: required"
        case "type":
            return f"{at}: expected {' or '.join(_KINDS[t] for t in kind.types)}, got {_shown(value)}"
        case "anyOf":
            return f"{at}: expected a whole number or a text, got {_shown(value)}"
        case "enum":
            near = _near(str(value), kind.options)
            return f"{at}: {_shown(value)} is none of {', '.join(kind.options)}{near}"
        case "minimum":
            return f"{at}: {_shown(value)} is less than {kind.limit}"
        case "maximum":
            return f"{at}: {_shown(value)} is more than {kind.limit}"
        case "minLength":
            return f"{at}: must not be empty"
        case "maxLength":
            return f"{at}: {len(value)} characters of at most {kind.limit}"
        case "maxItems":
            return f"{at}: {len(value)} entries of at most {kind.limit}"
        case _:
            return f"{at}: {error.message}"


def _unknown_faults(whole: dict[str, Any], manifest: Any) -> Iterator[str]:
    for path, inside in unknown_fields(whole, manifest):
        name = str(path[-1])
        # Right name, wrong place: say where it belongs.
        places = [field_path(p) for p in _places(whole["properties"]["spec"], name, ("spec",))]
        if name in _POD_FIELDS:
            places = [field_path(("spec", "template", "spec", name))]
        near = f"; did you mean {' or '.join(places)}?" if 0 < len(places) <= 4 else _near(name, inside["properties"])
        yield f"{field_path(path)}: unknown field{near}"


def _places(inside: dict[str, Any], name: str, at: Parts) -> Iterator[Parts]:
    for field, below in inside.get("properties", {}).items():
        if field == name:
            yield (*at, field)
        yield from _places(below, name, (*at, field))


def _near(text: str, known: Any) -> str:
    found = difflib.get_close_matches(text, known, n=1) or [k for k in known if k.lower() == text.lower()]
    return f"; did you mean {found[0]}?" if found else ""


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return str(value).lower() if isinstance(value, bool) else f"{value!r:.60}"
