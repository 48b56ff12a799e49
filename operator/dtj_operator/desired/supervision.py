"""How the supervisor gets into a trainer: by the image's entry point, by injection, or not at all."""

from typing import Any, Literal

from msgspec import Struct

from dtj_operator.api.observed import Situation
from dtj_operator.desired.overlay import role_template, trainer
from dtj_operator.desired.topology import spec_of
from dtj_worker.contract import INSTALL_OPTION, Role

FOLDER = "/dtj/supervisor"
ZIPAPP = f"{FOLDER}/dtj-worker.pyz"
VOLUME = "dtj-supervisor"

# Where the image has no Python that the supervisor runs under, the command goes on unchanged, and the operator says
# that nobody registered. `$(` must not occur: the kubelet expands it.
_RUN = (
    "supervisor=$1; shift; "
    "if python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; "
    'then exec python3 "$supervisor" -- "$@"; fi; exec "$@"'
)
_RESOURCES = {"cpu": "100m", "memory": "64Mi"}


class Supervision(Struct, frozen=True):
    """EntryPoint: the image starts dtj-worker. Injected: an init container brings it. Absent: the trainer is alone."""

    mode: Literal["EntryPoint", "Injected", "Absent"]
    reason: str
    """Why, in words that follow the mode."""

    @property
    def is_supervised(self) -> bool:
        return self.mode != "Absent"


def supervision(s: Situation, role: Role) -> Supervision:
    """How a role's trainer is supervised."""
    spec = spec_of(s)
    if spec.supervisor == "None":
        return Supervision("Absent", "spec.supervisor is None")
    command = trainer(spec, role_template(spec, role)).get("command")
    if not isinstance(command, list) or not command:
        return Supervision(
            "EntryPoint", "the template sets no command, so the image's entry point is taken to be dtj-worker"
        )
    if str(command[0]).rpartition("/")[2] == "dtj-worker":
        return Supervision("EntryPoint", "the template's command is dtj-worker")
    if s.facts.supervisor_image is None:
        return Supervision(
            "Absent", "the template sets a command, and this operator was given no supervisor image to inject"
        )
    return Supervision("Injected", "the template sets a command, which the supervisor is put in front of")


def injected_command(command: list[Any]) -> list[Any]:
    """The command with the supervisor in front; the container's args still follow."""
    return ["/bin/sh", "-c", _RUN, "dtj-worker", ZIPAPP, *command]


def install_container(image: str) -> dict[str, Any]:
    """The init container that brings the supervisor.

    It names no command, so that the same words work on the embedded cluster, which has no images. Limits equal to the
    requests keep a Guaranteed pod Guaranteed, and a namespace's quota content.
    """
    return {
        "name": VOLUME,
        "image": image,
        "args": [INSTALL_OPTION, ZIPAPP],
        "resources": {"requests": _RESOURCES, "limits": _RESOURCES},
        "volumeMounts": [{"name": VOLUME, "mountPath": FOLDER}],
    }
