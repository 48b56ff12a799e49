"""What an update of a service keeps, gives up and may not change."""

from typing import Any

import pytest

from tests.local.calls import Calls, refused

Json = dict[str, Any]

SERVICES = "v1/services"
PORTS = [{"port": 80}]
NODE_PORTS = [{"port": 80, "nodePort": 30000}]
OUTSIDE = {"type": "ExternalName", "externalName": "x.example"}
ADDRESSED = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


def service(**spec: Any) -> Json:
    spec = {"ports": PORTS, **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": spec}


@pytest.mark.parametrize(
    ("before", "patch", "gone"),
    [
        ({}, OUTSIDE, ADDRESSED),
        ({"clusterIP": "None"}, OUTSIDE, ADDRESSED),
        ({}, {**OUTSIDE, "clusterIP": None}, ADDRESSED),
        ({"type": "NodePort", "ports": NODE_PORTS}, {"type": "ClusterIP"}, ()),
        ({"type": "NodePort", "ports": NODE_PORTS}, OUTSIDE, ADDRESSED),
        ({"type": "LoadBalancer", "loadBalancerClass": "x.example/y"}, {"type": "ClusterIP"}, ("loadBalancerClass",)),
    ],
)
def test_what_the_new_type_has_no_use_for_goes(before: Json, patch: Json, gone: tuple[str, ...]) -> None:
    calls = Calls()
    made = calls.create(service(**before))["spec"]
    spec = calls.patch(SERVICES, "a", {"spec": patch})["spec"]
    assert spec["type"] == patch["type"]
    assert made.keys() - spec.keys() == set(gone)
    assert spec["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {}),
        ({"clusterIP": "None"}, {}),
        ({}, {"clusterIP": ""}),
        ({"type": "NodePort", "ports": NODE_PORTS}, {"type": "NodePort"}),
        ({"type": "NodePort", "ports": NODE_PORTS}, {"type": "LoadBalancer"}),
    ],
)
def test_what_a_replacement_leaves_out_is_as_it_was(before: Json, after: Json) -> None:
    calls = Calls()
    made = calls.create(service(**before))["spec"]
    spec = calls.call("update", SERVICES, "a", body=service(**after))["spec"]
    assert spec == {**made, "type": spec["type"]}


def test_a_service_gets_an_address_with_a_type_that_needs_one() -> None:
    calls = Calls()
    assert "clusterIP" not in calls.create(service(**OUTSIDE))["spec"]
    spec = calls.patch(SERVICES, "a", {"spec": {"type": "ClusterIP"}})["spec"]
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    assert spec["ipFamilies"] == ["IPv4"]


@pytest.mark.parametrize(
    ("patch", "told"),
    [
        ({"clusterIP": "10.1.2.3"}, 'spec.clusterIPs[0]: Invalid value: ["10.1.2.3"]: may not change once set'),
        ({"clusterIP": "None"}, "spec.clusterIPs[0]"),
        ({**OUTSIDE, "clusterIP": "10.1.2.3"}, "spec.clusterIPs: Forbidden: may not be set for ExternalName services"),
        ({"type": "ClusterIP", "ports": [{"port": 80, "nodePort": 30001}]},
         "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"),
    ],
)  # fmt: skip
def test_what_a_client_changes_against_the_type_is_refused(patch: Json, told: str) -> None:
    calls = Calls()
    calls.create(service(type="NodePort", ports=NODE_PORTS))
    failure = refused(calls.patch, SERVICES, "a", {"spec": patch})
    assert failure.code == 422
    assert told in str(failure)
