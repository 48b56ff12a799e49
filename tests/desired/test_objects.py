"""The children of a job beside its pods."""

import base64
from typing import Any

import msgspec
import pytest

from dtj_operator.api.observed import Facts, Situation
from dtj_operator.desired.objects import children, token
from dtj_operator.desired.pods import pod
from dtj_operator.desired.topology import topology
from dtj_worker.contract import Task
from tests.desired.jobs import FACTS, SMALLEST, UID, job, trained_by

CLAIM = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}


def made(s: Situation) -> dict[str, dict[str, Any]]:
    return {child["kind"]: child for child in children(s, topology(s))}


@pytest.mark.parametrize(
    ("spec", "kinds"),
    [
        pytest.param({}, ["Service", "Secret", "NetworkPolicy"], id="always"),
        pytest.param({"network": {"policy": "None"}}, ["Service", "Secret"], id="without isolation"),
        pytest.param(
            {"checkpoint": {"volumeClaimTemplate": {"spec": CLAIM}}, "disruption": {"budget": True}},
            ["Service", "Secret", "NetworkPolicy", "PersistentVolumeClaim", "PodDisruptionBudget"],
            id="as asked for",
        ),
        pytest.param(
            {"checkpoint": {"persistentVolumeClaim": "mine"}},
            ["Service", "Secret", "NetworkPolicy"],
            id="a claim there is",
        ),
    ],
)
def test_which_children(spec: dict[str, Any], kinds: list[str]) -> None:
    s = job({"roles": {"worker": {"replicas": 2}}, "template": trained_by(), **spec})
    assert [child["kind"] for child in children(s, topology(s))] == kinds


@pytest.mark.parametrize(("reclaim", "is_owned"), [("Retain", False), ("Delete", True)])
def test_everything_is_owned_but_a_claim_that_outlives_the_job(reclaim: str, is_owned: bool) -> None:
    checkpoint = {"volumeClaimTemplate": {"metadata": {"labels": {"team": "a"}}, "spec": CLAIM}, "reclaim": reclaim}
    s = job(
        {
            "roles": {"worker": {"replicas": 2}},
            "template": trained_by(),
            "checkpoint": checkpoint,
            "disruption": {"budget": True},
        }
    )
    owner = {
        "apiVersion": "dtj.dev/v1alpha1",
        "kind": "DistributedTrainingJob",
        "name": "mnist",
        "uid": UID,
        "controller": True,
        "blockOwnerDeletion": False,
    }
    for kind, child in made(s).items():
        owners = [owner] if kind != "PersistentVolumeClaim" or is_owned else None
        assert child["metadata"].get("ownerReferences") == owners
        assert child["metadata"]["labels"]["dtj.dev/job-name"] == "mnist"
        assert child["metadata"]["namespace"] == "ml"
    assert made(s)["PersistentVolumeClaim"]["metadata"]["labels"]["team"] == "a"
    assert made(s)["PersistentVolumeClaim"]["spec"] == CLAIM


def test_the_service_names_pods_that_are_not_ready_on_every_port_of_every_attempt() -> None:
    spec = made(job(SMALLEST))["Service"]["spec"]
    assert spec["clusterIP"] == "None"
    assert spec["publishNotReadyAddresses"] is True
    assert [port["port"] for port in spec["ports"]] == [*range(2222, 2230), 2280]
    assert len({port["name"] for port in spec["ports"]}) == 9


def test_parameter_servers_keep_one_port() -> None:
    roles = {"chief": {}, "worker": {"replicas": 2}, "ps": {"replicas": 1}}
    s = job({"roles": roles, "template": trained_by()})
    assert [port["port"] for port in made(s)["Service"]["spec"]["ports"]] == [2222, 2280]


def test_the_secret_holds_the_token_that_pods_are_given() -> None:
    s = job(SMALLEST)
    secret = made(s)["Secret"]
    assert base64.b64decode(secret["data"]["token"]).decode() == token(b"key", UID)
    trainer = pod(s, topology(s), Task("worker", 0), 0, 0)["spec"]["containers"][0]
    (given,) = [e for e in trainer["env"] if e["name"] == "DTJ_TOKEN"]
    assert given["valueFrom"]["secretKeyRef"] == {"name": secret["metadata"]["name"], "key": "token"}


def test_a_token_is_one_jobs_and_one_operators() -> None:
    assert len({token(b"key", "a"), token(b"key", "b"), token(b"other", "a")}) == 3
    assert token(b"key", "a") == token(b"key", "a")


OWN = {"podSelector": {"matchLabels": {"dtj.dev/job-name": "mnist"}}}
OPERATOR = {
    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "dtj-system"}},
    "podSelector": {"matchLabels": {"app.kubernetes.io/name": "dtj-operator"}},
}
STATUS = [{"port": 2280, "protocol": "TCP"}]
MONITORING = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}


@pytest.mark.parametrize(
    ("network", "facts", "ingress"),
    [
        pytest.param(
            {},
            FACTS,
            [{"from": [OWN]}, {"from": [OPERATOR], "ports": STATUS}],
            id="peers on all ports, the operator on one",
        ),
        pytest.param(
            {"expose": [6006, 8000], "statusPort": 9000},
            msgspec.structs.replace(FACTS, monitoring=(MONITORING,)),
            [
                {"from": [OWN]},
                {"from": [MONITORING, OPERATOR], "ports": [{"port": 9000, "protocol": "TCP"}]},
                {"ports": [{"port": 6006, "protocol": "TCP"}, {"port": 8000, "protocol": "TCP"}]},
            ],
            id="monitoring, and what is exposed to anyone",
        ),
        pytest.param({}, Facts(), [{"from": [OWN]}], id="an operator outside the cluster opens nothing"),
    ],
)
def test_network_policy(network: dict[str, Any], facts: Facts, ingress: list[dict[str, Any]]) -> None:
    s = job({"roles": {"worker": {"replicas": 2}}, "template": trained_by(), "network": network}, facts=facts)
    assert made(s)["NetworkPolicy"]["spec"] == {**OWN, "policyTypes": ["Ingress"], "ingress": ingress}


def test_the_disruption_budget_asks_for_the_whole_gang_and_not_for_the_evaluator() -> None:
    roles = {"chief": {}, "worker": {"replicas": 3}, "evaluator": {}}
    s = job({"roles": roles, "template": trained_by(), "disruption": {"budget": True}})
    spec = made(s)["PodDisruptionBudget"]["spec"]
    assert spec["minAvailable"] == 4
    (roles_in_it,) = spec["selector"]["matchExpressions"]
    assert (roles_in_it["operator"], roles_in_it["values"]) == ("In", ["chief", "worker"])
