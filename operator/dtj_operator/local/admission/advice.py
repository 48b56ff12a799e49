"""What a client is warned of although it is done: values that are allowed and hardly meant."""

from collections.abc import Iterator
from typing import Any

from dtj_operator.local.admission import names, poddefaults
from dtj_operator.local.kinds import Kind
from dtj_operator.local.quantity import value_of

Json = dict[str, Any]

_BYTES = ("memory", "ephemeral-storage")


def on_create(kind: Kind, body: Json) -> tuple[str, ...]:
    """About an object with its defaults, in kube-apiserver's words."""
    match kind.storage:
        case "pods":
            return tuple(_of_pod(body))
        case "services" if body["spec"].get("clusterIP") == "None" and body["spec"]["sessionAffinity"] != "None":
            return ("spec.SessionAffinity is ignored for headless services",)
        case _:
            return ()


def _of_pod(body: Json) -> Iterator[str]:
    if faults := names.label_faults(body["metadata"]["name"]):
        told = "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended"
        yield f"metadata.name: {told}: [{' '.join(faults)}]"
    spec = body["spec"]
    for index, secret in enumerate(spec.get("imagePullSecrets") or []):
        if not secret.get("name"):
            yield f'spec.imagePullSecrets[{index}].name: invalid empty name ""'
    for volume in spec.get("volumes") or []:
        if "projected" in volume and not all(volume["projected"].get("sources") or [{}]):
            yield f'volume "{volume["name"]}" (Projected) has no sources provided'
    for path, container in poddefaults.placed_containers(spec):
        for resource in _BYTES:
            for field in ("limits", "requests"):
                amount = ((container.get("resources") or {}).get(field) or {}).get(resource)
                if amount is not None and value_of(amount).denominator != 1:
                    where = f"{path}.resources.{field}[{resource}]"
                    yield f'{where}: fractional byte value "{amount}" is invalid, must be an integer'
