"""kubectl, as a person types it: what it prints, and how it ends."""

from typing import Any

from tests.conformance.play import Ask, story
from tests.conformance.stories.custom import training
from tests.conformance.stories.manifests import budget, claim, config_map, job, pod, policy, service

Json = dict[str, Any]

RUNNING: Json = {
    "phase": "Running",
    "podIP": "192.0.2.1",
    "podIPs": [{"ip": "192.0.2.1"}],
    "startTime": "2026-11-30T12:00:00Z",
    "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-30T12:00:00Z"}],
    "containerStatuses": [{
        "name": "trainer", "ready": True, "restartCount": 1, "image": "trainer:1", "imageID": "",
        "state": {"running": {"startedAt": "2026-11-30T12:00:00Z"}},
        "lastState": {"terminated": {"exitCode": 3, "reason": "Error", "finishedAt": "2026-11-30T12:00:00Z",
                                     "startedAt": "2026-11-30T12:00:00Z"}},
    }],
}  # fmt: skip
NODE = "conformance-kubectl"


@story
async def kubectl_gets(ask: Ask) -> None:
    await ask.kubectl("get pods")
    await ask.quietly("POST", "/api/v1/nodes", {"metadata": {"name": NODE}})
    ask.leaves(f"/api/v1/nodes/{NODE}")
    await ask.kubectl("create -f -", pod(nodeName=NODE, metadata={"labels": {"job": "mnist"}}))
    await ask.kubectl("create -f -", pod("b"))
    await ask.quietly("PATCH", "pods/a/status", {"status": RUNNING}, media="application/merge-patch+json")
    for words in (
        "get pods", "get po -o wide", "get pods -l job=mnist -o name",
        f"get pods --field-selector spec.nodeName={NODE} -o name",
        "get pods --show-labels", "get pods -L job", "get pods -o custom-columns=N:.metadata.name,NODE:.spec.nodeName",
        "get pods -o jsonpath={.items[*].metadata.name}", "get pods --sort-by=.metadata.name -o name",
        "get pod/a pod/b",
        "get pods,services", "get pods --no-headers", "get pod none", "get nothing", "get pods a --output-watch-events",
        "get pod a -o go-template={{.metadata.name}}", "get pods --chunk-size=1", "get all", "get -f -",
        "get pods --raw=/x",
    ):  # fmt: skip
        await ask.kubectl(words, pod())
    await ask.kubectl("get --raw /api/v1/namespaces/conformance-none/pods/x")


@story
async def kubectl_describes(ask: Ask) -> None:
    await ask.quietly("POST", "/api/v1/nodes", {"metadata": {"name": f"{NODE}-2"}})
    ask.leaves(f"/api/v1/nodes/{NODE}-2")
    made = await ask.quietly("POST", "pods", pod(nodeName=f"{NODE}-2"))
    await ask.quietly("PATCH", "pods/a/status", {"status": RUNNING}, media="application/merge-patch+json")
    about = {"apiVersion": "v1", "kind": "Pod", "name": "a", "namespace": ask.namespace, "uid": made["metadata"]["uid"]}
    event = {"metadata": {"name": "a.1"}, "involvedObject": about, "reason": "Started", "message": "Started container",
             "type": "Normal", "count": 1, "source": {"component": "kubelet"}, "firstTimestamp": "2026-11-30T12:00:00Z",
             "lastTimestamp": "2026-11-30T12:00:00Z"}  # fmt: skip
    await ask.quietly("POST", "events", event)
    await ask.kubectl("describe pod a")
    await ask.kubectl("events --for pod/a")
    await ask.kubectl("get events")
    for path, manifest in (
        ("services", service()), ("persistentvolumeclaims", claim()), ("configmaps", config_map(k="v")),
        ("networking.k8s.io/v1:networkpolicies", policy(ingress=[{"from": [{"podSelector": {}}]}])),
        ("test.dtj.dev/v1:trainings", training(replicas=2)),
        ("secrets", {"metadata": {"name": "s"}, "stringData": {"a": "b"}}),
        ("policy/v1:poddisruptionbudgets", budget("other", selector={"matchLabels": {"x": "y"}}, maxUnavailable=0)),
    ):  # fmt: skip
        await ask.quietly("POST", path, manifest)
    await ask.until(
        "policy/v1:poddisruptionbudgets", "other", lambda body: bool(body and body["status"].get("observedGeneration"))
    )
    for words in (
        "service peers",
        "pvc checkpoints",
        "configmap a",
        "netpol mnist",
        "pdb other",
        "tr t",
        "secret s",
        "pod none",
    ):
        await ask.kubectl(f"describe {words} --show-events=false")


@story
async def kubectl_applies(ask: Ask) -> None:
    await ask.kubectl("apply -f -", config_map(x="1", y="2"))
    await ask.kubectl("apply -f -", config_map(x="1", y="2"))
    await ask.kubectl("diff -f -", config_map(x="1", y="3"))
    await ask.kubectl("diff -f -", config_map(x="1", y="2"))
    await ask.kubectl("apply -f -", config_map(x="3"))
    await ask.kubectl("get configmap a -o jsonpath={.data}")
    await ask.kubectl("apply -f - --dry-run=server", config_map(x="4"))
    await ask.kubectl("apply -f - --dry-run=client", config_map(x="4"))
    await ask.kubectl("apply -f - --server-side", config_map(x="3"))
    await ask.kubectl("apply -f - --server-side --field-manager=me", config_map(x="5"))
    await ask.kubectl("apply -f - --server-side --field-manager=me --force-conflicts", config_map(x="5"))
    await ask.kubectl("apply -f - --server-side", config_map())
    await ask.kubectl("apply -f -", pod())
    await ask.kubectl("apply -f -", pod(containers=[{"name": "trainer", "image": "trainer:2"}]))
    await ask.kubectl("apply -f -", pod(hostname="x"))
    await ask.kubectl("apply -f -", training(replicas=3))
    await ask.kubectl("apply -f -", training(replicas=3))
    await ask.kubectl("apply -f -", training(replicas=4))
    await ask.kubectl("diff -f -", training(replicas=5))
    await ask.kubectl("apply view-last-applied configmap a")
    await ask.kubectl("replace -f -", config_map(z="1"))
    await ask.kubectl("replace -f -", config_map("none", z="1"))


@story
async def kubectl_is_told_what_is_wrong(ask: Ask) -> None:
    typo = pod(containers=[{"name": "trainer", "imagee": "x"}])
    await ask.kubectl("apply -f -", typo)
    await ask.kubectl("apply -f - --validate=warn", {**config_map(), "dataa": {}})
    await ask.kubectl("create -f -", training(replicas=0))
    await ask.kubectl("create -f -", training(replicas=2, strategy="None"))
    await ask.kubectl("create -f -", {"apiVersion": "v9", "kind": "Pod", "metadata": {"name": "a"}})
    await ask.kubectl("create -f -", {"apiVersion": "v1", "kind": "Pod"})
    await ask.kubectl("create -f -", {"apiVersion": "v1"})
    await ask.kubectl("create -f - --dry-run=server", job(template={"spec": {"containers": []}}))
    wrong = job()
    wrong["spec"]["roles"] = {"worker": {"replicas": 0}}
    await ask.kubectl("create -f - --dry-run=server", wrong)
    await ask.kubectl("create -f - --dry-run=server", {**job(), "spec": {**job()["spec"], "typo": 1}})


@story
async def kubectl_explains(ask: Ask) -> None:
    for words in (
        "explain dtj.kind", "explain dtj.spec.nothing", "explain training", "explain training.spec",
        "explain training.spec.rules", "explain training --recursive",
        "explain pod.spec.containers.resources.limits", "explain pods.spec.tolerations.tolerationSeconds",
        "explain services.spec.ports.targetPort", "explain pvc.spec.accessModes", "explain nothing",
        "explain pod.metadata.labels", "explain pod.spec.volumes.emptyDir.sizeLimit",
    ):  # fmt: skip
        await ask.kubectl(words)


@story
async def kubectl_changes(ask: Ask) -> None:
    await ask.kubectl("create -f -", pod())
    for words in (
        "label pod a team=vision", "label pod a team=other", "label pod a team=other --overwrite", "label pod a team-",
        "annotate pod a note=hello", "set image pod/a trainer=trainer:2",
        "patch pod a -p {\"metadata\":{\"labels\":{\"a\":\"b\"}}}",
        "patch pod a --type=json -p [{\"op\":\"remove\",\"path\":\"/metadata/labels/a\"}]",
        "patch pod a --type=json -p [{\"op\":\"remove\",\"path\":\"/metadata/labels/a\"}]",
        "patch pod a -p {\"spec\":{\"hostname\":\"x\"}}",
        "patch pod a --subresource=status --type=merge -p {\"status\":{\"phase\":\"Failed\"}}",
        "get pod a -o jsonpath={.metadata.labels}{.metadata.annotations}{.status.phase}", "patch pod none -p {}",
        "create configmap made --from-literal=a=b", "create configmap made --from-literal=a=b",
        "create secret generic s --from-literal=key=value", "create service clusterip web --tcp=80:8080",
        "create serviceaccount trainer", "create quota q --hard=pods=5",
        "create pdb b --min-available=50% --selector=a=b",
        "get configmap/made secret/s service/web sa/trainer quota/q pdb/b",
        "run quick --image=x --restart=Never --overrides={\"spec\":{\"schedulerName\":\"nobody\"}}",
        "run quick --image=x --restart=Never --dry-run=server -o name", "expose pod quick --port=80",
        "get endpoints none",
        "auth can-i create pods", "logs a", "logs none", "wait --for=condition=Ready pod/a --timeout=0s",
        "wait --for=jsonpath={.status.phase}=Failed pod/a --timeout=60s", "wait --for=delete pod/none --timeout=60s",
    ):  # fmt: skip
        await ask.kubectl(words)


@story
async def kubectl_deletes(ask: Ask) -> None:
    await ask.kubectl("create -f -", config_map())
    await ask.kubectl("delete configmap a --dry-run=server")
    await ask.kubectl("delete -f -", config_map())
    await ask.kubectl("delete -f -", config_map())
    await ask.kubectl("delete configmap a --ignore-not-found")
    for name in ("a", "b", "c"):
        await ask.kubectl("create -f -", pod(name), quiet=True)
    await ask.kubectl("delete pod a --wait --timeout=60s")
    await ask.kubectl("delete pods -l x=y")
    await ask.kubectl("delete pod b --grace-period=0 --force")
    await ask.kubectl("delete pods --all")
    # Where no kubelet gets it, which would end it sooner or later than it is asked for.
    held = pod("held", metadata={"finalizers": ["x.dev/stay"]}, schedulingGates=[{"name": "x.dev/never"}])
    await ask.kubectl("create -f -", held, quiet=True)
    await ask.kubectl("delete pod held --wait=false")
    await ask.kubectl("get pod held")
    await ask.kubectl("delete pod held --timeout=1s")
    await ask.kubectl('patch pod held --type=merge -p {"metadata":{"finalizers":null}}')
    await ask.kubectl("create -f -", training(replicas=2))
    await ask.kubectl("delete tr t --cascade=foreground")
    await ask.kubectl("create -f -", training(replicas=2), quiet=True)
    await ask.kubectl("delete tr --all --cascade=orphan")


@story
async def kubectl_looks_after_nodes(ask: Ask) -> None:
    node = f"{NODE}-3"
    await ask.quietly("POST", "/api/v1/nodes", {"metadata": {"name": node}})
    ask.leaves(f"/api/v1/nodes/{node}")
    await ask.kubectl("create -f -", pod("a", nodeName=node, terminationGracePeriodSeconds=0), quiet=True)
    await ask.kubectl(f"cordon {node}")
    await ask.kubectl(f"cordon {node}")
    await ask.kubectl(f"drain {node} --timeout=60s")
    await ask.kubectl(f"drain {node} --force --timeout=60s")
    await ask.kubectl(f"uncordon {node}")
    await ask.kubectl(f"taint node {node} gpu=yes:NoSchedule")
    await ask.kubectl(f"label node {node} zone=a")
    await ask.kubectl(f"get node {node} -o jsonpath={{.metadata.labels}}")


@story
async def kubectl_shows_training_jobs(ask: Ask) -> None:
    await ask.kubectl("create -f -", job(suspend=True))
    await ask.kubectl("get dtj mnist -o jsonpath={.spec.strategy}")
    await ask.kubectl("get dtj -o name")
    await ask.kubectl("annotate dtj mnist note=x")
    await ask.kubectl('patch dtj mnist --type=merge -p {"spec":{"roles":{"worker":{"replicas":0}}}}')
    await ask.kubectl("delete dtj mnist")
