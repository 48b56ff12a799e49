"""TF_CONFIG: all that is wrong with one, what it says about the job, and the one that the child gets.

TensorFlow itself meets a bad TF_CONFIG with a traceback from its depths, or with a hang (measured for each case below).
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

from dtj_worker.contract import PORTS_PER_TASK, ConfigFault, Role, Strategy, Task, TaskSpec
from dtj_worker.supervisor import reach

SINGLE_HOST: tuple[Strategy, ...] = ("None", "OneDevice", "Mirrored", "CentralStorage", "TPU")


@dataclass(frozen=True)
class Cluster:
    """A TF_CONFIG without faults: who this process is, and each role's addresses."""

    task: Task
    addresses: dict[Role, tuple[str, ...]]

    def peers(self) -> dict[str, str]:
        """The training cluster by task; the evaluator is no member of it."""
        return {
            str(Task(role, index)): address
            for role, addresses in self.addresses.items()
            for index, address in enumerate(addresses)
            if role != "evaluator"
        }


def read(text: str | None) -> Cluster | None:
    """The cluster of a TF_CONFIG; None without one (unset, empty, `{}`). ConfigFault names all that is wrong."""
    if not text or not text.strip():
        return None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigFault(f"TF_CONFIG is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise ConfigFault(f"TF_CONFIG is not a JSON object but {text.strip():.60}")
    if not document.get("cluster") and not document.get("task"):
        return None
    if faults := [*_cluster_faults(document.get("cluster")), *_task_faults(document)]:
        raise ConfigFault("TF_CONFIG: " + "; ".join(faults))
    task = document["task"]
    return Cluster(
        task=Task(task["type"], int(task["index"])),
        addresses={role: tuple(addresses) for role, addresses in document["cluster"].items()},
    )


def compare(cluster: Cluster | None, spec: TaskSpec) -> None:
    """ConfigFault unless TF_CONFIG says of this task and its peers what the operator says."""
    if cluster is None:
        if len(spec.peers) > 1:
            raise ConfigFault(f"TF_CONFIG is not set, but {spec.task} is one of {len(spec.peers)} tasks")
        return
    faults = []
    if str(cluster.task) != spec.task:
        faults.append(f"it is that of {cluster.task}, but this is {spec.task}; two pods share one TF_CONFIG")
    theirs = cluster.peers()
    for task in sorted({*theirs, *spec.peers}, key=Task.parse):
        if task not in theirs:
            faults.append(f"{task} is missing (the job has {len(spec.peers)} tasks)")
        elif task not in spec.peers:
            faults.append(f"{task} is no task of this job")
        elif theirs[task] != spec.peers[task]:
            faults.append(f"{task} is at {theirs[task]}, but the job says {spec.peers[task]}")
    if faults:
        raise ConfigFault("TF_CONFIG: " + "; ".join(faults))


def implied(cluster: Cluster | None) -> Strategy:
    """The strategy that a TF_CONFIG is made for, where nobody else says."""
    if cluster and cluster.addresses.get("ps"):
        return "ParameterServer"
    return "MultiWorkerMirrored" if cluster and len(cluster.peers()) > 1 else "None"


def port_shift(spec: TaskSpec) -> int:
    """How far above its base an attempt's TensorFlow port lies."""
    # Under ParameterServer a task that restarts alone has to meet the others where they are.
    return 0 if spec.strategy == "ParameterServer" else spec.attempt % PORTS_PER_TASK


def for_child(cluster: Cluster | None, spec: TaskSpec) -> str | None:
    """The TF_CONFIG of one attempt; None means unset, since TensorFlow fails on an empty one.

    Strategies of a single host get theirs as well: TensorFlow ignores it there, programs may read it.
    """
    if cluster is None:
        return None
    shift = port_shift(spec)
    addresses = {role: [reach.shifted(a, shift) for a in found] for role, found in cluster.addresses.items()}
    return json.dumps({"cluster": addresses, "task": {"type": cluster.task.role, "index": cluster.task.index}})


def _cluster_faults(cluster: Any) -> Iterator[str]:
    if not isinstance(cluster, dict) or not cluster:
        yield "cluster must be an object that lists addresses by role" + ("" if cluster else ", and it is empty")
        return
    seen: dict[str, str] = {}
    for role, addresses in cluster.items():
        if role not in get_args(Role):
            yield f"cluster.{role} is no role{_hint(role)}"
        if not isinstance(addresses, list) or not addresses:
            yield f"cluster.{role} must be a list of addresses"
            continue
        for index, address in enumerate(addresses):
            name = f"cluster.{role}[{index}]"
            try:
                reach.split(address if isinstance(address, str) else str(address))
            except ValueError as error:
                yield f"{name}: {error}"
            if address in seen.values():
                first = next(known for known, value in seen.items() if value == address)
                yield f"{name} and {first} are both {address}; each task needs its own"
            seen[name] = str(address)


def _task_faults(document: dict[str, Any]) -> Iterator[str]:
    task = document.get("task")
    if not isinstance(task, dict):
        yield "task is missing" if task is None else "task must be an object with type and index"
        return
    role, index = task.get("type"), task.get("index")
    if role not in get_args(Role):
        yield "task.type is missing" if role is None else f"task.type {role!r} is no role{_hint(role)}"
    number = int(index) if isinstance(index, str) and re.fullmatch("[0-9]{1,9}", index) else index
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        yield "task.index is missing" if index is None else f"task.index {index!r} is no number from 0 up"
        return
    cluster = document.get("cluster")
    if not isinstance(cluster, dict) or role not in get_args(Role):
        return
    addresses = cluster.get(role)
    if addresses is None:
        yield f"task.type is {role}, but cluster lists no {role}"
    elif isinstance(addresses, list) and number >= len(addresses):
        yield f"task.index {number} is beyond cluster.{role}, which has {len(addresses)}"


def _hint(role: object) -> str:
    return "; TensorFlow 2 calls it chief" if role == "master" else " (chief, worker, ps, evaluator)"
