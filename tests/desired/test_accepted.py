"""Everything that is built is taken by the embedded API server, without one unknown field."""

from typing import Any

import pytest

from dtj_operator.api.observed import Admit
from dtj_operator.api.status import JobStatus, RecoveryState
from dtj_operator.desired.objects import children
from dtj_operator.desired.pods import pod
from dtj_operator.desired.topology import topology
from dtj_operator.gang.gated import BuiltIn
from dtj_operator.local.api import Api
from dtj_operator.local.state import Request
from tests.desired.jobs import job, trained_by

PLURALS = {
    "NetworkPolicy": "networkpolicies",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "PodDisruptionBudget": "poddisruptionbudgets",
}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


@pytest.mark.parametrize(
    "trainer",
    [
        pytest.param({"args": ["train.py"]}, id="the entry point"),
        pytest.param(
            {"command": ["python", "train.py"], "securityContext": {"readOnlyRootFilesystem": True}}, id="injected"
        ),
    ],
)
def test_every_object_of_a_job_with_everything(trainer: dict[str, Any]) -> None:
    spec = {
        "roles": {"chief": {}, "worker": {"replicas": 2}, "ps": {"replicas": 1}, "evaluator": {}},
        "template": trained_by(**trainer, resources={"limits": {"nvidia.com/gpu": 1, "cpu": "500m"}}),
        "checkpoint": {"volumeClaimTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": CLAIM}, "reclaim": "Delete"},
        "disruption": {"budget": True},
        "program": {"configMap": "code"},
        "network": {"expose": [6006]},
        "gang": {"priorityClassName": "system-node-critical"},
    }
    status = JobStatus(recovery=RecoveryState(excluded_nodes=["bad"]))
    s = job(spec, status=status, admission=Admit(nodes=("n1", "n2")))
    t = topology(s)
    api = Api()
    namespaces = api.kind("v1", "namespaces")
    api.request(Request(verb="create", kind=namespaces, body={"metadata": {"name": "ml"}}))
    made = [*children(s, t), *(BuiltIn().mark(s, t, pod(s, t, task, 0, 0)) for task in t.tasks)]
    for manifest in made:
        kind = api.kind(manifest["apiVersion"], PLURALS.get(manifest["kind"], f"{manifest['kind'].lower()}s"))
        strict = {"fieldValidation": "Strict"}
        reply = api.request(Request(verb="create", kind=kind, namespace="ml", body=manifest, params=strict))
        assert (reply.code, reply.warnings) == (201, ())
