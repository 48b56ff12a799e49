"""Label and field selectors: parsing with kube-apiserver's errors, and matching.

What an object's selectable fields are is `kinds.py`'s.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from dtj_operator.local.admission import names
from dtj_operator.local.failures import ApiFailure, bad_request

_SET = re.compile(r"^\s*(?P<key>[^\s,!=()]+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)\s*$")
_EQUALITY = re.compile(r"^\s*(?P<key>[^\s,!=()<>]+)\s*(?P<operator>==|=|!=|>|<)\s*(?P<value>[^\s,!=()]*)\s*$")
_PRESENCE = re.compile(r"^\s*(?P<absent>!?)\s*(?P<key>[^\s,!=()]+)\s*$")


class Requirement(msgspec.Struct, frozen=True):
    key: str
    operator: str
    values: frozenset[str]

    def holds(self, pairs: Mapping[str, str]) -> bool:
        value = pairs.get(self.key)
        match self.operator:
            case "in":
                return value is not None and value in self.values
            case "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "absent":
                return value is None
            case _:
                return value is not None and _compares(value, self.operator, next(iter(self.values)))


class Selector(msgspec.Struct, frozen=True):
    """What a list or watch asks for: every requirement holds."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
        return all(one.holds(labels) for one in self.labels) and all(one.holds(fields) for one in self.fields)


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """The requirements of a `labelSelector` parameter; 400 when it cannot be read."""
    parts = _split(text)
    if len(parts) > 1 and not all(part.strip() for part in parts):
        raise bad_request("found ',', expected: identifier after ','")
    return tuple(_label_requirement(part, text) for part in parts if part.strip())


def parse_fields(text: str, known: frozenset[str], *, custom: bool = False) -> tuple[Requirement, ...]:
    """The requirements of a `fieldSelector` parameter; 400 for a field the kind cannot be selected by."""
    found = []
    for part in text.split(","):
        if not part.strip():
            continue
        key, operator, value = _field_terms(part)
        if re.search(r"(?<!\\)[=,]", value):
            raise bad_request("invalid field selector: unescaped character in value: 61")
        if key not in known:
            raise bad_request(f"field label not supported: {key}") if custom else _not_selectable(key, known)
        found.append(Requirement(key, "notin" if operator == "!=" else "in", frozenset([value])))
    return tuple(found)


def of_label_selector(selector: Mapping[str, Any] | None) -> tuple[Requirement, ...] | None:
    """A `LabelSelector` object's requirements; None where it is absent and so selects nothing."""
    if selector is None:
        return None
    match_labels = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or []
    operators = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "absent"}
    found = [Requirement(key, "in", frozenset([value])) for key, value in match_labels.items()]
    found += [
        Requirement(one["key"], operators[one["operator"]], frozenset(one.get("values") or [])) for one in expressions
    ]
    return tuple(found)


def _split(text: str) -> list[str]:
    parts, depth, current = [], 0, ""
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += character
    return [*parts, current]


def _label_requirement(part: str, whole: str) -> Requirement:
    if found := _SET.match(part):
        values = frozenset(value.strip() for value in found["values"].split(","))
        return _checked(Requirement(found["key"], found["operator"], values))
    if found := _EQUALITY.match(part):
        operator = {"=": "in", "==": "in", "!=": "notin"}.get(found["operator"], found["operator"])
        return _checked(Requirement(found["key"], operator, frozenset([found["value"]])))
    if found := _PRESENCE.match(part):
        return _checked(Requirement(found["key"], "absent" if found["absent"] else "exists", frozenset()))
    raise _unreadable(whole)


def _checked(requirement: Requirement) -> Requirement:
    """400 for a key or a value that no label can have."""
    for fault in names.qualified_name_faults(requirement.key):
        raise bad_request(f'unable to parse requirement: <nil>: Invalid value: "{requirement.key}": {fault}')
    for value in sorted(requirement.values):
        at = "unable to parse requirement: values[0]"
        if requirement.operator in "<>" and not re.fullmatch(r"[+-]?\d+", value):
            told = "for 'Gt', 'Lt' operators, the value must be an integer"
            raise bad_request(f'{at}: Invalid value: "{value}": {told}')
        for fault in names.label_value_faults(value):
            raise bad_request(f'{at}[{requirement.key}]: Invalid value: "{value}": {fault}')
    return requirement


def _not_selectable(key: str, known: frozenset[str]) -> ApiFailure:
    if known <= {"metadata.name", "metadata.namespace"}:
        listed = ", ".join(f'"{one}"' for one in sorted(known))
        return bad_request(f'"{key}" is not a known field selector: only {listed}')
    return bad_request(f"field label not supported: {key}")


def _unreadable(text: str) -> ApiFailure:
    return bad_request(
        f'unable to parse requirement: found {text!r}, expected: a key, "in", "notin", "=", "==", "!=", ">" or "<"'
    )


def _field_terms(part: str) -> tuple[str, str, str]:
    for operator in ("!=", "==", "="):
        key, found, value = part.partition(operator)
        if found:
            return key.strip(), operator, value.strip()
    raise bad_request(f"invalid selector: {part!r}; can't understand {part!r}")


def _compares(value: str, operator: str, bound: str) -> bool:
    try:
        return int(value) > int(bound) if operator == ">" else int(value) < int(bound)
    except ValueError:
        return False
