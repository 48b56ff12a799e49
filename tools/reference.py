"""The generated pages of docs/: the resource field by field, and the reasons of conditions. `crd.py` writes them."""

from collections.abc import Iterator
from typing import Any

from dtj_operator.api import names
from dtj_operator.api.crd import schema
from dtj_operator.api.reasons import REASONS

Schema = dict[str, Any]

_MADE = "<!-- Made by `make crd` of the types in dtj_operator/api. -->\n"


def resource() -> str:
    """The page of the resource: one table for each object in it, with its checks."""
    whole = schema()
    lines = [
        _MADE,
        f"# {names.KIND}",
        "",
        f"`apiVersion: {names.API_VERSION}`. {whole['description']} `kubectl explain dtj.spec` tells the same.",
        "",
        "Defaults are filled in by the API server. All checks but those of pod templates are made by it, too, when a "
        "manifest is applied; `dtj validate` makes them without a cluster.",
    ]
    for field in ("spec", "status"):
        lines += _objects(field, whole["properties"][field])
    lines += ["", "## The whole object", "", *_checks(whole)]
    return "\n".join(lines) + "\n"


def reasons() -> str:
    """The page of condition types and their reasons."""
    lines = [
        _MADE,
        "# Conditions and their reasons",
        "",
        f"`status.conditions` of a {names.KIND}. The message of a condition says the rest; types and reasons do not "
        "change, so that scripts may rely on them.",
    ]
    for kind, known in REASONS.items():
        lines += ["", f"## {kind}", "", "| reason | status | says |", "| --- | --- | --- |"]
        for reason, meaning in known.items():
            status, _, text = meaning.partition(": ")
            lines.append(f"| `{reason}` | {status} | {_cell(text)} |")
    return "\n".join(lines) + "\n"


def _objects(path: str, node: Schema) -> Iterator[str]:
    """An object and those inside it, each a section."""
    yield from ("", f"## {_cell(path)}", "")
    if "description" in node:
        yield from (node["description"], "")
    yield from ("| field | type | default | meaning |", "| --- | --- | --- | --- |")
    for name, field in node["properties"].items():
        shown = f"`{name}`{' (required)' if name in node.get('required', ()) else ''}"
        default = "" if field.get("default") in (None, {}) else f"`{_plain(field['default'])}`"
        yield f"| {shown} | {_cell(_type(path, name, field))} | {default} | {_cell(field['description'])} |"
    checks = [*_checks(node)]
    for name, field in node["properties"].items():
        if "properties" not in _item(field):
            checks += [f"- `{name}`: {line.removeprefix('- ')}" for line in _checks(field)]
    if checks:
        yield from ("", *checks)
    for name, field in node["properties"].items():
        if "properties" in _item(field):
            yield from _objects(_section(path, name, field), _item(field))


def _checks(node: Schema) -> Iterator[str]:
    for rule in node.get("x-kubernetes-validations", ()):
        at = rule.get("fieldPath", "").removeprefix(".")
        text = rule.get("message") or "".join(_words(rule["messageExpression"]))
        yield f"- {f'`{at}`: ' if at else ''}{_cell(text)}"


def _words(expression: str) -> Iterator[str]:
    """What a message made by CEL reads like: its texts, with the names of fields between them."""
    for place, part in enumerate(expression.split("'")):
        if place % 2:
            yield part
        elif "?" not in part and ":" not in part and "self." in part:
            yield f"`<{part.strip(' +').rpartition('.')[2]}>`"


def _item(node: Schema) -> Schema:
    """The object that a field holds one or more of."""
    inside: Schema = node.get("items") or node.get("additionalProperties") or node
    return _item(inside) if inside is not node else node


def _section(path: str, name: str, field: Schema) -> str:
    marks = {"array": "[]", "object": ".<name>" if "additionalProperties" in field else ""}
    inside = field.get("additionalProperties", {})
    return f"{path}.{name}{marks[field['type']]}{'[]' if inside.get('type') == 'array' else ''}"


def _type(path: str, name: str, field: Schema) -> str:
    if "properties" in _item(field):
        kind = "list" if field["type"] == "array" else "map" if "additionalProperties" in field else "object"
        return f"[{kind}](#{_anchor(_section(path, name, field))})"
    if field.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if field["type"] == "array":
        most = f"at most {field['maxItems']} of " if "maxItems" in field else ""
        return f"list: {most}{_type(path, name, field['items'])}"
    if "additionalProperties" in field:
        return f"map: {_type(path, name, field['additionalProperties'])}"
    if "enum" in field:
        return " ".join(f"`{value}`" for value in field["enum"])
    if field.get("x-kubernetes-preserve-unknown-fields"):
        return "object of Kubernetes"
    return f"{field.get('format', field['type'])}{_bounds(field)}"


def _anchor(heading: str) -> str:
    return "".join(c for c in heading.lower() if c.isalnum() or c in "-_")


def _bounds(field: Schema) -> str:
    low, high = field.get("minimum"), field.get("maximum")
    if high is not None:
        return f" {low} to {high}" if low != high else f" {low}"
    if low is not None:
        return f" from {low}"
    return f", at most {field['maxLength']} characters" if "maxLength" in field else ""


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<")
