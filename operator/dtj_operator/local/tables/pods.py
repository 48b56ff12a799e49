"""The row of a pod, with kubectl's own reading of a pod's status."""

import datetime
from typing import Any, NamedTuple

from dtj_operator.local.tables.cells import NONE, age

Json = dict[str, Any]


class _Reading(NamedTuple):
    reason: str
    ready: int
    restarts: int
    restarted_at: str


def row(body: Json, now: datetime.datetime) -> list[Any]:
    spec, status = body["spec"], body.get("status") or {}
    init = spec.get("initContainers") or []
    sidecars = [one["name"] for one in init if one.get("restartPolicy") == "Always"]
    total = len(spec.get("containers") or []) + len(sidecars)
    reading = _read(body, sidecars)
    restarts = str(reading.restarts)
    if reading.restarts and reading.restarted_at:
        restarts += f" ({age(reading.restarted_at, now)} ago)"
    addresses = [one["ip"] for one in status.get("podIPs") or []] or [status.get("podIP") or NONE]
    gates = spec.get("readinessGates") or []
    met = sum(_condition(status, gate["conditionType"]) == "True" for gate in gates)
    return [
        body["metadata"]["name"],
        f"{reading.ready}/{total}",
        reading.reason,
        restarts,
        age(body["metadata"].get("creationTimestamp"), now),
        addresses[0],
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        f"{met}/{len(gates)}" if gates else NONE,
    ]


def _read(body: Json, sidecars: list[str]) -> _Reading:
    status = body.get("status") or {}
    reason = status.get("reason") or status.get("phase") or "Unknown"
    for condition in status.get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    initial = _read_init(body, sidecars)
    statuses = status.get("containerStatuses") or []
    reading = _Reading(reason, 0, 0, "")
    if initial is not None:
        reading = initial
    if initial is None or not initial.reason or _condition(status, "Initialized") == "True":
        reading = _read_containers(statuses, reason, initial, status)
    if body["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            return reading._replace(reason="Unknown")
        if status.get("phase") not in ("Succeeded", "Failed"):
            return reading._replace(reason="Terminating")
    return reading


def _read_init(body: Json, sidecars: list[str]) -> _Reading | None:
    """What the init containers tell; `reason` is empty when they are through."""
    specs = (body.get("spec") or {}).get("initContainers") or []
    statuses = (body.get("status") or {}).get("initContainerStatuses") or []
    if not specs:
        return None
    ready = restarts = sidecar_restarts = 0
    restarted_at = ""
    for index, one in enumerate(statuses):
        restarts += one.get("restartCount", 0)
        restarted_at = max(restarted_at, _restart_time(one))
        state = one.get("state") or {}
        is_sidecar = one.get("name") in sidecars
        if is_sidecar:
            sidecar_restarts += one.get("restartCount", 0)
            ready += bool(one.get("ready"))
        ended, waiting = state.get("terminated"), state.get("waiting")
        if (ended and not ended.get("exitCode")) or (is_sidecar and one.get("started")):
            continue
        if ended:
            told = ended.get("reason") or _exit(ended)
            return _Reading(f"Init:{told}", ready, restarts, restarted_at)
        if waiting and waiting.get("reason") and waiting["reason"] != "PodInitializing":
            return _Reading(f"Init:{waiting['reason']}", ready, restarts, restarted_at)
        return _Reading(f"Init:{index}/{len(specs)}", ready, restarts, restarted_at)
    if not statuses:
        return None
    return _Reading("", ready, sidecar_restarts, restarted_at)


def _read_containers(statuses: list[Json], reason: str, initial: _Reading | None, status: Json) -> _Reading:
    ready = initial.ready if initial is not None else 0
    restarts = initial.restarts if initial is not None else 0
    restarted_at = ""
    running = False
    for one in reversed(statuses):
        restarts += one.get("restartCount", 0)
        restarted_at = max(restarted_at, _restart_time(one))
        state = one.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting")
        if waiting and waiting.get("reason"):
            reason = waiting["reason"]
        elif ended:
            reason = ended.get("reason") or _exit(ended)
        elif one.get("ready") and "running" in state:
            running = True
            ready += 1
    if reason == "Completed" and running:
        reason = "Running" if _condition(status, "Ready") == "True" else "NotReady"
    return _Reading(reason, ready, restarts, restarted_at)


def _exit(ended: Json) -> str:
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _restart_time(status: Json) -> str:
    last = (status.get("lastState") or {}).get("terminated") or {}
    return str(last.get("finishedAt") or "")


def _condition(status: Json, kind: str) -> str:
    found: Json = next((one for one in status.get("conditions") or [] if one.get("type") == kind), {})
    return str(found.get("status", ""))
