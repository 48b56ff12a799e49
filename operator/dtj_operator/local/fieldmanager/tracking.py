"""managedFields of ordinary writes."""

from typing import Any, NamedTuple

from dtj_operator.local.types.shape import Shape

Json = dict[str, Any]


class Manager(NamedTuple):
    name: str
    operation: str
    api_version: str
    time: str
    subresource: str


def track_create(shape: Shape, body: Json, manager: Manager) -> None:
    """."""


def track_update(shape: Shape, body: Json, old: Json, manager: Manager) -> None:
    """."""


def same_but_for_times(body: Json, old: Json) -> bool:
    return body == old
