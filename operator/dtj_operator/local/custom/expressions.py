"""The CEL rules of a schema (`x-kubernetes-validations`): compiled once, run where a value is new or changed.

The sentences are kube-apiserver's. Only CEL's core and macros are there: a rule that calls one of Kubernetes' own
functions refuses everything and says why.
"""

import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dtj_operator.local import schema as schemas
from dtj_operator.local.failures import (
    NO_VALUE,
    FieldFault,
    duplicate,
    forbidden_field,
    invalid,
    required,
)

if TYPE_CHECKING:
    from cel import Program

Json = dict[str, Any]

_OLD = re.compile(r"\boldSelf\b")
# A value that was not there before.
_NOTHING: Any = object()


class Expressions:
    """The rules of one schema, those of its fields and items included."""

    def __init__(self, schema: Json) -> None:
        self._schema = schema
        self._has_rules: dict[int, bool] = {}
        self.any = self._holds_rules(schema)

    def faults(self, value: Any, old: Any) -> list[FieldFault]:
        """Of an object that fits the schema otherwise; `old` is None at creation, when transition rules do not run."""
        return list(self._walk(self._schema, value, _NOTHING if old is None else old, ""))

    def compile_faults(self, path: str) -> list[FieldFault]:
        """Of the rules themselves: those that are not CEL."""
        return list(_compile_faults(self._schema, path))

    def _walk(self, schema: Json, value: Any, old: Any, path: str) -> Iterator[FieldFault]:
        if not self._holds_rules(schema) or value is None:
            return
        # Unchanged values passed before; that also spares a status patch the rules of the spec.
        if old is not _NOTHING and value == old:
            return
        for rule in schema.get("x-kubernetes-validations") or []:
            yield from _rule_faults(rule, schema, value, old, path)
        if isinstance(value, dict):
            before = old if isinstance(old, dict) else {}
            properties = schema.get("properties") or {}
            extra = schema.get("additionalProperties")
            for name, one in value.items():
                inner = properties.get(name, extra)
                if isinstance(inner, dict):
                    below = f"{path}.{name}" if path and name in properties else name if not path else f"{path}[{name}]"
                    yield from self._walk(inner, one, before.get(name, _NOTHING), below)
        elif isinstance(value, list) and isinstance(schema.get("items"), dict):
            for index, (one, was) in enumerate(zip(value, schemas.correlated(schema, value, old), strict=True)):
                before_one = _NOTHING if schemas.is_absent(was) else was
                yield from self._walk(schema["items"], one, before_one, f"{path}[{index}]")

    def _holds_rules(self, schema: Json) -> bool:
        found = self._has_rules.get(id(schema))
        if found is None:
            found = bool(schema.get("x-kubernetes-validations")) or any(map(self._holds_rules, _inner(schema)))
            self._has_rules[id(schema)] = found
        return found


def _inner(schema: Json) -> Iterator[Json]:
    yield from (schema.get("properties") or {}).values()
    for key in ("additionalProperties", "items"):
        if isinstance(schema.get(key), dict):
            yield schema[key]


def _rule_faults(rule: Json, schema: Json, value: Any, old: Any, path: str) -> Iterator[FieldFault]:
    text = rule["rule"]
    context = {"self": _typed(schema, value)}
    if _OLD.search(text):
        if old is _NOTHING:
            return
        context["oldSelf"] = _typed(schema, old)
    shown = NO_VALUE if isinstance(value, dict | list) else value
    try:
        holds = _program(text).execute(context)
    except KeyError as why:
        yield invalid(path, schema.get("type", ""), f"no such key: {why.args[0]} evaluating rule: {_told(rule)}")
        return
    except (RuntimeError, TypeError, ValueError, ArithmeticError, IndexError) as why:
        first = str(why).partition(":")[0] if isinstance(why, TypeError) else str(why)
        yield invalid(path, schema.get("type", ""), f"{first} evaluating rule: {_told(rule)}")
        return
    if holds is not True:
        yield _broken(rule, path, shown, _message(rule, context))


def _message(rule: Json, context: Json) -> str:
    if expression := rule.get("messageExpression"):
        try:
            said = _program(expression).execute(context)
        except (KeyError, RuntimeError, TypeError, ValueError, ArithmeticError, IndexError):
            said = None
        if isinstance(said, str) and said.strip() and "\n" not in said.strip():
            return said.strip()
    return rule["message"].strip() if rule.get("message") else f"failed rule: {_told(rule)}"


def _broken(rule: Json, path: str, value: Any, message: str) -> FieldFault:
    if field := rule.get("fieldPath"):
        path = f"{path}{field}" if path else field.removeprefix(".")
    match rule.get("reason"):
        case "FieldValueForbidden":
            return forbidden_field(path, message)
        case "FieldValueRequired":
            return required(path, message)
        case "FieldValueDuplicate":
            return duplicate(path, value)
        case _:
            return invalid(path, value, message)


def _told(rule: Json) -> str:
    return str(rule.get("message") or rule["rule"]).strip()


@functools.cache
def _program(text: str) -> "Program":
    # Importing it takes 0.3 s, which servers without rules need not spend.
    import cel  # noqa: PLC0415

    return cel.compile(text)


def _compile_faults(schema: Json, path: str) -> Iterator[FieldFault]:
    for index, rule in enumerate(schema.get("x-kubernetes-validations") or []):
        for field in ("rule", "messageExpression"):
            text = rule.get(field)
            if not text:
                continue
            try:
                _program(text)
            except ValueError as why:
                told = f"compilation failed: {why}"
                yield invalid(f"{path}.x-kubernetes-validations[{index}].{field}", text, told)
    for name, inner in (schema.get("properties") or {}).items():
        yield from _compile_faults(inner, f"{path}.properties[{name}]")
    for key in ("additionalProperties", "items"):
        if isinstance(schema.get(key), dict):
            yield from _compile_faults(schema[key], f"{path}.{key}")


def _typed(schema: Json, value: Any) -> Any:
    """Numbers of a `number` field are doubles to CEL even when JSON wrote them without a point."""
    if schema.get("type") == "number" and isinstance(value, int):
        return float(value)
    if isinstance(value, dict):
        properties = schema.get("properties") or {}
        extra = schema.get("additionalProperties")
        extra = extra if isinstance(extra, dict) else {}
        return {key: _typed(properties.get(key, extra), one) for key, one in value.items()}
    if isinstance(value, list):
        return [_typed(schema.get("items") or {}, one) for one in value]
    return value
