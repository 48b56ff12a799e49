"""Who takes part in a job: strategy and roles become tasks, chief, addresses, TF_CONFIG. No manifest is built here."""

import json
from collections.abc import Iterable
from typing import Any, Literal

from msgspec import Struct

from dtj_operator.api import names
from dtj_operator.api.observed import Situation
from dtj_operator.api.spec import JobSpec
from dtj_operator.desired.overlay import mapping, role_template, trainer
from dtj_worker.contract import ROLES, Role, Strategy, Task

TPU_RESOURCE = "google.com/tpu"
_TRAINING: tuple[Role, ...] = ("chief", "worker")
GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe")


class Topology(Struct, frozen=True):
    """The tasks of a job and how they find each other.

    `addresses` are the TensorFlow addresses (host:port) of the training cluster by task, without the evaluator; their
    port is that of attempt 0, from which a supervisor derives the later ones. `replicas` is what
    `num_replicas_in_sync` should be, None where only the program can know.
    """

    job: str
    namespace: str
    strategy: Strategy
    reason: str
    """Why this strategy, in a sentence."""
    tasks: tuple[Task, ...]
    """All, the chief first."""
    gang: tuple[Task, ...]
    """Those that must run together: all but the evaluator."""
    chief: Task
    addresses: dict[str, str]
    evaluator_address: str | None
    replicas: int | None


def topology(s: Situation) -> Topology:
    """The topology of a job whose spec could be parsed; ValueError without a spec."""
    spec, job, namespace = spec_of(s), s.key.name, s.key.namespace
    tasks = tuple(Task(role, index) for role in ROLES for index in range(_count(spec, role)))
    gang = tuple(task for task in tasks if task.role != "evaluator")
    strategy, reason = _strategy(spec)

    def address(task: Task) -> str:
        return f"{names.host(job, namespace, task, spec.network.cluster_domain)}:{spec.network.port}"

    return Topology(
        job=job,
        namespace=namespace,
        strategy=strategy,
        reason=reason,
        tasks=tasks,
        gang=gang,
        chief=tasks[0],
        addresses={str(task): address(task) for task in gang},
        evaluator_address=next((address(task) for task in tasks if task.role == "evaluator"), None),
        replicas=_replicas(spec, strategy),
    )


def spec_of(s: Situation) -> JobSpec:
    """The job's spec, which everything here is built of; ValueError where the object could not be parsed."""
    if s.spec is None:
        raise ValueError(f"{s.key} has no readable spec")
    return s.spec


def tf_config(t: Topology, task: Task) -> dict[str, Any]:
    """TF_CONFIG of a task. Only the evaluator's own lists it beside the training cluster, or TensorFlow fails there."""
    cluster: dict[str, list[str]] = {}
    for member in t.gang:
        cluster.setdefault(member.role, []).append(t.addresses[str(member)])
    if task.role == "evaluator" and t.evaluator_address is not None:
        cluster["evaluator"] = [t.evaluator_address]
    return {"cluster": cluster, "task": {"type": task.role, "index": task.index}}


def tf_config_text(t: Topology, task: Task) -> str:
    """TF_CONFIG as the variable's value."""
    return json.dumps(tf_config(t, task), separators=(",", ":"))


def topology_faults(s: Situation, t: Topology) -> tuple[str, ...]:
    """What is wrong with a job and shows only in its topology; each one a line with its field path."""
    workers = sum(task.role in _TRAINING for task in t.tasks)
    if spec_of(s).strategy != "Auto" or t.strategy != "TPU" or workers == 1:
        return ()
    return (
        f"spec.roles.worker.replicas: {TPU_RESOURCE} in the trainer's limits makes the strategy TPU, which takes "
        f"one worker (one single-host slice), not {workers}; use one worker with all chips of the slice",
    )


def _count(spec: JobSpec, role: Role) -> int:
    own = getattr(spec.roles, role)
    return 0 if own is None else int(own.replicas)


def _strategy(spec: JobSpec) -> tuple[Strategy, str]:
    """The smallest strategy that uses all that the job asks for, and why."""
    if spec.strategy != "Auto":
        return spec.strategy, "spec.strategy names it"
    if _count(spec, "ps"):
        return "ParameterServer", f"there {_are(_count(spec, 'ps'), 'parameter server')}"
    devices = _devices(spec, "worker")
    if devices == "TPU":
        return "TPU", f"the trainer's limits name {TPU_RESOURCE}"
    workers = sum(_count(spec, role) for role in _TRAINING)
    if workers > 1:
        return "MultiWorkerMirrored", f"{workers} workers train one model together"
    if devices == "Unknown":
        return "Mirrored", "1 worker gets its devices by resource claims; it uses as many as there are"
    if devices > 1:
        return "Mirrored", f"1 worker has {devices} GPUs"
    has = "1 GPU" if devices else "no GPU in its limits"
    return "None", f"1 worker with {has}: there is nothing to distribute over"


Devices = int | Literal["TPU", "Unknown"]
"""GPUs of one trainer, or what stands in place of a number. Unknown: resource claims, whose devices a driver counts."""


def _devices(spec: JobSpec, role: Role) -> Devices:
    resources = mapping(trainer(spec, role_template(spec, role)).get("resources"))
    # Extended resources have request = limit, and either may be left out.
    amounts = mapping(resources.get("requests")) | mapping(resources.get("limits"))
    if TPU_RESOURCE in amounts:
        return "TPU"
    gpus = sum(_pieces(amounts.get(name)) for name in GPU_RESOURCES)
    return "Unknown" if gpus == 0 and resources.get("claims") else gpus


def _pieces(amount: Any) -> int:
    """A whole number of devices, as YAML may give it; 0 for anything else, which the API server refuses."""
    text = str(amount)
    return int(text) if text.isascii() and text.isdecimal() else 0


def _replicas(spec: JobSpec, strategy: Strategy) -> int | None:
    match strategy:
        case "None" | "OneDevice":
            return 1
        case "Mirrored" | "CentralStorage":
            # Without GPUs the program may still split the CPU into logical devices.
            return _sum([(1, _devices(spec, "worker"))]) or None
        case "MultiWorkerMirrored":
            roles = [(role, count) for role in _TRAINING if (count := _count(spec, role))]
            return _sum((count, _at_least_one(_devices(spec, role))) for role, count in roles)
        case "ParameterServer":
            return _sum([(1, _at_least_one(_devices(spec, "worker")))])
        case "TPU":
            return None


def _at_least_one(devices: Devices) -> Devices:
    # Without a GPU a worker is one replica on its CPU.
    return max(devices, 1) if isinstance(devices, int) else devices


def _sum(tasks: Iterable[tuple[int, Devices]]) -> int | None:
    """Of so many tasks with so many devices each."""
    total = 0
    for count, each in tasks:
        if not isinstance(each, int):
            return None
        total += count * each
    return total


def _are(count: int, noun: str) -> str:
    return f"is 1 {noun}" if count == 1 else f"are {count} {noun}s"
