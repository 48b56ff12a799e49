"""What is wrong with a pod's containers: names, images, environment, ports, mounts, resources."""

from typing import Any

from dtj_operator.local.admission import fieldchecks, handlerchecks, names, volumechecks
from dtj_operator.local.failures import (
    FieldFault,
    duplicate,
    invalid,
    missing_reference,
    not_supported,
    required,
)
from dtj_operator.local.quantity import value_of

Json = dict[str, Any]

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_ONE_AT_A_TIME = "may not have more than one field specified at a time"
_RESTARTS = ("Always", "OnFailure", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_STANDARD_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})


def faults(spec: Json, volumes: set[str]) -> list[FieldFault]:
    """Of all containers, init containers included; `volumes` are the names they may mount."""
    found: list[FieldFault] = []
    if not spec.get("containers"):
        found.append(required("spec.containers"))
    # Containers are looked at first: a name that is there twice is the init container's fault.
    seen: set[str] = set()
    host_ports: set[tuple[str, str, int]] = set()
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or []):
            path = f"spec.{field}[{index}]"
            found += _container_faults(container, path, volumes)
            name = container.get("name", "")
            if name and name in seen:
                found.append(duplicate(f"{path}.name", name))
            seen.add(name)
            if field == "containers":
                found += _host_port_faults(container, path, host_ports)
            restarts = container.get("restartPolicy")
            if restarts is not None and restarts not in _RESTARTS:
                found.append(not_supported(f"{path}.restartPolicy", restarts, _RESTARTS))
    return found


def resource_faults(resources: Json, path: str) -> list[FieldFault]:
    """Of one container's requests and limits."""
    found: list[FieldFault] = []
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            found += _amount_faults(name, amount, f"{path}.{field}")
    for name, amount in requests.items():
        limit = limits.get(name)
        if limit is None:
            if not _overcommits(name):
                told = "Limit must be set for non overcommitable resources"
                found.append(required(f"{path}.limits", told))
        elif not _overcommits(name) and value_of(amount) != value_of(limit):
            found.append(invalid(f"{path}.requests", amount, f"must be equal to {name} limit of {limit}"))
        elif value_of(amount) > value_of(limit):
            found.append(invalid(f"{path}.requests", amount, f"must be less than or equal to {name} limit of {limit}"))
    return found


def _container_faults(container: Json, path: str, volumes: set[str]) -> list[FieldFault]:
    found: list[FieldFault] = []
    name = container.get("name", "")
    if not name:
        found.append(required(f"{path}.name"))
    else:
        found += [invalid(f"{path}.name", name, fault) for fault in names.label_faults(name)]
    if not container.get("image"):
        found.append(required(f"{path}.image"))
    elif container["image"] != container["image"].strip():
        found.append(invalid(f"{path}.image", container["image"], "must not have leading or trailing whitespace"))
    if container["imagePullPolicy"] not in _PULL_POLICIES:
        found.append(not_supported(f"{path}.imagePullPolicy", container["imagePullPolicy"], _PULL_POLICIES))
    found += _port_faults(container.get("ports") or [], f"{path}.ports")
    found += _environment_faults(container.get("env") or [], f"{path}.env")
    found += _imported_faults(container.get("envFrom") or [], f"{path}.envFrom")
    found += _mount_faults(container.get("volumeMounts") or [], f"{path}.volumeMounts", volumes)
    found += resource_faults(container.get("resources") or {}, f"{path}.resources")
    found += handlerchecks.faults(container, path)
    policy = container["terminationMessagePolicy"]
    if policy not in _MESSAGE_POLICIES:
        found.append(not_supported(f"{path}.terminationMessagePolicy", policy, _MESSAGE_POLICIES))
    return found


def _port_faults(ports: list[Json], path: str) -> list[FieldFault]:
    found: list[FieldFault] = []
    seen: set[str] = set()
    for index, port in enumerate(ports):
        at = f"{path}[{index}]"
        number = port.get("containerPort", 0)
        if not number:
            found.append(required(f"{at}.containerPort"))
        elif not 1 <= number <= 65535:
            found.append(invalid(f"{at}.containerPort", number, "must be between 1 and 65535, inclusive"))
        host = port.get("hostPort")
        if host and not 1 <= host <= 65535:
            found.append(invalid(f"{at}.hostPort", host, "must be between 1 and 65535, inclusive"))
        if name := port.get("name"):
            found += [invalid(f"{at}.name", name, fault) for fault in names.port_name_faults(name)]
            if name in seen:
                found.append(duplicate(f"{at}.name", name))
            seen.add(name)
        if port["protocol"] not in names.PROTOCOLS:
            found.append(not_supported(f"{at}.protocol", port["protocol"], names.PROTOCOLS))
    return found


def _host_port_faults(container: Json, path: str, taken: set[tuple[str, str, int]]) -> list[FieldFault]:
    found = []
    for index, port in enumerate(container.get("ports") or []):
        if not port.get("hostPort"):
            continue
        key = (port["protocol"], port.get("hostIP", ""), port["hostPort"])
        if key in taken:
            found.append(duplicate(f"{path}.ports[{index}].hostPort", "/".join(str(part) for part in key)))
        taken.add(key)
    return found


def _environment_faults(variables: list[Json], path: str) -> list[FieldFault]:
    found: list[FieldFault] = []
    for index, variable in enumerate(variables):
        at = f"{path}[{index}]"
        name = variable.get("name", "")
        if not name:
            found.append(required(f"{at}.name"))
        else:
            found += [invalid(f"{at}.name", name, fault) for fault in names.environment_name_faults(name)]
        source = variable.get("valueFrom")
        if source is not None:
            if not source:
                told = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or "
                found.append(invalid(f"{at}.valueFrom", "", f"{told}`fileKeyRef`"))
            elif variable.get("value"):
                found.append(invalid(f"{at}.valueFrom", "", "may not be specified when `value` is not empty"))
            if len(source) > 1:
                found.append(invalid(f"{at}.valueFrom", "", _ONE_AT_A_TIME))
            found += _source_faults(source, f"{at}.valueFrom")
    return found


def _source_faults(source: Json, path: str) -> list[FieldFault]:
    """Of where a variable's value comes from."""
    found: list[FieldFault] = []
    for kind, reference in source.items():
        match kind:
            case "fieldRef":
                found += fieldchecks.field_faults(reference, f"{path}.{kind}", fieldchecks.IN_VARIABLES)
            case "resourceFieldRef":
                found += fieldchecks.resource_faults(reference, f"{path}.{kind}")
            case "configMapKeyRef" | "secretKeyRef":
                found += fieldchecks.key_faults(reference, f"{path}.{kind}")
            case _:
                pass
    return found


def _imported_faults(sources: list[Json], path: str) -> list[FieldFault]:
    found: list[FieldFault] = []
    for source in sources:
        given = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
        if not given:
            found.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(given) > 1:
            found.append(invalid(path, "", _ONE_AT_A_TIME))
        for kind in given:
            found += fieldchecks.object_faults(source[kind], f"{path}.{kind}")
    return found


def _mount_faults(mounts: list[Json], path: str, volumes: set[str]) -> list[FieldFault]:
    found: list[FieldFault] = []
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        at = f"{path}[{index}]"
        name, place = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            found.append(required(f"{at}.name"))
        if name not in volumes:
            found.append(missing_reference(f"{at}.name", name))
        if not place:
            found.append(required(f"{at}.mountPath"))
        elif place in seen:
            found.append(invalid(f"{at}.mountPath", place, "must be unique"))
        seen.add(place)
        for field in ("subPath", "subPathExpr"):
            if mount.get(field):
                # kube-apiserver does not say which mount it is.
                found += volumechecks.inner_path_faults(mount[field], f"{path}.{field}")
        if mount.get("subPath") and mount.get("subPathExpr"):
            found.append(
                invalid(f"{at}.subPathExpr", mount["subPathExpr"], "subPathExpr and subPath are mutually exclusive")
            )
    return found


def _amount_faults(name: str, amount: str, path: str) -> list[FieldFault]:
    at = f"{path}[{name}]"
    found = [invalid(at, name, fault) for fault in names.qualified_name_faults(name)]
    if "/" not in name and name not in _STANDARD_RESOURCES and not name.startswith("hugepages-"):
        if not found:
            found.append(invalid(at, name, "must be a standard resource type or fully qualified"))
        found.append(invalid(at, name, "must be a standard resource for containers"))
    value = value_of(amount)
    if value < 0:
        found.append(invalid(at, amount, "must be greater than or equal to 0"))
    if not _overcommits(name) and value.denominator != 1:
        found.append(invalid(at, amount, "must be an integer"))
    return found


def _overcommits(name: str) -> bool:
    return name in _STANDARD_RESOURCES
