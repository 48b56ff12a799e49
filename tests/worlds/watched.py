"""What worlds have in common that see a cluster as a store of objects, their own or a mirror: asking, waiting, harm."""

import asyncio
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TypeVar

from dtj_operator.api.observed import Facts, JobKey, PodView, Situation
from dtj_operator.api.status import round_of
from dtj_operator.kube.client import JOB, POD
from dtj_operator.kube.fleet import Fleet
from dtj_operator.kube.store import Store as Situations
from dtj_operator.local.store import Change, Store
from dtj_worker.codec import decode
from dtj_worker.contract import ENV_TASK, Task, TaskSpec
from tests.worlds.world import (
    NAMESPACE,
    DeletePod,
    Evict,
    Holds,
    Hurt,
    HurtPod,
    Json,
    KillOperator,
    Refused,
    RestartApiServer,
    UpgradeOperator,
    Verb,
)

JOBS = f"{JOB.plural}.{JOB.group}"
SEEN = {JOBS: JOB, "pods": POD}
DRAIN_SECONDS = 60
LOOK_AGAIN_SECONDS = 1
"""For what no change of an object tells."""
Value = TypeVar("Value")


class Watched:
    """A World without its programs and its way to the API server: those are the subclass's business."""

    patience = 1.0
    """How many true seconds a second of `within` has here."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.lost: set[str] = set()
        """Nodes that answer no more."""
        self._situations = Situations(Facts(), Fleet())
        self._looks: list[Callable[[], None]] = []
        store.listen(self._take)

    @abstractmethod
    async def ask(self, verb: Verb, kind: str, name: str = "", body: Json | None = None, subresource: str = "") -> Json:
        """One call to the API server, in the jobs' namespace; patches are merge patches. A refusal raises Refused."""

    @abstractmethod
    def check(self) -> None:
        """AssertionError where something has been wrong up to now."""

    @abstractmethod
    async def hurt_operator(self, what: KillOperator | UpgradeOperator) -> None: ...

    @abstractmethod
    async def hurt_pod(self, pod: PodView, what: HurtPod) -> None: ...

    @abstractmethod
    async def log(self, job: JobKey, task: Task) -> str: ...

    async def hurt_api_server(self) -> None:
        raise NotImplementedError("the API server stays")

    async def submit(self, manifest: Json) -> JobKey:
        await self.create(manifest)
        return JobKey(NAMESPACE, manifest["metadata"]["name"])

    async def until(self, job: JobKey, holds: Holds, within: float = 60) -> Situation:
        last: Situation | None = None

        def found() -> Situation | None:
            nonlocal last
            last = self.situation(job)
            return last if last is not None and holds(last) else None

        return await self._first(
            found, within, lambda: f"{job} has not got there: {last and last.status} {last and last.pods}"
        )

    async def gone(self, job: JobKey, within: float = 60) -> None:
        await self._wait(lambda: not self._owned(job), within, lambda: f"of {job} there is left: {self._owned(job)}")

    async def hurt(self, job: JobKey, what: Hurt) -> None:
        match what:
            case KillOperator() | UpgradeOperator():
                await self.hurt_operator(what)
            case RestartApiServer():
                await self.hurt_api_server()
            case DeletePod(task):
                await self.remove("Pod", self.wanted(job, task).name)
            case Evict(task):
                await self._evict(job.namespace, self.wanted(job, task).name)
            case _:
                await self.hurt_pod(self.wanted(job, what.task), what)

    async def edit(self, job: JobKey, patch: Json) -> None:
        await self.ask("patch", JOB.kind, job.name, patch)

    async def delete(self, job: JobKey) -> None:
        await self.ask("delete", JOB.kind, job.name)

    async def create(self, manifest: Json) -> Json:
        return await self.ask("create", manifest["kind"], "", manifest)

    async def change(self, kind: str, name: str, patch: Json) -> None:
        await self.ask("patch", kind, name, patch)

    async def remove(self, kind: str, name: str) -> None:
        await self.ask("delete", kind, name)

    async def objects(self, kind: str) -> list[Json]:
        found: list[Json] = (await self.ask("list", kind))["items"]
        return found

    async def cordon(self, node: str, *, cordoned: bool = True) -> None:
        await self.change("Node", node, {"spec": {"unschedulable": cordoned or None}})

    async def drain(self, node: str) -> None:
        await self.cordon(node)
        pods = await self.pods_on(node)
        async with asyncio.TaskGroup() as tasks:
            for namespace, pod in pods:
                tasks.create_task(self._drain_of(namespace, pod))

    async def pods_on(self, node: str) -> list[tuple[str, str]]:
        """What a drain of the node evicts: namespaces and names."""
        there = [pod["metadata"] for pod in await self.objects("Pod") if pod["spec"].get("nodeName") == node]
        return [(metadata["namespace"], metadata["name"]) for metadata in there]

    async def prints(self, job: JobKey, task: Task, pattern: str, within: float = 60) -> None:
        printed = ""
        try:
            async with asyncio.timeout(within * self.patience):
                while not re.search(pattern, printed):
                    await asyncio.sleep(LOOK_AGAIN_SECONDS)
                    with suppress(Refused):  # its container has not begun
                        printed = await self.log(job, task)
        except TimeoutError:
            raise AssertionError(
                f"after {within * self.patience:g} s {task} of {job} has not printed {pattern!r}: {printed}"
            ) from None

    def now(self) -> datetime:
        return datetime.now(UTC)

    def situation(self, job: JobKey) -> Situation | None:
        """As the API server has it at this moment, whatever the operator knows."""
        return self._situations.situation(job)

    def wanted(self, job: JobKey, task: Task) -> PodView:
        """The task's pod of its present round."""
        s = self.situation(job)
        assert s is not None, f"{job} does not exist"
        pod = next((p for p in s.pods if p.task == task and p.round == round_of(s.status, task)), None)
        assert pod is not None, f"{task} of {job} has no pod"
        return pod

    def alive(self) -> Iterator[TaskSpec]:
        """The trainers of gangs whose containers run, as their kubelets say."""
        for pod in (entry.decode() for entry in self.store.entries("pods")):
            if pod["spec"].get("nodeName") in self.lost:
                continue
            statuses = (pod.get("status") or {}).get("containerStatuses") or ()
            running = {one["name"] for one in statuses if "running" in one["state"]}
            specs = [
                decode(TaskSpec, variable["value"])
                for container in pod["spec"]["containers"]
                for variable in container.get("env") or ()
                if container["name"] in running and variable["name"] == ENV_TASK
            ]
            yield from (spec for spec in specs if Task.parse(spec.task).role != "evaluator")

    async def _drain_of(self, namespace: str, pod: str) -> None:
        """Again and again while a disruption budget does not allow it, as `kubectl drain` does."""
        refusal: Refused | None = None
        try:
            async with asyncio.timeout(DRAIN_SECONDS * self.patience):
                while True:
                    try:
                        return await self._evict(namespace, pod)
                    except Refused as error:
                        if error.code == HTTPStatus.NOT_FOUND:  # the operator may have taken it away since the list
                            return None
                        if error.code != HTTPStatus.TOO_MANY_REQUESTS:
                            raise
                        refusal = error
                    await asyncio.sleep(LOOK_AGAIN_SECONDS)
        except TimeoutError:
            raise AssertionError(
                f"after {DRAIN_SECONDS * self.patience:g} s {pod} was not evicted: {refusal}"
            ) from None

    async def _evict(self, namespace: str, pod: str) -> None:
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace}}
        await self.ask("create", "Pod", pod, eviction, "eviction")

    async def _wait(self, holds: Callable[[], bool], within: float, complaint: Callable[[], str]) -> None:
        await self._first(lambda: holds() or None, within, complaint)

    async def _first(self, look: Callable[[], Value | None], within: float, complaint: Callable[[], str]) -> Value:
        """What `look` finds. It looks at every single change, so that no state passes unseen, however short it is."""
        reached: asyncio.Future[Value] = asyncio.get_running_loop().create_future()

        def look_again() -> None:
            if reached.done():
                return
            try:
                self.check()
                found = look()
            except Exception as error:  # It is the waiting test's, not that of whoever has made the change.
                reached.set_exception(error)
            else:
                if found is not None:
                    reached.set_result(found)

        look_again()
        self._looks.append(look_again)
        try:
            async with asyncio.timeout(within * self.patience):
                return await reached
        except TimeoutError:
            raise AssertionError(f"after {within * self.patience:g} s {complaint()}") from None
        finally:
            self._looks.remove(look_again)

    def _take(self, change: Change) -> None:
        if kind := SEEN.get(change.storage):
            take = self._situations.remove if change.type == "DELETED" else self._situations.put
            take(kind, change.entry.decode())
        self._look()

    def _look(self) -> None:
        for look in tuple(self._looks):
            look()

    def _owned(self, job: JobKey) -> list[str]:
        """The job and all that names it as its owner."""
        found = [job.name] if self.store.read(JOBS, job.namespace, job.name) else []
        for storage in self.store.storages():
            for entry in self.store.entries(storage, job.namespace):
                owners = entry.decode()["metadata"]["ownerReferences"] if entry.owners else ()
                found += [f"{storage} {entry.name}" for o in owners if (o["kind"], o["name"]) == (JOB.kind, job.name)]
        return found
