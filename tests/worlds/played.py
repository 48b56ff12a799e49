"""The kubelet of SimWorld: starts pods in virtual time, plays the supervisor of `counter.py` and its stream."""

import argparse
import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime

import msgspec

from dtj_operator.api import names
from dtj_operator.api.observed import JobKey
from dtj_operator.local.failures import ApiFailure
from dtj_operator.local.node import status as pod_status
from dtj_operator.local.node.machine import lost
from dtj_operator.local.node.status import Record, Running, Terminated, Waiting
from dtj_operator.local.objects import Objects
from dtj_worker.codec import decode, encode
from dtj_worker.contract import (
    EXIT_CONFIG,
    EXIT_PEER,
    EXIT_STOPPED,
    Death,
    Stage,
    Task,
    TaskSpec,
    TrainingStatus,
    Verdict,
    VerdictKind,
)
from dtj_worker.supervisor.peers import SILENCE_SECONDS
from tests.worlds.world import AskToStop, ExhaustMemory, Hurt, Json, KillSupervisor, KillTrainer

START_SECONDS = 1.0
RENDEZVOUS_SECONDS = 1.0
HEAR_SECONDS = 0.3
"""Until the others know of a death."""
STOP_SECONDS = 0.5
LINE_SECONDS = 0.5
LAST_WORDS_SECONDS = 0.1
LOOK_AGAIN_SECONDS = 2.0
SIGKILL, OOM_KILLED = 137, 137


class Ended(Exception):
    """How a container ended."""

    def __init__(self, code: int, verdict: Verdict | None = None, reason: str = "Error") -> None:
        super().__init__(code)
        self.code, self.verdict, self.reason = code, verdict, reason


class Saved(msgspec.Struct, frozen=True):
    """A checkpoint: of which run, after which step, and whether that was the last."""

    uid: str
    step: int
    is_finished: bool = False


class Attempt(msgspec.Struct):
    """The trainers of one attempt of a job, as its chief's supervisor knows them."""

    spec: TaskSpec
    stages: dict[str, Stage]
    step: int = 0
    saved: int | None = None
    resumed: int | None = None
    death: Death | None = None
    epochs: int | None = None
    epoch_steps: int = 10
    is_complete: bool = False
    members: list["Run"] = []

    def wake(self) -> None:
        """Have its members look at what has come of it."""
        for run in self.members:
            run.woken.set()

    def told(self) -> TrainingStatus:
        stages = set(self.stages.values())
        order: tuple[Stage, ...] = (
            "Dead",
            "Waiting",
            "Registered",
            "Program",
            "Rendezvous",
            "Built",
            "Training",
            "Done",
        )
        return TrainingStatus(
            attempt=self.spec.attempt,
            stage=next(stage for stage in order if stage in stages),
            reports=self.step > 0,
            step=self.step or None,
            epoch=self.step // self.epoch_steps if self.step else None,
            epochs=self.epochs,
            loss=1 / self.step if self.step else None,
            checkpoint_step=self.saved,
            checkpoint_epoch=None if self.saved is None else self.saved // self.epoch_steps,
            resumed_from_step=self.resumed,
            resumed_from_epoch=None if self.resumed is None else self.resumed // self.epoch_steps,
            replicas=len(self.spec.peers),
            seconds_since_step=0.0 if self.step else None,
            tasks=dict(self.stages),
            first_death=self.death,
        )


class Run:
    """One pod that runs."""

    def __init__(self, pod: Json, address: str) -> None:
        metadata = pod["metadata"]
        self.pod, self.uid, self.node, self.address = pod, metadata["uid"], pod["spec"]["nodeName"], address
        self.job = JobKey(metadata["namespace"], (metadata.get("labels") or {}).get(names.LABEL_JOB, ""))
        waiting = Waiting("ContainerCreating")
        self.records = [
            Record(one["name"], one["image"], "sidecar" if one.get("restartPolicy") == "Always" else "init", waiting)
            for one in pod["spec"].get("initContainers") or ()
        ]
        self.records += [Record(one["name"], one["image"], "main", waiting) for one in pod["spec"]["containers"]]
        trainer = next(
            (one for one in pod["spec"]["containers"] if _env(one, "TF_CONFIG")), pod["spec"]["containers"][0]
        )
        self.trainer, self.arguments = trainer["name"], trainer.get("args") or []
        told = _env(trainer, "DTJ_TASK")
        self.spec = decode(TaskSpec, told) if told else None
        self.attempt: Attempt | None = None
        self.task: asyncio.Task[None] | None = None
        self.woken = asyncio.Event()
        """Something has come that it waits for."""
        self.is_stopped = False
        self.sudden: Ended | None = None
        self.leaving = asyncio.Event()
        """The supervisor says its last words on the stream."""
        self.is_alive = False
        """The training program itself runs."""
        self.step = 0
        self.state: pod_status.State | None = None
        self.log: list[str] = []

    @property
    def task_name(self) -> str:
        return self.spec.task if self.spec else str(self.pod["metadata"]["name"])

    @property
    def lost_peer(self) -> str | None:
        """Whose death it has been told."""
        death = self.attempt.death if self.attempt else None
        return death.task if death and death.task != self.task_name else None

    def stop(self) -> None:
        self.is_stopped = True
        self.woken.set()


class PlayedKubelet:
    """All nodes. What a program does is told by its arguments, as for `counter.py`; anything else runs for ever.

    A command, after `--`, is one that can't import what it needs.
    """

    def __init__(self, objects: Objects, clock: Callable[[], datetime]) -> None:
        self._objects = objects
        self._clock = clock
        self.runs: dict[str, Run] = {}
        self.lost: set[str] = set()
        self.attempts: dict[tuple[str, int], Attempt] = {}
        self.disk: dict[JobKey, Saved] = {}
        """The newest checkpoint of a job's name."""
        self.started: list[tuple[str, int, str]] = []
        self._addresses = 0

    async def run(self) -> None:
        with self._objects.watch("pods") as watch:
            async for change in watch.changes():
                if change.type == "DELETED":
                    run = self.runs.get(change.entry.uid)
                    if run is not None and run.node not in self.lost:
                        self._end(run)
                elif change.entry.fields["spec.nodeName"]:
                    self._see(change.entry.decode())

    def alive(self) -> Iterator[TaskSpec]:
        """The training programs that run, but for those on nodes that are lost."""
        return (run.spec for run in self.runs.values() if run.is_alive and run.spec and run.node not in self.lost)

    def tasks(self) -> list[asyncio.Task[None]]:
        """What still runs, to be ended with the world."""
        return [run.task for run in self.runs.values() if run.task is not None]

    def _see(self, pod: Json) -> None:
        uid, node = pod["metadata"]["uid"], pod["spec"]["nodeName"]
        if node in self.lost:
            return
        if uid not in self.runs and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            self._addresses += 1
            run = self.runs[uid] = Run(pod, f"10.0.{self._addresses // 256}.{self._addresses % 256}")
            run.task = asyncio.create_task(self._live(run))
        if pod["metadata"].get("deletionTimestamp") and uid in self.runs:
            run = self.runs[uid]
            run.stop()
            if run.task is None or run.task.done():
                self._objects.delete("pods", pod["metadata"])

    async def _live(self, run: Run) -> None:
        try:
            await self._until(run, START_SECONDS)
            while (why := self._cannot_start(run)) is not None:
                self._say(run, why)
                await self._until(run, LOOK_AGAIN_SECONDS)
            self._say(run, Running(self._objects.timestamp()))
            await self._play(run)
        except Ended as end:
            run.is_alive = False
            self._spread(run, end)
            if end.verdict:
                run.leaving.set()
                await asyncio.sleep(LAST_WORDS_SECONDS)
            message = end.verdict.termination_message() if end.verdict else ""
            now = self._objects.timestamp()
            state = Terminated(
                exit_code=end.code, reason="Completed" if end.code == 0 else end.reason, message=message,
                finished_at=now, started_at=now, container_id="played://1",
            )  # fmt: skip
            self._say(run, state)
        if run.node in self.lost:
            return
        current = self._objects.find("pods", run.job.namespace, run.pod["metadata"]["name"])
        if current and current["metadata"]["uid"] == run.uid and current["metadata"].get("deletionTimestamp"):
            self._objects.delete("pods", current["metadata"])

    def _cannot_start(self, run: Run) -> Waiting | None:
        images = [one.get("image", "") for one in run.pod["spec"]["containers"]]
        if any("missing" in image for image in images):
            return Waiting("ImagePullBackOff", f'Back-off pulling image "{images[0]}"')
        for one in run.pod["spec"]["containers"]:
            for source in one.get("envFrom") or ():
                name = (source.get("configMapRef") or {}).get("name")
                if name and self._objects.find("configmaps", run.job.namespace, name) is None:
                    return Waiting("CreateContainerConfigError", f'configmap "{name}" not found')
        return None

    async def _play(self, run: Run) -> None:
        """The supervisor and its child; leaves by Ended alone."""
        if run.spec is None or not run.arguments or run.arguments[0] not in ("counter.py", "absent.py", "--"):
            await self._until(run)
        spec = run.spec
        assert spec is not None
        if run.arguments[0] == "absent.py":
            raise Ended(EXIT_CONFIG, self._verdict(run, "Config", EXIT_CONFIG, "absent.py: no such program in /app"))
        if run.arguments[0] == "--":
            attempt = self._join(run, spec)
            await self._until(run, holds=lambda: attempt.is_complete)
            missing = self._verdict(run, "Program", 1, "ModuleNotFoundError: No module named 'nosuchmodule'")
            raise Ended(1, dataclasses.replace(missing, unloadable=True))
        options = _options(run.arguments[1:])
        if Task.parse(spec.task).role == "evaluator":
            await self._count(run, options, None)
        attempt = self._join(run, spec)
        await self._until(run, holds=lambda: attempt.is_complete)
        attempt.stages[spec.task] = "Rendezvous"
        run.is_alive = True
        self.started.append((spec.uid, spec.attempt, spec.task))
        await self._until(run, RENDEZVOUS_SECONDS)
        if Task.parse(spec.task).role == "ps":
            attempt.stages[spec.task] = "Training"
            await self._until(run)
        await self._count(run, options, attempt)

    def _join(self, run: Run, spec: TaskSpec) -> Attempt:
        attempt = self.attempts.get((spec.uid, spec.attempt))
        if attempt is None:
            attempt = self.attempts[spec.uid, spec.attempt] = Attempt(spec, dict.fromkeys(spec.peers, "Waiting"))
        run.attempt = attempt
        attempt.members.append(run)
        attempt.stages[spec.task] = "Registered"
        if all(stage == "Registered" for stage in attempt.stages.values()):
            attempt.is_complete = True
            attempt.wake()
        return attempt

    async def _count(self, run: Run, options: argparse.Namespace, attempt: Attempt | None) -> None:
        spec = run.spec
        assert spec is not None
        is_chief = spec.task == spec.chief
        saved = self.disk.get(run.job, Saved(spec.uid, 0))
        if saved.is_finished and saved.uid != spec.uid and attempt:
            raise Ended(EXIT_CONFIG, self._verdict(run, "Config", EXIT_CONFIG, f"run {saved.uid} has finished"))
        done = saved.step
        if attempt:
            attempt.epochs, attempt.epoch_steps = -(-options.steps // options.epoch_steps), options.epoch_steps
            attempt.resumed = done or None
            attempt.stages[spec.task] = "Training"
        for step in range(done + 1, options.steps + 1):
            await self._until(run, options.step_seconds)
            run.step = step
            if attempt and is_chief:
                attempt.step = step
                if step % options.checkpoint_every == 0:
                    self.disk[run.job] = Saved(spec.uid, step)
                    attempt.saved = step
            if spec.fault and spec.fault.step == step:
                self._fire(run, spec)
        run.log.append(f"{spec.task}: counted to {options.steps}")
        if options.exit_code:
            raise Ended(options.exit_code, self._verdict(run, "Program", options.exit_code, "asked to"))
        if attempt:
            attempt.stages[spec.task] = "Done"
            if is_chief and run.job in self.disk:
                self.disk[run.job] = msgspec.structs.replace(self.disk[run.job], uid=spec.uid, is_finished=True)
        raise Ended(0, self._verdict(run, "Done", 0, ""))

    def _fire(self, run: Run, spec: TaskSpec) -> None:
        assert spec.fault is not None
        if spec.fault.exit_code is not None:
            raise Ended(
                spec.fault.exit_code, self._verdict(run, "Program", spec.fault.exit_code, "a fault was asked for")
            )
        if spec.fault.signal == "SIGTERM":
            raise Ended(EXIT_STOPPED, self._verdict(run, "Stopped", EXIT_STOPPED, "asked to stop"))
        raise self._killed(run)

    def _killed(self, run: Run) -> Ended:
        verdict = Verdict(self._number(run), "child", "Program", run.task_name, signal="SIGKILL", step=run.step or None)
        return Ended(SIGKILL, verdict)

    def _verdict(self, run: Run, kind: VerdictKind, code: int, message: str) -> Verdict:
        return Verdict(
            self._number(run), "child", kind, run.task_name, exit_code=code, step=run.step or None, message=message
        )

    def _number(self, run: Run) -> int:
        return run.spec.attempt if run.spec else 0

    def _spread(self, run: Run, end: Ended) -> None:
        """The chief's supervisor notes the first death and tells the others, who end as its peers."""
        attempt, spec = run.attempt, run.spec
        if attempt is None or spec is None or end.code == 0:
            return
        attempt.stages[spec.task] = "Dead"
        if attempt.death is None:
            verdict = end.verdict or Verdict(spec.attempt, "supervisor", "Program", spec.task, signal="SIGKILL")
            attempt.death = Death(
                spec.task,
                verdict.kind,
                verdict.exit_code,
                verdict.signal,
                verdict.step,
                verdict.message,
                verdict.unloadable,
            )
            attempt.wake()

    async def _until(self, run: Run, seconds: float | None = None, holds: Callable[[], bool] = lambda: False) -> None:
        """Wait; but end with what comes first: a signal, a deletion, or the word that a peer has died."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not (run.sudden or run.is_stopped or run.lost_peer or holds()):
                    run.woken.clear()
                    await run.woken.wait()
        if run.sudden:
            raise run.sudden
        if run.is_stopped:
            await asyncio.sleep(STOP_SECONDS)
            raise Ended(EXIT_STOPPED, self._verdict(run, "Stopped", EXIT_STOPPED, "asked to stop"))
        if culprit := run.lost_peer:
            await asyncio.sleep(HEAR_SECONDS)
            raise Ended(
                EXIT_PEER,
                Verdict(
                    self._number(run), "supervisor", "Peer", run.task_name, step=run.step or None,
                    message=f"{culprit} has ended", blames=culprit,
                ),
            )  # fmt: skip

    def hurt(self, uid: str, what: Hurt) -> None:
        run = self.runs[uid]
        match what:
            case KillTrainer():
                self._break(run, self._killed(run))
            case KillSupervisor():
                self._break(run, Ended(SIGKILL))
            case ExhaustMemory():
                self._break(run, Ended(OOM_KILLED, reason="OOMKilled"))
            case AskToStop():
                run.stop()

    def _break(self, run: Run, end: Ended) -> None:
        """Whatever the pod does now, this is its end."""
        run.sudden = end
        run.woken.set()

    def _miss(self, run: Run, attempt: Attempt) -> None:
        """The chief's supervisor gives up a peer that it has not heard of; or they give up the chief's."""
        if run.node in self.lost and run.spec and attempt.death is None:
            attempt.death = Death(
                run.spec.task, "Program", message=f"its supervisor is gone: silent for {SILENCE_SECONDS:g} s"
            )
            attempt.stages[run.spec.task] = "Dead"
            attempt.wake()

    def _end(self, run: Run) -> None:
        """Deleted by force: its processes are killed."""
        run.is_alive = False
        if run.task and not run.task.done():
            run.task.cancel()
        self._spread(run, Ended(SIGKILL))

    def lose(self, node: str) -> None:
        self.lost.add(node)
        for run in self.runs.values():
            if run.node == node and run.attempt and run.spec and not run.attempt.death:
                asyncio.get_running_loop().call_later(SILENCE_SECONDS, self._miss, run, run.attempt)
        body = self._objects.find("nodes", "", node)
        assert body is not None
        self._objects.update("nodes", lost(body, self._objects.timestamp()), "status")

    def recover(self, node: str) -> None:
        """The node answers again: what was force-deleted meanwhile is killed, what has ended is told."""
        self.lost.discard(node)
        body = self._objects.find("nodes", "", node)
        assert body is not None
        self._objects.update("nodes", found(body, self._objects.timestamp()), "status")
        pods = {pod["metadata"]["uid"]: pod for pod in self._objects.all("pods", **{"spec.nodeName": node})}
        for run in list(self.runs.values()):
            if run.node == node and run.uid not in pods:
                self._end(run)
            elif run.node == node and run.state is not None:
                self._say(run, run.state)
        for pod in pods.values():
            self._see(pod)

    def log(self, job: JobKey, task: Task) -> str:
        own = [run for run in self.runs.values() if run.job == job and run.task_name == str(task)]
        return "\n".join(own[-1].log) if own else ""

    @asynccontextmanager
    async def lines(self, url: str, token: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """The status stream at a pod's address."""
        address = url.removeprefix("http://").partition(":")[0]
        run = next((one for one in self.runs.values() if one.address == address), None)
        if run is None or run.node in self.lost or run.task is None or run.task.done():
            raise OSError(f"nothing listens at {url}")
        yield self._told(run)

    async def _told(self, run: Run) -> AsyncIterator[bytes]:
        before, is_last = "", False
        while run.task and not run.task.done() and run.node not in self.lost and not is_last:
            is_last = run.leaving.is_set()
            now = encode(run.attempt.told()) if run.attempt else ""
            if now and now != before:
                yield now.encode()
                before = now
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LINE_SECONDS):
                    await run.leaving.wait()

    def _say(self, run: Run, state: pod_status.State) -> None:
        """Write the pod's status, unless its node is lost or it is gone."""
        run.state = state
        if run.node in self.lost:
            return
        for record in run.records:
            if isinstance(state, Terminated):
                record.state = state if record.name == run.trainer or record.kind == "init" else record.state
            elif record.kind == "init":
                now = self._objects.timestamp()
                done = Terminated(
                    exit_code=0, reason="Completed", finished_at=now, started_at=now, container_id="played://0"
                )
                record.state = done if isinstance(state, Running) else record.state
            else:
                record.state = state
        if all(isinstance(record.state, Terminated) for record in run.records if record.kind == "main"):
            for record in run.records:
                record.state = state if record.kind == "sidecar" else record.state
        name = run.pod["metadata"]["name"]
        for _ in range(5):
            current = self._objects.find("pods", run.job.namespace, name)
            if current is None or current["metadata"]["uid"] != run.uid:
                return
            now = self._objects.timestamp()
            status = pod_status.status(current.get("status") or {}, run.records, "Never", now, now)
            status |= {"podIP": run.address, "podIPs": [{"ip": run.address}]}
            try:
                self._objects.update("pods", {**current, "status": status}, "status")
                return
            except ApiFailure:
                continue


def found(body: Json, now: str) -> Json:
    """A node that was lost, as it is shown when it is back."""
    conditions = [
        one | {"status": str(one["type"] == "Ready"), "reason": "KubeletReady", "lastTransitionTime": now}
        for one in body["status"]["conditions"]
    ]
    return {**body, "status": {**body["status"], "conditions": conditions}}


def _env(container: Json, name: str) -> str | None:
    return next((one.get("value") for one in container.get("env") or () if one["name"] == name), None)


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--epoch-steps", type=int, default=10)
    parser.add_argument("--checkpoint-every", type=int, default=10)
    parser.add_argument("--step-seconds", type=float, default=0.02)
    parser.add_argument("--exit-code", type=int, default=0)
    return parser.parse_args(arguments)
