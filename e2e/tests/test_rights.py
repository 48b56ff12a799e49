"""That the operator's roles are least: a story in which it needs every right, and the audit log of the whole run."""

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.api import Api
from e2e.chart import NAMESPACE, Helm
from e2e.cluster import Cluster
from e2e.daemon import wait
from e2e.rights import Call, Right, calls, granted, judged, refused, unused
from e2e.tests.installs import submit

Json = dict[str, Any]


def event(verb: str = "list", *, allowed: bool = True, user: str = "dtj-operator", **about: str) -> Json:
    return {
        "verb": verb,
        "user": {"username": f"system:serviceaccount:dtj-system:{user}"},
        "objectRef": {"resource": "pods", "namespace": "ml"} | about,
        "annotations": {"authorization.k8s.io/decision": "allow" if allowed else "forbid"},
    }


@pytest.mark.parametrize(
    ("said", "call"),
    [
        (event(), Call(Right("", "pods", "list"), "ml", is_allowed=True)),
        (event(allowed=False), Call(Right("", "pods", "list"), "ml", is_allowed=False)),
        (
            event("patch", resource="distributedtrainingjobs", apiGroup="dtj.dev", subresource="status"),
            Call(Right("dtj.dev", "distributedtrainingjobs/status", "patch"), "ml", is_allowed=True),
        ),
        (event(user="default"), None),
        (event() | {"userAgent": "Python-urllib/3.11"}, None),
        ({**event(), "objectRef": None}, None),
    ],
)
def test_whose_calls_count(said: Json, call: Call | None) -> None:
    assert judged(said) == call


def test_what_is_complained_of() -> None:
    all_used = [Call(right, "ml", is_allowed=True) for right in granted()]
    assert unused(all_used) == []
    assert unused(all_used[1:]) == [f"granted and never used: {all_used[0].right}"]
    assert refused([Call(Right("", "secrets", "list"), "ml", is_allowed=False)]) == [
        "used and not granted: list secrets in ml"
    ]
    assert refused([Call(Right("", "nodes", "list"), "", is_allowed=False)]) == [], "it asks, and may be told no"


def test_an_operator_that_is_uninstalled_lacks_nothing(tmp_path: Path) -> None:
    def bound(verb: str, name: str) -> Json:
        about = {"resource": "clusterrolebindings", "name": name}
        return {"verb": verb, "user": {"username": "admin"}, "objectRef": about}

    log = tmp_path / "audit.jsonl"
    no, role = event(allowed=False), "dtj-operator-dtj-system-nodes"
    said = [bound("patch", role), event(), bound("delete", role), no, no, bound("patch", role), event()]
    log.write_text("".join(json.dumps(one) + "\n" for one in said) + '{"half": "dtj-operator')
    assert [call.is_allowed for call in calls(log)] == [True, True]
    log.write_text("".join(json.dumps(one) + "\n" for one in (bound("delete", "dtj-operator-other"), no)))
    assert [call.is_allowed for call in calls(log)] == [False], "another one was uninstalled"


@pytest.fixture
def operator(cluster: Cluster, helm: Helm) -> Iterator[None]:
    """One that looks after the whole cluster; it is new, so that it makes its Lease and its key."""
    helm.install()
    yield
    cluster.kubectl("delete", "dtj/greedy", f"pod/{POD['metadata']['name']}", "--ignore-not-found")
    for taken in TAKEN.values():
        cluster.kubectl("delete", taken["kind"], taken["metadata"]["name"], "--ignore-not-found")
    cluster.kubectl("delete", "persistentvolume", "greedy-checkpoints", "--ignore-not-found")
    helm.uninstall()
    cluster.kubectl("delete", "namespace", NAMESPACE)


def seen(cluster: Cluster, verb: str, resource: str) -> bool:
    """Whether the operator has asked for it in the namespace of jobs."""
    return any(
        call.right.verb == verb and call.right.resource == resource and call.namespace == "default"
        for call in calls(cluster.audit_log)
    )


def foreign(kind: str, version: str, name: str, spec: Json) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


SELECTOR = {"matchLabels": {"nobody": "has"}}
CLAIM = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}
TAKEN = {
    "services": foreign("Service", "v1", "greedy-peers", {"ports": [{"port": 1}]}),
    "networkpolicies": foreign("NetworkPolicy", "networking.k8s.io/v1", "greedy-peers", {"podSelector": SELECTOR}),
    "poddisruptionbudgets": foreign("PodDisruptionBudget", "policy/v1", "greedy-peers", {"selector": SELECTOR}),
    "persistentvolumeclaims": foreign("PersistentVolumeClaim", "v1", "greedy-checkpoints", CLAIM),
}
POD = foreign(
    "Pod",
    "v1",
    "greedy-worker-0-0",
    {"containers": [{"name": "c", "image": "x"}], "schedulingGates": [{"name": "never/opens"}]},
)


@pytest.mark.machine
@pytest.mark.usefixtures("operator")
def test_every_right_is_used_and_none_is_lacked(cluster: Cluster) -> None:
    """Somebody has each name that the job needs; it is edited while it runs; its time to live ends with it."""
    for taken in (*TAKEN.values(), POD):
        cluster.kubectl("create", "--filename=-", "--namespace=default", stdin=json.dumps(taken))
    submit(
        cluster,
        "greedy",
        steps=200,
        annotations={"edit": "none"},
        disruption={"budget": True},
        checkpoint={"volumeClaimTemplate": {"spec": CLAIM}},
        ttlSecondsAfterFinished=0,
    )
    for resource, taken in TAKEN.items():
        look = functools.partial(seen, cluster, "get", resource)
        wait(f"the operator looks who has the name of its {resource}", look, 60)
        cluster.kubectl("delete", taken["kind"], taken["metadata"]["name"], "--namespace=default")
    provide(cluster, "greedy-checkpoints")
    wait("the operator looks who has the name of its pod", lambda: seen(cluster, "get", "pods"), 60)
    cluster.kubectl("delete", "pod", POD["metadata"]["name"], "--namespace=default", "--force", "--grace-period=0")
    api, path = Api(cluster.kubeconfig), "/apis/dtj.dev/v1alpha1/namespaces/default/distributedtrainingjobs/greedy"

    def edited() -> bool:
        """So often, while the job starts and much is written about it, that one edit comes before a write."""
        for edit in range(30):
            api.patch(path, [{"op": "add", "path": "/metadata/annotations/edit", "value": str(edit)}])
        return seen(cluster, "get", "distributedtrainingjobs")

    wait("an edit comes between the operator's look and its patch", edited, 60)
    cluster.kubectl("wait", "--for=delete", "dtj/greedy", "--timeout=120s")
    made = list(calls(cluster.audit_log))
    assert refused(made) == []
    assert unused(made) == []


def provide(cluster: Cluster, claim: str) -> None:
    folder = cluster.shared / claim
    folder.mkdir(mode=0o777, exist_ok=True)
    folder.chmod(0o777)
    volume = foreign(
        "PersistentVolume",
        "v1",
        claim,
        {
            "capacity": {"storage": "1Gi"},
            "accessModes": CLAIM["accessModes"],
            "hostPath": {"path": str(folder)},
            "claimRef": {"namespace": "default", "name": claim},
        },
    )
    cluster.kubectl("apply", "--filename=-", stdin=json.dumps(volume))
