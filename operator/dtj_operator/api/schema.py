"""What an API server does with a structural schema: it fills in defaults, finds unknown fields, checks CEL rules.

The rules run in `common-expression-language`, which only the command line and the embedded cluster have; it is imported
when rules are read. Property names must be CEL identifiers, as all of ours are: Kubernetes' escapes are not made.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from msgspec import Struct

from dtj_operator.api import cel

Schema = Mapping[str, Any]
Parts = tuple[str | int, ...]
"""Where a value lies: names of fields and places in lists."""

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_RULES = "x-kubernetes-validations"


class Broken(Struct, frozen=True):
    """A rule that isn't kept. `is_error`: it could not be evaluated, as where a field has the wrong type."""

    path: str
    message: str
    is_error: bool = False


def field_path(parts: Parts) -> str:
    """A path as Kubernetes writes it: `spec.recovery.rules[0].action`, `metadata.labels[dtj.dev/role]`."""
    text = ""
    for part in parts:
        if isinstance(part, int) or "." in part or "/" in part:
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def defaulted(schema: Schema, value: Any, known: Any = None) -> Any:
    """A copy of a value with the schema's defaults; nulls where null isn't allowed count as absent.

    `known` is an older value that has its defaults: what is the very same part of it is taken as it is.
    """
    if value is known:
        return value
    if isinstance(value, list):
        return [defaulted(schema.get("items") or {}, entry) for entry in value]
    if not isinstance(value, dict):
        return value
    before = known if isinstance(known, dict) else {}
    filled = {}
    for name, entry in value.items():
        below = _inside(schema, name)
        if below is None:
            filled[name] = entry
        elif entry is not None or below.get("nullable"):
            filled[name] = defaulted(below, entry, before.get(name))
    for name, below in (schema.get("properties") or {}).items():
        if name not in filled and "default" in below:
            filled[name] = defaulted(below, below["default"])
    return filled


def unknown_fields(schema: Schema, value: Any, at: Parts = ()) -> Iterator[tuple[Parts, Schema]]:
    """Fields that an API server would drop, each with the schema of the object it stands in; metadata isn't ours."""
    if isinstance(value, list):
        for place, entry in enumerate(value):
            yield from unknown_fields(schema.get("items", {}), entry, (*at, place))
    elif isinstance(value, dict):
        properties = schema.get("properties", {})
        for name, entry in value.items():
            below = _inside(schema, name)
            if not at and name == "metadata":
                continue
            if below is not None:
                yield from unknown_fields(below, entry, (*at, name))
            elif properties and not schema.get(_PRESERVE):
                yield (*at, name), schema


def declared(schema: Schema, value: Any) -> Any:
    """What the schema declares of a value: without unknown fields, and without the inside of what it doesn't describe.

    Rules in Kubernetes see no more than this, and numbers of a `number` field as doubles, even when JSON wrote them
    without a point. And whatever lies in a template, it can't bring their interpreter down.
    """
    if schema.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, list):
        return [declared(schema["items"], entry) for entry in value] if "items" in schema else []
    if not isinstance(value, dict):
        return value
    below = {name: _inside(schema, name) for name in value}
    return {name: declared(inside, value[name]) for name, inside in below.items() if inside is not None}


class RuleSet:
    """The CEL rules of a schema, compiled once; wrong CEL is a ValueError that names the expression."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._programs: dict[str, Any] = {}
        self._compile(schema)

    def broken(self, new: Any, old: Any = None) -> Iterator[Broken]:
        """The rules that a value with its defaults breaks; those that compare hold only against the `old` value."""
        before = None if old is None else declared(self._schema, old)
        return self._check(self._schema, declared(self._schema, new), before, ())

    def _compile(self, schema: Schema) -> None:
        compiled = cel.library().compile
        for rule in schema.get(_RULES, ()):
            for text in (rule["rule"], rule.get("messageExpression")):
                if text is not None and text not in self._programs:
                    self._programs[text] = compiled(text)
        for below in (*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")):
            if isinstance(below, dict):
                self._compile(below)

    def _check(self, schema: Schema, new: Any, old: Any, at: Parts) -> Iterator[Broken]:
        for rule in schema.get(_RULES, ()):
            if old is not None or "oldSelf" not in rule["rule"]:
                yield from self._run(rule, {"self": new} | ({} if old is None else {"oldSelf": old}), at)
        if isinstance(new, dict):
            for name, entry in new.items():
                below = _inside(schema, name)
                if below is not None:
                    before = old.get(name) if isinstance(old, dict) else None
                    yield from self._check(below, entry, before, (*at, name))
        elif isinstance(new, list):
            for place, entry in enumerate(new):
                yield from self._check(schema.get("items", {}), entry, _partner(schema, entry, old), (*at, place))

    def _run(self, rule: Schema, variables: dict[str, Any], at: Parts) -> Iterator[Broken]:
        path = field_path(at) + rule.get("fieldPath", "")
        path = path.removeprefix(".")
        try:
            if self._programs[rule["rule"]].execute(variables) is True:
                return
        except (ValueError, TypeError, KeyError, RuntimeError) as problem:
            yield Broken(path, f"{problem} evaluating rule: {rule.get('message', rule['rule'])}", is_error=True)
            return
        yield Broken(path, self._message(rule, variables))

    def _message(self, rule: Schema, variables: dict[str, Any]) -> str:
        fallback = cast("str", rule.get("message", f"failed rule: {rule['rule']}"))
        if "messageExpression" not in rule:
            return fallback
        try:
            return str(self._programs[rule["messageExpression"]].execute(variables))
        except (ValueError, TypeError, KeyError, RuntimeError):
            return fallback


def _inside(schema: Schema, name: str) -> Schema | None:
    """The schema of a field of an object; None where nothing is said of it."""
    below = (schema.get("properties") or {}).get(name) or schema.get("additionalProperties")
    return below if isinstance(below, Mapping) else None


def _partner(schema: Schema, entry: Any, old: Any) -> Any:
    """The old entry of a list that a new one is compared with: that of the same keys; lists without keys have none."""
    keys = schema.get("x-kubernetes-list-map-keys")
    if keys is None or not isinstance(old, list) or not isinstance(entry, dict):
        return None
    same = (o for o in old if isinstance(o, dict) and all(o.get(k) == entry.get(k) for k in keys))
    return next(same, None)
