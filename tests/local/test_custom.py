"""Custom resources: defaults, pruning, structural checks and CEL rules with the API server's sentences; definitions."""

from typing import Any

import pytest

from dtj_operator.local import schema as schemas
from dtj_operator.local.custom import programs
from dtj_operator.local.failures import ApiFailure
from tests.local.calls import Calls, refused
from tests.local.training import SCHEMA, TRAININGS, definition, training

DEFINITIONS = "apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture
def calls() -> Calls:
    calls = Calls()
    calls.create(definition())
    return calls


def test_defaults_are_filled_in_at_every_depth_and_unknown_fields_pruned(calls: Calls) -> None:
    rules = [{"name": "oom", "unknown": 1}]
    made = calls.create(training(rules=rules, template={"anything": {"goes": [1]}}, extra=True, strategy=None))
    assert made["spec"] == {
        "replicas": 3,
        "strategy": "Auto",
        "rules": [{"name": "oom", "action": "Restart"}],
        "template": {"anything": {"goes": [1]}},
    }


def test_strict_validation_names_what_would_be_pruned(calls: Calls) -> None:
    failure = refused(calls.create, training(extra=1, rules=[{"name": "a", "b": 1}]), fieldValidation="Strict")
    assert failure.code == 400
    assert str(failure) == (
        'Training in version "v1" cannot be handled as a Training: strict decoding error: '
        'unknown field "spec.extra", unknown field "spec.rules[0].b"'
    )


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"replicas": 0},
         "spec.replicas: Invalid value: 0: spec.replicas in body should be greater than or equal to 1"),
        ({"replicas": 11},
         "spec.replicas: Invalid value: 11: spec.replicas in body should be less than or equal to 10"),
        ({"replicas": "three"},
         'spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"'),
        ({"replicas": None},
         "spec.replicas: Required value"),
        ({"strategy": "Magic"}, 'spec.strategy: Unsupported value: "Magic": supported values: "Auto", "None"'),
        ({"label": "toolong"}, "spec.label: Too long: may not be more than 5 bytes"),
        ({"label": "A"}, "spec.label: Invalid value: \"A\": spec.label in body should match '^[a-z]*$'"),
        ({"rate": 0}, "spec.rate: Invalid value: 0: spec.rate in body should be greater than 0"),
        ({"limits": {"gpu": True}},
         'spec.limits.gpu: Invalid value: "boolean": spec.limits.gpu in body must be of type integer,string: "bool'),
        ({"tags": ["a", "b", "c", "d"]}, "spec.tags: Too many: 4: must have at most 3 items"),
        ({"tags": ["a", "a"]}, 'spec.tags[1]: Duplicate value: "a"'),
        ({"rules": [{"name": "a"}, {"name": "a"}]}, 'spec.rules[1]: Duplicate value: {"name":"a"}'),
        ({"rules": [{"action": "x"}]}, "spec.rules[0].name: Required value"),
        ({"rules": [{"name": "a", "codes": [1, "x"]}]}, "spec.rules[0].codes[1]: Invalid value: \"string\""),
    ],
)  # fmt: skip
def test_a_value_out_of_its_schema_is_told_with_its_path(calls: Calls, spec: dict[str, Any], told: str) -> None:
    failure = refused(calls.create, training(**spec))
    assert (failure.code, failure.reason) == (422, "Invalid")
    assert str(failure).startswith('Training.test.dtj.dev "t" is invalid: ')
    assert told in str(failure)
    # CEL needs a value of the right form, and the answer says where it was not run.
    formless = any(word in told for word in ("Required", "Unsupported", "Too", "string", "type", "null"))
    assert ("some validation rules were not checked because the object was invalid" in str(failure)) is formless
    assert failure.status["details"] | {"causes": None} == {
        "name": "t",
        "group": "test.dtj.dev",
        "kind": "Training",
        "causes": None,
    }


@pytest.mark.parametrize(
    ("step", "value", "fits"),
    [
        (0.1, 1, True), (0.1, 0.3, True), (0.1, 0.7, True), (0.01, 1.13, True), (0.1, 0.25, False), (2, 4, True),
        (2, 5, False), (2, 2**62, True), (2.5, 7.5, True), (2.5, 7, False), (0.1, 1e300, False), (1e-300, 1e300, False),
    ],
)  # fmt: skip
def test_a_multiple_of_a_fraction_is_one_within_what_floats_can_tell(step: float, value: float, fits: bool) -> None:
    assert (list(schemas.faults({"type": "number", "multipleOf": step}, value)) == []) is fits


def test_what_is_missing_is_required(calls: Calls) -> None:
    manifest = training()
    del manifest["spec"]
    assert "spec: Required value" in str(refused(calls.create, manifest))


def test_a_broken_rule_is_told_by_its_message(calls: Calls) -> None:
    failure = refused(calls.create, training(strategy="None"))
    assert str(failure) == 'Training.test.dtj.dev "t" is invalid: spec: Invalid value: None takes one replica'
    failure = refused(calls.create, training(rate=3))
    assert str(failure).endswith("spec: Invalid value: rate is above 2 with Auto")


def test_a_transition_rule_sees_the_old_value(calls: Calls) -> None:
    calls.create(training(replicas=1))
    failure = refused(calls.patch, TRAININGS, "t", {"spec": {"strategy": "None"}})
    assert str(failure) == 'Training.test.dtj.dev "t" is invalid: spec.strategy: Forbidden: strategy is immutable'
    assert calls.patch(TRAININGS, "t", {"spec": {"replicas": 2}})["metadata"]["generation"] == 2


def test_what_was_wrong_before_an_update_may_stay_so() -> None:
    calls = Calls()
    calls.create(definition())
    calls.create(training(replicas=10))
    narrower = definition()
    schema = narrower["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    narrower["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = _with_maximum(schema, 5)
    calls.patch(DEFINITIONS, "trainings.test.dtj.dev", {"spec": narrower["spec"]})
    assert calls.patch(TRAININGS, "t", {"spec": {"label": "ok"}})["spec"]["replicas"] == 10
    assert refused(calls.patch, TRAININGS, "t", {"spec": {"replicas": 9}}).code == 422


def _with_maximum(schema: dict[str, Any], maximum: int) -> dict[str, Any]:
    spec = schema["properties"]["spec"]
    replicas = spec["properties"]["replicas"] | {"maximum": maximum}
    properties = schema["properties"] | {"spec": spec | {"properties": spec["properties"] | {"replicas": replicas}}}
    return schema | {"properties": properties}


def test_spec_and_status_are_written_apart(calls: Calls) -> None:
    made = calls.create({**training(), "status": {"phase": "Running"}})
    assert "status" not in made
    change = {"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 9}, "status": {"phase": "Running"}}
    after = calls.patch(f"{TRAININGS}:status", "t", change)
    assert (after["spec"]["replicas"], after["status"]["phase"]) == (3, "Running")
    assert "labels" not in after["metadata"]
    assert after["metadata"]["generation"] == 1
    after = calls.patch(TRAININGS, "t", change | {"status": {"phase": "Failed"}})
    assert (after["spec"]["replicas"], after["status"]["phase"]) == (9, "Running")
    assert after["metadata"]["labels"] == {"a": "b"}
    assert after["metadata"]["generation"] == 2


def test_a_replace_of_a_custom_object_needs_a_version(calls: Calls) -> None:
    calls.create(training())
    failure = refused(calls.call, "update", TRAININGS, "t", body=training())
    assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in str(failure)


def test_a_rule_sees_the_name_and_nothing_that_is_not_declared() -> None:
    template = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {"type": "string"}}}
    rules = [
        {"rule": "self.metadata.name != 'bad'", "message": "not that name"},
        {"rule": "self.spec.template == {'a': 'b'}", "message": "more is seen"},
    ]
    spec = {"type": "object", "properties": {"template": template}}
    schema = {"type": "object", "properties": {"spec": spec}, "x-kubernetes-validations": rules}
    calls = Calls()
    calls.create(definition(schema))
    calls.create(training(template={"a": "b", "c": {"d": 1}}))
    failure = refused(calls.create, training("bad", template={"a": "b"}))
    assert str(failure).endswith("Invalid value: not that name")


def test_an_unknown_function_refuses_with_its_name() -> None:
    schema = SCHEMA | {"x-kubernetes-validations": [{"rule": "isQuantity(self.spec.replicas)"}]}
    calls = Calls()
    calls.create(definition(schema))
    assert "Undefined variable or function: 'isQuantity'" in str(refused(calls.create, training()))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"metadata": {"name": "x.test.dtj.dev"}}, 'must be spec.names.plural+"."+spec.group'),
        ({"spec": {"versions": []}},
         "spec.versions: Invalid value: []: must have exactly one version marked as storage"),
        ({"spec": {"versions": [{"name": "v1", "served": True, "storage": True}]}},
         "spec.versions[0].schema.openAPIV3Schema: Required value"),
        ({"spec": {"versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": {"description": "no type"}}}}}]}},
         "openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields"),
        ({"spec": {"versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-validations": [{"rule": "self. +"}]}}}]}},
         'openAPIV3Schema.x-kubernetes-validations[0].rule: Invalid value: "self. +": compilation failed'),
    ],
)  # fmt: skip
def test_a_wrong_definition_is_refused(change: dict[str, Any], told: str) -> None:
    manifest = definition()
    manifest["metadata"] |= change.get("metadata", {})
    manifest["spec"] |= change.get("spec", {})
    assert told in str(refused(Calls().create, manifest))


TEXT = {"type": "string"}
DEFAULT = {"type": "object", "default": {"a": "x"}}
EITHER = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (DEFAULT | {"properties": {"a": TEXT | {"pattern": "["}}},
         '.properties[a].pattern: Invalid value: "[": must be a valid regular expression'),
        (DEFAULT | {"properties": {"a": {"type": "strin"}}}, '.properties[a].type: Unsupported value: "strin"'),
        (DEFAULT | {"additionalProperties": {"type": "strin"}},
         '.additionalProperties.type: Unsupported value: "strin"'),
        (TEXT | {"default": "x", "anyOf": [{"pattern": "["}]}, '.anyOf[0].pattern: Invalid value: "["'),
        (TEXT | {"default": "x", "not": {"allOf": [{"pattern": "["}]}}, '.not.allOf[0].pattern: Invalid value: "["'),
        (TEXT | {"oneOf": [{"type": "strin"}]}, '.oneOf[0].type: Unsupported value: "strin"'),
        (TEXT | {"oneOf": [TEXT]}, ".oneOf[0].type: Forbidden: must be empty to be structural"),
        (DEFAULT | {"properties": {"a": {"type": "integer"}}}, '.default.a: Invalid value: "string"'),
        ({"type": "object", "properties": {"a": TEXT}, "additionalProperties": False},
         ".additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"),
        ({"type": "object", "properties": {"a": TEXT}, "additionalProperties": TEXT},
         ".additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"),
    ],
)  # fmt: skip
def test_a_schema_that_cannot_be_run_is_told_with_its_path(spec: dict[str, Any], told: str) -> None:
    failure = refused(Calls().create, definition({"type": "object", "properties": {"spec": spec}}))
    assert failure.code == 422
    assert f"openAPIV3Schema.properties[spec]{told}" in str(failure)


@pytest.mark.parametrize(
    "spec",
    [
        {"type": "object", "properties": {"a": TEXT}, "additionalProperties": True},
        EITHER | {"default": "x"},
        {"type": "", "x-kubernetes-preserve-unknown-fields": True, "default": "x"},
    ],
)
def test_a_schema_that_can_be_run_is_taken(spec: dict[str, Any]) -> None:
    Calls().create(definition({"type": "object", "properties": {"spec": spec}}))


def test_a_definition_is_established_and_serves_until_it_is_deleted() -> None:
    calls = Calls()
    made = calls.create(definition())
    assert {one["type"]: one["status"] for one in made["status"]["conditions"]} == {
        "NamesAccepted": "True",
        "Established": "True",
    }
    calls.create(training())
    calls.delete(DEFINITIONS, "trainings.test.dtj.dev")
    with pytest.raises(ApiFailure, match="could not find the requested resource"):
        calls.names(TRAININGS)
    calls.create(definition())
    assert calls.names(TRAININGS) == []


@pytest.mark.parametrize(
    ("rule", "needs"),
    [
        ("self.a.b == 1", {"a": {"b": None}}),
        ("size(self) < 3", None),
        ("self.matches('^a')", None),
        ("self.a.startsWith('x') && has(self.b.c)", {"a": None, "b": {"c": None}}),
        ("self.list.all(x, x.n > self.low)", {"list": None, "low": None}),
        ("self.a == oldSelf.b", {"a": None, "b": None}),
        ("self.map['k'].x == 1 && myself.z", {"map": None}),
        ("self.a.b || self.a", {"a": None}),
    ],
)
def test_a_rule_is_given_what_it_reads_and_no_more(rule: str, needs: Any) -> None:
    read = programs.rule_of({"rule": rule})
    assert read.needs == needs
    assert read.uses_old == ("oldSelf" in rule)


def test_a_rule_that_reads_nothing_new_is_not_run_again() -> None:
    calls = Calls()
    calls.create(definition(_ruled()))
    calls.create(training(replicas=5))
    broken = definition(_ruled("self.replicas < 5"))
    calls.patch(DEFINITIONS, "trainings.test.dtj.dev", {"spec": broken["spec"]})
    assert calls.patch(TRAININGS, "t", {"spec": {"label": "x"}})["spec"]["label"] == "x"
    assert "failed rule: self.replicas < 5" in str(refused(calls.patch, TRAININGS, "t", {"spec": {"replicas": 6}}))


def _ruled(rule: str = "true") -> dict[str, Any]:
    spec = SCHEMA["properties"]["spec"] | {"x-kubernetes-validations": [{"rule": rule}]}
    return SCHEMA | {"properties": SCHEMA["properties"] | {"spec": spec}}
