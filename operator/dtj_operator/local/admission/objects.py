"""Defaults, first status and checks of the built-in kinds other than pods and what `network.py` has."""

import base64
import re
from typing import Any

from dtj_operator.local.admission import metadata, names
from dtj_operator.local.admission.filling import fill
from dtj_operator.local.failures import (
    FieldFault,
    bad_request,
    forbidden_field,
    invalid,
    not_supported,
    required,
    too_long,
)
from dtj_operator.local.quantity import value_of

Json = dict[str, Any]

_DATA_BYTES = 1024 * 1024
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_NO_LINE_BREAKS = str.maketrans("", "", "\r\n")
# What a Secret of a type cannot be without.
_SECRET_KEYS = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
_VOLUME_MODES = ("Block", "Filesystem")
_EVICTION_POLICIES = ("AlwaysAllow", "IfHealthyBudget")
_HIGHEST_PRIORITY = 1_000_000_000


def event_faults(body: Json, old: Json | None) -> list[FieldFault]:
    """An Event stands beside what it is about; in `default`, where that has no namespace."""
    about, own = (body.get("involvedObject") or {}).get("namespace", ""), body["metadata"].get("namespace", "")
    if about == own or (not about and own == "default"):
        return []
    return [invalid("involvedObject.namespace", about, "does not match event.namespace")]


def default_secret(body: Json) -> None:
    fill(body, "type", "Opaque")
    _decode(body, "data", "Secret")
    plain = body.pop("stringData", None)
    if plain:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
        body["data"] = {**(body.get("data") or {}), **encoded}


def default_config_map(body: Json) -> None:
    _decode(body, "binaryData", "ConfigMap")


def _decode(body: Json, field: str, kind: str) -> None:
    """400 for what is no base64. As Go does, lines are put together, and what is stored is encoded anew."""
    for key, text in (body.get(field) or {}).items():
        joined = text.translate(_NO_LINE_BREAKS)
        if len(joined) % 4 or not _BASE64.fullmatch(joined):
            legal = _BASE64.match(text)
            told = f"illegal base64 data at input byte {legal.end() if legal else 0}"
            raise bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: {told}')
        body[field][key] = base64.b64encode(base64.b64decode(joined)).decode()


def data_faults(body: Json, old: Json | None) -> list[FieldFault]:
    """Of a Secret or a ConfigMap."""
    found: list[FieldFault] = []
    if _bytes_of(body) > _DATA_BYTES:
        found.append(too_long("data" if "type" in body else "[]", _DATA_BYTES))
    for key in body.get("data") or {}:
        found += [invalid(f"data[{key}]", key, fault) for fault in names.data_key_faults(key)]
        if key in (body.get("binaryData") or {}):
            found.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
    if old is not None and old.get("immutable"):
        told = "field is immutable when `immutable` is set"
        found += [
            forbidden_field(field, told)
            for field in ("immutable", "data", "binaryData")
            if body.get(field) != old.get(field)
        ]
    return found


def _bytes_of(body: Json) -> int:
    """Of the data of a Secret or a ConfigMap; base64 counts as what it stands for."""
    plain, encoded = body.get("data") or {}, body.get("binaryData") or {}
    if "type" in body:
        plain, encoded = {}, plain
    decoded: int = sum(len(value) // 4 * 3 - value.count("=") for value in encoded.values())
    return decoded + sum(len(value.encode()) for value in plain.values())


def secret_faults(body: Json, old: Json | None) -> list[FieldFault]:
    found = data_faults(body, old)
    missing = [key for key in _SECRET_KEYS.get(body["type"], ()) if key not in (body.get("data") or {})]
    found += [required(f"data[{key}]") for key in missing]
    if old is not None and body["type"] != old.get("type"):
        found.append(invalid("type", body["type"], "field is immutable"))
    return found


def fresh_namespace(body: Json) -> None:
    labels = body["metadata"].setdefault("labels", {})
    labels["kubernetes.io/metadata.name"] = body["metadata"].get("name", "")
    body["spec"] = {"finalizers": ["kubernetes"]}
    body["status"] = {"phase": "Active"}


def default_claim(body: Json) -> None:
    body.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def fresh_claim(body: Json) -> None:
    body["status"] = {"phase": "Pending"}


def default_volume(body: Json) -> None:
    """Of a PersistentVolume."""
    spec = body.setdefault("spec", {})
    fill(spec, "persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")


def fresh_volume(body: Json) -> None:
    body["status"] = {"phase": "Pending"}


def claim_faults(body: Json, old: Json | None) -> list[FieldFault]:
    spec = body["spec"]
    found: list[FieldFault] = []
    if not spec.get("accessModes"):
        found.append(required("spec.accessModes", "at least 1 access mode is required"))
    modes = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
    found += [
        not_supported("spec.accessModes", mode, modes) for mode in spec.get("accessModes") or [] if mode not in modes
    ]
    if len(spec.get("accessModes") or []) > 1 and "ReadWriteOncePod" in spec["accessModes"]:
        found.append(forbidden_field("spec.accessModes", "may not use ReadWriteOncePod with other access modes"))
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if not size:
        found.append(required("spec.resources[storage]"))
    elif value_of(size) <= 0:
        found.append(invalid("spec.resources[storage]", size, "must be greater than zero"))
    if spec["volumeMode"] not in _VOLUME_MODES:
        found.append(not_supported("spec.volumeMode", spec["volumeMode"], _VOLUME_MODES))
    if storage := spec.get("storageClassName"):
        found += [invalid("spec.storageClassName", storage, fault) for fault in names.subdomain_faults(storage)]
    if old is not None and _fixed_claim(spec, old) != _fixed_claim(old["spec"], old):
        told = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        found.append(forbidden_field("spec", told))
    return found


def default_budget(body: Json) -> None:
    body.setdefault("spec", {})


def budget_faults(body: Json, old: Json | None) -> list[FieldFault]:
    """Of a PodDisruptionBudget."""
    spec = body["spec"]
    found = metadata.selector_faults(spec.get("selector") or {}, "spec.selector")
    if "minAvailable" in spec and "maxUnavailable" in spec:
        told = "minAvailable and maxUnavailable cannot be both set"
        found.append(invalid("spec", spec, told))
    for field in ("minAvailable", "maxUnavailable"):
        bound = spec.get(field, 0)
        if isinstance(bound, str) and not re.fullmatch(r"[0-9]{1,9}%", bound):
            told = "a valid percent string must be a numeric string followed by an ending '%'"
            form = "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
            found.append(invalid(f"spec.{field}", bound, f"{told} {form}"))
        elif isinstance(bound, str) and int(bound.removesuffix("%")) > 100:
            found.append(invalid(f"spec.{field}", bound, "must not be greater than 100%"))
        elif isinstance(bound, int) and bound < 0:
            found.append(invalid(f"spec.{field}", bound, "must be greater than or equal to 0"))
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _EVICTION_POLICIES:
        found.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, _EVICTION_POLICIES))
    return found


def fresh_budget(body: Json) -> None:
    body["status"] = {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}


def default_limit_range(body: Json) -> None:
    """A container's default limit is the maximum, its default request the default limit or the minimum."""
    for item in body.setdefault("spec", {}).get("limits") or []:
        if item.get("type") != "Container":
            continue
        limits = {**(item.get("max") or {}), **(item.get("default") or {})}
        requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
        if limits:
            item["default"] = limits
        if requests:
            item["defaultRequest"] = requests


def default_priority_class(body: Json) -> None:
    body.setdefault("preemptionPolicy", "PreemptLowerPriority")


def priority_class_faults(body: Json, old: Json | None) -> list[FieldFault]:
    name, value = body["metadata"].get("name", ""), body.get("value", 0)
    if old is not None:
        changed = value != old.get("value", 0)
        return [forbidden_field("value", "may not be changed in an update.")] if changed else []
    if name.startswith("system-"):
        told = "priority class names with 'system-' prefix are reserved for system use only."
        why = f"error: {name} is not a known system priority class"
        return [forbidden_field("metadata.name", f"{told} {why}")]
    if value > _HIGHEST_PRIORITY:
        told = f"maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}"
        return [forbidden_field("value", told)]
    return []


def lease_faults(body: Json, old: Json | None) -> list[FieldFault]:
    spec = body.get("spec") or {}
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    found: list[FieldFault] = []
    if seconds is not None and seconds <= 0:
        found.append(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    if transitions is not None and transitions < 0:
        found.append(invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
    return found


def _fixed_claim(spec: Json, old: Json) -> Json:
    """What an update of the old claim has to leave as it is."""
    bound = (old.get("status") or {}).get("phase") == "Bound"
    free = ("resources", "volumeAttributesClassName") if bound else ()
    fixed = {key: value for key, value in spec.items() if key not in free}
    if not old["spec"].get("volumeName"):
        # A controller binds the claim by naming its volume.
        fixed.pop("volumeName", None)
    return fixed
