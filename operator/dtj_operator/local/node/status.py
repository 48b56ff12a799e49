"""What a kubelet writes about a pod: container states, phase and conditions, from records of its containers. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from dtj_operator.local.node.machine import ADDRESS

Json = dict[str, Any]

NEVER = "1970-01-01T00:00:00Z"
"""When a container started that didn't."""
OWN_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


class Waiting(msgspec.Struct, frozen=True):
    reason: str
    message: str = ""


class Running(msgspec.Struct, frozen=True):
    started_at: str


class Terminated(msgspec.Struct, frozen=True, kw_only=True):
    exit_code: int
    reason: str
    message: str = ""
    started_at: str = NEVER
    finished_at: str
    container_id: str


State = Waiting | Running | Terminated


class Record(msgspec.Struct):
    """How a container of a pod stands. `kind`: sidecars are init containers that run on."""

    name: str
    image: str
    kind: Literal["init", "sidecar", "main"]
    state: State
    last: Terminated | None = None
    restarts: int = 0
    container_id: str = ""

    @property
    def is_done(self) -> bool:
        return isinstance(self.state, Terminated) and self.state.exit_code == 0

    @property
    def is_ready(self) -> bool:
        """There are no probes here: what runs is ready."""
        return self.is_done if self.kind == "init" else isinstance(self.state, Running)

    @property
    def has_started(self) -> bool:
        return self.is_done if self.kind == "init" else isinstance(self.state, Running) or self.last is not None


def status(
    old: Json, records: Sequence[Record], policy: str, started_at: str, now: str, *, is_over: bool = False
) -> Json:
    """The next status after `old`; what others have written into it stays. `is_over`: nothing will run any more."""
    if is_over:
        records = [_settled(record) for record in records]
    mains = [record for record in records if record.kind == "main"]
    inits = [record for record in records if record.kind != "main"]
    phase_now = phase(records, "Never" if is_over else policy)
    found = {
        **old,
        "phase": phase_now,
        "hostIP": ADDRESS,
        "hostIPs": [{"ip": ADDRESS}],
        "podIP": ADDRESS,
        "podIPs": [{"ip": ADDRESS}],
        "startTime": started_at,
        "conditions": _conditions(old.get("conditions") or [], _wanted(records, phase_now), now),
        "containerStatuses": [_container(record) for record in sorted(mains, key=lambda record: record.name)],
    }
    if inits:
        found["initContainerStatuses"] = [_container(record) for record in inits]
    return found


def phase(records: Iterable[Record], policy: str) -> str:
    """As the kubelet's getPhase: a pod with containers that will run again is Running, one with sidecars too."""
    mains = [record for record in records if record.kind == "main"]
    inits = [record for record in records if record.kind != "main"]
    failed_inits = [r for r in inits if isinstance(r.state, Terminated) and r.state.exit_code and r.kind == "init"]
    if failed_inits and policy == "Never":
        return "Failed"
    if any(not record.has_started and not _ended_sidecar(record) for record in inits):
        return "Pending"
    if any(isinstance(record.state, Waiting) and record.last is None for record in mains):
        return "Pending"
    if any(not isinstance(record.state, Terminated) for record in mains) or policy == "Always":
        return "Running"
    if any(record.kind == "sidecar" and isinstance(record.state, Running) for record in inits):
        return "Running"
    if all(record.is_done for record in mains):
        return "Succeeded"
    return "Failed" if policy == "Never" else "Running"


def _settled(record: Record) -> Record:
    """What waited for its start, or for its next one, will not be started."""
    if not isinstance(record.state, Waiting):
        return record
    if record.last is not None:
        return msgspec.structs.replace(record, state=record.last)
    told = "The container could not be located when the pod was terminated"
    never = Terminated(exit_code=137, reason="ContainerStatusUnknown", message=told, finished_at=NEVER, container_id="")
    return msgspec.structs.replace(record, state=never)


def _ended_sidecar(record: Record) -> bool:
    return record.kind == "sidecar" and isinstance(record.state, Terminated)


def _wanted(records: Sequence[Record], phase_now: str) -> dict[str, tuple[bool, str, str]]:
    """Each condition: whether it holds, and reason and message."""
    uninitialized = [r.name for r in records if r.kind != "main" and not (r.has_started or _ended_sidecar(r))]
    unready = [record.name for record in records if record.kind != "init" and not record.is_ready]
    ready, initialized = (not unready, "", ""), (not uninitialized, "", "")
    if unready:
        ready = (False, "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]")
    if uninitialized:
        told = f"containers with incomplete status: [{' '.join(uninitialized)}]"
        initialized = (False, "ContainersNotInitialized", told)
    if phase_now in ("Succeeded", "Failed"):
        why = "PodCompleted" if phase_now == "Succeeded" else "PodFailed"
        ready = (False, why, "")
        initialized = (True, "PodCompleted", "") if phase_now == "Succeeded" else initialized
    has_sandbox = any(isinstance(record.state, Running) for record in records)
    return {
        "PodReadyToStartContainers": (has_sandbox, "", ""),
        "Initialized": initialized,
        "Ready": ready,
        "ContainersReady": ready,
    }


def _conditions(old: list[Json], wanted: dict[str, tuple[bool, str, str]], now: str) -> list[Json]:
    known = {one["type"]: one for one in old}
    found = []
    for type_, (holds, reason, message) in wanted.items():
        value = "True" if holds else "False"
        before = known.get(type_, {})
        since = before["lastTransitionTime"] if before.get("status") == value else now
        condition = {"type": type_, "status": value, "lastProbeTime": None, "lastTransitionTime": since}
        found.append(condition | {k: v for k, v in (("reason", reason), ("message", message)) if v})
    return [*found, *(one for one in old if one["type"] not in OWN_CONDITIONS)]


def _container(record: Record) -> Json:
    found: Json = {
        "name": record.name,
        "image": record.image,
        "imageID": "",
        "restartCount": record.restarts,
        "ready": record.is_ready,
        "started": isinstance(record.state, Running),
        "state": _state(record.state),
        "lastState": _state(record.last) if record.last else {},
    }
    return found | ({"containerID": record.container_id} if record.container_id else {})


def _state(state: State) -> Json:
    match state:
        case Waiting(reason, message):
            return {"waiting": {"reason": reason} | ({"message": message} if message else {})}
        case Running(started_at):
            return {"running": {"startedAt": started_at}}
    ended: Json = {
        "exitCode": state.exit_code,
        "reason": state.reason,
        "startedAt": state.started_at,
        "finishedAt": state.finished_at,
        "containerID": state.container_id,
    }
    return {"terminated": ended | ({"message": state.message} if state.message else {})}
