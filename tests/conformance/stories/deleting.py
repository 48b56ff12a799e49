"""Deletion: grace, preconditions, finalizers, propagation and the garbage collector, collections, namespaces."""

from typing import Any

from tests.conformance.play import Ask, story
from tests.conformance.stories.manifests import budget, claim, config_map, job, lease, owned, pod, policy, service

Json = dict[str, Any]


def _gone(body: Json | None) -> bool:
    return body is None


def _deleted(body: Json | None) -> bool:
    return body is not None and "deletionTimestamp" in body["metadata"]


@story
async def what_deletion_answers(ask: Ask) -> None:
    for path, manifest in (
        ("configmaps", config_map("x")), ("secrets", {"metadata": {"name": "x"}}), ("services", service("x")),
        ("pods", pod("x")), ("persistentvolumeclaims", claim("x")), ("serviceaccounts", {"metadata": {"name": "x"}}),
        ("networking.k8s.io/v1:networkpolicies", policy("x")), ("policy/v1:poddisruptionbudgets", budget("x")),
        ("coordination.k8s.io/v1:leases", lease("x")), ("resourcequotas", {"metadata": {"name": "x"}}),
        ("limitranges", {"metadata": {"name": "x"}, "spec": {"limits": []}}),
        ("test.dtj.dev/v1:trainings", {"apiVersion": "test.dtj.dev/v1", "kind": "Training", "metadata": {"name": "x"},
                                       "spec": {"replicas": 1}}),
    ):  # fmt: skip
        await ask.quietly("POST", path, manifest)
        await ask.delete(f"{path}/x")
    await ask.delete("configmaps/x")
    await ask.delete("pods/x")


@story
async def pods_have_a_grace(ask: Ask) -> None:
    await ask.quietly("POST", "/api/v1/nodes", {"metadata": {"name": "conformance-grace"}})
    ask.leaves("/api/v1/nodes/conformance-grace")
    for name in "abcdef":
        await ask.quietly("POST", "pods", pod(name, nodeName="conformance-grace", terminationGracePeriodSeconds=40))
    await ask.delete("pods/a", see="metadata")
    await ask.delete("pods/a", see="metadata")
    await ask.delete("pods/a?gracePeriodSeconds=50", see="metadata")
    await ask.delete("pods/a?gracePeriodSeconds=20", see="metadata")
    await ask.delete("pods/a", {"gracePeriodSeconds": 5}, see="metadata")
    await ask.delete("pods/a", {"gracePeriodSeconds": 0}, see="metadata")
    await ask.get("pods/a")
    await ask.delete("pods/b", {"gracePeriodSeconds": -1}, see="metadata")
    await ask.delete("pods/c?gracePeriodSeconds=x")
    await ask.delete("pods/c", {"gracePeriodSeconds": 1}, see="metadata")
    await ask.patch("pods/d/status", {"status": {"phase": "Failed"}}, see="status.phase")
    await ask.delete("pods/d", see="metadata")
    await ask.get("pods/d")
    await ask.delete("pods/e?dryRun=All", see="metadata")
    await ask.get("pods/e", see="metadata")
    await ask.patch("pods/e", {"metadata": {"finalizers": ["x.dev/stay"]}}, see="metadata.finalizers")
    await ask.delete("pods/e", see="metadata")
    await ask.delete("pods/e?gracePeriodSeconds=0", see="metadata")
    await ask.patch("pods/e", {"metadata": {"finalizers": None}}, see="metadata")
    await ask.get("pods/e")


@story
async def pods_without_a_node_go_at_once(ask: Ask) -> None:
    await ask.quietly("POST", "pods", pod())
    await ask.delete("pods/a", see="metadata")
    await ask.get("pods/a")
    await ask.quietly("POST", "pods", pod(metadata={"finalizers": ["x.dev/stay"]}))
    await ask.delete("pods/a", see="metadata")
    await ask.patch("pods/a", {"metadata": {"finalizers": ["x.dev/stay", "x.dev/new"]}})
    await ask.create("pods", pod())
    await ask.patch("pods/a", {"metadata": {"finalizers": []}}, see="metadata")
    await ask.get("pods/a")


@story
async def preconditions_and_options(ask: Ask) -> None:
    made = await ask.create("configmaps", config_map(), see="metadata")
    other = "11111111-2222-3333-4444-555555555555"
    await ask.delete("configmaps/a", {"preconditions": {"uid": other}})
    await ask.delete("configmaps/a", {"preconditions": {"resourceVersion": "1"}})
    await ask.delete("configmaps/a", {"propagationPolicy": "Sideways"})
    await ask.delete("configmaps/a", {"propagationPolicy": "Orphan", "orphanDependents": True})
    await ask.delete("configmaps/a?propagationPolicy=Sideways")
    await ask.delete("configmaps/a", {"dryRun": ["Some"]})
    await ask.delete("configmaps/a", {"gracePeriodSeconds": "x"})
    await ask.delete("configmaps/a", {"kind": "ConfigMap", "apiVersion": "v1"})
    await ask.delete("configmaps/a", {"kind": "DeleteOptions", "apiVersion": "v1", "nothing": 1, "dryRun": ["All"]})
    await ask.delete("configmaps/a", b"{")
    right = {"uid": made["metadata"]["uid"], "resourceVersion": made["metadata"]["resourceVersion"]}
    await ask.delete("configmaps/a", {"preconditions": right})


@story
async def finalizers_hold_an_object(ask: Ask) -> None:
    manifest = config_map()
    manifest["metadata"]["finalizers"] = ["x.dev/a", "x.dev/b"]
    await ask.create("configmaps", manifest)
    await ask.delete("configmaps/a")
    await ask.delete("configmaps/a")
    await ask.patch("configmaps/a", {"data": {"still": "changes"}})
    await ask.patch("configmaps/a", {"metadata": {"finalizers": ["x.dev/b"]}}, see="metadata")
    await ask.patch("configmaps/a", {"metadata": {"finalizers": ["x.dev/b", "x.dev/c"]}})
    await ask.patch("configmaps/a", {"metadata": {"deletionTimestamp": None}}, see="metadata")
    await ask.patch("configmaps/a", {"metadata": {"finalizers": None}})
    await ask.get("configmaps/a")
    for finalizer in ("plain", "not valid", "x.dev/a/b", ""):
        manifest["metadata"]["finalizers"] = [finalizer]
        await ask.create("configmaps?dryRun=All", manifest)


@story
async def what_is_owned_goes_with_its_owner(ask: Ask) -> None:
    owner = await ask.create("configmaps", config_map("owner"), see="metadata.name")
    other = await ask.create("configmaps", config_map("other"), see="metadata.name")
    await ask.create("pods", owned(pod(), owner, controller=True, blockOwnerDeletion=True), see="metadata")
    await ask.create("secrets", owned(owned({"metadata": {"name": "s"}}, owner), other), see="metadata")
    await ask.delete("configmaps/owner")
    await ask.until("pods", "a", _gone)
    await ask.until("secrets", "s", lambda body: body is None or len(body["metadata"]["ownerReferences"]) == 1)
    await ask.get("secrets/s", see="metadata")
    stranger = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "none", "uid": other["metadata"]["uid"][::-1]},
    }
    await ask.create("secrets", owned({"metadata": {"name": "t"}}, stranger), see="metadata.name")
    await ask.until("secrets", "t", _gone)


@story
async def deletion_in_the_foreground(ask: Ask) -> None:
    owner = await ask.create("configmaps", config_map("owner"), see="metadata.name")
    held = owned({"metadata": {"name": "s", "finalizers": ["x.dev/stay"]}}, owner, blockOwnerDeletion=True)
    await ask.create("secrets", held, see="metadata.ownerReferences")
    await ask.delete("configmaps/owner?propagationPolicy=Foreground")
    await ask.until("secrets", "s", _deleted)
    await ask.get("secrets/s", see="metadata.finalizers")
    await ask.get("configmaps/owner", see="metadata.finalizers")
    await ask.patch("secrets/s", {"metadata": {"finalizers": None}}, see="metadata.name")
    await ask.until("configmaps", "owner", _gone)
    await ask.get("configmaps/owner")


@story
async def orphans_stay(ask: Ask) -> None:
    owner = await ask.create("configmaps", config_map("owner"), see="metadata.name")
    await ask.create("secrets", owned({"metadata": {"name": "s"}}, owner), see="metadata.name")
    await ask.delete("configmaps/owner", {"propagationPolicy": "Orphan"})
    await ask.until("configmaps", "owner", _gone)
    await ask.get("secrets/s", see="metadata")


@story
async def owners_have_rules(ask: Ask) -> None:
    uid = "11111111-2222-3333-4444-555555555555"
    right = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": uid}
    wrong: Any
    for wrong in (
        [{**right, "uid": ""}], [{**right, "name": ""}], [{**right, "kind": ""}], [{**right, "apiVersion": ""}],
        [{**right, "apiVersion": "a/b/c"}], [{**right, "kind": "Event"}], [{}],
        [{**right, "controller": True}, {**right, "name": "p", "uid": uid[::-1], "controller": True}],
    ):  # fmt: skip
        await ask.create("configmaps?dryRun=All", {"metadata": {"name": "a", "ownerReferences": wrong}})
    await ask.create(
        "configmaps?dryRun=All", {"metadata": {"name": "a", "ownerReferences": [right, right]}}, see="metadata"
    )


@story
async def collections(ask: Ask) -> None:
    for name in ("a", "b", "c"):
        await ask.quietly("POST", "secrets", {"metadata": {"name": name, "labels": {"l": name}}})
    await ask.delete("secrets?labelSelector=l+in+(a,b)&dryRun=All", see="items")
    await ask.delete("secrets?labelSelector=l+in+(a,b)")
    await ask.get("secrets", see="items")
    await ask.delete("secrets?fieldSelector=metadata.name%3Dc", {"propagationPolicy": "Background"}, see="items")
    await ask.delete("secrets?labelSelector=l", see="items")
    await ask.delete("secrets?labelSelector=not+valid+at+all")
    for name in ("a", "b"):
        await ask.quietly("POST", "pods", pod(name, metadata={"finalizers": ["x.dev/stay"]}))
    await ask.delete("pods", see="items.0.metadata")
    await ask.get("pods/b", see="metadata")
    for name in ("a", "b"):
        await ask.quietly(
            "PATCH", f"pods/{name}", {"metadata": {"finalizers": None}}, media="application/merge-patch+json"
        )


@story
async def namespaces_go_with_what_is_in_them(ask: Ask) -> None:
    name = "conformance-going"
    await ask.create("/api/v1/namespaces", {"metadata": {"name": name}})
    held = config_map()
    held["metadata"]["finalizers"] = ["x.dev/stay"]
    await ask.create(f"/api/v1/namespaces/{name}/configmaps", held, see="metadata.name")
    await ask.delete(f"/api/v1/namespaces/{name}")
    await ask.create(f"/api/v1/namespaces/{name}/configmaps", config_map("late"))
    await ask.create(f"/api/v1/namespaces/{name}/pods", pod("late"))
    await ask.patch(f"/api/v1/namespaces/{name}/configmaps/a", {"data": {"a": "b"}}, see="data")
    await ask.create("/api/v1/namespaces", {"metadata": {"name": name}})
    await ask.until("/api/v1/namespaces", name, lambda body: bool(body and (body["status"].get("conditions"))))
    await ask.get(f"/api/v1/namespaces/{name}", see="status")
    await ask.patch(f"/api/v1/namespaces/{name}/configmaps/a", {"metadata": {"finalizers": None}}, see="metadata.name")
    await ask.until("/api/v1/namespaces", name, _gone)
    await ask.get(f"/api/v1/namespaces/{name}")
    await ask.delete("/api/v1/namespaces/default")
    await ask.delete("/api/v1/namespaces/kube-system")
    await ask.delete("/api/v1/namespaces/conformance-nowhere")


@story
async def a_training_job_can_be_held(ask: Ask) -> None:
    """What the operator and its users do to a job, apart from any operator: suspended, it is nobody's business."""
    path = "dtj.dev/v1alpha1:distributedtrainingjobs"
    made = await ask.create(
        path,
        {**job(suspend=True), "metadata": {"name": "mnist", "finalizers": ["x.dev/stay"]}},
        see="metadata.finalizers",
    )
    await ask.create(
        "secrets", owned({"metadata": {"name": "s"}}, made, controller=True, blockOwnerDeletion=True), see="metadata"
    )
    await ask.delete(f"{path}/mnist?propagationPolicy=Background", see="metadata.finalizers")
    await ask.patch(f"{path}/mnist", {"metadata": {"finalizers": None}}, see="metadata.name")
    await ask.until(path, "mnist", _gone)
    await ask.until("secrets", "s", _gone)
    await ask.get("secrets/s")
