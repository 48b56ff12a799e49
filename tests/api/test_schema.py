"""What an API server does with a schema: paths, defaults, unknown fields, rules."""

from typing import Any

import pytest

from dtj_operator.api.schema import Parts, RuleSet, defaulted, field_path, unknown_fields

LEAF = {"type": "integer", "default": 3}
INNER = {"type": "object", "default": {}, "properties": {"n": LEAF, "s": {"type": "string"}}}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
        "inner": INNER,
        "maybe": {"type": "object", "properties": {"n": LEAF}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"n": LEAF}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"n": LEAF}}},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "null": {"type": "integer", "nullable": True, "default": 1},
    },
}


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (("spec", "recovery", "rules", 0, "action"), "spec.recovery.rules[0].action"),
        (("metadata", "labels", "dtj.dev/role"), "metadata.labels[dtj.dev/role]"),
        ((), ""),
        ((0, "a"), "[0].a"),
    ],
)
def test_a_path_is_written_as_kubernetes_does(parts: Parts, text: str) -> None:
    assert field_path(parts) == text


@pytest.mark.parametrize(
    ("value", "filled"),
    [
        ({}, {"inner": {"n": 3}, "null": 1}),
        ({"inner": {"s": "x", "n": 4}}, {"inner": {"s": "x", "n": 4}, "null": 1}),
        ({"inner": None, "maybe": None}, {"inner": {"n": 3}, "null": 1}),
        ({"inner": {"n": None, "s": None}}, {"inner": {"n": 3}, "null": 1}),
        ({"maybe": {}}, {"maybe": {"n": 3}, "inner": {"n": 3}, "null": 1}),
        ({"list": [{}, {"n": 1}, 5]}, {"list": [{"n": 3}, {"n": 1}, 5], "inner": {"n": 3}, "null": 1}),
        ({"map": {"a": {}}}, {"map": {"a": {"n": 3}}, "inner": {"n": 3}, "null": 1}),
        ({"any": {"a": None}}, {"any": {"a": None}, "inner": {"n": 3}, "null": 1}),
        ({"null": None}, {"null": None, "inner": {"n": 3}}),
        ({"x": {"y": None}}, {"x": {"y": None}, "inner": {"n": 3}, "null": 1}),
        ({"inner": 7}, {"inner": 7, "null": 1}),
    ],
)
def test_defaults(value: Any, filled: Any) -> None:
    before = repr(value)
    assert defaulted(SCHEMA, value) == filled
    assert repr(value) == before


def test_a_default_is_not_shared() -> None:
    one, two = defaulted(SCHEMA, {}), defaulted(SCHEMA, {})
    one["inner"]["n"] = 5
    assert two == defaulted(SCHEMA, {}) == {"inner": {"n": 3}, "null": 1}


def test_unknown_fields() -> None:
    value = {
        "metadata": {"labels": {}},
        "iner": {},
        "inner": {"m": 1},
        "list": [{"n": 1}, {"m": 1}],
        "map": {"a": {"m": 1}},
        "any": {"x": {"y": 1}},
    }
    found = [field_path(path) for path, _ in unknown_fields(SCHEMA, value)]
    assert found == ["iner", "inner.m", "list[1].m", "map.a.m"]


def rule(text: str, **more: str) -> dict[str, Any]:
    return {"x-kubernetes-validations": [{"rule": text, **more}]}


@pytest.mark.parametrize(
    ("schema", "new", "old", "lines"),
    [
        pytest.param(rule("self > 1", message="too few"), 1, None, [": too few"], id="a message"),
        pytest.param(rule("self > 1"), 1, None, [": failed rule: self > 1"], id="no message"),
        pytest.param(
            rule("self > 1", message="m", messageExpression="'not ' + string(self)"), 1, None, [": not 1"], id="made"
        ),
        pytest.param(
            rule("self > 1", message="m", messageExpression="self.x"),
            1,
            None,
            [": m"],
            id="a message that can't be made",
        ),
        pytest.param(rule("self == oldSelf", message="m"), 1, None, [], id="a transition of a new value"),
        pytest.param(rule("self == oldSelf", message="m"), 1, 2, [": m"], id="a transition"),
        pytest.param(rule("self == oldSelf", message="m"), 2, 2, [], id="no transition"),
        pytest.param(
            {"properties": {"a": {"properties": {"b": LEAF}} | rule("self.b > 1", message="m", fieldPath=".b")}},
            {"a": {"b": 1}},
            None,
            ["a.b: m"],
            id="a field to blame",
        ),
        pytest.param(
            {"properties": {"a": rule("self == oldSelf", message="m")}}, {"a": 1}, {}, [], id="a field that is new"
        ),
        pytest.param({"properties": {"a": rule("self > 1", message="m")}}, {}, None, [], id="a field that is absent"),
        pytest.param(
            {"type": "number"} | rule("self * 2.0 > 3.0", message="m"), 2, None, [], id="a number without a point"
        ),
        pytest.param(
            {"items": rule("self > 1", message="m")}, [1, 2, 0], None, ["[0]: m", "[2]: m"], id="entries of a list"
        ),
        pytest.param(
            {"items": rule("self == oldSelf", message="m")}, [1], [2], [], id="entries of a list without keys"
        ),
        pytest.param(
            {
                "x-kubernetes-list-map-keys": ["k"],
                "items": {"properties": {"k": LEAF, "v": rule("self == oldSelf", message="m")}},
            },
            [{"k": "b", "v": 1}, {"k": "c", "v": 1}],
            [{"k": "a", "v": 0}, {"k": "b", "v": 2}],
            ["[0].v: m"],
            id="entries of a list with keys",
        ),
        pytest.param(
            {"additionalProperties": rule("self > 1", message="m")}, {"a": 1}, None, ["a: m"], id="values of a map"
        ),
    ],
)
def test_rules(schema: dict[str, Any], new: Any, old: Any, lines: list[str]) -> None:
    assert [f"{b.path}: {b.message}" for b in RuleSet(schema).broken(new, old)] == lines


@pytest.mark.parametrize("value", ["x", {}, None, [1]])
def test_a_rule_over_a_value_of_the_wrong_type_is_an_error_and_no_crash(value: Any) -> None:
    (found,) = RuleSet(rule("self.a.b > 1", message="m")).broken(value)
    assert found.is_error
    assert found.message.endswith("evaluating rule: m")


def test_wrong_cel_is_named() -> None:
    with pytest.raises(ValueError, match="self >"):
        RuleSet(rule("self >"))
