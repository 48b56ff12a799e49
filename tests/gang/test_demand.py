"""Effective requests and the rest of what a pod asks for, read from its manifest."""

from typing import Any

import pytest
from hypothesis import given

from dtj_operator.gang.demand import Demand, Requirement, Toleration, demand, effective_requests, load
from tests.desired.test_overlay import TEMPLATES


def asking(name: str = "a", **fields: Any) -> dict[str, Any]:
    cpu = fields.pop("cpu", None)
    return {"name": name, **({"resources": {"requests": {"cpu": cpu}}} if cpu else {}), **fields}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        pytest.param({"containers": [asking(cpu="1"), asking("b", cpu="500m")]}, 1.5, id="containers are added up"),
        pytest.param(
            {"containers": [asking(cpu=1)], "initContainers": [asking("i", cpu="3"), asking("j", cpu="2")]},
            3,
            id="init containers come one after the other",
        ),
        pytest.param(
            {"containers": [asking(cpu="4")], "initContainers": [asking("i", cpu="3")]},
            4,
            id="the larger of both counts",
        ),
        pytest.param(
            {"containers": [asking(cpu="1")], "initContainers": [asking("s", cpu="2", restartPolicy="Always")]},
            3,
            id="a native sidecar stays",
        ),
        pytest.param(
            {
                "containers": [asking(cpu="1")],
                "initContainers": [asking("s", cpu="2", restartPolicy="Always"), asking("i", cpu="3")],
            },
            5,
            id="and runs beside later init containers",
        ),
        pytest.param(
            {
                "containers": [asking(cpu="1")],
                "initContainers": [asking("i", cpu="3"), asking("s", cpu="2", restartPolicy="Always")],
            },
            3,
            id="not beside earlier ones",
        ),
        pytest.param({"containers": [asking(cpu="1")], "overhead": {"cpu": "250m"}}, 1.25, id="overhead comes on top"),
        pytest.param(
            {"containers": [asking(cpu="1")], "resources": {"requests": {"cpu": "6"}}},
            6,
            id="what the pod as a whole states",
        ),
        pytest.param(
            {"containers": [asking(resources={"limits": {"cpu": "2"}})]},
            2,
            id="a limit without a request is the request",
        ),
        pytest.param(
            {"containers": [asking(resources={"limits": {"cpu": "2"}, "requests": {"cpu": "1"}})]},
            1,
            id="else it is not",
        ),
    ],
)
def test_effective_requests(spec: dict[str, Any], cpu: float) -> None:
    assert effective_requests({"spec": spec}) == {"cpu": cpu, "pods": 1}


def test_a_resized_container_counts_with_the_most_it_asks_for_or_has() -> None:
    def cpu(asked: str, allocated: str, running: str) -> float:
        status = {
            "containerStatuses": [
                {
                    "name": "a",
                    "allocatedResources": {"cpu": allocated},
                    "resources": {"requests": {"cpu": running}},
                }
            ]
        }
        return effective_requests({"spec": {"containers": [asking(cpu=asked)]}, "status": status})["cpu"]

    assert cpu("1", "2", "2") == 2
    assert cpu("3", "2", "2") == 3
    assert cpu("1", "1", "4") == 4
    assert cpu("1", "4", "1") == 4


@pytest.mark.parametrize(
    ("node", "phase", "counts"),
    [(None, "Pending", False), ("n1", "Pending", True), ("n1", "Running", True), ("n1", "Failed", False)],
)
def test_a_bound_pod_counts_until_it_has_ended(node: str | None, phase: str, counts: bool) -> None:
    pod = {
        "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"nodeName": node, "containers": [asking(cpu="1")]},
        "status": {"phase": phase},
    }
    assert (load(pod) is not None) == counts


def test_everything_a_node_is_chosen_by() -> None:
    hostname = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["a"]}
    name = {"key": "metadata.name", "operator": "In", "values": ["b"]}
    found = demand(
        {
            "spec": {
                "nodeSelector": {"disk": "ssd"},
                "affinity": {
                    "podAntiAffinity": {"x": 1},
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [{"matchExpressions": [hostname]}, {"matchFields": [name]}, {}]
                        }
                    },
                },
                "tolerations": [
                    {"key": "gpu", "operator": "Exists"},
                    {"key": "a", "value": "b", "effect": "NoSchedule"},
                ],
                "volumes": [{"name": "c", "persistentVolumeClaim": {"claimName": "c"}}],
                "resourceClaims": [{"name": "x"}],
                "topologySpreadConstraints": [{"topologyKey": "zone"}],
                "containers": [{"name": "a", "ports": [{"hostPort": 80}, {"hostPort": 53, "protocol": "UDP"}]}],
            }
        }
    )
    assert found == Demand(
        requests={"pods": 1},
        host_ports=frozenset({("TCP", 80), ("UDP", 53)}),
        selector={"disk": "ssd"},
        terms=(
            (Requirement("kubernetes.io/hostname", "In", ("a",)),),
            (Requirement("metadata.name", "In", ("b",), is_on_name=True),),
            (),
        ),
        tolerations=(Toleration("gpu", "Exists"), Toleration("a", "Equal", "b", "NoSchedule")),
        on_trust=(
            "where its volumes can be mounted",
            "its resource claims",
            "its affinity to other pods",
            "its topology spread",
        ),
    )


def test_on_the_hosts_network_every_port_is_the_hosts() -> None:
    container = {"name": "a", "ports": [{"containerPort": 2222}]}
    assert demand({"spec": {"containers": [container]}}).host_ports == frozenset()
    assert demand({"spec": {"containers": [container], "hostNetwork": True}}).host_ports == {("TCP", 2222)}


@given(TEMPLATES)
def test_any_template_has_a_demand(template: dict[str, Any]) -> None:
    assert demand(template).requests["pods"] == 1
    assert all(amount >= 0 or name for name, amount in demand(template).requests.items())
