"""Pods on their way to a node: gates, binding, eviction, logs of a pod that runs nowhere, priority."""

from typing import Any

from tests.conformance.play import Ask, story
from tests.conformance.stories.manifests import budget, pod

Json = dict[str, Any]

NODE = "conformance-scheduling"
GATED: Json = {"schedulingGates": [{"name": "dtj.dev/gang"}, {"name": "x.dev/other"}]}


@story
async def gates(ask: Ask) -> None:
    await ask.create("pods", pod(**GATED), see="status")
    await ask.patch("pods/a", {"spec": {"nodeSelector": {"zone": "a"}}}, see="spec.nodeSelector")
    await ask.patch("pods/a", {"spec": {"nodeSelector": {"zone": "b"}}})
    terms = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    await ask.patch("pods/a", {"spec": {"affinity": affinity}}, see="spec.affinity")
    await ask.patch("pods/a", {"spec": {"tolerations": [{"key": "x", "operator": "Exists"}]}})
    await ask.patch("pods/a", {"spec": {"containers": [{"name": "trainer", "image": "t", "args": ["x"]}]}})
    await ask.create("pods/a/binding", {"target": {"kind": "Node", "name": NODE}})
    await ask.create("pods/a/binding", {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": NODE}})
    await ask.patch("pods/a", {"spec": {"schedulingGates": [{"name": "dtj.dev/gang"}]}}, see="spec.schedulingGates")
    await ask.patch("pods/a", {"spec": {"schedulingGates": [*GATED["schedulingGates"], {"name": "x.dev/third"}]}})
    await ask.patch("pods/a", {"spec": {"schedulingGates": None}}, see="metadata")
    await ask.get("pods/a", see="status")
    await ask.patch("pods/a", {"spec": {"schedulingGates": [{"name": "dtj.dev/gang"}]}})
    await ask.patch("pods/a", {"spec": {"nodeSelector": {"zone": "a", "more": "b"}}})
    await ask.create("pods", pod("b", nodeName=NODE, **GATED))
    await ask.create("pods", pod("b", schedulingGates=[{"name": "not valid"}]))
    await ask.create("pods", pod("b", schedulingGates=[{"name": "a"}, {"name": "a"}]))
    await ask.create("pods", pod("c", **GATED), see="spec.schedulingGates")
    gone = {"$deleteFromPrimitiveList/x": [], "schedulingGates": [{"name": "dtj.dev/gang", "$patch": "delete"}]}
    await ask.patch(
        "pods/c", {"spec": {"schedulingGates": gone["schedulingGates"]}}, "strategic", see="spec.schedulingGates"
    )
    await ask.patch("pods/c", [{"op": "remove", "path": "/spec/schedulingGates"}], "json", see="spec.schedulingGates")


@story
async def binding(ask: Ask) -> None:
    await ask.create("pods", pod(), see="status")
    await ask.create("pods/a/binding", {"metadata": {"name": "a"}, "target": {}})
    await ask.create("pods/a/binding", {"metadata": {"name": "a"}})
    await ask.create("pods/a/binding", {"metadata": {"name": "b"}, "target": {"kind": "Node", "name": NODE}})
    await ask.create("pods/a/binding", {"metadata": {"name": "a"}, "target": {"kind": "Pod", "name": NODE}})
    await ask.create("pods/a/binding", {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": NODE}})
    await ask.get("pods/a", see="status")
    await ask.get("pods/a", see="spec.nodeName")
    await ask.create("pods/a/binding", {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "other"}})
    await ask.create("pods/none/binding", {"metadata": {"name": "none"}, "target": {"kind": "Node", "name": NODE}})
    await ask.create("pods", pod("b", nodeName=NODE), see="status")


@story
async def eviction(ask: Ask) -> None:
    path = "policy/v1:poddisruptionbudgets"
    await ask.quietly("POST", "/api/v1/nodes", {"metadata": {"name": NODE}})
    ask.leaves(f"/api/v1/nodes/{NODE}")
    labels = {"labels": {"job": "mnist"}}
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    for name in ("a", "b"):
        await ask.quietly("POST", "pods", pod(name, metadata=labels, nodeName=NODE))
        await ask.quietly("PATCH", f"pods/{name}/status", {"status": ready}, media="application/merge-patch+json")
    await ask.quietly("POST", path, budget(minAvailable=2))
    await ask.until(path, "mnist", lambda body: bool(body and body["status"].get("currentHealthy") == 2))
    await ask.create("pods/a/eviction", _eviction("a"))
    await ask.create("pods/a/eviction?dryRun=All", _eviction("a"))
    await ask.get(f"{path}/mnist", see="status")
    await ask.quietly("PATCH", f"{path}/mnist", {"spec": {"minAvailable": 1}}, media="application/merge-patch+json")
    await ask.until(path, "mnist", lambda body: bool(body and body["status"].get("disruptionsAllowed") == 1))
    await ask.create("pods/a/eviction?dryRun=All", _eviction("a"))
    await ask.create("pods/a/eviction", {**_eviction("a"), "deleteOptions": {"gracePeriodSeconds": 7}})
    await ask.get("pods/a", see="status.conditions")
    await ask.get("pods/a", see="metadata")
    await ask.create("pods/b/eviction", {**_eviction("b"), "deleteOptions": {"preconditions": {"uid": "x"}}})
    await ask.create("pods/b/eviction", _eviction("b"))
    await ask.create("pods/none/eviction", _eviction("none"))
    await ask.create("pods/b/eviction", _eviction("other"))
    await ask.create("pods/b/eviction", {"metadata": {"name": "b"}})
    await ask.quietly("POST", path, budget("second", minAvailable=1))
    await ask.create("pods/b/eviction", _eviction("b"))
    await ask.quietly("POST", "pods", pod("free"))
    await ask.create("pods/free/eviction", _eviction("free"))
    await ask.get("pods/free")


@story
async def logs_of_a_pod_that_runs_nowhere(ask: Ask) -> None:
    two = [{"name": "a", "image": "a"}, {"name": "b", "image": "b"}]
    await ask.quietly("POST", "pods", pod("one"))
    await ask.quietly("POST", "pods", pod("two", containers=two, initContainers=[{"name": "i", "image": "i"}]))
    await ask.get("pods/one/log")
    await ask.get("pods/two/log")
    await ask.get("pods/two/log?container=c")
    await ask.get("pods/two/log?container=i")
    await ask.get("pods/none/log")
    await ask.get("pods/one/log?tailLines=-1")
    await ask.get("pods/one/log?tailLines=x")
    await ask.get("pods/one/log?sinceSeconds=0")
    await ask.get("pods/one/log?sinceSeconds=1&sinceTime=2026-11-30T12:00:00Z")
    await ask.get("pods/one/log?limitBytes=0")


@story
async def priority(ask: Ask) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    ask.leaves(f"{classes}/conformance-high")
    await ask.quietly(
        "POST", classes, {"metadata": {"name": "conformance-high"}, "value": 1000, "preemptionPolicy": "Never"}
    )
    made = await ask.create("pods", pod(priorityClassName="conformance-high"), see="spec.priority")
    ask.steps.append({"ask": "its policy", "code": 201, "answer": made["spec"]["preemptionPolicy"]})
    await ask.create("pods", pod("b", priorityClassName="conformance-none"))
    await ask.create("pods", pod("c", priorityClassName="conformance-high", priority=5))
    await ask.create("pods?dryRun=All", pod("c", priorityClassName="system-node-critical"), see="spec.priority")
    await ask.create("pods?dryRun=All", pod("c", priority=7))
    await ask.patch(f"{classes}/conformance-high", {"value": 5})
    await ask.create(classes, {"metadata": {"name": "conformance-too-high"}, "value": 1000000001})
    await ask.create(classes, {"metadata": {"name": "system-conformance"}, "value": 5})


@story
async def what_a_namespace_gives_and_allows(ask: Ask) -> None:
    item = {"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "100m"}, "default": {"memory": "1Gi"}}
    await ask.quietly("POST", "limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [item]}})
    await ask.create("pods?dryRun=All", pod(), see="spec.containers")
    await ask.create("pods?dryRun=All", pod(), see="metadata")
    for resources in (
        {"limits": {"cpu": "3"}},
        {"requests": {"cpu": "50m"}},
        {"limits": {"cpu": "3", "memory": "2Gi"}},
    ):
        await ask.create("pods?dryRun=All", pod(containers=[{"name": "a", "image": "b", "resources": resources}]))
    await ask.create("pods?dryRun=All", pod(serviceAccountName="nobody"))


@story
async def quotas(ask: Ask) -> None:
    hard = {"pods": "1", "requests.cpu": "1", "secrets": "2", "services": "0"}
    await ask.quietly("POST", "resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    await ask.until("resourcequotas", "q", lambda body: bool(body and "used" in body.get("status", {})))
    await ask.create("pods?dryRun=All", pod())
    big = [{"name": "a", "image": "b", "resources": {"requests": {"cpu": "2"}}}]
    await ask.create("pods?dryRun=All", pod(containers=big))
    small = [{"name": "a", "image": "b", "resources": {"requests": {"cpu": "500m"}}}]
    await ask.create("pods", pod(containers=small), see="metadata.name")
    await ask.create("pods", pod("b", containers=small))
    await ask.create("services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    await ask.until("resourcequotas", "q", lambda body: bool(body and body["status"]["used"].get("pods") == "1"))
    await ask.get("resourcequotas/q", see="status")


def _eviction(name: str) -> Json:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
