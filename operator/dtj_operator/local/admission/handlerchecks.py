"""What is wrong with probes, lifecycle hooks and security contexts, though nothing here runs by them.

A pod that a cluster would refuse is refused here, too.
"""

from typing import Any

from dtj_operator.local.admission import names
from dtj_operator.local.failures import FieldFault, forbidden_field, invalid, not_supported, required

Json = dict[str, Any]

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_SCHEMES = ("HTTP", "HTTPS")
_IDS = ("runAsUser", "runAsGroup", "fsGroup")
_LARGEST_ID = 2147483647


def faults(container: Json, path: str) -> list[FieldFault]:
    found = security_faults(container.get("securityContext") or {}, f"{path}.securityContext")
    for probe in _PROBES:
        if container.get(probe) is not None:
            found += _probe_faults(container[probe], f"{path}.{probe}")
    for hook, handler in (container.get("lifecycle") or {}).items():
        if isinstance(handler, dict):
            found += _handler_faults(handler, f"{path}.lifecycle.{hook}")
    return found


def security_faults(context: Json, path: str) -> list[FieldFault]:
    """Of a pod's context or a container's."""
    found = [
        invalid(f"{path}.{field}", context[field], f"must be between 0 and {_LARGEST_ID}, inclusive")
        for field in _IDS
        if context.get(field) is not None and not 0 <= context[field] <= _LARGEST_ID
    ]
    seccomp = context.get("seccompProfile") or {}
    if seccomp.get("type") == "Localhost" and not seccomp.get("localhostProfile"):
        told = "must be set when seccomp type is Localhost"
        found.append(required(f"{path}.seccompProfile.localhostProfile", told))
    return found


def _probe_faults(probe: Json, path: str) -> list[FieldFault]:
    found = _handler_faults(probe, path)
    for field in _COUNTS:
        if probe.get(field, 0) < 0:
            found.append(invalid(f"{path}.{field}", probe[field], "must be greater than or equal to 0"))
    return found


def _handler_faults(handler: Json, path: str) -> list[FieldFault]:
    given = [kind for kind in _HANDLERS if handler.get(kind) is not None]
    if not given:
        return [required(path, "must specify a handler type")]
    found = [forbidden_field(f"{path}.{kind}", "may not specify more than 1 handler type") for kind in given[1:]]
    kind, asked, at = given[0], handler[given[0]], f"{path}.{given[0]}"
    if kind == "exec" and not asked.get("command"):
        found.append(required(f"{at}.command"))
    if kind in ("httpGet", "tcpSocket"):
        port = asked.get("port", 0)
        found += [invalid(f"{at}.port", port, fault) for fault in names.port_faults(port)]
    if kind == "httpGet" and asked.get("scheme", "HTTP") not in _SCHEMES:
        found.append(not_supported(f"{at}.scheme", asked["scheme"], _SCHEMES))
    return found
