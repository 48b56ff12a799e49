"""The rows of the built-in kinds other than pods."""

import datetime
from collections.abc import Callable
from typing import Any

from dtj_operator.local.tables import cells, pods
from dtj_operator.local.tables.cells import NONE, UNKNOWN, UNSET, age

Json = dict[str, Any]
Row = Callable[[Json, datetime.datetime], list[Any]]

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def name_and_age(body: Json, now: datetime.datetime) -> list[Any]:
    return [_name(body), _age(body, now)]


def _name(body: Json) -> str:
    return str(body["metadata"]["name"])


def _age(body: Json, now: datetime.datetime) -> str:
    return age(body["metadata"].get("creationTimestamp"), now)


def _config_map(body: Json, now: datetime.datetime) -> list[Any]:
    return [_name(body), len(body.get("data") or {}) + len(body.get("binaryData") or {}), _age(body, now)]


def _created_at(body: Json, now: datetime.datetime) -> list[Any]:
    return [_name(body), body["metadata"].get("creationTimestamp")]


def _endpoint_slice(body: Json, now: datetime.datetime) -> list[Any]:
    ports = ",".join(str(port.get("port", "")) for port in body.get("ports") or []) or UNSET
    addresses = ",".join(one for end in body.get("endpoints") or [] for one in end.get("addresses") or []) or UNSET
    return [_name(body), body.get("addressType"), ports, addresses, _age(body, now)]


def _event(body: Json, now: datetime.datetime) -> list[Any]:
    first = body.get("firstTimestamp") or body.get("eventTime") or body["metadata"].get("creationTimestamp")
    series = body.get("series") or {}
    last = series.get("lastObservedTime") or body.get("lastTimestamp") or first
    count = series.get("count") or body.get("count") or 1
    seen = age(last, now)
    if series:
        seen = f"{seen} (x{count} over {age(first, now)})"
    about = body.get("involvedObject") or {}
    source = body.get("source") or {}
    reporter = source.get("component") or body.get("reportingComponent") or ""
    if host := source.get("host") or body.get("reportingInstance"):
        reporter = f"{reporter}, {host}"
    target = f"{about.get('kind', '').lower()}/{about.get('name', '')}"
    return [
        seen, body.get("type", ""), body.get("reason", ""), target, about.get("fieldPath", ""), reporter,
        str(body.get("message", "")).strip(), age(first, now), count, _name(body),
    ]  # fmt: skip


def _lease(body: Json, now: datetime.datetime) -> list[Any]:
    return [_name(body), (body.get("spec") or {}).get("holderIdentity") or "", _age(body, now)]


def _namespace(body: Json, now: datetime.datetime) -> list[Any]:
    return [_name(body), (body.get("status") or {}).get("phase", ""), _age(body, now)]


def _network_policy(body: Json, now: datetime.datetime) -> list[Any]:
    return [_name(body), cells.selector_text(body["spec"].get("podSelector")), _age(body, now)]


def _node(body: Json, now: datetime.datetime) -> list[Any]:
    spec, status = body.get("spec") or {}, body.get("status") or {}
    ready = next((one for one in status.get("conditions") or [] if one.get("type") == "Ready"), None)
    state = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    if spec.get("unschedulable"):
        state += ",SchedulingDisabled"
    prefix = "node-role.kubernetes.io/"
    labels = body["metadata"].get("labels") or {}
    roles = ",".join(sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix))) or NONE
    info = status.get("nodeInfo") or {}
    addresses = {one.get("type"): one.get("address") for one in status.get("addresses") or []}
    return [
        _name(body), state, roles, _age(body, now), info.get("kubeletVersion", ""),
        addresses.get("InternalIP", NONE), addresses.get("ExternalIP", NONE), info.get("osImage", UNKNOWN),
        info.get("kernelVersion", UNKNOWN), info.get("containerRuntimeVersion", UNKNOWN),
    ]  # fmt: skip


def _claim(body: Json, now: datetime.datetime) -> list[Any]:
    spec, status = body["spec"], body.get("status") or {}
    phase = "Terminating" if body["metadata"].get("deletionTimestamp") else status.get("phase", "")
    bound = bool(spec.get("volumeName"))
    capacity = (status.get("capacity") or {}).get("storage", "") if bound else ""
    modes = _modes(status.get("accessModes")) if bound else ""
    return [
        _name(body), phase, spec.get("volumeName", ""), capacity, modes, spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName", UNSET), _age(body, now), spec.get("volumeMode", UNSET),
    ]  # fmt: skip


def _volume(body: Json, now: datetime.datetime) -> list[Any]:
    spec, status = body["spec"], body.get("status") or {}
    phase = "Terminating" if body["metadata"].get("deletionTimestamp") else status.get("phase", "")
    claim = spec.get("claimRef") or {}
    return [
        _name(body), (spec.get("capacity") or {}).get("storage", ""), _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""), phase,
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "", spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName", UNSET), status.get("reason", ""), _age(body, now),
        spec.get("volumeMode", UNSET),
    ]  # fmt: skip


def _modes(modes: list[str] | None) -> str:
    return ",".join(_MODES.get(mode, mode) for mode in modes or [])


def _budget(body: Json, now: datetime.datetime) -> list[Any]:
    spec, status = body["spec"], body.get("status") or {}
    bounds = [str(spec[key]) if key in spec else "N/A" for key in ("minAvailable", "maxUnavailable")]
    return [_name(body), *bounds, status.get("disruptionsAllowed", 0), _age(body, now)]


def _priority_class(body: Json, now: datetime.datetime) -> list[Any]:
    default = bool(body.get("globalDefault"))
    return [_name(body), body.get("value", 0), default, _age(body, now), body.get("preemptionPolicy", "")]


def _quota(body: Json, now: datetime.datetime) -> list[Any]:
    status = body.get("status") or {}
    used, hard = status.get("used") or {}, status.get("hard") or {}
    shown = [(key, f"{key}: {used.get(key, '0')}/{hard[key]}") for key in sorted(hard)]
    requests = ", ".join(text for key, text in shown if not key.startswith("limits"))
    limits = ", ".join(text for key, text in shown if key.startswith("limits"))
    return [_name(body), requests, limits, _age(body, now)]


def _secret(body: Json, now: datetime.datetime) -> list[Any]:
    return [_name(body), body.get("type", ""), len(body.get("data") or {}), _age(body, now)]


def _service(body: Json, now: datetime.datetime) -> list[Any]:
    spec = body["spec"]
    ports = ",".join(f"{port['port']}/{port.get('protocol', 'TCP')}" for port in spec.get("ports") or []) or NONE
    external = spec.get("externalName") if spec.get("type") == "ExternalName" else None
    addresses = ",".join(spec.get("externalIPs") or []) or external or NONE
    selector = cells.labels_text(spec.get("selector"))
    return [_name(body), spec.get("type"), spec.get("clusterIP", NONE), addresses, ports, _age(body, now), selector]


ROWS: dict[str, Row] = {
    "configmaps": _config_map,
    "customresourcedefinitions.apiextensions.k8s.io": _created_at,
    "endpointslices.discovery.k8s.io": _endpoint_slice,
    "events": _event,
    "leases.coordination.k8s.io": _lease,
    "limitranges": _created_at,
    "namespaces": _namespace,
    "networkpolicies.networking.k8s.io": _network_policy,
    "nodes": _node,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume,
    "poddisruptionbudgets.policy": _budget,
    "pods": pods.row,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "resourcequotas": _quota,
    "secrets": _secret,
    "services": _service,
}
