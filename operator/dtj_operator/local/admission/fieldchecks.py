"""What is wrong with references to a pod's own fields and to keys of other objects, in variables and in files."""

import re
from typing import Any

from dtj_operator.local.admission import names
from dtj_operator.local.failures import FieldFault, invalid, not_supported, required

Json = dict[str, Any]

IN_VARIABLES = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
IN_VOLUMES = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
# Fields that have a name to refer to them by, though not everywhere a value.
_NAMED = frozenset({*IN_VARIABLES, *IN_VOLUMES, "spec.restartPolicy", "spec.schedulerName", "status.phase"})
_OLD_NAMES = {"spec.host": "spec.nodeName"}
_ONE_OF_MANY = re.compile(r"metadata\.(labels|annotations)\['.+'\]")
_RESOURCES = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory",
    "requests.cpu", "requests.ephemeral-storage", "requests.memory",
)  # fmt: skip


def field_faults(reference: Json, path: str, offered: tuple[str, ...]) -> list[FieldFault]:
    """Of a `fieldRef`."""
    wanted = reference.get("fieldPath", "")
    if not wanted:
        return [required(f"{path}.fieldPath")]
    if _ONE_OF_MANY.fullmatch(wanted):
        return []
    wanted = _OLD_NAMES.get(wanted, wanted)
    if wanted not in _NAMED:
        told = f"error converting fieldPath: field label not supported: {wanted}"
        return [invalid(f"{path}.fieldPath", wanted, told)]
    return [] if wanted in offered else [not_supported(f"{path}.fieldPath", wanted, offered)]


def resource_faults(reference: Json, path: str) -> list[FieldFault]:
    """Of a `resourceFieldRef`."""
    wanted = reference.get("resource", "")
    if not wanted:
        return [required(f"{path}.resource")]
    if wanted in _RESOURCES or wanted.startswith(("limits.hugepages-", "requests.hugepages-")):
        return []
    return [not_supported(f"{path}.resource", wanted, _RESOURCES)]


def key_faults(reference: Json, path: str) -> list[FieldFault]:
    """Of a key of a ConfigMap or a Secret."""
    key = reference.get("key", "")
    found = object_faults(reference, path)
    if not key:
        return [*found, required(f"{path}.key")]
    return found + [invalid(f"{path}.key", key, fault) for fault in names.data_key_faults(key)]


def object_faults(reference: Json, path: str) -> list[FieldFault]:
    name = reference.get("name", "")
    return [invalid(f"{path}.name", name, fault) for fault in names.subdomain_faults(name)]
