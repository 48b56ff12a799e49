"""Manifests that validation refuses, in the server's own sentences."""

from typing import Any

from tests.conformance.play import Ask, story
from tests.conformance.stories.manifests import budget, claim, lease, pod, policy, service

Json = dict[str, Any]


@story
async def pods_that_are_wrong(ask: Ask) -> None:
    spec: Json
    for spec in (
        {"containers": []}, {"containers": None}, {"containers": [{}]}, {"containers": [{"name": "a"}]},
        {"containers": [{"name": "A_b", "image": "c"}]}, {"restartPolicy": "Sometimes"}, {"dnsPolicy": "None"},
        {"containers": [{"name": "a", "image": " b"}]},
        {"containers": [{"name": "a", "image": "b"}, {"name": "a", "image": "c"}]},
        {"initContainers": [{"name": "trainer", "image": "b"}]},
        {"initContainers": [{"name": "i", "image": "b", "restartPolicy": "Never"}]},
        {"terminationGracePeriodSeconds": -1}, {"activeDeadlineSeconds": 0}, {"nodeSelector": {"a b": "c"}},
        {"hostname": "a.b"}, {"subdomain": "A"}, {"nodeName": "A_"}, {"serviceAccountName": "A_"},
        {"tolerations": [{"operator": "Equal"}]}, {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
        {"tolerations": [{"key": "a", "effect": "Never"}]}, {"tolerations": [{"key": "a", "tolerationSeconds": 5}]},
        {"hostAliases": [{"ip": "x"}]}, {"imagePullSecrets": [{}]}, {"priorityClassName": "A_"},
        {"securityContext": {"runAsUser": -1}}, {"runtimeClassName": "A_"}, {"schedulerName": "a b"},
        {"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "x"}]},
        {"readinessGates": [{"conditionType": "a b"}]}, {"shareProcessNamespace": True, "hostPID": True},
    ):  # fmt: skip
        await ask.create("pods?dryRun=All", pod(**spec))
    await ask.create("pods?dryRun=All", {"metadata": {"name": "a"}})
    await ask.create("pods?dryRun=All", {"metadata": {}, "spec": {"containers": [{}], "restartPolicy": "x"}})


@story
async def containers_that_are_wrong(ask: Ask) -> None:
    container: Json
    for container in (
        {"imagePullPolicy": "Sometimes"}, {"ports": [{"containerPort": 0}]}, {"ports": [{"containerPort": 70000}]},
        {"ports": [{"containerPort": 80, "name": "too-long-a-name-for-it"}]},
        {"ports": [{"containerPort": 80, "name": "UP"}]},
        {"ports": [{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}]},
        {"ports": [{"containerPort": 80, "protocol": "ICMP"}]}, {"ports": [{"containerPort": 80, "hostPort": 99999}]},
        {"env": [{"value": "x"}]}, {"env": [{"name": "a=b"}]}, {"env": [{"name": "A", "value": "x", "valueFrom": {}}]},
        {"env": [{"name": "A", "valueFrom": {}}]},
        {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}]},
        {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "", "key": ""}}}]},
        {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.x"}}}]}, {"envFrom": [{}]},
        {"volumeMounts": [{"name": "none", "mountPath": "/x"}]}, {"volumeMounts": [{"name": "", "mountPath": ""}]},
        {"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}}, {"resources": {"limits": {"cpu": "-1"}}},
        {"resources": {"limits": {"nvidia.com/gpu": "0.5"}}}, {"resources": {"requests": {"nvidia.com/gpu": "1"}}},
        {"resources": {"limits": {"nvidia.com/gpu": "2"}, "requests": {"nvidia.com/gpu": "1"}}},
        {"resources": {"limits": {"gpu": "1"}}}, {"resources": {"limits": {"a b": "1"}}},
        {"resources": {"claims": [{"name": "x"}]}},
        {"livenessProbe": {}}, {"livenessProbe": {"httpGet": {"port": 0}}}, {"readinessProbe": {"exec": {}}},
        {"livenessProbe": {"tcpSocket": {"port": "UP"}, "periodSeconds": -1}}, {"lifecycle": {"preStop": {}}},
        {"securityContext": {"privileged": True, "allowPrivilegeEscalation": False}},
        {"terminationMessagePolicy": "x"}, {"workingDir": "relative"}, {"restartPolicy": "Always"},
        {"securityContext": {"seccompProfile": {"type": "Localhost"}}}, {"securityContext": {"runAsUser": -5}},
    ):  # fmt: skip
        await ask.create(
            "pods?dryRun=All", pod(containers=[{"name": "a", "image": "b", **container}]), see="spec.containers"
        )


@story
async def volumes_that_are_wrong(ask: Ask) -> None:
    for volume in (
        {}, {"name": "A_"}, {"name": "a", "emptyDir": {}, "hostPath": {"path": "/x"}}, {"name": "a", "hostPath": {}},
        {"name": "a", "hostPath": {"path": "../x"}}, {"name": "a", "hostPath": {"path": "/x", "type": "y"}},
        {"name": "a", "persistentVolumeClaim": {}}, {"name": "a", "configMap": {}}, {"name": "a", "secret": {}},
        {"name": "a", "configMap": {"name": "c", "items": [{"key": "k", "path": "/abs"}]}},
        {"name": "a", "configMap": {"name": "c", "items": [{"key": "k", "path": "../x"}]}},
        {"name": "a", "secret": {"secretName": "s", "defaultMode": 9999}},
        {"name": "a", "emptyDir": {"sizeLimit": "-1"}},
        {"name": "a", "downwardAPI": {"items": [{"path": "x"}]}}, {"name": "a", "projected": {"sources": [{}]}},
        {"name": "a", "nfs": {}},
    ):  # fmt: skip
        await ask.create("pods?dryRun=All", pod(volumes=[volume]), see="spec.volumes")
    two = [{"name": "a", "emptyDir": {}}, {"name": "a", "emptyDir": {}}]
    await ask.create("pods?dryRun=All", pod(volumes=two))
    mounts = [
        {"name": "a", "mountPath": "/x"},
        {"name": "a", "mountPath": "/x"},
        {"name": "a", "mountPath": "/y", "subPath": "../z"},
    ]
    container = {"name": "a", "image": "b", "volumeMounts": mounts}
    await ask.create("pods?dryRun=All", pod(volumes=[{"name": "a", "emptyDir": {}}], containers=[container]))


@story
async def services_that_are_wrong(ask: Ask) -> None:
    spec: Json
    for spec in (
        {"ports": [{"port": 0}]}, {"ports": [{"port": 70000}]}, {"ports": [{"port": 80}, {"port": 81}]},
        {"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "a"}]}, {"ports": [{"port": 80, "name": "UP"}]},
        {"ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]}, {"ports": [{"port": 80, "protocol": "x"}]},
        {"clusterIP": "x"}, {"type": "Sometimes"}, {"selector": {"a": "not valid"}}, {"sessionAffinity": "x"},
        {"clusterIP": "None", "type": "NodePort"}, {"type": "ExternalName"}, {"ports": [{"port": 80, "targetPort": 0}]},
        {"clusterIP": None, "ports": []}, {"ports": [{"port": 80, "nodePort": 30000}]}, {"clusterIP": "10.11.12.13"},
    ):  # fmt: skip
        await ask.create("services?dryRun=All", service(**spec), see="spec")


@story
async def the_other_kinds(ask: Ask) -> None:
    spec: Json
    for spec in (
        {"accessModes": []}, {"accessModes": ["x"]}, {"resources": {}}, {"resources": {"requests": {"storage": "0"}}},
        {"resources": {"requests": {"storage": "-1"}}}, {"volumeMode": "x"}, {"storageClassName": "A_"},
        {"accessModes": ["ReadWriteOncePod", "ReadOnlyMany"]}, {"resources": {"requests": {"storage": "x"}}},
    ):  # fmt: skip
        await ask.create("persistentvolumeclaims?dryRun=All", claim(**spec))
    for spec in (
        {"podSelector": {"matchLabels": {"a b": "c"}}}, {"policyTypes": ["Sideways"]},
        {"ingress": [{"ports": [{"port": 0}]}]},
        {"ingress": [{"from": [{}]}]}, {"ingress": [{"from": [{"ipBlock": {"cidr": "x"}}]}]},
        {"ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}}]}]},
        {"ingress": [{"ports": [{"port": 10, "endPort": 5}]}]}, {"ingress": [{"ports": [{"protocol": "x"}]}]},
        {"ingress": [{"ports": [{"endPort": 5}]}]},
        {"podSelector": {"matchExpressions": [{"key": "a", "operator": "x"}]}},
        {"podSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
        {"policyTypes": ["Ingress", "Egress", "Ingress"]},
    ):  # fmt: skip
        await ask.create("networking.k8s.io/v1:networkpolicies?dryRun=All", policy(**spec))
    for spec in (
        {"minAvailable": 1, "maxUnavailable": 1}, {"minAvailable": -1}, {"maxUnavailable": "x"},
        {"maxUnavailable": "150%"},
        {"unhealthyPodEvictionPolicy": "x"}, {"selector": {"matchLabels": {"a b": "c"}}},
    ):  # fmt: skip
        await ask.create("policy/v1:poddisruptionbudgets?dryRun=All", budget(**spec))
    for spec in (
        {"leaseDurationSeconds": 0},
        {"leaseTransitions": -1},
        {"renewTime": "yesterday"},
        {"holderIdentity": ""},
    ):
        await ask.create("coordination.k8s.io/v1:leases?dryRun=All", lease(**spec))
    await ask.create("configmaps?dryRun=All", {"metadata": {"name": "a"}, "data": {"not valid": "x", "..": "y"}})
    await ask.create(
        "configmaps?dryRun=All", {"metadata": {"name": "a"}, "data": {"a": "x"}, "binaryData": {"a": "eA=="}}
    )
    await ask.create(
        "configmaps?dryRun=All", {"metadata": {"name": "a"}, "data": {"a": "x" * (1024 * 1024 + 1)}}, see="metadata"
    )
    await ask.create("secrets?dryRun=All", {"metadata": {"name": "a"}, "data": {"not valid": "eA=="}})
    await ask.create("secrets?dryRun=All", {"metadata": {"name": "a"}, "type": "kubernetes.io/tls"})
    await ask.create(
        "secrets?dryRun=All", {"metadata": {"name": "a"}, "type": "kubernetes.io/dockerconfigjson", "data": {}}
    )
    about = {"kind": "Pod", "name": "a", "namespace": "elsewhere"}
    await ask.create("events?dryRun=All", {"metadata": {"name": "e"}, "involvedObject": about})
    new: Json = {"metadata": {"name": "e"}, "regarding": {"kind": "Pod", "name": "a", "namespace": ask.namespace}}
    await ask.create("events.k8s.io/v1:events?dryRun=All", new)
    await ask.create("resourcequotas?dryRun=All", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "x"}}})
    await ask.create(
        "resourcequotas?dryRun=All", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "-1", "nothing": "1"}}}
    )
