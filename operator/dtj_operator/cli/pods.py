"""Pods of jobs as the commands need them beyond their views: which container trains, and for which attempt."""

from typing import Any

from dtj_worker.codec import ContractError, decode
from dtj_worker.contract import ENV_TASK, TaskSpec

Json = dict[str, Any]


def trainer(pod: Json) -> Json | None:
    """The container that was given a task; sidecars never are."""
    return next((container for container in pod["spec"]["containers"] if _task(container) is not None), None)


def attempt(trainer: Json) -> int:
    """The attempt that the pod was made for."""
    try:
        return decode(TaskSpec, _task(trainer) or "").attempt
    except ContractError:
        return 0


def _task(container: Json) -> str | None:
    return next((str(v.get("value")) for v in container.get("env") or () if v["name"] == ENV_TASK), None)
