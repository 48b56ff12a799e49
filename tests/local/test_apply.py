"""Server-side apply and managedFields: who owns what, who is in whose way, and what goes when nobody wants it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtj_operator.local.fieldmanager import fieldsets
from tests.local.calls import Calls, config_map, pod, refused
from tests.local.training import TRAININGS, definition, training

PODS = "v1/pods"
MAPS = "v1/configmaps"


def owners(body: Any) -> dict[str, Any]:
    return {
        f"{entry['manager']} {entry['operation']}": entry["fieldsV1"]
        for entry in body["metadata"].get("managedFields", [])
    }


def test_what_is_applied_first_is_created_and_owned() -> None:
    calls = Calls()
    made = calls.apply(MAPS, config_map(a="1"), manager="one")
    assert made["data"] == {"a": "1"}
    assert owners(made) == {"one Apply": {"f:data": {"f:a": {}}}}
    (entry,) = made["metadata"]["managedFields"]
    assert entry | {"fieldsV1": None} == {
        "manager": "one",
        "operation": "Apply",
        "apiVersion": "v1",
        "time": "2026-11-30T12:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": None,
    }


def test_a_field_left_out_is_removed_unless_another_owns_it() -> None:
    calls = Calls()
    calls.apply(MAPS, config_map(a="1", b="2", c="3"), manager="one")
    calls.apply(MAPS, config_map(b="2"), manager="two")
    after = calls.apply(MAPS, config_map(a="1"), manager="one")
    assert after["data"] == {"a": "1", "b": "2"}
    assert owners(after) == {"one Apply": {"f:data": {"f:a": {}}}, "two Apply": {"f:data": {"f:b": {}}}}


def test_a_field_of_another_is_a_conflict_until_forced() -> None:
    calls = Calls()
    calls.create(config_map(a="1", b="1"), fieldManager="kubectl-create")
    failure = refused(calls.apply, MAPS, config_map(a="2"), manager="one")
    assert (failure.code, failure.reason) == (409, "Conflict")
    assert str(failure) == ('Apply failed with 1 conflict: conflict with "kubectl-create" using v1: .data.a')
    assert failure.status["details"]["causes"] == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "kubectl-create" using v1',
            "field": ".data.a",
        }
    ]
    after = calls.apply(MAPS, config_map(a="2"), manager="one", force=True)
    assert after["data"] == {"a": "2", "b": "1"}
    assert owners(after)["kubectl-create Update"] == {"f:data": {".": {}, "f:b": {}}}


def test_several_conflicts_are_listed_by_manager() -> None:
    calls = Calls()
    calls.apply(MAPS, config_map(a="1", b="1"), manager="one")
    failure = refused(calls.apply, MAPS, config_map(a="2", b="2"), manager="two")
    assert str(failure) == 'Apply failed with 2 conflicts: conflicts with "one":\n- .data.a\n- .data.b'


def test_equal_values_are_owned_together() -> None:
    calls = Calls()
    calls.apply(MAPS, config_map(a="1"), manager="one")
    after = calls.apply(MAPS, config_map(a="1"), manager="two")
    assert owners(after) == {"one Apply": {"f:data": {"f:a": {}}}, "two Apply": {"f:data": {"f:a": {}}}}


def test_applying_the_same_again_writes_nothing() -> None:
    calls = Calls()
    first = calls.apply(MAPS, config_map(a="1"), manager="one")
    calls.wait(60)
    assert calls.apply(MAPS, config_map(a="1"), manager="one") == first


def test_an_untracked_object_belongs_to_before_first_apply() -> None:
    calls = Calls()
    assert "managedFields" not in calls.create(config_map(a="1"))["metadata"]
    failure = refused(calls.apply, MAPS, config_map(a="2"), manager="one")
    assert 'conflict with "before-first-apply" using v1' in str(failure)


def test_an_update_takes_over_what_it_changes_and_frees_what_it_removes() -> None:
    calls = Calls()
    calls.apply(MAPS, config_map(a="1", b="1", c="1"), manager="one")
    after = calls.patch(MAPS, "a", {"data": {"a": "2", "b": None, "d": "1"}}, fieldManager="two")
    assert owners(after) == {
        "one Apply": {"f:data": {"f:c": {}}},
        "two Update": {"f:data": {"f:a": {}, "f:d": {}}},
    }


def test_lists_of_a_pod_merge_by_their_keys() -> None:
    calls = Calls()
    port = {"containerPort": 80, "protocol": "TCP"}
    container = {"name": "trainer", "image": "a", "ports": [port]}
    calls.apply(PODS, pod(containers=[container]), manager="one")
    labels = {"metadata": {"name": "a", "labels": {"x": "y"}}}
    other = {"apiVersion": "v1", "kind": "Pod", **labels, "spec": {"containers": [{"name": "trainer", "image": "b"}]}}
    failure = refused(calls.apply, PODS, other, manager="two")
    assert '.spec.containers[name="trainer"].image' in str(failure)
    after = calls.apply(PODS, other, manager="two", force=True)
    assert after["spec"]["containers"][0]["image"] == "b"
    assert after["spec"]["containers"][0]["ports"] == [port]
    assert owners(after)["one Apply"] == {
        "f:spec": {
            "f:containers": {
                'k:{"name":"trainer"}': {
                    ".": {},
                    "f:name": {},
                    "f:ports": {
                        'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}, "f:protocol": {}}
                    },
                }
            }
        }
    }


def test_items_of_a_custom_list_come_and_go_with_their_owner() -> None:
    calls = Calls()
    calls.create(definition())
    calls.apply(TRAININGS, training(rules=[{"name": "a"}, {"name": "b"}], tags=["x"]), manager="one")
    two = {**training(), "spec": {"rules": [{"name": "c"}], "tags": ["y"]}}
    both = calls.apply(TRAININGS, two, manager="two")
    assert [one["name"] for one in both["spec"]["rules"]] == ["a", "b", "c"]
    assert both["spec"]["tags"] == ["x", "y"]
    after = calls.apply(TRAININGS, training(rules=[{"name": "b"}]), manager="one")
    assert [one["name"] for one in after["spec"]["rules"]] == ["b", "c"]
    assert after["spec"]["tags"] == ["y"]


def test_the_status_has_owners_of_its_own() -> None:
    calls = Calls()
    calls.create(definition())
    calls.create(training(), fieldManager="kubectl-create")
    after = calls.patch(f"{TRAININGS}:status", "t", {"status": {"phase": "Running"}}, fieldManager="operator")
    assert [(one["manager"], one.get("subresource")) for one in after["metadata"]["managedFields"]] == [
        ("kubectl-create", None),
        ("operator", "status"),
    ]
    assert owners(after)["operator Update"] == {"f:status": {".": {}, "f:phase": {}}}


def test_an_apply_needs_a_manager() -> None:
    failure = refused(Calls().patch, MAPS, "a", config_map(), how="apply")
    assert failure.code == 422
    assert "fieldManager: Required value: is required for apply patch" in str(failure)
    failure = refused(Calls().patch, MAPS, "a", {}, force=True)
    assert "force: Forbidden: may not be specified for non-apply patch" in str(failure)


@pytest.mark.parametrize("how", ["merge", "json"])
def test_tracking_ends_where_a_client_empties_the_entries(how: str) -> None:
    calls = Calls()
    calls.apply(MAPS, config_map(a="1"), manager="one")
    patch: Any = {"metadata": {"managedFields": [{}]}}
    if how == "json":
        patch = [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]
    after = calls.patch(MAPS, "a", patch, how=how)
    assert "managedFields" not in after["metadata"]


SETS: st.SearchStrategy[Any] = st.recursive(
    st.just({".": {}}),
    lambda inner: st.dictionaries(st.sampled_from(["f:a", "f:b", "f:c"]), inner, min_size=1, max_size=3),
    max_leaves=8,
)


@given(SETS, SETS)
def test_sets_of_fields_are_sets(one: Any, other: Any) -> None:
    both = fieldsets.intersection(one, other)
    only = fieldsets.difference(one, other)
    assert fieldsets.union(both, only) == one
    assert fieldsets.difference(both, other) == {}
    assert fieldsets.intersection(only, other) == {}
    assert fieldsets.from_v1(fieldsets.to_v1(one)) == one
