"""Lists: selectors, paging, resource versions; and what is asked wrongly."""

from tests.conformance.play import Ask, story
from tests.conformance.stories.manifests import config_map, pod, service


async def _five(ask: Ask) -> None:
    for number in range(5):
        labels = {"number": str(number), "parity": ("even", "odd")[number % 2]} | ({"first": ""} if not number else {})
        await ask.quietly("POST", "secrets", {"metadata": {"name": f"s{number}", "labels": labels}})


@story
async def label_selectors(ask: Ask) -> None:
    await _five(ask)
    selectors = (
        "parity=odd", "parity==odd", "parity!=odd", "number in (1,3)", "number notin (1, 3)", "first", "!first",
        "number>2", "number<2", "parity=odd,number=1", "first=", "none=x", "parity in (odd)", " parity = odd ",
        "number in ()", "a=b=c", "in (a)", "number in 1", "=", "a,,b", "not valid", "number>two", "parity in (odd",
        "a/b/c=d", "parity=" + "x" * 64,
    )  # fmt: skip
    for selector in selectors:
        found = await ask.quietly("GET", f"secrets?labelSelector={selector.replace('=', '%3D')}")
        names = [item["metadata"]["name"] for item in found.get("items", [])]
        ask.steps.append({"ask": f"secrets with labels {selector}", "code": found.get("code", 200),
                          "answer": names if "items" in found else found})  # fmt: skip


@story
async def field_selectors(ask: Ask) -> None:
    # On nodes without a kubelet, which would see to the pods while they are listed.
    for name, node in (("a", "nowhere-1"), ("b", "nowhere-2"), ("c", "")):
        await ask.quietly("POST", "pods", pod(name, nodeName=node or None, restartPolicy="Never"))
    selectors = (
        "metadata.name=a", "metadata.name!=a", "spec.nodeName=nowhere-1", "spec.nodeName=",
        "spec.nodeName!=,metadata.name!=a",
        "status.phase=Pending", "status.phase!=Pending", "spec.restartPolicy=Never", "metadata.namespace=elsewhere",
        "spec.schedulerName=nobody", "spec.serviceAccountName=default", "spec.hostNetwork=false", "status.podIP=",
        "spec.hostname=x", "metadata.labels=x", "a", "a>b", "metadata.name==a", "metadata.name=a=b",
        "status.nominatedNodeName=",
    )  # fmt: skip
    for selector in selectors:
        found = await ask.quietly("GET", f"pods?fieldSelector={selector.replace('=', '%3D')}")
        names = [item["metadata"]["name"] for item in found.get("items", [])]
        ask.steps.append({"ask": f"pods with fields {selector}", "code": found.get("code", 200),
                          "answer": names if "items" in found else found})  # fmt: skip
    await ask.get("configmaps?fieldSelector=data.a%3Db")
    await ask.get("secrets?fieldSelector=type%3DOpaque", see="items")
    await ask.get("services?fieldSelector=spec.clusterIP%3DNone", see="items")
    await ask.get("events?fieldSelector=involvedObject.kind%3DPod,reason%3DX,type%3DNormal", see="items")
    await ask.get("events?fieldSelector=involvedObject.field%3DPod")
    await ask.get("events.k8s.io/v1:events?fieldSelector=regarding.kind%3DPod", see="items")
    await ask.get("test.dtj.dev/v1:trainings?fieldSelector=metadata.name%3Dt", see="items")
    await ask.get("test.dtj.dev/v1:trainings?fieldSelector=spec.replicas%3D3")
    await ask.get("policy/v1:poddisruptionbudgets?fieldSelector=metadata.name%3Dx", see="items")
    await ask.get("/api/v1/namespaces?fieldSelector=status.phase%3DNever", see="items")
    await ask.get("/api/v1/nodes?fieldSelector=spec.unschedulable%3Dnever", see="items")


@story
async def lists_of_all_kinds(ask: Ask) -> None:
    await ask.create("configmaps", config_map(labels={"mine": "x"}), see="metadata.name")
    await ask.create("services", service(), see="metadata.name")
    await ask.get("configmaps?labelSelector=mine")
    await ask.get("services")
    await ask.get("pods")
    await ask.get("test.dtj.dev/v1:trainings")
    await ask.get("/api/v1/configmaps?labelSelector=mine&fieldSelector=metadata.namespace%3D{ns}", see="items")


@story
async def pages(ask: Ask) -> None:
    await _five(ask)
    first = await ask.get("secrets?limit=2")
    await ask.quietly("DELETE", "secrets/s3")
    await ask.quietly("POST", "secrets", {"metadata": {"name": "s2a"}})
    token = first["metadata"]["continue"]
    second = await ask.get(f"secrets?limit=2&continue={token}")
    await ask.get(f"secrets?limit=2&continue={second['metadata']['continue']}")
    await ask.get(f"secrets?continue={token}")
    await ask.get("secrets?limit=2&labelSelector=parity%3Deven", see="metadata")
    await ask.get("secrets?limit=5", see="metadata")
    await ask.get("secrets?limit=0", see="metadata")
    await ask.get("secrets?limit=-1", see="metadata")
    await ask.get("secrets?limit=x")
    await ask.get("secrets?continue=nonsense")
    await ask.get(f"secrets?continue={token}&resourceVersion=1")
    await ask.get(f"secrets?limit=2&resourceVersion={first['metadata']['resourceVersion']}&resourceVersionMatch=Exact")


@story
async def lists_at_a_version(ask: Ask) -> None:
    made = await ask.create("secrets", {"metadata": {"name": "a"}}, see="metadata.name")
    later = await ask.create("secrets", {"metadata": {"name": "b"}}, see="metadata.name")
    old, new = made["metadata"]["resourceVersion"], later["metadata"]["resourceVersion"]
    await ask.get("secrets?resourceVersion=0", see="kind")
    await ask.get(f"secrets?resourceVersion={new}&resourceVersionMatch=NotOlderThan", see="items")
    here = len(ask.steps)
    for query in (
        f"resourceVersion={old}&resourceVersionMatch=Exact",
        f"resourceVersion={old}&resourceVersionMatch=Sometimes",
        "resourceVersion=0&resourceVersionMatch=Exact",
        "resourceVersionMatch=Exact",
        "resourceVersion=x",
        "resourceVersion=-1",
        "sendInitialEvents=true",
        "timeoutSeconds=x",
        "watch=x&timeoutSeconds=1",
        "allowWatchBookmarks=x",
    ):
        await ask.get(f"secrets?{query}")
    # What was asked holds a version of this server alone.
    for step in ask.steps[here:]:
        step["ask"] = step["ask"].replace(f"resourceVersion={old}", "resourceVersion=<old>")
    await ask.get("secrets/a?resourceVersion=0", see="metadata.name")
    await ask.get("secrets/a?resourceVersion=x")


@story
async def a_version_that_is_to_come(ask: Ask) -> None:
    await ask.get("secrets?resourceVersion=99999999999&timeoutSeconds=1")
    await ask.get("secrets?resourceVersion=99999999999&resourceVersionMatch=NotOlderThan&timeoutSeconds=1")
