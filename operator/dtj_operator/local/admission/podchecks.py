"""What is wrong with a pod's spec, with kube-apiserver's paths and sentences.

Containers have `containerchecks.py`, volumes `volumechecks.py`, updates `podupdates.py`.
"""

from typing import Any

from dtj_operator.local.admission import containerchecks, handlerchecks, names, volumechecks
from dtj_operator.local.failures import (
    FieldFault,
    duplicate,
    forbidden_field,
    invalid,
    not_supported,
    required,
)

Json = dict[str, Any]

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_TOLERATION_OPERATORS = ("Equal", "Exists")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_SPREADS = ("DoNotSchedule", "ScheduleAnyway")


def faults(body: Json) -> list[FieldFault]:
    """Of the whole pod but its metadata."""
    spec = body["spec"]
    volumes = {volume.get("name", "") for volume in spec.get("volumes") or []}
    found = volumechecks.faults(spec.get("volumes") or [])
    found += containerchecks.faults(spec, volumes)
    if spec["restartPolicy"] not in _RESTART_POLICIES:
        found.append(not_supported("spec.restartPolicy", spec["restartPolicy"], _RESTART_POLICIES))
    if spec["dnsPolicy"] not in _DNS_POLICIES:
        found.append(not_supported("spec.dnsPolicy", spec["dnsPolicy"], _DNS_POLICIES))
    if spec["dnsPolicy"] == "None" and not spec.get("dnsConfig"):
        found.append(required("spec.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None"))
    elif spec["dnsPolicy"] == "None" and not spec["dnsConfig"].get("nameservers"):
        told = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        found.append(required("spec.dnsConfig.nameservers", told))
    for field in ("hostname", "subdomain"):
        if spec.get(field):
            found += [invalid(f"spec.{field}", spec[field], fault) for fault in names.label_faults(spec[field])]
    if spec.get("nodeName"):
        found += [
            invalid("spec.nodeName", spec["nodeName"], fault) for fault in names.subdomain_faults(spec["nodeName"])
        ]
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= 2147483647:
        found.append(invalid("spec.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive"))
    for key, value in (spec.get("nodeSelector") or {}).items():
        found += [invalid("spec.nodeSelector", key, fault) for fault in names.qualified_name_faults(key)]
        found += [invalid("spec.nodeSelector", value, fault) for fault in names.label_value_faults(value)]
    found += _gate_faults(spec.get("schedulingGates") or [])
    found += _toleration_faults(spec.get("tolerations") or [])
    found += _spread_faults(spec.get("topologySpreadConstraints") or [])
    found += handlerchecks.security_faults(spec.get("securityContext") or {}, "spec.securityContext")
    for index, alias in enumerate(spec.get("hostAliases") or []):
        found += [
            invalid(f"spec.hostAliases[{index}].ip", alias.get("ip", ""), fault)
            for fault in names.address_faults(alias.get("ip", ""))
        ]
    for index, gate in enumerate(spec.get("readinessGates") or []):
        kind = gate.get("conditionType", "")
        at = f"spec.readinessGates[{index}].conditionType"
        found += [invalid(at, kind, fault) for fault in names.qualified_name_faults(kind)]
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        told = "ShareProcessNamespace and HostPID cannot both be enabled"
        found.append(invalid("spec.shareProcessNamespace", True, told))
    if spec.get("schedulingGates") and spec.get("nodeName"):
        found.append(forbidden_field("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return found


def _gate_faults(gates: list[Json]) -> list[FieldFault]:
    found: list[FieldFault] = []
    seen = set()
    for index, gate in enumerate(gates):
        path = f"spec.schedulingGates[{index}]"
        name = gate.get("name", "")
        found += [invalid(path, name, fault) for fault in names.qualified_name_faults(name)]
        if name in seen:
            found.append(duplicate(path, name))
        seen.add(name)
    return found


def _spread_faults(constraints: list[Json]) -> list[FieldFault]:
    found: list[FieldFault] = []
    for index, constraint in enumerate(constraints):
        path = f"spec.topologySpreadConstraints[{index}]"
        skew, otherwise = constraint.get("maxSkew", 0), constraint.get("whenUnsatisfiable", "")
        if skew <= 0:
            found.append(invalid(f"{path}.maxSkew", skew, "must be greater than zero"))
        if not constraint.get("topologyKey"):
            found.append(required(f"{path}.topologyKey", "can not be empty"))
        if otherwise not in _SPREADS:
            found.append(not_supported(f"{path}.whenUnsatisfiable", otherwise, _SPREADS))
    return found


def _toleration_faults(tolerations: list[Json]) -> list[FieldFault]:
    found: list[FieldFault] = []
    for index, toleration in enumerate(tolerations):
        path = f"spec.tolerations[{index}]"
        operator = toleration.get("operator", "Equal")
        if toleration.get("key"):
            found += [
                invalid(f"{path}.key", toleration["key"], one) for one in names.qualified_name_faults(toleration["key"])
            ]
        elif operator != "Exists":
            told = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            found.append(invalid(f"{path}.operator", toleration.get("operator", ""), told))
        if operator not in _TOLERATION_OPERATORS:
            found.append(not_supported(f"{path}.operator", operator, _TOLERATION_OPERATORS))
        if operator == "Exists" and toleration.get("value"):
            told = "value must be empty when `operator` is 'Exists'"
            found.append(invalid(f"{path}.operator", toleration["value"], told))
        effect = toleration.get("effect", "")
        if effect and effect not in _EFFECTS:
            found.append(not_supported(f"{path}.effect", effect, _EFFECTS))
        if "tolerationSeconds" in toleration and effect != "NoExecute":
            found.append(
                invalid(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
            )
    return found
