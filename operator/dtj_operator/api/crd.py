"""The CustomResourceDefinition, made of the types of spec and status. `make crd` writes it to crds/."""

from typing import Any

import msgspec

from dtj_operator.api import names, rules
from dtj_operator.api.spec import JobSpec
from dtj_operator.api.status import JobStatus

Schema = dict[str, Any]
"""A structural schema, as Kubernetes takes it: no references, no alternatives, no null."""

_COLUMNS = (
    ("Phase", "string", ".status.phase", 0),
    ("Strategy", "string", ".status.strategy", 0),
    ("Ready", "string", ".status.ready", 0),
    ("Step", "integer", ".status.progress.step", 0),
    ("Restarts", "integer", ".status.restarts.total", 0),
    ("Age", "date", ".metadata.creationTimestamp", 0),
    ("Loss", "number", ".status.progress.loss", 1),
    ("Ex/s", "number", ".status.progress.examplesPerSecond", 1),
    ("Gang", "string", ".status.gang.scheduler", 1),
    ("Reason", "string", ".status.reason", 1),
)


def crd() -> dict[str, Any]:
    """The whole definition."""
    version = {
        "name": names.VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema()},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {"name": name, "type": kind, "jsonPath": path, **({"priority": priority} if priority else {})}
            for name, kind, path, priority in _COLUMNS
        ],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names.PLURAL}.{names.GROUP}"},
        "spec": {
            "group": names.GROUP,
            "names": {
                "kind": names.KIND,
                "listKind": f"{names.KIND}List",
                "plural": names.PLURAL,
                "singular": names.KIND.lower(),
                "shortNames": ["dtj", "dtjs"],
                "categories": ["all", "ml"],
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def schema() -> Schema:
    """The schema of the object, with defaults and CEL rules."""
    return {
        "type": "object",
        "description": "A TensorFlow training run on one or many machines that comes back from failures by itself.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            # The name is spelt out because a rule is to blame it; Kubernetes never prunes metadata.
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
            "spec": {**_structural(JobSpec), "x-kubernetes-validations": rules.validations(rules.SPEC)},
            "status": _without_defaults(_structural(JobStatus)),
        },
        "x-kubernetes-validations": rules.validations(rules.JOB),
    }


def _structural(kind: type) -> Schema:
    document = msgspec.json.schema(kind)
    return _plain(document, document["$defs"])


def _plain(node: Schema, definitions: dict[str, Schema]) -> Schema:
    """A node of msgspec's JSON schema as a structural one."""
    plain = {k: v for k, v in node.items() if k not in ("$defs", "$ref", "anyOf", "required", "title")}
    if "$ref" in node:
        plain = _plain(definitions[node["$ref"].rpartition("/")[2]], definitions) | plain
    if "anyOf" in node:
        plain = _merged([_plain(n, definitions) for n in node["anyOf"] if n.get("type") != "null"]) | plain
    if "enum" in node:
        plain["type"] = "string"
    if plain.get("default", ...) in (None, [], {}):
        # Nothing to fill in: an absent list is an empty one.
        del plain["default"]
    if "properties" in node:
        required = node.get("required", [])
        plain["properties"] = {
            name: _with_defaults_inside(name not in required and "$ref" in field) | _plain(field, definitions)
            for name, field in node["properties"].items()
        }
        if required:
            plain["required"] = required
    for inner in ("items", "additionalProperties"):
        if inner in node:
            plain[inner] = _plain(node[inner], definitions)
    return plain


def _with_defaults_inside(is_always_there: bool) -> Schema:
    """An object that every job has is made when it is absent: its own defaults show, and rules may rely on them."""
    return {"default": {}} if is_always_there else {}


def _merged(alternatives: list[Schema]) -> Schema:
    """Alternatives as one node: a value or nothing, one of several enumerations, or a number or a word."""
    if len(alternatives) == 1:
        return alternatives[0]
    if all("enum" in a for a in alternatives):
        return {"type": "string", "enum": [value for a in alternatives for value in a["enum"]]}
    kinds = [{"type": a["type"]} for a in alternatives]
    if kinds != [{"type": "integer"}, {"type": "string"}]:
        raise TypeError(f"no structural schema is known for the alternatives {alternatives}")
    return {"x-kubernetes-int-or-string": True, "anyOf": kinds}


def _without_defaults(node: Schema) -> Schema:
    """The same without defaults: nobody but the operator says anything in a status."""
    plain = {k: v for k, v in node.items() if k != "default"}
    if "properties" in node:
        plain["properties"] = {name: _without_defaults(field) for name, field in node["properties"].items()}
    for inner in ("items", "additionalProperties"):
        if inner in node:
            plain[inner] = _without_defaults(node[inner])
    return plain
