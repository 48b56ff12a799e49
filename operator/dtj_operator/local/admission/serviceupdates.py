"""What an update of a Service takes over from the stored one, and what goes with a change of type."""

from typing import Any

Json = dict[str, Any]

_WITH_ADDRESS = ("ClusterIP", "NodePort", "LoadBalancer")
_WITH_NODE_PORTS = ("NodePort", "LoadBalancer")
# The fields that only some types have a use for.
_TYPES = {
    "clusterIP": _WITH_ADDRESS,
    "clusterIPs": _WITH_ADDRESS,
    "ipFamilies": _WITH_ADDRESS,
    "ipFamilyPolicy": _WITH_ADDRESS,
    "allocateLoadBalancerNodePorts": ("LoadBalancer",),
    "loadBalancerClass": ("LoadBalancer",),
}


def reconcile(spec: Json, old: Json) -> None:
    """What the client left out is as it was; what the new type has no use for goes, unless the client changed it."""
    before, after = old["type"], spec["type"]
    if before in _WITH_ADDRESS and after in _WITH_ADDRESS:
        _take_over_address(spec, old)
    if before in _WITH_NODE_PORTS and after in _WITH_NODE_PORTS:
        _take_over_node_ports(spec, old)
    for field, types in _TYPES.items():
        if before in types and after not in types and spec.get(field) == old.get(field):
            spec.pop(field, None)
    if before in _WITH_NODE_PORTS and after not in _WITH_NODE_PORTS and _node_ports(spec) == _node_ports(old):
        for port in spec.get("ports") or []:
            port.pop("nodePort", None)


def _take_over_address(spec: Json, old: Json) -> None:
    if not spec.get("clusterIP") and old.get("clusterIP"):
        spec["clusterIP"] = old["clusterIP"]
    if not spec.get("clusterIPs") and old.get("clusterIPs"):
        spec["clusterIPs"] = old["clusterIPs"]
    if spec.get("clusterIP") != old.get("clusterIP") and spec.get("clusterIPs") == old.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]


def _take_over_node_ports(spec: Json, old: Json) -> None:
    """By the names of the ports: all else of one may be new."""
    taken = _node_ports(spec)
    by_name = {port.get("name", ""): port.get("nodePort") for port in old.get("ports") or []}
    for port in spec.get("ports") or []:
        number = by_name.get(port.get("name", ""))
        if not port.get("nodePort") and number and number not in taken:
            port["nodePort"] = number


def _node_ports(spec: Json) -> set[int]:
    return {port["nodePort"] for port in spec.get("ports") or [] if port.get("nodePort")}
