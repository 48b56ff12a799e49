"""The schema and the types agree: what an API server takes the operator can read, and what it writes is taken."""

from typing import Any

import jsonschema_rs
import msgspec
from hypothesis import given
from hypothesis import strategies as st

from dtj_operator.api.crd import schema
from dtj_operator.api.parse import parse, parse_status
from dtj_operator.api.schema import defaulted
from dtj_operator.api.spec import JobSpec
from tests.api.manifests import SMALLEST
from tests.api.test_bounds import worst

SCHEMA = schema()
TYPES = jsonschema_rs.validator_for(SCHEMA)


def fitting(node: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Any value that fits a node of the schema."""
    if node.get("x-kubernetes-int-or-string"):
        return st.integers(1, 10**6) | st.just("epoch")
    match node["type"]:
        case "object" if "properties" in node:
            required = node.get("required", ())
            fields = {name: fitting(inside) for name, inside in node["properties"].items()}
            return st.fixed_dictionaries(
                {name: fields[name] for name in required},
                optional={name: field for name, field in fields.items() if name not in required},
            )
        case "object":
            return st.dictionaries(st.text(max_size=3), st.none() | st.integers() | st.text(max_size=3), max_size=2)
        case "array":
            return st.lists(fitting(node["items"]), max_size=min(3, node["maxItems"]))
        case "string" if "enum" in node:
            return st.sampled_from(node["enum"])
        case "string":
            return st.text(min_size=node.get("minLength", 0), max_size=8)
        case "integer":
            return st.integers(node.get("minimum"), node.get("maximum"))
        case "boolean":
            return st.booleans()
        case kind:
            raise TypeError(kind)


@given(fitting(SCHEMA["properties"]["spec"]))
def test_a_spec_that_the_schema_takes_can_be_read_and_written(spec: Any) -> None:
    manifest = SMALLEST | {"spec": spec}
    assert TYPES.is_valid(manifest)
    read = parse(manifest)
    assert isinstance(read, JobSpec)
    assert parse(defaulted(SCHEMA, manifest)) == read
    assert TYPES.is_valid(SMALLEST | {"spec": msgspec.to_builtins(read)})


def test_a_status_that_is_written_is_taken_and_read() -> None:
    status = worst("waits for 8 × nvidia.com/gpu")
    written = msgspec.json.decode(msgspec.json.encode(status))
    assert [e.message for e in TYPES.iter_errors(SMALLEST | {"status": written})] == []
    assert parse_status({"status": written}) == status
