"""Faults of pod templates that are ours to find: what the operator sets itself, clashes, and what is no template.

Typos inside a template are found by the API server's dry run. A role's template is laid over the job's by name, so what
a container lacks or has is looked for in both.
"""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from dtj_operator.api import names
from dtj_operator.api.schema import Parts, field_path
from dtj_worker import contract
from dtj_worker.contract import ROLES

_RESERVED = "dtj-"
"""Prefix of the containers and volumes that the operator adds to pods."""
_OURS = f"{names.GROUP}/"

_OWN_FIELDS = {
    "restartPolicy": "pods never restart by themselves, the operator decides that; remove it, and see spec.recovery",
    "hostname": "the operator gives every task its name; remove it",
    "subdomain": "the operator gives every task its address; remove it",
}
_OWN_VARIABLES = {
    "TF_CONFIG": "the operator gives every task its own; remove it",
    contract.ENV_TASK: "the operator sets it; remove it",
    contract.ENV_TOKEN: "the operator sets it; remove it",
    contract.ENV_GRACE_SECONDS: "the operator sets it; remove it",
    contract.ENV_REPORT_FD: "the supervisor sets it; remove it",
    contract.ENV_RESTORE: "the supervisor sets it; remove it",
    contract.ENV_CHECKPOINT_FOLDER: "the supervisor sets it; remove it, or set checkpoint.directory",
}


class Settings(Struct, frozen=True):
    """What of the spec its templates must agree with."""

    port: int
    status_port: int
    trainer: str | None
    injects: bool
    program: str | None
    """Where the program is mounted unless the trainer names its working directory; None: there is none to mount."""
    checkpoints: str | None
    """Where checkpoints are mounted; None: nowhere."""


class Piece(Struct, frozen=True):
    """One template's part of a container."""

    at: Parts
    container: dict[str, Any]


Template = tuple[Parts, dict[str, Any]]


def template_faults(spec: dict[str, Any], settings: Settings) -> Iterator[str]:
    """All faults of the templates of a job, each once; a missing template is the schema's business."""
    shared: list[Template] = [(("spec", "template"), found)] if isinstance(found := spec.get("template"), dict) else []
    for at, template in shared:
        yield from _own_faults(at, template)
    roles = spec.get("roles")
    for name in ROLES:
        role = roles.get(name) if isinstance(roles, dict) else None
        if not isinstance(role, dict):
            continue
        own: list[Template] = []
        if isinstance(found := role.get("template"), dict):
            own = [(("spec", "roles", name, "template"), found)]
            yield from _own_faults(*own[0])
        if shared or own:
            yield from _role_faults(name, [*shared, *own], settings)


def _own_faults(at: Parts, template: dict[str, Any]) -> Iterator[str]:
    """What is wrong with one template by itself."""
    for name in template:
        if name not in ("metadata", "spec"):
            meant = field_path((*at, "spec", str(name)))
            yield f"{field_path((*at, str(name)))}: a pod template has metadata and spec; did you mean {meant}?"
    yield from _metadata_faults((*at, "metadata"), template.get("metadata"))
    pod = template.get("spec")
    at = (*at, "spec")
    if pod is not None and not isinstance(pod, dict):
        yield f"{field_path(at)}: expected an object, got {_kind(pod)}"
    if not isinstance(pod, dict):
        return
    for name, why in _OWN_FIELDS.items():
        if pod.get(name) is not None:
            yield f"{field_path((*at, name))}: {why}"
    for place, gate in _objects(pod.get("schedulingGates")):
        if str(gate.get("name")).startswith(_OURS):
            yield f"{field_path((*at, 'schedulingGates', place))}: gates of {names.GROUP} are the operator's; remove it"
    for place, volume in _objects(pod.get("volumes")):
        if str(volume.get("name")).startswith(_RESERVED):
            yield f"{field_path((*at, 'volumes', place, 'name'))}: names that begin with {_RESERVED} are the operator's"
    for field in ("containers", "initContainers"):
        yield from _list_faults((*at, field), pod.get(field))
        for place, container in _objects(pod.get(field)):
            yield from _container_faults((*at, field, place), container)


def _metadata_faults(at: Parts, metadata: Any) -> Iterator[str]:
    if metadata is not None and not isinstance(metadata, dict):
        yield f"{field_path(at)}: expected an object, got {_kind(metadata)}"
    for field in ("labels", "annotations") if isinstance(metadata, dict) else ():
        values = metadata.get(field)
        if values is not None and not isinstance(values, dict):
            yield f"{field_path((*at, field))}: expected an object, got {_kind(values)}"
        for name in values if isinstance(values, dict) else ():
            if str(name).startswith(_OURS):
                yield f"{field_path((*at, field, str(name)))}: {field} of {names.GROUP} are the operator's; remove it"


def _list_faults(at: Parts, value: Any) -> Iterator[str]:
    """A list of containers that is none."""
    if value is None:
        return
    if not isinstance(value, list):
        yield f"{field_path(at)}: expected a list of containers, got {_kind(value)}"
        return
    for place, entry in enumerate(value):
        if not isinstance(entry, dict):
            yield f"{field_path((*at, place))}: expected a container, got {_kind(entry)}"
        elif not isinstance(entry.get("name"), str) or not entry["name"]:
            yield f"{field_path((*at, place, 'name'))}: required; containers of the templates are matched by name"


def _container_faults(at: Parts, container: dict[str, Any]) -> Iterator[str]:
    if str(container.get("name")).startswith(_RESERVED):
        yield f"{field_path((*at, 'name'))}: names that begin with {_RESERVED} are the operator's"
    for place, variable in _objects(container.get("env")):
        name = str(variable.get("name"))
        if name in _OWN_VARIABLES:
            yield f"{field_path((*at, 'env', place))}: {name}: {_OWN_VARIABLES[name]}"


def _role_faults(role: str, templates: list[Template], settings: Settings) -> Iterator[str]:
    """What is wrong with a role's pod, seen over both templates."""
    containers = _containers(templates)
    if not containers:
        path = field_path((*templates[-1][0], "spec", "containers"))
        yield f"{path}: the pod of {role} has no container; add the one that trains"
        return
    trainer = settings.trainer or ("trainer" if "trainer" in containers else next(iter(containers)))
    if trainer not in containers:
        have = ", ".join(containers)
        yield f"spec.trainerContainer: {trainer!r} is no container of {role}, whose pod has {have}; name one of them"
    for name, pieces in containers.items():
        if not any(piece.container.get("image") for piece in pieces):
            yield f"{field_path((*pieces[0].at, 'image'))}: required; name the image that {name} runs"
        for piece in pieces:
            yield from _port_faults(piece, name == trainer, settings)
    for piece in _sidecars(templates):
        yield from _port_faults(piece, False, settings)
    pieces = containers.get(trainer, [])
    yield from _mount_faults(pieces, settings)
    if settings.injects and pieces and not any(piece.container.get("command") for piece in pieces):
        yield (
            f"spec.supervisor: Inject goes before the trainer's command, and {field_path(pieces[0].at)} has none; set "
            "its command, or set Auto and start dtj-worker in the image"
        )


def _containers(templates: list[Template]) -> dict[str, list[Piece]]:
    """A role's containers by name, with what each template says of them."""
    found: dict[str, list[Piece]] = {}
    for at, template in templates:
        pod = template.get("spec", {})
        if pod is None or (isinstance(pod, dict) and pod.get("containers", ...) is None):
            # Null in a template takes away what lies under it.
            found.clear()
        for place, container in _objects(pod.get("containers") if isinstance(pod, dict) else None):
            if isinstance(container.get("name"), str):
                piece = Piece((*at, "spec", "containers", place), container)
                found.setdefault(container["name"], []).append(piece)
    return found


def _mount_faults(trainer: list[Piece], settings: Settings) -> Iterator[str]:
    """Mounts of the trainer where the operator mounts something else."""
    folders = [folder for piece in trainer if isinstance(folder := piece.container.get("workingDir"), str)]
    taken = {}
    if settings.program is not None:
        taken[(folders[-1] if folders else settings.program).rstrip("/")] = "spec.program"
    if settings.checkpoints is not None:
        taken[settings.checkpoints] = "spec.checkpoint"
    for piece in trainer:
        for place, mount in _objects(piece.container.get("volumeMounts")):
            folder = mount.get("mountPath")
            if isinstance(folder, str) and (asked := taken.get(folder.rstrip("/"))) is not None:
                path = field_path((*piece.at, "volumeMounts", place, "mountPath"))
                yield f"{path}: {folder} is where {asked} is mounted; mount this elsewhere, or remove it"


def _sidecars(templates: list[Template]) -> Iterator[Piece]:
    """Init containers that go on beside the trainer."""
    for at, template in templates:
        pod = template.get("spec")
        for place, container in _objects(pod.get("initContainers") if isinstance(pod, dict) else None):
            if container.get("restartPolicy") == "Always":
                yield Piece((*at, "spec", "initContainers", place), container)


def _port_faults(piece: Piece, is_trainer: bool, settings: Settings) -> Iterator[str]:
    """Ports of a container that TensorFlow or the supervisor listens on: all containers of a pod share them."""
    tensorflow = range(settings.port, settings.port + contract.PORTS_PER_TASK)
    for place, port in _objects(piece.container.get("ports")):
        number = port.get("containerPort")
        if not isinstance(number, int) or port.get("protocol", "TCP") != "TCP":
            continue
        path = field_path((*piece.at, "ports", place, "containerPort"))
        if number == settings.status_port:
            yield f"{path}: the supervisor listens on {number}; take another, or set spec.network.statusPort"
        elif number in tensorflow and not (is_trainer and number == settings.port):
            yield (
                f"{path}: {number} is one of TensorFlow's ports {tensorflow[0]} to {tensorflow[-1]}; take another, or "
                "set spec.network.port"
            )


def _objects(value: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """The entries of a list that are objects, with their places; nothing where there is no list."""
    for place, entry in enumerate(value if isinstance(value, list) else ()):
        if isinstance(entry, dict):
            yield place, entry


def _kind(value: Any) -> str:
    return "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else f"{value!r:.40}"
