"""Situations of one job, built by small verbs: what it asks for, its pods, what its status remembers."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from dtj_operator.api import names
from dtj_operator.api.frozen import frozen_hash
from dtj_operator.api.observed import (
    ContainerEnd,
    Facts,
    JobKey,
    PodStage,
    PodView,
    ProbeResult,
    Situation,
    TrainingView,
)
from dtj_operator.api.spec import JobSpec
from dtj_operator.api.status import (
    Attempt,
    Clock,
    Condition,
    ConditionType,
    GangStatus,
    JobStatus,
    Phase,
    RoundOf,
    Time,
)
from dtj_operator.decide.actions import Action, Create, Delete, Emit, Plan, Probe, Ungate
from dtj_operator.decide.conditions import condition
from dtj_operator.desired.objects import children, signed
from dtj_operator.desired.probes import template_hash
from dtj_operator.desired.topology import topology
from dtj_worker.contract import ROLES, Death, Stage, Task, TrainingStatus, Verdict, VerdictKind

NOW = datetime(2030, 1, 2, 12, 0, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)
UID = "11111111-2222-3333-4444-555555555555"
TEMPLATE = {"spec": {"containers": [{"name": "trainer", "image": "dtj/worker", "args": ["train.py"]}]}}


def ago(seconds: float) -> Time:
    return NOW - timedelta(seconds=seconds)


def spec(workers: int = 2, **fields: Any) -> JobSpec:
    """A job of workers that keeps checkpoints, with the given fields of the spec as YAML has them."""
    own = {"roles": {"worker": {"replicas": workers}}, "template": TEMPLATE, "checkpoint": {"uri": "gs://b/c"}}
    roles = own["roles"] | fields.pop("roles", {})
    return msgspec.convert(own | {"gang": {"scheduler": "None"}} | fields | {"roles": roles}, JobSpec)


def new(job: JobSpec | None = None, **fields: Any) -> Situation:
    """A job that has just been made and was never looked at."""
    known: dict[str, Any] = {
        "key": JobKey("ml", "mnist"),
        "uid": UID,
        "resource_version": "1",
        "generation": 1,
        "created_at": LONG_AGO,
        "spec": job or spec(),
        "status": JobStatus(),
        "facts": Facts(started_at=LONG_AGO),
    }
    return Situation(**known | fields)


def accepted(job: JobSpec | None = None, **fields: Any) -> Situation:
    """A new job whose pods the API server takes, and whose objects are there."""
    s = new(job, **fields)
    assert s.spec is not None
    probes = {template_hash(s.spec, role): ProbeResult(201, heard_at=ago(60)) for role in ROLES}
    made = children(s, topology(s))
    objects = frozenset(child(m, f"uid-{m['kind']}") for m in made)
    return msgspec.structs.replace(s, **{"probes": probes, "children": objects} | fields)


def child(manifest: dict[str, Any], uid: str) -> tuple[str, str, str, str]:
    """A child as the operator sees it that was made from the manifest."""
    metadata = signed(manifest)["metadata"]
    return manifest["kind"], metadata["name"], uid, metadata["annotations"][names.ANNOTATION_MADE_OF]


def attempt(
    pods: list[PodView], phase: Phase = "Running", job: JobSpec | None = None, number: int = 0, **fields: Any
) -> Situation:
    """An attempt under way, whose gang was formed an hour ago with pods of the attempt's number as round."""
    s = accepted(job, pods=tuple(pods))
    assert s.spec is not None
    tasks = topology(s).gang
    rounds: dict[str, list[RoundOf]] = {
        t.role: [RoundOf(f"0-{sum(o.role == t.role for o in tasks) - 1}", number)] for t in tasks if number
    }
    known = [("Accepted", "True", "Accepted"), ("Supervised", "True", "AllRegistered")]
    known += [("Training", "True", "StepsMade")] if phase == "Running" else [("Training", "False", "Starting")]
    status = JobStatus(
        phase=phase,
        observed_generation=1,
        conditions=[Condition(kind, value, why, LONG_AGO) for kind, value, why in known],  # type: ignore[arg-type]
        attempt=number,
        rounds=rounds,
        gang=GangStatus(scheduler="None", formed=number, admitted_at=LONG_AGO, queued_at=LONG_AGO),
        timeline=[Attempt(attempt=number, start=LONG_AGO, first_step=ago(3000) if phase == "Running" else None)],
        start_time=LONG_AGO,
        clock=Clock(active_seconds=100, since=ago(60)),
        frozen=frozen_hash(s.spec),
    )
    status = msgspec.structs.replace(status, **fields.pop("status", {}))
    return msgspec.structs.replace(s, **{"status": status} | fields)


def pod(name: str, stage: PodStage = "Running", round_: int = 0, **fields: Any) -> PodView:
    """A pod of a task, on the node that bears the task's number."""
    task = Task.parse(name)
    known: dict[str, Any] = {
        "name": names.pod("mnist", task, round_),
        "uid": f"uid-{name}-{round_}",
        "task": task,
        "round": round_,
        "stage": stage,
        "owner_uid": UID,
        "node": None if stage in ("Gated", "Unbound") else f"n{task.index}",
        "created_at": LONG_AGO,
        "started_at": ago(3500) if stage in ("Running", "Succeeded", "Failed") else None,
    }
    return PodView(**known | fields)


def running(name: str, round_: int = 0, **fields: Any) -> PodView:
    return pod(name, "Running", round_, **fields)


def exited(
    name: str,
    code: int = 1,
    round_: int = 0,
    *,
    reason: str = "Error",
    signal: int | None = None,
    message: str = "",
    at: Time | None = None,
    **fields: Any,
) -> PodView:
    """A pod without a supervisor that ended."""
    end = ContainerEnd(code, signal=signal, reason=reason, message=message, finished_at=at or ago(1))
    return pod(name, "Failed" if code else "Succeeded", round_, **{"trainer": end} | fields)


def told(name: str, kind: VerdictKind, round_: int = 0, *, at: Time | None = None, **word: Any) -> PodView:
    """A pod whose supervisor wrote down how it ended."""
    fields = {"exit_code": None if word.get("signal") else 1, **word}
    verdict = Verdict(attempt=round_, by="child", kind=kind, task=name, **fields)
    end = ContainerEnd(0 if kind == "Done" else 1, reason="Error", finished_at=at or ago(1))
    return pod(name, "Succeeded" if kind == "Done" else "Failed", round_, trainer=end, verdict=verdict)


def leaving(view: PodView, seconds: float = 5, **fields: Any) -> PodView:
    """The pod, told to go so many seconds ago."""
    return msgspec.structs.replace(view, deleting_since=ago(seconds), **fields)


def heard(step: int | None = 412, seconds: float = 1, number: int = 0, **fields: Any) -> TrainingView:
    """The chief's supervisor about attempt `number`, so many seconds ago; both workers train."""
    stage: Stage = fields.pop("stage", "Training")
    tasks: dict[str, Stage] = fields.pop("tasks", {"worker-0": stage, "worker-1": stage})
    status = TrainingStatus(attempt=number, stage=stage, reports=step is not None, step=step, tasks=tasks, **fields)
    return TrainingView(status, ago(seconds))


def death(task: str, kind: VerdictKind = "Program", **fields: Any) -> Death:
    return Death(task, kind, **fields)


def kinds(made: Plan) -> list[str]:
    """What the plan does, as words; Events are looked at by themselves."""
    return [_word(action) for action in made.actions if not isinstance(action, Emit)]


def _word(action: Action) -> str:
    match action:
        case Create(manifest=manifest):
            return f"Create {manifest['metadata']['name'].removeprefix('mnist-')}"
        case Delete(name=name, force=force):
            return f"Delete {name.removeprefix('mnist-')}" + (" by force" if force else "")
        case Ungate(name=name):
            return f"Ungate {name.removeprefix('mnist-')}"
        case Probe(role=role):
            return f"Probe {role}"
    return type(action).__name__


def after(s: Situation, made: Plan) -> JobStatus:
    """The status that the job has once the plan is written."""
    return made.status or s.status


def said(status: JobStatus, kind: ConditionType) -> str | None:
    """A condition as `False Reason`."""
    found = condition(status, kind)
    return f"{found.status} {found.reason}" if found else None
