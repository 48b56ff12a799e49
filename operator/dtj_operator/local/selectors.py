"""Label and field selectors: their requirements with kube-apiserver's errors, and matching.

The grammar of labels is `labelparser.py`'s. What an object's selectable fields are is `kinds.py`'s.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from dtj_operator.local import labelparser
from dtj_operator.local.admission import names
from dtj_operator.local.failures import ApiFailure, bad_request


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
    try:
        return tuple(_checked(Requirement(*term)) for term in labelparser.terms(text))
    except labelparser.Unreadable as why:
        raise bad_request(str(why)) from None


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
