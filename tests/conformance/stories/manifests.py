"""Small manifests that the stories send. None of their pods ever runs: no scheduler knows them."""

from typing import Any

Json = dict[str, Any]


def config_map(name: str = "a", /, *, labels: Json | None = None, **data: str) -> Json:
    metadata: Json = {"name": name} | ({"labels": labels} if labels else {})
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def pod(name: str = "a", /, *, metadata: Json | None = None, **spec: Any) -> Json:
    container = {"name": "trainer", "image": "trainer:1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **(metadata or {})},
        "spec": {
            "schedulerName": "nobody",
            "automountServiceAccountToken": False,
            "containers": [container],
            **spec,
        },
    }


def service(name: str = "peers", /, **spec: Any) -> Json:
    ports = [{"name": "tensorflow", "port": 2222}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"clusterIP": "None", "selector": {"job": "mnist"}, "ports": ports, **spec},
    }


def claim(name: str = "checkpoints", /, **spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "resources": {"requests": {"storage": "1Gi"}},
            **spec,
        },
    }


def policy(name: str = "mnist", /, **spec: Any) -> Json:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name},
        "spec": {"podSelector": {"matchLabels": {"job": "mnist"}}, **spec},
    }


def budget(name: str = "mnist", /, **spec: Any) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"job": "mnist"}}, **spec},
    }


def lease(name: str = "operator", /, **spec: Any) -> Json:
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}


def job(name: str = "mnist", /, *, template: Json | None = None, **spec: Any) -> Json:
    """A training job; stories send it dry, since an operator may be there."""
    pod_spec = {"containers": [{"name": "trainer", "image": "trainer:1"}]}
    return {
        "apiVersion": "dtj.dev/v1alpha1",
        "kind": "DistributedTrainingJob",
        "metadata": {"name": name},
        "spec": {"roles": {"worker": {"replicas": 2}}, "template": template or {"spec": pod_spec}, **spec},
    }


def owned(manifest: Json, owner: Json, **rest: Any) -> Json:
    """The manifest with the owner's reference on it."""
    metadata = owner["metadata"]
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"]}
    reference |= {"uid": metadata["uid"], **rest}
    owners = [*manifest["metadata"].get("ownerReferences", []), reference]
    return {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": owners}}
