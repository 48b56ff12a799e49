"""Services and NetworkPolicies: defaults, made-up addresses, checks."""

import hashlib
from typing import Any

from dtj_operator.local.admission import metadata, names, serviceupdates
from dtj_operator.local.admission.filling import fill
from dtj_operator.local.failures import (
    FieldFault,
    duplicate,
    forbidden_field,
    invalid,
    not_supported,
    required,
)

Json = dict[str, Any]

_SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITIES = ("ClientIP", "None")
_AFFINITY_SECONDS = 10800
_POLICY_PROTOCOLS = ("TCP", "UDP", "SCTP")
_POLICY_TYPES = ("Ingress", "Egress")


def default_service(body: Json) -> None:
    spec = body.setdefault("spec", {})
    fill(spec, "sessionAffinity", "None")
    fill(spec, "type", "ClusterIP")
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["sessionAffinity"] == "ClientIP":
        spec.setdefault("sessionAffinityConfig", {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}})
    for port in spec.get("ports") or []:
        fill(port, "protocol", "TCP")
        port["targetPort"] = port.get("targetPort") or port.get("port", 0)


def fresh_service(body: Json) -> None:
    body["status"] = {"loadBalancer": {}}
    body["spec"].pop("clusterIPs", None)
    _give_address(body)


def update_service(body: Json, old: Json) -> None:
    serviceupdates.reconcile(body["spec"], old["spec"])
    _give_address(body)


def _give_address(body: Json) -> None:
    """Addresses are made up: no proxy forwards them in the embedded cluster."""
    spec = body["spec"]
    if not spec.get("clusterIP"):
        spec.pop("clusterIP", None)
        if spec["type"] == "ExternalName":
            return
        digest = hashlib.sha256(body["metadata"]["uid"].encode()).digest()
        spec["clusterIP"] = f"10.96.{digest[0]}.{digest[1]}"
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")


def service_faults(body: Json, old: Json | None) -> list[FieldFault]:
    spec = body["spec"]
    found: list[FieldFault] = []
    headless = spec.get("clusterIP") == "None"
    if (address := spec.get("clusterIP")) and not headless:
        found += [invalid("spec.clusterIPs[0]", address, fault) for fault in names.address_faults(address)]
    if headless and spec["type"] in ("NodePort", "LoadBalancer"):
        found.append(invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {spec['type']} services"))
    if spec["type"] == "ExternalName":
        if spec.get("clusterIP"):
            found.append(forbidden_field("spec.clusterIPs", "may not be set for ExternalName services"))
        if not spec.get("externalName"):
            found.append(required("spec.externalName"))
    if spec["sessionAffinity"] not in _AFFINITIES:
        found.append(not_supported("spec.sessionAffinity", spec["sessionAffinity"], _AFFINITIES))
    if spec["type"] not in _SERVICE_TYPES:
        found.append(not_supported("spec.type", spec["type"], _SERVICE_TYPES))
    ports = spec.get("ports") or []
    if not ports and not headless and spec["type"] != "ExternalName":
        found.append(required("spec.ports"))
    seen_names: set[str] = set()
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        path = f"spec.ports[{index}]"
        found += _port_faults(port, path, spec["type"])
        protocol, number = port["protocol"], port.get("port", 0)
        if (protocol, number) in seen:
            key = {"Name": "", "Protocol": protocol, "AppProtocol": None, "Port": number}
            found.append(duplicate(path, {**key, "TargetPort": 0, "NodePort": 0}))
        seen.add((protocol, number))
        name = port.get("name", "")
        if not name and len(ports) > 1:
            found.append(required(f"{path}.name"))
        elif name:
            found += [invalid(f"{path}.name", name, fault) for fault in names.label_faults(name)]
            if name in seen_names:
                found.append(duplicate(f"{path}.name", name))
            seen_names.add(name)
    found += metadata.label_faults(spec.get("selector") or {}, "spec.selector")
    if old is not None and "ExternalName" not in (spec["type"], old["spec"]["type"]):
        address = old["spec"].get("clusterIP")
        if address and address != spec.get("clusterIP"):
            found.append(invalid("spec.clusterIPs[0]", [spec.get("clusterIP", "")], "may not change once set"))
    return found


def _port_faults(port: Json, path: str, service_type: str) -> list[FieldFault]:
    """Of a service's port alone."""
    found: list[FieldFault] = []
    for field, number in (("port", port.get("port", 0)), ("targetPort", port["targetPort"])):
        found += [invalid(f"{path}.{field}", number, fault) for fault in names.port_faults(number)]
    if port["protocol"] not in names.PROTOCOLS:
        found.append(not_supported(f"{path}.protocol", port["protocol"], names.PROTOCOLS))
    if port.get("nodePort") and service_type in ("ClusterIP", "ExternalName"):
        found.append(forbidden_field(f"{path}.nodePort", f"may not be used when `type` is '{service_type}'"))
    return found


def default_policy(body: Json) -> None:
    """Of a NetworkPolicy."""
    spec = body.setdefault("spec", {})
    spec.setdefault("policyTypes", ["Ingress", *(["Egress"] if spec.get("egress") else [])])
    for rule in (*(spec.get("ingress") or ()), *(spec.get("egress") or ())):
        for port in rule.get("ports") or []:
            port.setdefault("protocol", "TCP")


def policy_faults(body: Json, old: Json | None) -> list[FieldFault]:
    """Of a NetworkPolicy."""
    spec = body["spec"]
    found = metadata.selector_faults(spec.get("podSelector") or {}, "spec.podSelector")
    types = spec["policyTypes"]
    if len(types) > len(_POLICY_TYPES):
        found.append(invalid("spec.policyTypes", types, "may not specify more than two policyTypes"))
    else:
        found += [
            not_supported(f"spec.policyTypes[{index}]", one, _POLICY_TYPES)
            for index, one in enumerate(types)
            if one not in _POLICY_TYPES
        ]
    for direction, side in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or []):
            path = f"spec.{direction}[{index}]"
            for number, port in enumerate(rule.get("ports") or []):
                found += _policy_port_faults(port, f"{path}.ports[{number}]")
            for number, peer in enumerate(rule.get(side) or []):
                found += _peer_faults(peer, f"{path}.{side}[{number}]")
    return found


def _policy_port_faults(port: Json, path: str) -> list[FieldFault]:
    found: list[FieldFault] = []
    if port["protocol"] not in _POLICY_PROTOCOLS:
        found.append(not_supported(f"{path}.protocol", port["protocol"], _POLICY_PROTOCOLS))
    first, last = port.get("port"), port.get("endPort")
    if first is not None:
        found += [invalid(f"{path}.port", first, fault) for fault in names.port_faults(first)]
    if last is None:
        return found
    if first is None:
        found.append(invalid(f"{path}.endPort", last, "may not be specified when `port` is not specified"))
    elif isinstance(first, str):
        found.append(invalid(f"{path}.endPort", last, "may not be specified when `port` is non-numeric"))
    elif last < first:
        found.append(invalid(f"{path}.endPort", last, "must be greater than or equal to `port`"))
    return found


def _peer_faults(peer: Json, path: str) -> list[FieldFault]:
    selectors = [field for field in ("podSelector", "namespaceSelector") if peer.get(field) is not None]
    found = [fault for field in selectors for fault in metadata.selector_faults(peer[field], f"{path}.{field}")]
    block = peer.get("ipBlock")
    if block is not None:
        cidr = block.get("cidr", "")
        if not cidr:
            found.append(required(f"{path}.ipBlock.cidr"))
        else:
            found += [invalid(f"{path}.ipBlock.cidr", cidr, fault) for fault in names.block_faults(cidr)]
        if selectors:
            found.append(forbidden_field(path, "may not specify both ipBlock and another peer"))
    elif not selectors:
        found.append(required(path, "must specify a peer"))
    return found
