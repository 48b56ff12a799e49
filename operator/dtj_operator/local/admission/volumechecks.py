"""What is wrong with a pod's volumes and the paths in them, with kube-apiserver's paths and sentences."""

from typing import Any

from dtj_operator.local.admission import fieldchecks, names
from dtj_operator.local.failures import FieldFault, duplicate, forbidden_field, invalid, not_supported, required
from dtj_operator.local.quantity import value_of

Json = dict[str, Any]

# What a volume source cannot be without.
_NEEDS = {
    "persistentVolumeClaim": ("claimName",),
    "secret": ("secretName",),
    "configMap": ("name",),
    "hostPath": ("path",),
    "csi": ("driver",),
    "nfs": ("path", "server"),
}
_HOST_PATHS = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
_MODES = "must be a number between 0 and 0777 (octal), both inclusive"


def faults(volumes: list[Json]) -> list[FieldFault]:
    found: list[FieldFault] = []
    seen = set()
    for index, volume in enumerate(volumes):
        path = f"spec.volumes[{index}]"
        name = volume.get("name", "")
        if not name:
            found.append(required(f"{path}.name"))
        else:
            found += [invalid(f"{path}.name", name, fault) for fault in names.label_faults(name)]
            if name in seen:
                found.append(duplicate(f"{path}.name", name))
            seen.add(name)
        sources = [source for source in volume if source != "name"]
        for extra in sources[1:]:
            found.append(forbidden_field(f"{path}.{extra}", "may not specify more than 1 volume type"))
        for source in sources[:1]:
            found += _source_faults(source, volume[source], f"{path}.{source}")
    return found


def inner_path_faults(place: str, path: str) -> list[FieldFault]:
    """Of a path within a volume."""
    if place.startswith("/"):
        return [invalid(path, place, "must be a relative path")]
    return _backstep_faults(place, path)


def _source_faults(kind: str, source: Json, path: str) -> list[FieldFault]:
    found = [required(f"{path}.{needed}") for needed in _NEEDS.get(kind, ()) if not source.get(needed)]
    mode = source.get("defaultMode")
    if mode is not None and not 0 <= mode <= 0o777:
        found.append(invalid(f"{path}.defaultMode", mode, _MODES))
    match kind:
        case "hostPath":
            found += _backstep_faults(source.get("path", ""), f"{path}.path")
            if source.get("type", "") not in _HOST_PATHS:
                found.append(not_supported(f"{path}.type", source["type"], _HOST_PATHS))
        case "nfs" if not source.get("path", "").startswith("/"):
            found.append(invalid(f"{path}.path", source.get("path", ""), "must be an absolute path"))
        case "emptyDir" if value_of(source.get("sizeLimit", "0")) < 0:
            found.append(forbidden_field(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity"))
        case "configMap" | "secret":
            for index, item in enumerate(source.get("items") or []):
                found += _item_faults(item, f"{path}.items[{index}]")
        case "downwardAPI":
            for item in source.get("items") or []:
                found += _told_faults(item, path)
        case _:
            pass
    return found


def _item_faults(item: Json, path: str) -> list[FieldFault]:
    """Of a key that becomes a file."""
    found: list[FieldFault] = []
    if not item.get("key"):
        found.append(required(f"{path}.key"))
    return found + _file_faults(item, path)


def _told_faults(item: Json, path: str) -> list[FieldFault]:
    """Of what the pod is told about itself in a file; kube-apiserver does not say which."""
    found = _file_faults(item, path)
    if item.get("fieldRef"):
        found += fieldchecks.field_faults(item["fieldRef"], f"{path}.fieldRef", fieldchecks.IN_VOLUMES)
        if item.get("resourceFieldRef"):
            told = "fieldRef and resourceFieldRef can not be specified simultaneously"
            found.append(invalid(path, "resource", told))
    elif item.get("resourceFieldRef"):
        reference, at = item["resourceFieldRef"], f"{path}.resourceFieldRef"
        if not reference.get("containerName"):
            found.append(required(f"{at}.containerName"))
        found += fieldchecks.resource_faults(reference, at)
    else:
        found.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return found


def _file_faults(item: Json, path: str) -> list[FieldFault]:
    place, mode = item.get("path", ""), item.get("mode")
    found = inner_path_faults(place, f"{path}.path") if place else [required(f"{path}.path")]
    if place.startswith("..") and not place.startswith("../") and place != "..":
        found.append(invalid(f"{path}.path", place, "must not start with '..'"))
    if mode is not None and not 0 <= mode <= 0o777:
        found.append(invalid(f"{path}.mode", mode, _MODES))
    return found


def _backstep_faults(place: str, path: str) -> list[FieldFault]:
    return [invalid(path, place, "must not contain '..'")] if ".." in place.split("/") else []
