"""Server-side apply: who owns what, conflicts, and what others' writes do to it."""

from typing import Any

from tests.conformance.play import Ask, story
from tests.conformance.stories.manifests import config_map, pod, service

Json = dict[str, Any]

TRAININGS = "test.dtj.dev/v1:trainings"


def training(**spec: Any) -> Json:
    return {"apiVersion": "test.dtj.dev/v1", "kind": "Training", "metadata": {"name": "t"}, "spec": spec}


@story
async def apply_creates_and_owns(ask: Ask) -> None:
    await ask.apply("configmaps/a", config_map(x="1"))
    await ask.apply("configmaps/a", config_map(x="1"))
    await ask.apply("configmaps/a", config_map(x="2", y="3"))
    await ask.apply("configmaps/a", config_map(y="3"))
    await ask.apply("configmaps/a", config_map(x="9", y="3"), "two")
    await ask.apply("configmaps/a", config_map(y="4"), "two")
    await ask.apply("configmaps/a?force=true", config_map(y="4"), "two")
    await ask.apply("configmaps/a", config_map(y="3"))
    await ask.apply("configmaps/a", config_map(), "two")


@story
async def apply_is_refused(ask: Ask) -> None:
    await ask.patch("configmaps/a", config_map(), "apply")
    await ask.apply("configmaps/a", {"metadata": {"name": "a"}})
    await ask.apply("configmaps/a", config_map("b"))
    await ask.apply("configmaps/a", {**config_map(), "metadata": {"name": "a", "managedFields": [{"manager": "x"}]}})
    await ask.apply("configmaps/a", b"{")
    await ask.apply("configmaps/a", b"[]")
    await ask.apply("configmaps/a", {**config_map(), "metadata": {"name": "a", "resourceVersion": "3"}})
    await ask.apply("configmaps/a", {**config_map(), "metadata": {"name": "a", "uid": "x"}})
    await ask.apply("pods/a/status", {**pod(), "status": {"phase": "Running"}})
    await ask.apply("configmaps/a", config_map(), "x" * 129)
    await ask.patch("configmaps/a?fieldManager=one&fieldValidation=Strict", {**config_map(), "x": 1}, "apply")


@story
async def apply_and_update_beside_each_other(ask: Ask) -> None:
    await ask.create("configmaps?fieldManager=maker", config_map(x="1"), managed=True)
    await ask.apply("configmaps/a", config_map(x="2", y="1"))
    await ask.apply("configmaps/a", config_map(x="1", y="1"))
    await ask.patch("configmaps/a?fieldManager=maker", {"data": {"y": "5", "z": "6"}}, managed=True)
    await ask.apply("configmaps/a", config_map(x="1"))
    await ask.get("configmaps/a", managed=True)
    await ask.patch("configmaps/a?fieldManager=other", {"data": None}, managed=True)
    await ask.patch("configmaps/a", {"metadata": {"managedFields": [{}]}}, managed=True)
    await ask.apply("configmaps/a", config_map(x="1"))


@story
async def several_conflicts_at_once(ask: Ask) -> None:
    await ask.apply("configmaps/a", config_map(labels={"a": "1"}, x="1", y="1"))
    await ask.create("configmaps?fieldManager=maker", config_map("b", x="1"), managed=True)
    await ask.apply("configmaps/b", config_map("b", labels={"a": "1"}, y="1"))
    await ask.apply("configmaps/a", config_map(labels={"a": "2"}, x="2", y="2"), "two")
    await ask.apply("configmaps/b", config_map("b", labels={"a": "2"}, x="2", y="2"), "two")
    await ask.apply("configmaps/a?force=true", config_map(labels={"a": "2"}, x="2", y="2"), "two")


@story
async def apply_merges_lists_by_their_keys(ask: Ask) -> None:
    first = pod(containers=[{"name": "a", "image": "a:1", "env": [{"name": "X", "value": "1"}],
                             "ports": [{"containerPort": 2222}]}])  # fmt: skip
    await ask.apply("pods/a", first)
    labelled = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"l": "m"}}}
    await ask.apply("pods/a", labelled, "two")
    image = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "a", "image": "a:2"}]},
    }
    await ask.apply("pods/a", image, "two")
    await ask.apply("pods/a?force=true", image, "two")
    status = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
              "status": {"conditions": [{"type": "Mine", "status": "True",
              "lastTransitionTime": "2026-11-30T12:00:00Z"}]}}  # fmt: skip
    await ask.apply("pods/a/status", status, "three")
    await ask.apply("services/peers", service(ports=[{"name": "a", "port": 80}, {"name": "b", "port": 81}]))
    await ask.apply("services/peers", service(ports=[{"name": "b", "port": 81}]))


@story
async def apply_of_custom_kinds(ask: Ask) -> None:
    await ask.apply(
        f"{TRAININGS}/t", training(replicas=3, rules=[{"name": "a"}, {"name": "b", "codes": [1]}], tags=["x"])
    )
    await ask.apply(f"{TRAININGS}/t", training(replicas=3, rules=[{"name": "c"}], tags=["y"]), "two")
    await ask.apply(f"{TRAININGS}/t", training(replicas=3, rules=[{"name": "b", "codes": [2]}]))
    await ask.apply(f"{TRAININGS}/t", training(replicas=4), "two")
    await ask.apply(f"{TRAININGS}/t", training(replicas=0), "three")
    await ask.apply(f"{TRAININGS}/t?fieldValidation=Strict", training(replicas=3, nothing=1))
    await ask.apply(f"{TRAININGS}/t?fieldValidation=Strict", training(replicas=3, template={"any": {"thing": [1]}}))
    await ask.patch(f"{TRAININGS}/t/status?fieldManager=operator", {"status": {"phase": "Running"}}, managed=True)
    await ask.apply(f"{TRAININGS}/t/status", {**training(), "status": {"phase": "Failed"}}, "two")


@story
async def an_object_of_before_apply(ask: Ask) -> None:
    await ask.create("configmaps", config_map(x="1"))
    await ask.patch("configmaps/a", {"metadata": {"managedFields": []}}, managed=True)
    await ask.apply("configmaps/a", config_map(x="1"))
    await ask.apply("configmaps/a", config_map(x="2"))
