"""JSON patch, merge patch and strategic merge patch. Apply is `applying.py`'s."""

from tests.conformance.play import Ask, story
from tests.conformance.stories.manifests import config_map, pod, service

LABELLED = {"a": "1", "b": "2", "c/d": "3"}


@story
async def merge_patches(ask: Ask) -> None:
    await ask.create("configmaps", config_map(labels=LABELLED, x="1", y="2"), see="metadata.labels")
    await ask.patch("configmaps/a", {"data": {"x": None, "z": "3"}, "metadata": {"labels": {"a": None}}})
    await ask.patch("configmaps/a", {"data": None}, see="data")
    await ask.patch("configmaps/a", {"metadata": {"labels": None}}, see="metadata")
    await ask.patch("configmaps/a", [])
    await ask.patch("configmaps/a", b"{")
    await ask.patch("configmaps/a", b'"x"')
    await ask.patch("configmaps/none", {"data": {}})
    await ask.patch("configmaps/a", {"metadata": {"resourceVersion": "1"}})
    await ask.patch("configmaps/a", {"metadata": {"uid": "11111111-2222-3333-4444-555555555555"}})
    await ask.patch("configmaps/a", {"kind": "Secret"})
    await ask.patch("configmaps/a", {"apiVersion": "v2"})
    await ask.patch("configmaps/a?force=true", {"data": {}})
    await ask("PATCH", "configmaps/a", {}, media="application/json")


@story
async def json_patches(ask: Ask) -> None:
    await ask.create("configmaps", config_map(labels=LABELLED, x="1"), see="data")
    await ask.patch(
        "configmaps/a",
        [
            {"op": "test", "path": "/data/x", "value": "1"},
            {"op": "replace", "path": "/data/x", "value": "2"},
            {"op": "add", "path": "/data/y", "value": "3"},
            {"op": "copy", "from": "/data/y", "path": "/data/z"},
            {"op": "move", "from": "/data/y", "path": "/data/w"},
            {"op": "remove", "path": "/metadata/labels/c~1d"},
        ],
        "json",
    )  # fmt: skip
    for wrong in (
        [{"op": "test", "path": "/data/x", "value": "9"}],
        [{"op": "test", "path": "/data/none", "value": "9"}],
        [{"op": "remove", "path": "/data/none"}],
        [{"op": "replace", "path": "/data/none", "value": "1"}],
        [{"op": "add", "path": "/none/deeper", "value": "1"}],
        [{"op": "copy", "from": "/data/none", "path": "/data/x"}],
        [{"op": "jump", "path": "/data/x"}],
        [{"path": "/data/x", "value": "1"}],
        [{"op": "add", "path": "data", "value": "1"}],
        [{"op": "add", "path": "/data/x", "value": 7}],
        {"op": "add", "path": "/data/x"},
        "text",
    ):
        await ask.patch("configmaps/a", wrong, "json")
    await ask.patch("configmaps/a", [], "json", see="data")
    await ask.create("pods", pod(tolerations=[{"key": "a", "operator": "Exists"}]), see="spec.tolerations")
    more = {"key": "b", "operator": "Exists"}
    await ask.patch(
        "pods/a", [{"op": "add", "path": "/spec/tolerations/-", "value": more}], "json", see="spec.tolerations"
    )
    await ask.patch("pods/a", [{"op": "add", "path": "/spec/tolerations/99", "value": more}], "json")
    await ask.patch("pods/a", [{"op": "remove", "path": "/spec/tolerations/0"}], "json")


@story
async def strategic_patches_of_pods(ask: Ask) -> None:
    two = [{"name": "a", "image": "a:1", "env": [{"name": "X", "value": "1"}]}, {"name": "b", "image": "b:1"}]
    await ask.create("pods", pod(containers=two), see="spec.containers")
    await ask.patch(
        "pods/a", {"spec": {"containers": [{"name": "b", "image": "b:2"}]}}, "strategic", see="spec.containers"
    )
    await ask.patch("pods/a", {"spec": {"containers": [{"image": "b:2"}]}}, "strategic")
    await ask.patch("pods/a", {"spec": {"containers": [{"name": "b", "$patch": "delete"}]}}, "strategic")
    await ask.patch(
        "pods/a", {"metadata": {"labels": {"$patch": "replace", "x": "y"}}}, "strategic", see="metadata.labels"
    )
    await ask.patch(
        "pods/a", {"metadata": {"finalizers": ["x.dev/a", "x.dev/b"]}}, "strategic", see="metadata.finalizers"
    )
    await ask.patch("pods/a", {"metadata": {"finalizers": ["x.dev/c"]}}, "strategic", see="metadata.finalizers")
    await ask.patch(
        "pods/a",
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.dev/a"]}},
        "strategic",
        see="metadata.finalizers",
    )
    order = {"$setElementOrder/finalizers": ["x.dev/c", "x.dev/b"], "finalizers": ["x.dev/c"]}
    await ask.patch("pods/a", {"metadata": order}, "strategic", see="metadata.finalizers")
    await ask.patch("pods/a", {"metadata": {"finalizers": None}}, "strategic", see="metadata")
    await ask.patch("pods/a", {"$patch": "jump"}, "strategic")
    await ask.patch("pods/a", [], "strategic")
    await ask.patch("pods/a", b"{", "strategic")


@story
async def strategic_patches_of_services(ask: Ask) -> None:
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    await ask.create("services", service(ports=ports), see="spec.ports")
    patches = (
        {"ports": [{"port": 81, "targetPort": 8081}]},
        {"ports": [{"port": 82, "name": "c"}], "$setElementOrder/ports": [{"port": 82}, {"port": 80}, {"port": 81}]},
        {"ports": [{"port": 80, "$patch": "delete"}]},
        {"ports": [{"port": 90}, {"$patch": "replace"}]},
        {"selector": {"job": None, "task": "worker-0"}},
    )
    for spec in patches:
        await ask.patch("services/peers", {"spec": spec}, "strategic", see="spec")


@story
async def strategic_patches_have_no_place_in_custom_kinds(ask: Ask) -> None:
    path = "test.dtj.dev/v1:trainings"
    await ask.create(path, {"apiVersion": "test.dtj.dev/v1", "kind": "Training", "metadata": {"name": "t"},
                            "spec": {"replicas": 3}})  # fmt: skip
    await ask.patch(f"{path}/t", {"spec": {"replicas": 4}}, "strategic")
    await ask.patch(f"{path}/t", {"spec": {"replicas": 4}})
    await ask.patch(f"{path}/t", [{"op": "replace", "path": "/spec/replicas", "value": 5}], "json", see="spec")
