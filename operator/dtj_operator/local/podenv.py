"""Environment and command of a container as Kubernetes defines them: sources, order, `$(VAR)`. Nothing is rewritten."""

import base64
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from dtj_operator.api.quantity import parse
from dtj_operator.local.node.machine import ADDRESS
from dtj_operator.local.objects import Objects

Json = dict[str, Any]

PASSED_ON = re.compile(
    r"HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|LD_LIBRARY_PATH|XDG_CACHE_HOME|SSL_CERT_(FILE|DIR)"
    r"|CUDA_HOME|CUDA_VISIBLE_DEVICES|NVIDIA_\w+|KERAS_HOME|(?i:(http|https|no|all)_proxy)"
)
"""What a program finds of this machine's own environment, in the place of an image's. Credentials stay out."""

_REFERENCE = re.compile(r"\$(?:\$|\((?P<name>[^()$]+)\))")
_KEYED = re.compile(r"(?P<path>metadata\.(?:labels|annotations))\['(?P<key>[^']+)'\]")


class ConfigError(Exception):
    """What a container refers to isn't there; the words are the kubelet's."""


class Place(msgspec.Struct, frozen=True):
    """Where a pod is, as its own manifest doesn't say: its node, and what that offers to a container without limits."""

    node: str
    allocatable: dict[str, str]


def environment(pod: Json, container: Json, place: Place, objects: Objects) -> dict[str, str]:
    """What the pod says, `envFrom` first, later entries over earlier ones. ConfigError for a source that is missing."""
    found: dict[str, str] = {}
    namespace = pod["metadata"]["namespace"]
    for source in container.get("envFrom") or ():
        found |= _all_of(source, namespace, objects)
    for variable in container.get("env") or ():
        if origin := variable.get("valueFrom"):
            value = _value_from(origin, pod, container, place, objects)
        else:
            value = expanded(variable.get("value") or "", found)
        if value is not None:
            found[variable["name"]] = value
    return found


def base(python: Path, hostname: str) -> dict[str, str]:
    """What an image would bring: a PATH on which this Python and its programs come first, and some of this machine."""
    kept = {name: value for name, value in os.environ.items() if PASSED_ON.fullmatch(name)}
    if any("_proxy" in name.lower() for name in kept):
        # TensorFlow's gRPC takes HTTP_PROXY even to its peers on this machine, and hangs.
        for name in ("NO_PROXY", "no_proxy"):
            kept[name] = ",".join(filter(None, [kept.get(name), ADDRESS, "localhost"]))
    path = os.environ.get("PATH", os.defpath)
    return kept | {"PATH": f"{python.parent}{os.pathsep}{path}", "HOSTNAME": hostname}


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """`$(NAME)` by its value; unknown names stay as they are, `$$` is a plain `$`."""

    def value(found: re.Match[str]) -> str:
        name = found["name"]
        return "$" if name is None else variables.get(name, found[0])

    return _REFERENCE.sub(value, text)


def words(container: Json, variables: Mapping[str, str]) -> tuple[str, ...]:
    """The command line; without a command it goes on behind the image's entry point."""
    told = [*(container.get("command") or ()), *(container.get("args") or ())]
    return tuple(expanded(word, variables) for word in told)


def field(pod: Json, path: str, place: Place) -> str:
    """What a `fieldRef` gives. ConfigError for a path that there is no value for."""
    if keyed := _KEYED.fullmatch(path):
        return str((_at(pod, keyed["path"]) or {}).get(keyed["key"], ""))
    match path:
        case "metadata.labels" | "metadata.annotations":
            return "\n".join(f"{key}={_quoted(value)}" for key, value in sorted((_at(pod, path) or {}).items()))
        case "spec.nodeName" | "spec.host":
            return place.node
        case "status.hostIP" | "status.hostIPs" | "status.podIP" | "status.podIPs":
            return ADDRESS
    value = _at(pod, path)
    if value is None:
        raise ConfigError(f"unsupported fieldPath: {path}")
    return str(value)


def resource(pod: Json, container: Json, reference: Json, place: Place) -> str:
    """What a `resourceFieldRef` gives, in whole divisors rounded up."""
    name = reference.get("containerName") or container.get("name")
    spec = pod["spec"]
    of = next((c for c in [*spec["containers"], *(spec.get("initContainers") or ())] if c["name"] == name), container)
    section, _, what = reference["resource"].partition(".")
    amounts = (of.get("resources") or {}).get(section) or {}
    amount = amounts.get(what) or (place.allocatable.get(what, "0") if section == "limits" else "0")
    divisor = str(reference.get("divisor") or "1")
    return str(math.ceil(parse(str(amount)) / parse("1" if divisor == "0" else divisor)))


def data_of(storage: str, namespace: str, name: str, objects: Objects) -> dict[str, bytes] | None:
    """The entries of a ConfigMap or Secret; None where there is none."""
    found = objects.find(storage, namespace, name)
    if found is None:
        return None
    encoded = found.get("binaryData") if storage == "configmaps" else found.get("data")
    plain = (found.get("data") or {}) if storage == "configmaps" else {}
    entries = {key: text.encode() for key, text in plain.items()}
    return entries | {key: base64.b64decode(text) for key, text in (encoded or {}).items()}


def _all_of(source: Json, namespace: str, objects: Objects) -> dict[str, str]:
    for field_, storage, word in (("configMapRef", "configmaps", "configmap"), ("secretRef", "secrets", "secret")):
        if reference := source.get(field_):
            entries = data_of(storage, namespace, reference["name"], objects)
            if entries is None and not reference.get("optional"):
                raise ConfigError(f'{word} "{reference["name"]}" not found')
            prefix = source.get("prefix") or ""
            return {f"{prefix}{key}": text.decode(errors="replace") for key, text in (entries or {}).items()}
    return {}


def _value_from(origin: Json, pod: Json, container: Json, place: Place, objects: Objects) -> str | None:
    """None for an optional source that is missing: the variable isn't set then."""
    if reference := origin.get("fieldRef"):
        return field(pod, reference["fieldPath"], place)
    if reference := origin.get("resourceFieldRef"):
        return resource(pod, container, reference, place)
    for name, storage, kind in (("configMapKeyRef", "configmaps", "ConfigMap"), ("secretKeyRef", "secrets", "Secret")):
        if reference := origin.get(name):
            return _entry(reference, storage, kind, pod["metadata"]["namespace"], objects)
    raise ConfigError(f"invalid valueFrom: {', '.join(origin)}")


def _entry(reference: Json, storage: str, kind: str, namespace: str, objects: Objects) -> str | None:
    entries = data_of(storage, namespace, reference["name"], objects)
    if entries is not None and reference["key"] in entries:
        return entries[reference["key"]].decode(errors="replace")
    if reference.get("optional"):
        return None
    if entries is None:
        raise ConfigError(f'{kind.lower()} "{reference["name"]}" not found')
    raise ConfigError(f"couldn't find key {reference['key']} in {kind} {namespace}/{reference['name']}")


def _at(body: Json, path: str) -> Any:
    value: Any = body
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()
