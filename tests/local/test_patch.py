"""The three patches that are pure functions of an object and a patch."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtj_operator.local import patch as patches
from dtj_operator.local.failures import ApiFailure
from dtj_operator.local.shapes.shape import Shape, built_in_shape, custom_shape

POD = built_in_shape("V1Pod")
SERVICE = built_in_shape("V1Service")


def in_pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": spec}


@pytest.mark.parametrize(
    ("current", "patch", "after"),
    [
        ({"a": 1}, {"a": 2, "b": {"c": 3}}, {"a": 2, "b": {"c": 3}}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": 1}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
    ],
)
def test_a_merge_patch_replaces_lists_and_removes_by_null(current: Any, patch: Any, after: Any) -> None:
    assert patches.merge_patched(current, patch) == after


@pytest.mark.parametrize(
    ("operations", "after"),
    [
        ([{"op": "add", "path": "/spec/b", "value": 1}], {"spec": {"a": [1, 2], "b": 1}}),
        ([{"op": "add", "path": "/spec/a/-", "value": 3}], {"spec": {"a": [1, 2, 3]}}),
        ([{"op": "add", "path": "/spec/a/0", "value": 0}], {"spec": {"a": [0, 1, 2]}}),
        ([{"op": "remove", "path": "/spec/a/0"}], {"spec": {"a": [2]}}),
        ([{"op": "replace", "path": "/spec/a", "value": {}}], {"spec": {"a": {}}}),
        ([{"op": "test", "path": "/spec/a/1", "value": 2}, {"op": "add", "path": "/x~1y", "value": 1}],
         {"spec": {"a": [1, 2]}, "x/y": 1}),
        ([{"op": "copy", "from": "/spec/a", "path": "/spec/b"}], {"spec": {"a": [1, 2], "b": [1, 2]}}),
        ([{"op": "move", "from": "/spec/a", "path": "/b"}], {"spec": {}, "b": [1, 2]}),
        ([{"op": "test", "path": "/spec/none", "value": None}], {"spec": {"a": [1, 2]}}),
    ],
)  # fmt: skip
def test_a_json_patch_operates_in_order(operations: Any, after: Any) -> None:
    assert patches.json_patched({"spec": {"a": [1, 2]}}, operations) == after


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/spec/a", "value": 1},
        {"op": "remove", "path": "/spec/b"},
        {"op": "replace", "path": "/spec/b/c", "value": 1},
        {"op": "add", "path": "/spec/a/7", "value": 1},
        {"op": "spin", "path": "/spec"},
        {"op": "add", "path": 1, "value": 1},
        {"op": "remove", "path": 1},
        {"op": "replace", "path": ["/spec"], "value": 1},
        {"op": "test", "path": None, "value": 1},
        {"op": "move", "from": 1, "path": "/x"},
        {"op": "copy", "from": {}, "path": "/x"},
    ],
)
def test_a_json_patch_that_does_not_fit_changes_nothing(operation: Any) -> None:
    current = {"spec": {"a": [1, 2]}}
    with pytest.raises(ApiFailure, match="the server rejected our request due to an error in our request") as failure:
        patches.json_patched(current, [{"op": "add", "path": "/x", "value": 1}, operation])
    assert failure.value.code == 422
    assert current == {"spec": {"a": [1, 2]}}


def test_a_json_patch_replaces_what_an_object_does_not_have_yet() -> None:
    """So does kube-apiserver's library, unlike RFC 6902."""
    assert patches.json_patched({}, [{"op": "replace", "path": "/x", "value": 1}]) == {"x": 1}


CONTAINERS: list[dict[str, Any]] = [
    {"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]},
    {"name": "b", "image": "2"},
]


@pytest.mark.parametrize(
    ("shape", "current", "patch", "after"),
    [
        pytest.param(POD, in_pod(containers=CONTAINERS), in_pod(containers=[{"name": "b", "image": "3"}]),
                     in_pod(containers=[CONTAINERS[0], {"name": "b", "image": "3"}]), id="containers merge by name"),
        pytest.param(POD, in_pod(containers=CONTAINERS), in_pod(containers=[{"name": "b", "$patch": "delete"}]),
                     in_pod(containers=CONTAINERS[:1]), id="an item is deleted by a directive"),
        pytest.param(POD, in_pod(containers=CONTAINERS),
                     in_pod(containers=[{"name": "c", "image": "1"}, {"$patch": "replace"}]),
                     in_pod(containers=[{"name": "c", "image": "1"}]), id="a list is replaced by a directive"),
        pytest.param(POD, in_pod(containers=CONTAINERS),
                     in_pod(containers=[{"name": "a", "env": [{"name": "Y", "value": "2"}]}]),
                     in_pod(containers=[{**CONTAINERS[0], "env": [{"name": "Y", "value": "2"},
                                                                  {"name": "X", "value": "1"}]}, CONTAINERS[1]]),
                     id="lists within lists merge"),
        pytest.param(POD, in_pod(tolerations=[{"key": "a"}]), in_pod(tolerations=[{"key": "b"}]),
                     in_pod(tolerations=[{"key": "b"}]), id="tolerations are one value"),
        pytest.param(POD, in_pod(volumes=[{"name": "v", "emptyDir": {}}]),
                     in_pod(volumes=[{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]),
                     in_pod(volumes=[{"name": "v", "hostPath": {"path": "/x"}}]), id="a volume keeps one source"),
        pytest.param(POD, {"metadata": {"finalizers": ["a", "b"]}},
                     {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]}},
                     {"metadata": {"finalizers": ["c", "b"]}}, id="finalizers are a set"),
        pytest.param(POD, in_pod(containers=CONTAINERS),
                     in_pod(**{"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
                               "containers": [{"name": "a", "image": "9"}]}),
                     in_pod(containers=[CONTAINERS[1], {**CONTAINERS[0], "image": "9"}]), id="an order is kept"),
        pytest.param(POD, in_pod(securityContext={"runAsUser": 1}),
                     in_pod(securityContext={"$patch": "replace", "fsGroup": 2}),
                     in_pod(securityContext={"fsGroup": 2}), id="an object is replaced by a directive"),
        pytest.param(SERVICE, {"spec": {"ports": [{"port": 80, "protocol": "TCP"}]}},
                     {"spec": {"ports": [{"port": 80, "name": "web"}, {"port": 81}]}},
                     {"spec": {"ports": [{"port": 80, "protocol": "TCP", "name": "web"}, {"port": 81}]}},
                     id="a service's ports merge by port"),
    ],
)  # fmt: skip
def test_a_strategic_merge_patch_merges_lists_by_key(shape: Shape, current: Any, patch: Any, after: Any) -> None:
    before = copy.deepcopy(current)
    assert patches.strategic_patched(current, patch, shape) == after
    assert current == before


@pytest.mark.parametrize(
    "patch",
    [
        {"metadata": {"$deleteFromPrimitiveList/finalizers": 1}},
        in_pod(volumes=[{"name": "v", "$retainKeys": "name"}]),
        in_pod(**{"$setElementOrder/containers": {}}),
        in_pod(containers=["a"]),
    ],
)
def test_a_directive_of_another_type_is_refused(patch: Any) -> None:
    with pytest.raises(ApiFailure) as refusal:
        patches.strategic_patched(in_pod(containers=CONTAINERS), patch, POD)
    assert refusal.value.code == 400


def test_a_key_that_can_be_none_is_left_to_the_decoding() -> None:
    item = {"name": ["a"], "image": "1"}
    patch = in_pod(containers=[item], **{"$setElementOrder/containers": [{"name": {}}, {"name": ["a"]}]})
    assert patches.strategic_patched(in_pod(containers=[]), patch, POD) == in_pod(containers=[item])


def test_a_strategic_merge_needs_a_built_in_kind() -> None:
    with pytest.raises(ApiFailure) as failure:
        patches.patched("strategic", {}, {}, custom_shape({"type": "object"}))
    assert failure.value.code == 415


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abc", max_size=2), JSON, max_size=4), st.dictionaries(st.text("abc", max_size=2), JSON))
def test_a_merge_patch_applied_twice_is_applied_once(current: Any, patch: Any) -> None:
    once = patches.merge_patched(current, patch)
    assert patches.merge_patched(once, patch) == once
