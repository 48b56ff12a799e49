"""What the server fills into the kinds that a training job is made of, and into the job itself."""

from typing import Any

from tests.conformance.play import Ask, story
from tests.conformance.stories.manifests import budget, claim, job, lease, pod, policy, service

Json = dict[str, Any]

PROBE: Json = {"httpGet": {"port": 8080}}


@story
async def a_plain_pod(ask: Ask) -> None:
    await ask.create(
        "pods?dryRun=All", {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
    )
    await ask.create("pods", pod())


@story
async def a_full_pod(ask: Ask) -> None:
    container: Json = {
        "name": "trainer",
        "image": "registry.example:5000/trainer",
        "ports": [{"containerPort": 2222, "name": "tf"}, {"containerPort": 53, "protocol": "UDP"}],
        "env": [
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            {"name": "EMPTY"},
            {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}},
        ],
        "envFrom": [{"configMapRef": {"name": "c"}}],
        "resources": {"limits": {"cpu": "1.5", "memory": "1024Mi", "nvidia.com/gpu": 1}, "requests": {"cpu": "0.1"}},
        "livenessProbe": PROBE,
        "readinessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 3},
        "startupProbe": {"tcpSocket": {"port": "tf"}},
        "lifecycle": {"preStop": {"exec": {"command": ["sync"]}}, "postStart": {"httpGet": {"port": 80}}},
        "securityContext": {"capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True},
        "volumeMounts": [
            {"name": "data", "mountPath": "/data"},
            {"name": "info", "mountPath": "/info", "readOnly": True},
        ],
    }
    volumes: list[Json] = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "checkpoints"}},
        {"name": "scratch", "emptyDir": {}},
        {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
        {"name": "config", "configMap": {"name": "c"}},
        {"name": "secret", "secret": {"secretName": "s", "items": [{"key": "k", "path": "p"}]}},
        {"name": "host", "hostPath": {"path": "/data"}},
        {"name": "info", "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {
            "name": "all",
            "projected": {"sources": [{"configMap": {"name": "c"}}, {"serviceAccountToken": {"path": "t"}}]},
        },
        {"name": "nfs", "nfs": {"server": "n", "path": "/"}},
        {"name": "nothing"},
    ]
    sidecar = {"name": "sidecar", "image": "sidecar@sha256:" + "a" * 64, "restartPolicy": "Always"}
    affinity = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1,
        "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}}]}}  # fmt: skip
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
    await ask.create("pods", pod(
        containers=[container], initContainers=[sidecar, {"name": "init", "image": "init:latest"}], volumes=volumes,
        affinity=affinity, topologySpreadConstraints=[spread], restartPolicy="Never", hostname="worker-0",
        subdomain="peers",
        securityContext={"fsGroup": 1000, "seccompProfile": {"type": "RuntimeDefault"}}, dnsConfig={"searches": ["x"]},
        tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}], schedulingGates=[{"name": "dtj.dev/gang"}],
        readinessGates=[{"conditionType": "mine"}], hostAliases=[{"ip": "127.0.0.1", "hostnames": ["x"]}],
        nodeSelector={"gpu": "a100"}, imagePullSecrets=[{"name": "pull"}],
    ))  # fmt: skip


@story
async def a_pod_on_its_hosts_network(ask: Ask) -> None:
    container = {"name": "a", "image": "b", "ports": [{"containerPort": 2222}]}
    await ask.create("pods?dryRun=All", pod(hostNetwork=True, containers=[container]), see="spec")


@story
async def classes_of_quality(ask: Ask) -> None:
    for resources in (
        {}, {"limits": {"cpu": "1", "memory": "1Gi"}}, {"limits": {"cpu": "1"}}, {"requests": {"cpu": "1"}},
        {"limits": {"nvidia.com/gpu": "1"}}, {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
        {"limits": {"cpu": "0"}}, {"requests": {"cpu": "0", "memory": "0"}},
    ):  # fmt: skip
        container = {"name": "a", "image": "b", "resources": resources}
        answer = await ask.create("pods?dryRun=All", pod(containers=[container]), see="status")
        ask.steps.append({"ask": "its resources", "code": 200, "answer": answer["spec"]["containers"][0]["resources"]})


@story
async def quantities_are_written_one_way(ask: Ask) -> None:
    amounts = (
        "1000m",
        "1.5",
        "0.1",
        "1e3",
        "1024Mi",
        "1048576Ki",
        "1.5Gi",
        "100000000",
        "12E",
        "0.5m",
        2,
        1.5,
        "1_0",
        "-1",
    )
    for amount in amounts:
        container = {"name": "a", "image": "b", "resources": {"limits": {"memory": amount}}}
        await ask.create("pods?dryRun=All", pod(containers=[container]), see="spec.containers.0.resources")


@story
async def services_of_all_types(ask: Ask) -> None:
    await ask.create("services", service())
    await ask.create("services", service("ports", clusterIP=None, ports=[{"port": 80}]))
    await ask.create(
        "services?dryRun=All", service("unready", publishNotReadyAddresses=True, sessionAffinity="ClientIP"), see="spec"
    )
    ports = [{"name": "a", "port": 80, "targetPort": "http"}, {"name": "b", "port": 53, "protocol": "UDP"}]
    await ask.create("services?dryRun=All", service("two", ports=ports), see="spec")
    await ask.create("services?dryRun=All", service("no-ports", ports=[]), see="spec")
    external = {"type": "ExternalName", "externalName": "x.example", "ports": [], "clusterIP": ""}
    await ask.create("services?dryRun=All", service("name", **external), see="spec")


@story
async def claims(ask: Ask) -> None:
    await ask.create("persistentvolumeclaims", claim())
    await ask.create(
        "persistentvolumeclaims?dryRun=All", claim("b", volumeMode="Block", accessModes=["ReadWriteOnce"]), see="spec"
    )
    await ask.patch("persistentvolumeclaims/checkpoints", {"spec": {"accessModes": ["ReadWriteOnce"]}})
    await ask.patch("persistentvolumeclaims/checkpoints", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})


@story
async def network_policies(ask: Ask) -> None:
    peers = [{"podSelector": {"matchLabels": {"job": "mnist"}}}]
    await ask.create(
        "networking.k8s.io/v1:networkpolicies", policy(ingress=[{"from": peers, "ports": [{"port": 2222}]}])
    )
    spec: Json
    for spec in (
        {}, {"egress": [{}]}, {"policyTypes": ["Egress"]}, {"ingress": []}, {"podSelector": {}},
        {"ingress": [{"ports": [{"port": 2222, "endPort": 3000}, {"protocol": "UDP"}]}]},
    ):  # fmt: skip
        await ask.create("networking.k8s.io/v1:networkpolicies?dryRun=All", policy("b", **spec), see="spec")


@story
async def disruption_budgets(ask: Ask) -> None:
    path = "policy/v1:poddisruptionbudgets"
    await ask.create(path, budget(maxUnavailable=0))
    await ask.until(path, "mnist", lambda body: bool(body and body["status"].get("observedGeneration")))
    await ask.get(f"{path}/mnist", see="status")
    spec: Json
    for spec in ({}, {"minAvailable": "50%"}, {"selector": {}}, {"unhealthyPodEvictionPolicy": "AlwaysAllow"}):
        await ask.create(f"{path}?dryRun=All", budget("b", **spec))
    await ask.patch(f"{path}/mnist", {"spec": {"maxUnavailable": 1}}, see="spec")


@story
async def leases_and_the_rest(ask: Ask) -> None:
    held = {"holderIdentity": "me", "leaseDurationSeconds": 15, "acquireTime": "2026-11-30T12:00:00.000000Z",
            "renewTime": "2026-11-30T12:00:00.123456Z", "leaseTransitions": 0}  # fmt: skip
    await ask.create("coordination.k8s.io/v1:leases", lease(**held))
    await ask.create("coordination.k8s.io/v1:leases", lease("empty"))
    await ask.create("secrets", {"metadata": {"name": "s"}, "stringData": {"k": "v"}, "data": {"b": "Yg=="}})
    await ask.create("serviceaccounts", {"metadata": {"name": "trainer"}})
    await ask.create(
        "resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": 2, "requests.cpu": "1000m"}}}
    )
    item = {
        "type": "Container",
        "max": {"cpu": "2"},
        "default": {"memory": "1Gi"},
        "defaultRequest": {"memory": "512Mi"},
    }
    await ask.create("limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [item]}})
    await ask.create("/api/v1/namespaces?dryRun=All", {"metadata": {"name": "conformance-dry"}})
    await ask.create("/api/v1/nodes?dryRun=All", {"metadata": {"name": "conformance-node"}})
    await ask.create(
        "/apis/scheduling.k8s.io/v1/priorityclasses?dryRun=All", {"metadata": {"name": "conformance"}, "value": 5}
    )
    volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "hostPath": {"path": "/x"}}
    await ask.create("/api/v1/persistentvolumes?dryRun=All", {"metadata": {"name": "conformance"}, "spec": volume})
    event = {"involvedObject": {"kind": "Pod", "name": "a", "namespace": ask.namespace}, "reason": "Test",
    "type": "Normal",
             "message": "m", "count": 1}  # fmt: skip
    await ask.create("events", {"metadata": {"name": "e.1"}, **event})
    slice_ = {"addressType": "IPv4", "endpoints": [{"addresses": ["192.0.2.1"]}], "ports": [{"port": 2222}]}
    await ask.create("discovery.k8s.io/v1:endpointslices", {"metadata": {"name": "slice"}, **slice_})


@story
async def a_training_job(ask: Ask) -> None:
    path = "dtj.dev/v1alpha1:distributedtrainingjobs?dryRun=All"
    await ask.create(path, job(), see="spec.roles")
    full = job(checkpoint={"persistentVolumeClaim": "c"}, recovery={}, gang={}, network={})
    full["spec"]["roles"] = {
        "chief": {},
        "worker": {"replicas": 3},
        "ps": {"replicas": 1},
        "evaluator": {"replicas": 1},
    }
    await ask.create(path, full, see="spec.roles")
