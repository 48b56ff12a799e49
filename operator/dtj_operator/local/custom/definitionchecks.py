"""What is wrong with a CustomResourceDefinition: names, versions, columns, schemas with their defaults and rules."""

import functools
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from dtj_operator.local import schema as schemas
from dtj_operator.local.admission import metadata
from dtj_operator.local.admission import names as naming
from dtj_operator.local.custom.expressions import Expressions
from dtj_operator.local.failures import FieldFault, forbidden_field, invalid, not_supported, required

Json = dict[str, Any]

_SCOPES = ("Cluster", "Namespaced")
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")


def faults(body: Json, old: Json | None) -> list[FieldFault]:
    spec = body["spec"]
    found = [*_name_faults(spec), *_group_faults(spec.get("group", ""))]
    if old is not None:
        found += _fixed_faults(spec, old["spec"])
    elif body["metadata"].get("name") != f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}":
        told = 'must be spec.names.plural+"."+spec.group'
        found.append(invalid("metadata.name", body["metadata"].get("name", ""), told))
    versions = spec.get("versions") or []
    if sum(bool(version.get("storage")) for version in versions) != 1:
        told = "must have exactly one version marked as storage version"
        found.append(invalid("spec.versions", [version.get("name") for version in versions], told))
    if not (body.get("status") or {}).get("storedVersions"):
        found.append(invalid("status.storedVersions", None, "must have at least one stored version"))
    for index, version in enumerate(versions):
        found += _version_faults(version, index, alone=len(versions) == 1)
    if spec.get("scope") not in _SCOPES:
        found.append(not_supported("spec.scope", spec.get("scope"), _SCOPES))
    return found


def _name_faults(spec: Json) -> Iterator[FieldFault]:
    names = spec.get("names") or {}
    for field in ("plural", "singular", "kind", "listKind"):
        name = names.get(field, "")
        if not name:
            yield required(f"spec.names.{field}")
        elif field in ("plural", "singular"):
            yield from (invalid(f"spec.names.{field}", name, fault) for fault in naming.plain_label_faults(name))


def _group_faults(group: str) -> list[FieldFault]:
    if not group:
        return [required("spec.group")]
    found = [invalid("spec.group", group, fault) for fault in naming.subdomain_faults(group)]
    return found or ([] if "." in group else [invalid("spec.group", group, "should be a domain with at least one dot")])


def _fixed_faults(spec: Json, old: Json) -> Iterator[FieldFault]:
    names, old_names = spec.get("names") or {}, old.get("names") or {}
    for path, value, before in (
        ("spec.group", spec.get("group"), old.get("group")),
        ("spec.scope", spec.get("scope"), old.get("scope")),
        ("spec.names.kind", names.get("kind"), old_names.get("kind")),
        ("spec.names.plural", names.get("plural"), old_names.get("plural")),
    ):
        if value != before:
            yield invalid(path, value, metadata.IMMUTABLE)


def _version_faults(version: Json, index: int, *, alone: bool) -> Iterator[FieldFault]:
    """What an only version has is that of the whole definition, to kube-apiserver."""
    own = f"spec.versions[{index}]"
    name = version.get("name", "")
    if not name:
        yield required(f"{own}.name")
    else:
        for path in (f"{own}.name", *(("spec.version",) if index == 0 else ())):
            yield from (invalid(path, name, fault) for fault in naming.plain_label_faults(name))
    columns = "spec.additionalPrinterColumns" if alone else f"{own}.additionalPrinterColumns"
    for number, column in enumerate(version.get("additionalPrinterColumns") or []):
        yield from _column_faults(column, f"{columns}[{number}]")
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is None:
        yield required(f"{own}.schema.openAPIV3Schema")
    else:
        path = "spec.validation.openAPIV3Schema" if alone else f"{own}.schema.openAPIV3Schema"
        yield from _schema_faults(msgspec.json.encode(schema), path)


def _column_faults(column: Json, path: str) -> Iterator[FieldFault]:
    kind, place = column.get("type", ""), column.get("jsonPath", "")
    if not column.get("name"):
        yield required(f"{path}.name")
    if not kind:
        yield required(f"{path}.type", f"must be one of {','.join(_COLUMN_TYPES)}")
    elif kind not in _COLUMN_TYPES:
        yield invalid(f"{path}.type", kind, f"must be one of {','.join(_COLUMN_TYPES)}")
    if not place:
        yield required(f"{path}.JSONPath")
    elif not place.startswith("."):
        yield invalid(f"{path}.JSONPath", place, "must be a simple json path starting with .")


# Definitions are written again with the same schema, which takes long to judge.
@functools.lru_cache(maxsize=16)
def _schema_faults(schema: bytes, path: str) -> tuple[FieldFault, ...]:
    given = msgspec.json.decode(schema)
    found = [fault for place, one in _places(given, path) for fault in _structural_faults(one, place)]
    if not found:
        # Only what can be run at all can judge a default.
        found += [fault for place, one in _places(given, path) for fault in _default_faults(one, place)]
    return (*found, *Expressions(given).compile_faults(path))


def _places(schema: Json, path: str) -> Iterator[tuple[str, Json]]:
    """The schema and those of all fields and items in it, each with its path."""
    yield path, schema
    for name, inner in (schema.get("properties") or {}).items():
        if not (_is_root(path) and name == "metadata"):
            yield from _places(inner, f"{path}.properties[{name}]")
    for key in ("additionalProperties", "items"):
        if isinstance(schema.get(key), dict):
            yield from _places(schema[key], f"{path}.{key}")


def _is_root(path: str) -> bool:
    return path.endswith("openAPIV3Schema")


def _structural_faults(schema: Json, path: str) -> Iterator[FieldFault]:
    """What keeps a schema from being structural, or from being run at all; what is below it aside."""
    kind = schema.get("type")
    either = schema.get("x-kubernetes-int-or-string")
    if kind and kind not in schemas.TYPES:
        yield not_supported(f"{path}.type", kind, sorted(schemas.TYPES))
    elif not kind and not (either or schema.get("x-kubernetes-preserve-unknown-fields")):
        where = "the root" if _is_root(path) else "specified object fields"
        yield required(f"{path}.type", f"must not be empty for {where}")
    if kind == "array" and not schema.get("items"):
        yield required(f"{path}.items", "must be specified")
    # True says nothing that isn't so without it.
    if schema.get("properties") and schema.get("additionalProperties", True) is not True:
        told = "additionalProperties and properties are mutual exclusive"
        yield forbidden_field(f"{path}.additionalProperties", told)
    yield from _pattern_faults(schema, path)
    for place, condition in _conditions(schema, path):
        if (kind := condition.get("type")) and kind not in schemas.TYPES:
            yield not_supported(f"{place}.type", kind, sorted(schemas.TYPES))
        elif kind and not either:
            yield forbidden_field(f"{place}.type", "must be empty to be structural")
        yield from _pattern_faults(condition, place)
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or []):
        if not rule.get("rule", "").strip():
            yield required(f"{path}.x-kubernetes-validations[{index}].rule", "rule is not specified")


def _conditions(schema: Json, path: str) -> Iterator[tuple[str, Json]]:
    """What more a schema asks of the value that it describes, each with its path."""
    asked = [
        (f"{path}.{key}[{index}]", one)
        for key in ("allOf", "anyOf", "oneOf")
        for index, one in enumerate(schema.get(key) or [])
    ]
    if schema.get("not"):
        asked.append((f"{path}.not", schema["not"]))
    for place, condition in asked:
        for below, one in _places(condition, place):
            yield below, one
            yield from _conditions(one, below)


def _pattern_faults(schema: Json, path: str) -> Iterator[FieldFault]:
    try:
        re.compile(schema.get("pattern", ""))
    except re.error as why:
        yield invalid(f"{path}.pattern", schema["pattern"], f"must be a valid regular expression, but isn't: {why}")


def _default_faults(schema: Json, path: str) -> Iterator[FieldFault]:
    if "default" in schema:
        for fault in schemas.faults(schema, schema["default"]):
            below = f".{fault.field}" if fault.field and not fault.field.startswith("[") else fault.field
            yield msgspec.structs.replace(fault, field=f"{path}.default{below}")
