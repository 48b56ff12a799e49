"""OpenAPI v3 documents, one per group and version, as far as kubectl's `explain`, `apply` and `diff` read them."""

import hashlib
import re
from typing import Any

import msgspec

from dtj_operator.local.kinds import Kind
from dtj_operator.local.shapes import merging, models
from dtj_operator.local.shapes.merging import ListRule
from dtj_operator.local.state import State

Json = dict[str, Any]

# The client puts the group before types whose names several groups use: `CoreV1Event`, `V1Pod`.
_GROUP_AND_VERSION = re.compile(r"^(Core|Events|Discovery)?V1(?=[A-Z])")
_METADATA = (
    "Standard object's metadata. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
_SCALARS: dict[str, Json] = {
    "str": {"type": "string"},
    "int": {"type": "integer", "format": "int32"},
    "float": {"type": "number", "format": "double"},
    "bool": {"type": "boolean"},
    "bytes": {"type": "string", "format": "byte"},
    "datetime": {"type": "string", "format": "date-time"},
    "object": {"type": "object"},
    # The names under which kubectl's `explain` tells them apart.
    "quantity": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"},
    "int-or-string": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.util.intstr.IntOrString"},
    "fields-v1": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1"},
}
_SHARED: dict[str, Json] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": {"type": "object"},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        "oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string",
        "description": (
            "IntOrString is a type that can hold an int32 or a string.  When used in JSON or YAML marshalling and "
            "unmarshalling, it produces or consumes the inner type.  This allows you to have, for example, a JSON "
            "field that can accept a name or number."
        ),
    },
}  # fmt: skip


def index(state: State) -> Json:
    """`/openapi/v3`: where the document of each group and version lies; the hash lets clients keep what they have."""
    paths = {}
    for group, versions in state.kinds.groups().items():
        for version in versions:
            path = f"apis/{group}/{version}" if group else f"api/{version}"
            digest = hashlib.sha256(repr([_digested(state, kind) for kind in _kinds(state, group, version)]).encode())
            paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest.hexdigest()[:32].upper()}"}
    return {"paths": paths}


def document(state: State, group: str, version: str) -> Json:
    """`/openapi/v3/apis/<group>/<version>`; KeyError when it isn't served."""
    kinds = _kinds(state, group, version)
    if not kinds:
        raise KeyError(f"{group}/{version}")
    schemas: dict[str, Json] = dict(_SHARED)
    paths: Json = {}
    for kind in kinds:
        name = _schema_name(state, kind)
        if kind.custom:
            schemas[name] = _custom_schema(state, kind)
            _add_definition(schemas, "V1ObjectMeta")
        else:
            _add_definition(schemas, _model(state, kind))
        schemas[name] = schemas[name] | {"x-kubernetes-group-version-kind": [_gvk(kind)]}
        paths |= _paths(kind, name)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.37.2"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _kinds(state: State, group: str, version: str) -> list[Kind]:
    return [kind for kind in state.kinds if (kind.group, kind.version) == (group, version)]


def _digested(state: State, kind: Kind) -> object:
    return (kind.plural, msgspec.json.encode(state.custom_rules[kind.served_as].schema)) if kind.custom else kind.plural


def _model(state: State, kind: Kind) -> str:
    return state.rules(kind).shape.name


def _schema_name(state: State, kind: Kind) -> str:
    if kind.custom:
        reversed_group = ".".join(reversed(kind.group.split(".")))
        return f"{reversed_group}.{kind.version}.{kind.kind}"
    return _definition_name(_model(state, kind))


def _definition_name(model: str) -> str:
    """Kubectl prints the last part as the type's name."""
    return f"io.k8s.api.v1.{_GROUP_AND_VERSION.sub('', model)}"


def _add_definition(schemas: dict[str, Json], model: str) -> None:
    """The type and everything it leads to."""
    name = _definition_name(model)
    if name in schemas:
        return
    found = models.definition(model)
    schema: Json = {"type": "object", "description": found.description, "properties": {}}
    schemas[name] = schema
    for field in found.fields:
        schema["properties"][field.name] = {"description": field.description} | _field_schema(model, field)
        inner = models.referred(field.type)
        if inner is not None:
            _add_definition(schemas, inner)
    if needed := [field.name for field in found.fields if field.required]:
        schema["required"] = needed


def _field_schema(owner: str, field: models.Field) -> Json:
    path = f"{owner}.{field.name}"
    schema = _type_schema("fields-v1" if path == "V1ManagedFieldsEntry.fieldsV1" else field.type)
    if field.name in models.WIDE:
        number = schema.get("items", schema)
        if number.get("format") == "int32":
            number["format"] = "int64"
    if path in merging.REPLACED_FIELDS:
        schema["x-kubernetes-patch-strategy"] = "replace"
    return schema | (_merging(merging.RULES.get(path, ListRule())) if schema.get("type") == "array" else {})


def _merging(rule: ListRule) -> Json:
    """How a list merges, for apply and for strategic merge patch."""
    if rule.is_set:
        return {"x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge"}
    applied: Json = {"x-kubernetes-list-type": "atomic"}
    if rule.keys:
        applied = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(rule.keys)}
    if not rule.merge_key:
        return applied
    return applied | {
        "x-kubernetes-patch-merge-key": rule.merge_key,
        "x-kubernetes-patch-strategy": "merge,retainKeys" if rule.retain_keys else "merge",
    }


def _type_schema(notation: str) -> Json:
    if notation.startswith("List["):
        return {"type": "array", "items": _item_schema(notation.removeprefix("List[").removesuffix("]"))}
    if notation.startswith("Dict["):
        inner = notation.removeprefix("Dict[str, ").removesuffix("]")
        return {"type": "object", "additionalProperties": _item_schema(inner)}
    if notation in _SCALARS:
        schema = _SCALARS[notation]
        return {"allOf": [schema]} if "$ref" in schema else dict(schema)
    return {"allOf": [_reference(notation)], "default": {}}


def _item_schema(notation: str) -> Json:
    if notation.startswith(("List[", "Dict[")):
        return _type_schema(notation)
    return dict(_SCALARS[notation]) if notation in _SCALARS else _reference(notation)


def _reference(model: str) -> Json:
    return {"$ref": f"#/components/schemas/{_definition_name(model)}"}


def _custom_schema(state: State, kind: Kind) -> Json:
    schema = state.custom_rules[kind.served_as].schema
    own = {name: inner for name, inner in (schema.get("properties") or {}).items() if name != "metadata"}
    header = models.definition("V1Pod")
    described = {field.name: field.description for field in header.fields}
    properties = {
        "apiVersion": {"type": "string", "description": described["apiVersion"]},
        "kind": {"type": "string", "description": described["kind"]},
        "metadata": {"allOf": [_reference("V1ObjectMeta")], "description": _METADATA},
    }
    return schema | {"properties": {**own, **properties}}


def _paths(kind: Kind, schema_name: str) -> Json:
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    scope = "/namespaces/{namespace}" if kind.namespaced else ""
    collection = f"{root}{scope}/{kind.plural}"
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema_name}"}}}
    operation: Json = {
        "x-kubernetes-group-version-kind": _gvk(kind),
        "parameters": _parameters(*_WRITE_PARAMETERS),
        "responses": {"200": {"description": "OK", "content": content}},
    }
    create = operation | {"x-kubernetes-action": "post", "requestBody": {"content": content}}
    paths: Json = {collection: {"post": create}}
    if "get" in kind.verbs:
        paths[collection]["get"] = operation | {"x-kubernetes-action": "list"}
        paths[f"{collection}/{{name}}"] = {
            "get": operation | {"x-kubernetes-action": "get"},
            "put": operation | {"x-kubernetes-action": "put", "requestBody": {"content": content}},
            "patch": operation
            | {"x-kubernetes-action": "patch", "parameters": _parameters(*_WRITE_PARAMETERS, "force")},
            "delete": operation | {"x-kubernetes-action": "delete"},
        }
    return paths


def _parameters(*names: str) -> list[Json]:
    return [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names]


def _gvk(kind: Kind) -> Json:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}
