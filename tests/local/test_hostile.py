"""Whatever a client sends, the API answers or refuses; it never stumbles."""

import contextlib
import copy
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dtj_operator.local.failures import ApiFailure
from tests.local.calls import PATCHES, Calls, config_map, pod
from tests.local.training import definition, training

RICH_POD = pod(
    containers=[
        {
            "name": "trainer",
            "image": "a",
            "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "ports": [{"containerPort": 1, "name": "x"}],
            "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            "livenessProbe": {"httpGet": {"port": 1}},
        }
    ],
    initContainers=[{"name": "i", "image": "a", "restartPolicy": "Always"}],
    volumes=[{"name": "v", "configMap": {"name": "x"}}],
    tolerations=[{"key": "a", "operator": "Exists"}],
    schedulingGates=[{"name": "a/b"}],
    nodeSelector={"a": "b"},
)
MANIFESTS = [
    RICH_POD,
    config_map(a="b"),
    definition(),
    training(rules=[{"name": "a"}], tags=["x"], limits={"a": 1}),
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"a": "Yg=="}, "stringData": {"b": "c"}},
    {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"},
     "spec": {"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"port": 1, "name": "x"}]}},
    {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a"},
     "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
    {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "a"}, "spec": {"capacity": {"storage": "1"}}},
    {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "a"},
     "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "1"}}]}},
    {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "a"}, "spec": {"hard": {"pods": "1"}}},
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "status": {"capacity": {"cpu": "1"}}},
    {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a"}, "involvedObject": {"name": "x"}, "count": 1},
    {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "a"},
     "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}, "matchExpressions": [
         {"key": "a", "operator": "In", "values": ["b"]}]}}},
    {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "a"},
     "spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 1}]}]}},
    {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"},
     "spec": {"leaseDurationSeconds": 1}},
]  # fmt: skip
VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [None, 0, -1, 1.5, True, "", "x", "A b", "1Gi", [], {}, [None], [{}], {"a": None}, {"": "b"}, "9" * 300]
)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path into the value."""
    found = [at] if at else []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    else:
        inner = []
    for key, below in inner:
        found += places(below, (*at, key))
    return found


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    original = draw(st.sampled_from(MANIFESTS))
    manifest = copy.deepcopy(original)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(manifest)))
        target = manifest
        try:
            for key in path[:-1]:
                target = target[key]
            if draw(st.booleans()):
                target[path[-1]] = copy.deepcopy(draw(VALUES))
            else:
                del target[path[-1]]
        except (KeyError, IndexError, TypeError):
            continue
    return original, manifest


@settings(max_examples=150)
@given(mutated(), st.sampled_from(list(PATCHES)))
def test_no_manifest_makes_the_server_stumble(manifests: tuple[Any, Any], how: str) -> None:
    original, manifest = manifests
    calls = Calls()
    calls.create(definition())
    kind = calls.api.state.kinds.named(original["apiVersion"], original["kind"])
    assert kind is not None
    what = f"{kind.api_version}/{kind.plural}"
    name = original["metadata"]["name"]
    steps: list[Callable[[], Any]] = [
        lambda: calls.call("create", what, body=manifest),
        lambda: calls.create(original),
        lambda: calls.patch(what, name, manifest, how=how, fieldManager="x"),
        lambda: calls.call("update", what, name, body=manifest),
        lambda: calls.create(pod("other")),
        lambda: calls.call("list", what),
        lambda: calls.delete(what, name, manifest),
    ]
    for step in steps:
        # Anything but a refusal fails the test.
        with contextlib.suppress(ApiFailure):
            step()
