"""The CEL rules of a schema, run where a value is new or changed. A single rule is `programs.py`'s business.

The sentences are kube-apiserver's. Only CEL's core and macros are there: a rule that calls one of Kubernetes' own
functions refuses everything and says why.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from dtj_operator.api.schema import declared
from dtj_operator.local import schema as schemas
from dtj_operator.local.custom import programs
from dtj_operator.local.custom.programs import Rule
from dtj_operator.local.failures import (
    NO_VALUE,
    FieldFault,
    duplicate,
    forbidden_field,
    invalid,
    required,
)

if TYPE_CHECKING:
    from cel import Context

Json = dict[str, Any]

# A value that was not there before.
_NOTHING: Any = object()
# How many values are remembered at one place of a schema because they have passed.
_REMEMBERED = 256
_CEL_ERRORS = (RuntimeError, TypeError, ValueError, ArithmeticError, LookupError)


class Expressions:
    """The rules at one place of a schema, with those of its fields and items that have any."""

    def __init__(self, schema: Json) -> None:
        self._schema = schema
        self._rules = tuple(programs.rule_of(one) for one in schema.get("x-kubernetes-validations") or ())
        self._needs = programs.needs_of({path for rule in self._rules for path in rule.reads})
        self._fields = _kept({name: Expressions(inner) for name, inner in (schema.get("properties") or {}).items()})
        inner = {key: schema[key] for key in ("additionalProperties", "items") if isinstance(schema.get(key), dict)}
        self._inner = _kept({key: Expressions(one) for key, one in inner.items()})
        self._passed: set[bytes] = set()

    @property
    def any(self) -> bool:
        return bool(self._rules or self._fields or self._inner)

    def faults(self, value: Any, old: Any) -> list[FieldFault]:
        """Of an object that fits the schema otherwise; `old` is None at creation, when transition rules do not run."""
        return list(self._walk(value, _NOTHING if old is None else old, ""))

    def compile_faults(self, path: str) -> Iterator[FieldFault]:
        """Of the rules themselves: those that are not CEL."""
        for index, rule in enumerate(self._rules):
            for field in ("rule", "messageExpression"):
                text = rule.given.get(field)
                try:
                    if text:
                        programs.program(text)
                except ValueError as why:
                    place = f"{path}.x-kubernetes-validations[{index}].{field}"
                    yield invalid(place, text, f"compilation failed: {why}")
        for name, below in self._fields.items():
            yield from below.compile_faults(f"{path}.properties[{name}]")
        for key, below in self._inner.items():
            yield from below.compile_faults(f"{path}.{key}")

    def _walk(self, value: Any, old: Any, path: str) -> Iterator[FieldFault]:
        # Unchanged values passed before; that also spares a status patch the rules of the spec.
        if value is None or (old is not _NOTHING and value == old):
            return
        yield from self._own_faults(value, old, path)
        if isinstance(value, dict):
            before = old if isinstance(old, dict) else {}
            for name, one in value.items():
                below = self._fields.get(name) or self._inner.get("additionalProperties")
                if below is not None:
                    place = f"{path}.{name}" if path else name
                    yield from below._walk(one, before.get(name, _NOTHING), place)
        elif isinstance(value, list) and "items" in self._inner:
            pairs = zip(value, schemas.correlated(self._schema, value, old), strict=True)
            for index, (one, was) in enumerate(pairs):
                before_one = _NOTHING if schemas.is_absent(was) else was
                yield from self._inner["items"]._walk(one, before_one, f"{path}[{index}]")

    def _own_faults(self, value: Any, old: Any, path: str) -> Iterator[FieldFault]:
        rules = [rule for rule in self._rules if _runs(rule, value, old)]
        if not rules:
            return
        read = {"self": programs.picked(value, self._needs)}
        if old is not _NOTHING:
            read["oldSelf"] = programs.picked(old, self._needs)
        # Transition rules run at every write of a status, and mostly read what they have read at the one before.
        seen = msgspec.json.encode(read)
        if seen in self._passed:
            return
        context = programs.context_of({name: declared(self._schema, part) for name, part in read.items()})
        broken = [fault for rule in rules if (fault := self._fault(rule, context, value, path))]
        if not broken:
            if len(self._passed) >= _REMEMBERED:
                self._passed.clear()
            self._passed.add(seen)
        yield from broken

    def _fault(self, rule: Rule, context: "Context", value: Any, path: str) -> FieldFault | None:
        try:
            if rule.holds(context):
                return None
        except _CEL_ERRORS as why:
            told = f"{_error(why)} evaluating rule: {rule.told}"
            return invalid(path, self._schema.get("type", ""), told)
        shown = NO_VALUE if isinstance(value, dict | list) else value
        return _broken(rule, path, shown, _message(rule, context))


def _kept(below: dict[str, Expressions]) -> dict[str, Expressions]:
    return {name: one for name, one in below.items() if one.any}


def _runs(rule: Rule, value: Any, old: Any) -> bool:
    """A transition needs an old value; another rule a change in what it reads."""
    if rule.uses_old or old is _NOTHING:
        return old is not _NOTHING or not rule.uses_old
    return bool(programs.picked(value, rule.needs) != programs.picked(old, rule.needs))


def _error(why: Exception) -> str:
    if isinstance(why, KeyError):
        return f"no such key: {why.args[0]}"
    # What follows the colon of a type error is advice on writing CEL.
    return str(why).partition(":")[0] if isinstance(why, TypeError) else str(why)


def _message(rule: Rule, context: "Context") -> str:
    if expression := rule.given.get("messageExpression"):
        try:
            said = programs.program(expression).execute(context)
        except _CEL_ERRORS:
            said = None
        if isinstance(said, str) and said.strip() and "\n" not in said.strip():
            return said.strip()
    return rule.told if rule.given.get("message") else f"failed rule: {rule.told}"


def _broken(rule: Rule, path: str, value: Any, message: str) -> FieldFault:
    if field := rule.given.get("fieldPath"):
        path = f"{path}{field}" if path else field.removeprefix(".")
    match rule.given.get("reason"):
        case "FieldValueForbidden":
            return forbidden_field(path, message)
        case "FieldValueRequired":
            return required(path, message)
        case "FieldValueDuplicate":
            return duplicate(path, value)
        case _:
            return invalid(path, value, message)
