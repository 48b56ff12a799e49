"""What clients read about the server and its objects: tables, partial objects, discovery, OpenAPI, events, reviews."""

from typing import Any

from tests.conformance.play import TABLE, Ask, story
from tests.conformance.stories.manifests import budget, claim, config_map, lease, pod, policy, service

Json = dict[str, Any]

PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIALS = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
OURS = {
    "": ("configmaps", "events", "limitranges", "namespaces", "nodes", "persistentvolumeclaims", "persistentvolumes",
    "pods",
         "resourcequotas", "secrets", "serviceaccounts", "services"),
    "coordination.k8s.io": ("leases",), "discovery.k8s.io": ("endpointslices",), "events.k8s.io": ("events",),
    "networking.k8s.io": ("networkpolicies",), "policy": ("poddisruptionbudgets",),
    "scheduling.k8s.io": ("priorityclasses",),
    "apiextensions.k8s.io": ("customresourcedefinitions",), "test.dtj.dev": ("trainings",),
    "dtj.dev": ("distributedtrainingjobs",),
}  # fmt: skip


@story
async def tables(ask: Ask) -> None:
    made = (
        ("configmaps", config_map(x="1")), ("secrets", {"metadata": {"name": "a"}, "stringData": {"a": "b"}}),
        ("services", service()), ("pods", pod()), ("persistentvolumeclaims", claim()),
        ("serviceaccounts", {"metadata": {"name": "a"}}), ("networking.k8s.io/v1:networkpolicies", policy()),
        ("policy/v1:poddisruptionbudgets", budget(maxUnavailable="10%")), ("coordination.k8s.io/v1:leases", lease()),
        ("resourcequotas", {"metadata": {"name": "a"}, "spec": {}}),
        ("limitranges", {"metadata": {"name": "a"}, "spec": {"limits": []}}),
        ("test.dtj.dev/v1:trainings", {"apiVersion": "test.dtj.dev/v1", "kind": "Training", "metadata": {"name": "a"},
                                       "spec": {"replicas": 1}}),
    )  # fmt: skip
    for path, manifest in made:
        answer = await ask.quietly("POST", path, {**manifest, "metadata": {"name": "a"}})
        assert answer.get("kind") != "Status", answer
        await ask.get(f"{path}/a", accept=TABLE)
    await ask.get("/api/v1/namespaces/{ns}", accept=TABLE)


@story
async def tables_of_lists(ask: Ask) -> None:
    for name in ("a", "b"):
        await ask.quietly("POST", "secrets", {"metadata": {"name": name}})
    await ask.get("secrets", accept=TABLE)
    await ask.get("secrets?includeObject=None&limit=1", accept=TABLE)
    await ask.get("secrets?includeObject=Object", accept=TABLE, see="rows.0")
    await ask.get("secrets?includeObject=Some", accept=TABLE)
    await ask.get("pods", accept=TABLE, see="rows")
    await ask.get("secrets/none", accept=TABLE)
    await ask.get("secrets/a", accept=f"application/json;as=Other;v=v1;g=meta.k8s.io,{TABLE}", see="kind")
    await ask.get("secrets/a", accept="application/json;as=Table;v=v9;g=meta.k8s.io")
    await ask.get("secrets/a", accept="text/html")
    await ask.get("secrets/a", accept="*/*", see="kind")
    await ask.get("secrets/a", accept=PARTIAL)
    await ask.get("secrets", accept=PARTIALS, see="items")
    await ask.get("test.dtj.dev/v1:trainings", accept=PARTIALS)
    async with ask.watch("secrets?watch=1", accept=TABLE) as watch:
        await watch.take(2)
    async with ask.watch("secrets?watch=1", accept=PARTIAL) as watch:
        await watch.take(2)
    await ask.create("secrets", {"metadata": {"name": "c"}}, accept=TABLE)
    await ask.delete("secrets/c", accept=TABLE)


@story
async def pods_in_all_states(ask: Ask) -> None:
    """The columns that people read most: READY, STATUS and RESTARTS."""
    await ask.quietly("POST", "pods",
    pod(containers=[{"name": "a", "image": "a"}, {"name": "b", "image": "b"}],
                                          initContainers=[{"name": "i", "image": "i"}]))  # fmt: skip
    at = "2026-11-30T12:00:00Z"
    waiting = {"waiting": {"reason": "ContainerCreating"}}
    running = {"running": {"startedAt": at}}
    failed = {"terminated": {"exitCode": 3, "reason": "Error", "startedAt": at, "finishedAt": at}}
    killed = {"terminated": {"exitCode": 137, "signal": 9, "startedAt": at, "finishedAt": at}}
    done = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": at, "finishedAt": at}}

    def told(name: str, state: Json, *, ready: bool = False, restarts: int = 0, last: Json | None = None) -> Json:
        return {"name": name, "state": state, "ready": ready, "restartCount": restarts, "image": name, "imageID": "",
                "lastState": last or {}}  # fmt: skip

    states: tuple[Json, ...] = (
        {"phase": "Pending", "initContainerStatuses": [told("i", waiting)]},
        {"phase": "Pending", "initContainerStatuses": [told("i", running)]},
        {"phase": "Pending", "initContainerStatuses": [told("i", failed)]},
        {"phase": "Pending", "initContainerStatuses": [told("i", done, ready=True)],
         "containerStatuses": [told("a", {"waiting": {"reason": "ImagePullBackOff"}}), told("b", waiting)]},
        {"phase": "Running", "containerStatuses": [told("a", running, ready=True), told("b", running)]},
        {"phase": "Running", "containerStatuses": [told("a", running, ready=True, restarts=2, last=failed),
                                                   told("b", {"waiting": {"reason": "CrashLoopBackOff"}}, restarts=3)]},
        {"phase": "Running", "containerStatuses": [told("a", killed), told("b", done)]},
        {"phase": "Failed", "containerStatuses": [told("a", failed), told("b", done)]},
        {"phase": "Failed", "reason": "Evicted", "message": "x",
        "containerStatuses": [told("a", killed), told("b", killed)]},
        {"phase": "Succeeded", "containerStatuses": [told("a", done), told("b", done)]},
        {"phase": "Running", "podIP": "192.0.2.1", "podIPs": [{"ip": "192.0.2.1"}],
         "conditions": [{"type": "Ready", "status": "True"}],
         "containerStatuses": [told("a", running, ready=True), told("b", running, ready=True)]},
    )  # fmt: skip
    now = await ask.quietly("GET", "pods/a")
    for status in states:
        now = await ask.quietly("PUT", "pods/a/status", {**now, "status": status})
        await ask.get("pods/a", accept=TABLE, see="rows.0.cells")
    await ask.quietly("DELETE", "pods/a")
    await ask.get("pods/a", accept=TABLE, see="rows.0.cells")
    gated = pod("gated", schedulingGates=[{"name": "dtj.dev/gang"}], readinessGates=[{"conditionType": "x"}])
    await ask.quietly("POST", "pods", gated)
    await ask.get("pods/gated", accept=TABLE, see="rows.0.cells")


@story
async def discovery(ask: Ask) -> None:
    """Only the kinds that both serve are compared: a real server has many more."""
    for group, plurals in OURS.items():
        version = "v1alpha1" if group == "dtj.dev" else "v1"
        path = f"/apis/{group}/{version}" if group else "/api/v1"
        found = await ask.quietly("GET", path)
        kept = [one for one in found["resources"] if one["name"].partition("/")[0] in plurals]
        for one in kept:
            one.pop("storageVersionHash", None)
        ask.steps.append({"ask": f"GET {path}", "code": 200, "answer": {**found, "resources": kept}})
        if group:
            found = await ask.quietly("GET", f"/apis/{group}")
            found["versions"] = [one for one in found["versions"] if one["version"] == version]
            ask.steps.append({"ask": f"GET /apis/{group}", "code": 200, "answer": found})
    found = await ask.quietly("GET", "/apis")
    found["groups"] = sorted(one["name"] for one in found["groups"] if one["name"] in OURS)
    ask.steps.append({"ask": "GET /apis", "code": 200, "answer": found})
    await ask.get("/api", see="versions")
    await ask.get("/apis/none.dev")
    await ask.get("/apis/none.dev/v1")
    await ask.get("/api/v9")
    await ask.get("/healthz")
    await ask.get("/readyz")
    await ask.get("/livez")


@story
async def discovery_aggregated(ask: Ask) -> None:
    for root in ("/api", "/apis"):
        found = await ask.quietly("GET", root, accept=AGGREGATED)
        for group in found["items"]:
            group["metadata"].pop("creationTimestamp", None)
            for version in group["versions"]:
                ours = OURS.get(group["metadata"].get("name", ""), ())
                version["resources"] = [one for one in version["resources"] if one["resource"] in ours]
            group["versions"] = [one for one in group["versions"] if one["resources"]]
        found["items"] = [one for one in found["items"] if one["metadata"].get("name", "") in OURS]
        found["items"].sort(key=lambda one: one["metadata"].get("name", ""))
        ask.steps.append({"ask": f"GET {root}", "code": 200, "answer": found})


@story
async def openapi(ask: Ask) -> None:
    """What kubectl reads of it: the kinds, the fields with their types, and how lists merge."""
    index = await ask.quietly("GET", "/openapi/v3")
    for group in ("api/v1", "apis/policy/v1", "apis/test.dtj.dev/v1"):
        document = await ask.quietly("GET", index["paths"][group]["serverRelativeURL"])
        schemas = document["components"]["schemas"]
        for name, schema in sorted(schemas.items()):
            kinds = schema.get("x-kubernetes-group-version-kind") or ()
            ours = [one["kind"] for one in kinds if len(kinds) == 1 and one["kind"] in _EXPLAINED]
            if ours:
                answer = _outline(schema, schemas, 4)
                ask.steps.append({"ask": f"the schema of {ours[0]} in {group}", "code": 200, "answer": answer})
                assert name
        asked = sorted(_EXPLAINED_PATHS & document["paths"].keys())
        for path in asked:
            answer = {verb: sorted(one["name"] for one in about.get("parameters", []) if one["in"] == "query")
                      for verb, about in document["paths"][path].items() if verb in ("post", "patch")}  # fmt: skip
            ask.steps.append({"ask": f"the parameters of {path}", "code": 200, "answer": answer})
    await ask.get("/openapi/v3/apis/none.dev/v1")


@story
async def events(ask: Ask) -> None:
    about = {"apiVersion": "v1", "kind": "Pod", "name": "a", "namespace": ask.namespace, "uid": "x"}
    old = {"metadata": {"name": "a.1"}, "involvedObject": about, "reason": "Started", "message": "started it",
    "count": 2,
           "type": "Normal", "source": {"component": "kubelet", "host": "n1"}, "firstTimestamp": "2026-11-30T12:00:00Z",
           "lastTimestamp": "2026-11-30T12:05:00Z"}  # fmt: skip
    await ask.create("events", old)
    await ask.get("events.k8s.io/v1:events/a.1")
    new = {"metadata": {"name": "a.2"}, "regarding": about, "reason": "Failed", "note": "it failed", "type": "Warning",
           "action": "Run", "eventTime": "2026-11-30T12:00:00.000000Z", "reportingController": "dtj.dev/operator",
           "reportingInstance": "me"}  # fmt: skip
    await ask.create("events.k8s.io/v1:events", new)
    await ask.get("events/a.2")
    await ask.get("events", accept=TABLE, see="rows")
    await ask.get("events?fieldSelector=involvedObject.name%3Da,reason%3DStarted", see="items.0.metadata.name")
    await ask.patch("events/a.1", {"count": 3, "lastTimestamp": "2026-11-30T12:06:00Z"}, see="count")
    await ask.create("events", {"metadata": {"name": "a.3"}, "involvedObject": about})
    await ask.create("events", {**old, "metadata": {"name": "a.4"}, "type": "Bad"})
    await ask.create("/api/v1/namespaces/default/events", {**old, "metadata": {"name": "a.5"}})
    await ask.create("/api/v1/namespaces/default/events?dryRun=All",
                     {**old, "metadata": {"name": "n.1"}, "involvedObject": {"kind": "Node", "name": "n1"}},
                     see="involvedObject")  # fmt: skip


@story
async def who_may(ask: Ask) -> None:
    spec = {"resourceAttributes": {"namespace": ask.namespace, "verb": "create", "resource": "pods"}}
    review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    await ask.create(review, {"spec": spec}, see="spec")
    await ask.create(review, {"spec": spec}, see="status.allowed")
    await ask.create(review, {"spec": {}})
    await ask.get(review)


@story
async def the_version(ask: Ask) -> None:
    found = await ask.quietly("GET", "/version")
    ask.steps.append(
        {"ask": "GET /version", "code": 200, "answer": {key: found[key] for key in ("major", "minor", "gitVersion")}}
    )


_EXPLAINED = (
    "Pod",
    "Service",
    "ConfigMap",
    "PersistentVolumeClaim",
    "PodDisruptionBudget",
    "Training",
    "DistributedTrainingJob",
)
_EXPLAINED_PATHS = {"/api/v1/namespaces/{namespace}/pods", "/api/v1/namespaces/{namespace}/pods/{name}",
                    "/apis/dtj.dev/v1alpha1/namespaces/{namespace}/distributedtrainingjobs",
                    "/apis/dtj.dev/v1alpha1/namespaces/{namespace}/distributedtrainingjobs/{name}"}  # fmt: skip
_KEPT = ("type", "format", "required", "x-kubernetes-list-type", "x-kubernetes-list-map-keys",
         "x-kubernetes-patch-strategy", "x-kubernetes-patch-merge-key", "x-kubernetes-preserve-unknown-fields",
         "x-kubernetes-int-or-string")  # fmt: skip


def _outline(schema: Json, schemas: Json, depth: int) -> Json:
    """Types and how they merge, without descriptions, to a depth: the whole of it has thousands of lines."""
    if "allOf" in schema:
        schema = {**schema["allOf"][0], **schema}
    if "$ref" in schema:
        schema = {**schemas[schema["$ref"].rpartition("/")[2]], **schema}
    kept: Json = {key: schema[key] for key in _KEPT if key in schema}
    if "required" in kept:
        kept["required"] = sorted(kept["required"])
    if depth:
        if "properties" in schema:
            kept["properties"] = {
                name: _outline(inner, schemas, depth - 1) for name, inner in sorted(schema["properties"].items())
            }
        for key in ("items", "additionalProperties"):
            if isinstance(schema.get(key), dict):
                kept[key] = _outline(schema[key], schemas, depth - 1)
    return kept
