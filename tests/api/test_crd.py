"""The CustomResourceDefinition: what Kubernetes asks of one, and that it says what the types say."""

from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest
import yaml

from dtj_operator.api.crd import crd, schema
from dtj_operator.api.parse import parse
from dtj_operator.api.schema import defaulted
from dtj_operator.api.status import ConditionType, FailureClass, JobStatus, Phase
from tests.api.manifests import Manifest, job
from tools.crd import made


@pytest.mark.parametrize("path", made(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_files_say_what_the_types_say(path: Any) -> None:
    assert path.read_text() == made()[path], "make crd writes it"


def test_the_definition_is_small() -> None:
    """Client-side kubectl apply keeps a second copy in an annotation of at most 256 KiB, Helm one in a Secret."""
    text = next(text for path, text in made().items() if path.suffix == ".yaml")
    assert len(text.encode()) < 60_000
    document = yaml.safe_load(text)
    assert document["metadata"].pop("annotations").keys() == {"dtj.dev/version"}
    assert document == crd()


def test_its_names() -> None:
    spec = crd()["spec"]
    assert crd()["metadata"]["name"] == f"{spec['names']['plural']}.{spec['group']}"
    assert spec["names"]["shortNames"] == ["dtj", "dtjs"]
    assert spec["names"]["categories"] == ["all", "ml"]
    assert spec["versions"][0]["subresources"] == {"status": {}}


def test_its_columns_show_fields_that_exist() -> None:
    columns = crd()["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [c["name"] for c in columns if "priority" not in c] == [
        "Phase",
        "Strategy",
        "Ready",
        "Step",
        "Restarts",
        "Age",
    ]
    assert [c["name"] for c in columns if c.get("priority") == 1] == ["Loss", "Ex/s", "Gang", "Reason"]
    for column in columns:
        node = schema()
        for name in column["jsonPath"].split(".")[1:]:
            node = node.get("properties", {}).get(name, {})
        assert node.get("type", column["type"]) == column["type"]
        assert node or column["jsonPath"].startswith(".metadata")


def nodes(node: Manifest, path: str = "") -> Iterator[tuple[str, Manifest]]:
    yield path, node
    for name, inside in node.get("properties", {}).items():
        yield from nodes(inside, f"{path}.{name}")
    for field, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if field in node:
            yield from nodes(node[field], path + mark)


NODES = dict(nodes(schema()))
OURS = {path: node for path, node in NODES.items() if path.startswith((".spec.", ".status."))}


def test_each_node_is_structural() -> None:
    forbidden = {"$ref", "$defs", "definitions", "oneOf", "allOf", "not", "title", "uniqueItems", "additionalItems"}
    for path, node in NODES.items():
        assert forbidden.isdisjoint(node), path
        if node.get("x-kubernetes-int-or-string"):
            assert node["anyOf"] == [{"type": "integer"}, {"type": "string"}]
            assert "type" not in node
        else:
            assert "anyOf" not in node, path
            assert node["type"] in {"object", "array", "string", "integer", "number", "boolean"}, path
        if node.get("type") == "object":
            shapes = {"properties", "additionalProperties", "x-kubernetes-preserve-unknown-fields"} & set(node)
            assert len(shapes) == 1, path


def test_each_field_has_a_description() -> None:
    bare = [p for p, node in OURS.items() if p[-1] not in "]}" and not node.get("description", "").endswith(".")]
    assert bare == []


def test_each_list_and_text_of_the_spec_is_bounded() -> None:
    """Kubernetes reckons with the longest of each when it estimates what a rule costs."""
    bounds = {"array": {"maxItems"}, "string": {"maxLength", "enum"}}
    spec = {path: node for path, node in OURS.items() if path.startswith(".spec")}
    assert [p for p, node in spec.items() if bounds.get(node.get("type", ""), set(node)).isdisjoint(node)] == []


def test_no_default_is_a_rules_own_node() -> None:
    """Kubernetes tries a node's rules on its bare default when the definition is made."""
    for path, node in NODES.items():
        assert not ("x-kubernetes-validations" in node and node.get("default") == {}), path


@pytest.mark.parametrize(
    "change",
    [{}, {"batch": {"global": 8}}, {"roles": {"chief": {}, "ps": {}, "evaluator": {}}}, {"checkpoint": {"every": 5}}],
)
def test_defaults_are_those_of_the_types(change: Manifest) -> None:
    filled = defaulted(schema(), job(change))
    assert parse(filled) == parse(job(change))
    assert filled["spec"]["recovery"]["maxRestarts"] == 10
    assert filled["spec"]["recovery"]["backoff"] == {"initialSeconds": 5, "maxSeconds": 300}
    assert filled["spec"]["network"]["port"] == 2222
    assert filled["spec"]["managedBy"] == "dtj.dev/operator"
    assert "rules" not in filled["spec"]["recovery"]
    assert ("batch" in filled["spec"]) == ("batch" in change)


def test_nothing_has_a_default_that_a_status_lacks() -> None:
    assert not [path for path, node in NODES.items() if path.startswith(".status") and "default" in node]


def test_conditions_are_a_map_by_type() -> None:
    node = NODES[".status.conditions"]
    assert node["x-kubernetes-list-type"] == "map"
    assert node["x-kubernetes-list-map-keys"] == ["type"]
    assert node["items"]["properties"]["type"]["enum"] == sorted(get_args(ConditionType))


def test_words_of_the_status_are_enumerated() -> None:
    assert NODES[".status.phase"]["enum"] == sorted(get_args(Phase))
    assert NODES[".status.lastFailure.class"]["enum"] == sorted(get_args(FailureClass))


def test_what_columns_show_is_written_from_the_start() -> None:
    status = msgspec.to_builtins(JobStatus())
    assert status["phase"] == "Pending"
    assert status["attempt"] == status["observedGeneration"] == status["restarts"]["total"] == 0
