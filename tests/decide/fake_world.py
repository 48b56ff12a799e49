"""A world of one job for the properties: plans are carried out on plain values, pods do what they are told to.

No second model of Kubernetes (that is `local/`): names, stages and times, as far as a decision can tell them apart.
"""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from dtj_operator.api import names
from dtj_operator.api.observed import Admission, Admit, ContainerEnd, PodView, ProbeResult, Situation, TrainingView
from dtj_operator.api.spec import JobSpec
from dtj_operator.api.status import JobStatus, Time
from dtj_operator.decide.actions import Action, Create, Delete, DeleteJob, Emit, Plan, Probe, Ungate
from dtj_operator.decide.plan import plan
from dtj_worker.contract import Stage, Task, TrainingStatus
from tests.decide.situations import LONG_AGO, NOW, UID, new, spec


class World:
    """One job, its objects, and the time. `look` is a pass of the operator; all else is done to it."""

    def __init__(self, job: JobSpec | None = None) -> None:
        self.spec = job or spec()
        self.generation = 1
        self.now: Time = NOW
        self.started_at: Time = LONG_AGO
        self.status = JobStatus()
        self.history: list[JobStatus] = [self.status]
        self.pods: dict[str, PodView] = {}
        self.seen: dict[str, PodView] = {}
        """The pods as the operator's watch has told them so far."""
        self.gone: set[str] = set()
        self.children: dict[tuple[str, str], dict[str, Any]] = {}
        self.probes: dict[str, ProbeResult] = {}
        self.refusals: list[str] = []
        self.training: TrainingView | None = None
        self.admission: Admission | None = None
        self.quota = 100
        self.is_deleted = False
        self.made: list[str] = []
        self.attempts: dict[str, int] = {}

    def situation(self) -> Situation:
        facts = replace(new().facts, started_at=self.started_at, has_node_rights=True)
        return replace(
            new(self.spec),
            generation=self.generation,
            created_at=NOW,
            # As the API keeps it: a status that does not survive its own JSON would be written for ever.
            status=msgspec.json.decode(msgspec.json.encode(self.status), type=JobStatus),
            pods=tuple(self.seen.values()),
            gone=frozenset(self.gone),
            children=frozenset(
                (kind, name, f"uid-{name}", made["metadata"].get("annotations", {}).get(names.ANNOTATION_MADE_OF, ""))
                for (kind, name), made in self.children.items()
            ),
            probes=dict(self.probes),
            refusals=tuple(self.refusals),
            training=self.training,
            admission=self.admission,
            facts=facts,
        )

    def look(self, killed_after: int | None = None) -> Plan:
        """One pass. The operator may be killed after so many writes, of which the status is the first."""
        made = plan(self.situation(), self.now)
        writes: list[Callable[[], None]] = [] if made.status is None else [partial(self._write, made.status)]
        writes += [partial(self._act, action) for action in made.actions]
        for write in writes[:killed_after]:
            write()
        if killed_after is not None:
            self.restart_operator()
        return made

    def watch(self) -> None:
        """The operator's watch catches up."""
        self.gone |= self.seen.keys() - self.pods.keys()
        self.seen = dict(self.pods)

    def settle(self) -> list[Plan]:
        """Passes until one changes nothing, since every write brings about another one."""
        plans: list[Plan] = []
        while not plans or plans[-1].status is not None or plans[-1].actions:
            assert len(plans) < 12, f"no rest: {plans[-1].reason}, {plans[-1].actions}"
            self.watch()
            plans.append(self.look())
        return plans

    def run(self) -> None:
        """Up to the point where all pods of the gang run."""
        for _ in range(3):
            self.settle()
            self.schedule()
        self.settle()

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def restart_operator(self) -> None:
        """A new process a second later: what only memory held is gone."""
        self.wait(1)
        self.started_at = self.now
        self.training = self.admission = None
        self.probes = {}
        self.refusals = []
        self.gone = set()
        self.watch()
        self.gone = set()

    def edit(self, **fields: Any) -> None:
        self.spec = replace(self.spec, **fields)
        self.generation += 1

    def admit(self) -> None:
        """The built-in gang scheduler's word for a gang that waits."""
        waits = self.status.phase == "Queued" and self.status.gang.admitted_at is None
        self.admission = Admit(("n0", "n1")) if waits else self.admission

    def schedule(self) -> None:
        """Scheduler and kubelets do what they can: everything that has no gate runs."""
        for name, pod in self.pods.items():
            if pod.stage == "Unbound":
                self.pods[name] = replace(pod, stage="Running", node=f"n{pod.task.index}", started_at=self.now)

    def end(self, name: str, code: int) -> None:
        pod = self.pods[name]
        if pod.stage == "Running":
            end = ContainerEnd(code, finished_at=self.now)
            self.pods[name] = replace(pod, stage="Failed" if code else "Succeeded", trainer=end)

    def delete(self, name: str) -> None:
        """Somebody, or the operator, deletes a pod: one that never ran goes at once, another in its own time."""
        pod = self.pods[name]
        if pod.stage in ("Gated", "Unbound"):
            del self.pods[name]
        elif pod.deleting_since is None:
            self.pods[name] = replace(pod, deleting_since=self.now)

    def reap(self) -> None:
        """Pods that were told to go are gone."""
        self.pods = {name: pod for name, pod in self.pods.items() if pod.deleting_since is None}

    def report(self, step: int, checkpoint: int | None = None) -> None:
        """The chief's supervisor tells a step of the attempt that its pod belongs to."""
        chiefs = [p for p in self.pods.values() if p.task == Task("worker", 0) and p.stage == "Running"]
        if chiefs:
            tasks: dict[str, Stage] = {f"worker-{i}": "Training" for i in range(self.spec.roles.worker.replicas)}
            number = self.attempts[chiefs[-1].name]
            word = TrainingStatus(number, "Training", reports=True, step=step, checkpoint_step=checkpoint, tasks=tasks)
            self.training = TrainingView(word, self.now)

    def living_attempts(self) -> set[int]:
        """The attempts whose trainers may write now."""
        gang = [pod for pod in self.pods.values() if pod.stage == "Running" and pod.task.role != "evaluator"]
        return {pod.round for pod in gang}

    def _write(self, status: JobStatus) -> None:
        if self.status.gang.admitted_at is not None and status.gang.admitted_at is None:
            self.admission = None
        self.status = status
        self.history.append(status)
        self.refusals = []

    def _act(self, action: Action) -> None:
        match action:
            case Probe(template_hash=digest):
                self.probes[digest] = ProbeResult(201, heard_at=self.now)
            case Create(manifest=manifest):
                self._create(manifest)
            case Delete(kind="Pod", name=name, uid=uid, force=force):
                if name in self.pods and self.pods[name].uid == uid:
                    self.delete(name)
                    if force:
                        self.pods.pop(name, None)
            case Delete(kind=kind, name=name):
                self.children.pop((kind, name), None)
            case Ungate(name=name) if name in self.pods:
                self.pods[name] = replace(self.pods[name], gates=(), stage="Unbound")
            case DeleteJob():
                self.is_deleted = True
            case Ungate() | Emit():
                pass

    def _create(self, manifest: dict[str, Any]) -> None:
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        if kind != "Pod":
            self.children[kind, name] = manifest
        elif name in self.pods:
            pass  # 409, and ours
        elif sum(not pod.is_over for pod in self.pods.values()) >= self.quota:
            self.refusals.append(f"pods {name} is forbidden: exceeded quota: pods")
        else:
            labels = manifest["metadata"]["labels"]
            task = Task(labels[names.LABEL_ROLE], int(labels[names.LABEL_INDEX]))
            gates = tuple(gate["name"] for gate in manifest["spec"].get("schedulingGates", ()))
            number = len(self.made)
            view = PodView(name, f"uid-{number}", task, int(labels[names.LABEL_ROUND]), "Gated" if gates else "Unbound")
            self.pods[name] = self.seen[name] = replace(view, owner_uid=UID, gates=gates, created_at=self.now)
            self.made.append(name)
            self.attempts[name] = self.status.attempt
