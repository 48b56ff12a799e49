"""Server-side apply."""

from typing import Any

from dtj_operator.local.fieldmanager.tracking import Manager
from dtj_operator.local.types.shape import Shape

Json = dict[str, Any]


def managed_from_scratch(shape: Shape, applied: Json, manager: Manager) -> list[Json]:
    return []


def merged(shape: Shape, old: Json, applied: Json, manager: Manager, *, force: bool) -> Json:
    return old
