"""API objects as the slim records that decisions read. What a program wrote into them is cleaned by `hostile.py`."""

import re
from datetime import datetime, timedelta
from typing import Any

from dtj_operator.api import names
from dtj_operator.api.observed import ContainerEnd, NodeView, PodStage, PodView
from dtj_operator.api.quantity import amounts
from dtj_operator.api.status import Time
from dtj_operator.gang.gated import pinned
from dtj_operator.kube import hostile
from dtj_operator.kube.client import Json
from dtj_worker.codec import ContractError
from dtj_worker.contract import ROLES, TERMINATION_BYTES, Task, Verdict, parse_verdict

DISRUPTIONS = ("DisruptionTarget", "TerminationTarget")
"""Conditions of a pod that was taken away: Kubernetes' own, and Kueue's."""
TAKEN_AWAY = re.compile(
    r"Evicted|Preempting|Shutdown|NodeShutdown|Terminated|NodeLost|NodeAffinity|NodeUnschedulable|NodePorts"
    r"|NodeResourcesFit|TopologyAffinityError|UnexpectedAdmissionError|PodOS\w+|OutOf.+"
)
"""Reasons in a pod's own status: the node's need or end, and a kubelet that refused what the scheduler had given it."""
NOTHING_YET = ("ContainerCreating", "PodInitializing")
LONGEST_GRACE_SECONDS = 31_536_000
"""A year. The API takes any number, also one that no calendar holds."""


def pod(manifest: Json) -> PodView | None:
    """The view of a job's pod; None for one whose labels name no task of any job."""
    metadata, spec, status = manifest["metadata"], manifest["spec"], manifest.get("status") or {}
    labels = metadata.get("labels") or {}
    role, index, round_ = (labels.get(name, "") for name in (names.LABEL_ROLE, names.LABEL_INDEX, names.LABEL_ROUND))
    if role not in ROLES or not _is_number(index) or not _is_number(round_):
        return None
    ended = (_trainer(spec, status).get("state") or {}).get("terminated") or {}
    verdict = _verdict(ended)
    end = _end(ended, verdict)
    stage = _stage(spec, status, end)
    waiting = _waiting(stage, status)
    disruption = _disruption(status)
    deleted = _time(metadata.get("deletionTimestamp"))
    asked = metadata.get("deletionGracePeriodSeconds", spec.get("terminationGracePeriodSeconds", 30))
    grace = min(asked, LONGEST_GRACE_SECONDS)
    return PodView(
        name=metadata["name"],
        uid=metadata["uid"],
        task=Task(role, int(index)),
        round=int(round_),
        stage=stage,
        owner_uid=owner_uid(manifest),
        node=spec.get("nodeName"),
        address=status.get("podIP"),
        status_address=(metadata.get("annotations") or {}).get(names.ANNOTATION_STATUS_ADDRESS),
        ready=_condition(status, "Ready").get("status") == "True",
        gates=tuple(gate["name"] for gate in spec.get("schedulingGates") or ()),
        created_at=_time(metadata.get("creationTimestamp")),
        bound_at=_time(_condition(status, "PodScheduled").get("lastTransitionTime")) if spec.get("nodeName") else None,
        started_at=_started(status) if stage in ("Running", "Succeeded", "Failed") else None,
        # Kubernetes writes down when the grace period will be over, not when deletion was asked for.
        deleting_since=deleted - timedelta(seconds=grace) if deleted else None,
        lingers=end is not None and _lingers(status),
        grace_seconds=grace,
        trainer=end,
        verdict=verdict,
        waiting_reason=waiting[0],
        waiting_message=waiting[1],
        waiting_container=waiting[2],
        disrupted_by=disruption[0],
        disruption_message=disruption[1],
        phase_reason=status.get("reason"),
        pinned=pinned(manifest),
    )


def node(manifest: Json) -> NodeView:
    metadata, spec, status = manifest["metadata"], manifest.get("spec") or {}, manifest.get("status") or {}
    ready = _condition(status, "Ready")
    is_ready = ready.get("status") == "True"
    return NodeView(
        name=metadata["name"],
        ready=is_ready,
        not_ready_since=None if is_ready else _time(ready.get("lastTransitionTime")),
        unschedulable=bool(spec.get("unschedulable")),
        labels=metadata.get("labels") or {},
        taints=tuple((t["key"], t.get("value") or "", t["effect"]) for t in spec.get("taints") or ()),
        allocatable=amounts(status.get("allocatable")),
    )


def owner_uid(manifest: Json) -> str | None:
    """The UID of the object's controller."""
    owner = controller(manifest)
    return owner["uid"] if owner else None


def controller(manifest: Json) -> Json | None:
    """The owner reference of the object's controller."""
    owners = manifest["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


def _trainer(spec: Json, status: Json) -> Json:
    """The trainer container's status, empty before there is one.

    TF_CONFIG is set in that container and in no other, whatever its name, and whatever a webhook put before it.
    """
    containers = spec["containers"]
    told = next((c["name"] for c in containers if any(v["name"] == "TF_CONFIG" for v in c.get("env") or ())), None)
    name = told or next((c["name"] for c in containers if c["name"] == "trainer"), containers[0]["name"])
    return next((c for c in status.get("containerStatuses") or () if c["name"] == name), {})


def _end(ended: Json, verdict: Verdict | None) -> ContainerEnd | None:
    if not ended:
        return None
    lines = [line for line in (ended.get("message") or "").splitlines() if line.strip()]
    # A supervisor's first line is for people. Of any other program these may be the log's last lines, and an exception
    # is the very last.
    telling = lines[:1] if verdict else lines[-1:]
    return ContainerEnd(
        exit_code=ended.get("exitCode", 0),
        signal=ended.get("signal"),
        reason=ended.get("reason", ""),
        message=hostile.text("".join(telling)),
        finished_at=_time(ended.get("finishedAt")),
    )


def _verdict(ended: Json) -> Verdict | None:
    verdict = parse_verdict((ended.get("message") or "")[:TERMINATION_BYTES])
    try:
        return verdict and hostile.record(verdict)
    except ContractError:
        return None


def _stage(spec: Json, status: Json, end: ContainerEnd | None) -> PodStage:
    if end is not None:
        return "Succeeded" if end.exit_code == 0 else "Failed"
    phase: PodStage | None = status.get("phase")
    if phase in ("Succeeded", "Failed"):
        return phase
    if spec.get("schedulingGates"):
        return "Gated"
    if not spec.get("nodeName"):
        return "Unbound"
    containers = status.get("containerStatuses") or ()
    started = [c for c in containers if {"running", "terminated"} & (c.get("state") or {}).keys()]
    return "Running" if len(started) == len(spec["containers"]) else "Bound"


def _lingers(status: Json) -> bool:
    """Whether a container keeps the pod alive. Native sidecars don't: the kubelet ends them after all others."""
    if status.get("phase") in ("Succeeded", "Failed"):
        return False
    return any("terminated" not in (c.get("state") or {}) for c in status.get("containerStatuses") or ())


def _started(status: Json) -> Time | None:
    """When the last of the containers started."""
    states = [c.get("state") or {} for c in status.get("containerStatuses") or ()]
    times = [_time((s.get("running") or s.get("terminated") or {}).get("startedAt")) for s in states]
    return max((time for time in times if time), default=None)


def _waiting(stage: PodStage, status: Json) -> tuple[str | None, str, str | None]:
    """What a pod waits for: reason, message, container. Before it is bound the scheduler tells, then a container."""
    if stage == "Unbound":
        scheduled = _condition(status, "PodScheduled")
        told = scheduled.get("status") == "False"
        return (
            (scheduled.get("reason"), hostile.text(scheduled.get("message") or ""), None) if told else (None, "", None)
        )
    if stage != "Bound":
        return None, "", None
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    waiting = [(c["name"], w) for c in containers if (w := (c.get("state") or {}).get("waiting"))]
    telling = [one for one in waiting if one[1].get("reason") not in (None, *NOTHING_YET)]
    for name, state in telling or waiting:
        return state.get("reason"), hostile.text(state.get("message") or ""), name
    return None, "", None


def _disruption(status: Json) -> tuple[str | None, str]:
    for name in DISRUPTIONS:
        condition = _condition(status, name)
        if condition.get("status") == "True":
            return condition.get("reason") or name, hostile.text(condition.get("message") or "")
    reason = status.get("reason") or ""
    return (reason, hostile.text(status.get("message") or "")) if TAKEN_AWAY.fullmatch(reason) else (None, "")


def _condition(status: Json, name: str) -> dict[str, Any]:
    return next((c for c in status.get("conditions") or () if c["type"] == name), {})


def _time(text: str | None) -> Time | None:
    return datetime.fromisoformat(text) if text else None


def _is_number(label: str) -> bool:
    return label.isascii() and label.isdecimal() and len(label) <= names.ROUND_DIGITS
