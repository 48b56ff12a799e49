"""A pod's volumes as folders on this machine, filled with what they are to hold."""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from dtj_operator.local.node.paths import Paths
from dtj_operator.local.objects import Objects
from dtj_operator.local.podenv import ConfigError, Place, data_of, expanded, field, resource

Json = dict[str, Any]

_MODE = 0o644


class NotMounted(Exception):
    """A volume can't be had, yet or ever; the words are the kubelet's where it has some."""

    def __init__(self, volume: str, why: str) -> None:
        super().__init__(f'MountVolume.SetUp failed for volume "{volume}" : {why}')


def prepare(pod: Json, folder: Path, place: Place, objects: Objects, mapped: dict[str, str]) -> dict[str, str]:
    """The folder of each volume, or its file, by the volume's name. Made below `folder`, which may hold older tries.

    Volumes that are mounted nowhere but at `mapped` paths are left out: the user has put something in their place.
    """
    needed = {mount["name"] for mount in _mounts(pod) if mount["mountPath"].rstrip("/") not in mapped}
    found = {}
    for volume in pod["spec"].get("volumes") or ():
        name = volume["name"]
        if name in needed or not any(mount["name"] == name for mount in _mounts(pod)):
            found[name] = str(_volume(pod, volume, folder / name, place, objects))
    return found


def paths(
    container: Json, volumes: dict[str, str], mapped: dict[str, str], variables: Mapping[str, str], cwd: str
) -> Paths:
    """Where the container's mounts lie. `mapped` goes before them.

    A working directory that no mount holds is the image's, and what the image would hold is in `cwd`.
    """
    folders: dict[str, str] = {}
    for mount in container.get("volumeMounts") or ():
        if mount["name"] not in volumes:
            continue
        below = mount.get("subPath") or expanded(mount.get("subPathExpr") or "", variables)
        here = Path(volumes[mount["name"]], below)
        if below and not here.exists():
            here.mkdir(parents=True)
        folders[mount["mountPath"]] = str(here)
    found = Paths(folders | mapped)
    inside = container.get("workingDir")
    if not inside or inside == "/" or found.here(inside):
        return found
    return Paths({inside: cwd} | folders | mapped)


def _volume(pod: Json, volume: Json, folder: Path, place: Place, objects: Objects) -> Path:
    name, namespace = volume["name"], pod["metadata"]["namespace"]
    try:
        match next((key for key in volume if key != "name"), "emptyDir"):
            case "emptyDir" | "ephemeral":
                folder.mkdir(parents=True, exist_ok=True)
            case "configMap":
                _fill(folder, _entries(volume["configMap"], "configMap", namespace, objects))
            case "secret":
                _fill(folder, _entries(volume["secret"], "secret", namespace, objects))
            case "downwardAPI":
                _fill(folder, _downward(volume["downwardAPI"], pod, place))
            case "projected":
                _fill(folder, _projected(volume["projected"], pod, place, objects))
            case "hostPath":
                return _host_path(volume["hostPath"])
            case "persistentVolumeClaim":
                return _claim(volume["persistentVolumeClaim"]["claimName"], namespace, objects)
            case kind:
                told = "put a folder in its place: dtj run --map <mountPath>=<folder>"
                raise ConfigError(f"the embedded cluster mounts no volume of type {kind}; {told}")
    except (ConfigError, OSError) as why:
        raise NotMounted(name, str(why)) from None
    return folder


Entries = dict[str, tuple[bytes, int]]
"""Content and mode of each file by its path."""


def _entries(source: Json, kind: str, namespace: str, objects: Objects, mode: int | None = None) -> Entries:
    """Of a ConfigMap or Secret: all of it, or the items that are named."""
    name = source.get("secretName") or source.get("name") or ""
    storage, word = ("configmaps", "configmap") if kind == "configMap" else ("secrets", "secret")
    data = data_of(storage, namespace, name, objects)
    if data is None:
        if source.get("optional"):
            return {}
        raise ConfigError(f'{word} "{name}" not found')
    usual = source.get("defaultMode") or mode or _MODE
    if not source.get("items"):
        return {key: (content, usual) for key, content in data.items()}
    found = {}
    for item in source["items"]:
        if item["key"] in data:
            found[item["path"]] = data[item["key"]], item.get("mode") or usual
        elif not source.get("optional"):
            raise ConfigError(
                f"{word} references non-existent {'config' if word == 'configmap' else 'secret'} key: {item['key']}"
            )
    return found


def _downward(source: Json, pod: Json, place: Place, mode: int | None = None) -> Entries:
    usual = source.get("defaultMode") or mode or _MODE
    found = {}
    for item in source.get("items") or ():
        if reference := item.get("fieldRef"):
            text = field(pod, reference["fieldPath"], place)
        else:
            text = resource(pod, {}, item["resourceFieldRef"], place)
        found[item["path"]] = text.encode(), item.get("mode") or usual
    return found


def _projected(source: Json, pod: Json, place: Place, objects: Objects) -> Entries:
    found: Entries = {}
    mode = source.get("defaultMode")
    for one in source.get("sources") or ():
        for kind in ("configMap", "secret"):
            if kind in one:
                found |= _entries(one[kind], kind, pod["metadata"]["namespace"], objects, mode)
        if "downwardAPI" in one:
            found |= _downward(one["downwardAPI"], pod, place, mode)
        if "serviceAccountToken" in one:
            raise ConfigError("the embedded cluster has no service account tokens")
    return found


def _fill(folder: Path, entries: Entries) -> None:
    """Written anew, as a whole: an older try may have left other files."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    for path, (content, mode) in entries.items():
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise ConfigError(f"path {path} leads out of the volume")
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(mode)


def _host_path(source: Json) -> Path:
    path, kind = Path(source["path"]), source.get("type") or ""
    if kind == "DirectoryOrCreate":
        path.mkdir(parents=True, exist_ok=True)
    elif kind == "FileOrCreate":
        path.touch(exist_ok=True)
    elif kind == "Directory" and not path.is_dir():
        raise ConfigError(f"hostPath type check failed: {path} is not a directory")
    elif kind == "File" and not path.is_file():
        raise ConfigError(f"hostPath type check failed: {path} is not a file")
    elif not kind and not path.exists():
        # A container runtime makes it, as root, on a node of the cluster; nobody wants that on their own machine.
        told = "make it, set type: DirectoryOrCreate, or put a folder in its place: dtj run --map <mountPath>=<folder>"
        raise ConfigError(f"hostPath {path} does not exist on this machine; {told}")
    return path


def _claim(name: str, namespace: str, objects: Objects) -> Path:
    claim = objects.find("persistentvolumeclaims", namespace, name)
    if claim is None:
        raise ConfigError(f'persistentvolumeclaim "{name}" not found')
    volume = objects.find("persistentvolumes", "", claim["spec"].get("volumeName") or "")
    if volume is None or "hostPath" not in volume["spec"]:
        raise ConfigError(f'persistentvolumeclaim "{name}" is bound to no folder of this machine')
    return Path(volume["spec"]["hostPath"]["path"])


def _mounts(pod: Json) -> Iterator[Json]:
    for container in (*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]):
        yield from container.get("volumeMounts") or ()
