"""SimWorld: the real controller on the embedded API, in one process and virtual time; only the programs are played."""

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dtj_operator.api.crd import crd
from dtj_operator.api.observed import Facts, JobKey, Situation
from dtj_operator.api.status import round_of
from dtj_operator.kube.client import JOB, POD, ApiError, Kind, kind_named
from dtj_operator.kube.fleet import Fleet
from dtj_operator.kube.lease import Sole
from dtj_operator.kube.reflector import LISTED
from dtj_operator.kube.store import Store
from dtj_operator.local.api import Api
from dtj_operator.local.claims import Claims
from dtj_operator.local.failures import ApiFailure
from dtj_operator.local.node.machine import node
from dtj_operator.local.objects import Objects
from dtj_operator.local.scheduler import Scheduler
from dtj_operator.local.state import Request
from dtj_operator.manager.controller import Controller
from dtj_operator.manager.survey import survey
from dtj_operator.manager.telemetry import Metrics
from dtj_worker.contract import Task
from tests.worlds.monitor import Monitor
from tests.worlds.played import PlayedKubelet
from tests.worlds.process import RUNNING, Client, History, Process, Steps, Weather, stepwise
from tests.worlds.world import (
    CLAIM,
    NAMESPACE,
    Ability,
    DeletePod,
    Evict,
    Holds,
    Hurt,
    Json,
    KillOperator,
    LoseNode,
    Refused,
)

START = datetime(2026, 11, 30, 12, tzinfo=UTC)


CRD = crd()


class SimWorld:
    """Use `sim_world()`. `history` knows the operator's steps, `weather` is what stands between it and the API."""

    name = "sim"

    def __init__(self, *, nodes: int = 3, gpus: int = 4) -> None:
        uids = (f"{n:08x}-0000-4000-8000-000000000000" for n in itertools.count(1))
        self.skew = timedelta()
        """How far the operator's and everyone's clock was set apart from the time that has passed."""
        self.api = Api(now=self.now, uid=lambda: next(uids))
        self.objects_ = Objects(self.api, "sim")
        self.objects_.create("customresourcedefinitions.apiextensions.k8s.io", CRD)
        self.objects_.create("namespaces", {"metadata": {"name": "dtj-system"}})
        for index in range(nodes):
            self.objects_.create("nodes", node(f"n{index}", gpus, self.objects_.timestamp()))
        self.objects_.create("persistentvolumeclaims", CLAIM)
        self.kubelet = PlayedKubelet(self.objects_, self.now)
        self.cluster = Steps()
        self.monitor = Monitor(self.api.state.store, self.kubelet)
        self.monitor.is_operators_turn = lambda: isinstance(RUNNING.get(), Process)
        self.weather = Weather()
        self.history = History(self._mark)
        self.controller: Controller | None = None
        self._changed = asyncio.Event()
        self.api.state.store.listen(lambda change: self._changed.set())
        self._process: Process | None = None

    def can(self, ability: Ability) -> bool:
        return True

    async def submit(self, manifest: Json) -> JobKey:
        await self.create(manifest)
        return JobKey(NAMESPACE, manifest["metadata"]["name"])

    async def until(self, job: JobKey, holds: Holds, within: float = 60) -> Situation:
        s: Situation | None = None
        try:
            async with asyncio.timeout(within):
                while (s := self.situation(job)) is None or not holds(s):
                    self._changed.clear()
                    await self._changed.wait()
                    self.monitor.check()
        except TimeoutError:
            raise AssertionError(f"{job} did not get there in {within} s: {s and s.status} {s and s.pods}") from None
        return s

    async def gone(self, job: JobKey, within: float = 60) -> None:
        async with asyncio.timeout(within):
            while self._owned(job):
                self._changed.clear()
                await self._changed.wait()

    async def hurt(self, job: JobKey, what: Hurt) -> None:
        if isinstance(what, KillOperator):
            self.kill_operator()
            return
        s = self.situation(job)
        assert s is not None, f"{job} does not exist"
        pod = next((p for p in s.pods if p.task == what.task and p.round == round_of(s.status, what.task)), None)
        assert pod is not None, f"{what.task} of {job} has no pod"
        match what:
            case DeletePod():
                await self._request("delete", POD, pod.name)
            case Evict():
                eviction = {"metadata": {"name": pod.name, "namespace": NAMESPACE}}
                await self._request("create", POD, pod.name, eviction, subresource="eviction")
            case LoseNode():
                assert pod.node is not None, f"{pod.name} is on no node"
                self.kubelet.lose(pod.node)
            case _:
                self.kubelet.hurt(pod.uid, what)

    async def edit(self, job: JobKey, patch: Json) -> None:
        await self._request("patch", JOB, job.name, patch, content_type="application/merge-patch+json")

    async def delete(self, job: JobKey) -> None:
        await self._request("delete", JOB, job.name)

    async def create(self, manifest: Json) -> Json:
        return await self._request("create", kind_of_any(self.api, manifest), "", manifest)

    async def remove(self, kind: str, name: str) -> None:
        await self._request("delete", kind_named(kind), name)

    async def objects(self, kind: str) -> list[Json]:
        found = kind_named(kind)
        storage = f"{found.plural}.{found.group}" if found.group else found.plural
        return list(self.objects_.all(storage, NAMESPACE if found.namespaced else ""))

    async def log(self, job: JobKey, task: Task) -> str:
        return self.kubelet.log(job, task)

    def situation(self, job: JobKey) -> Situation | None:
        """As the API server has it at this moment, whatever the operator knows."""
        stored = self.objects_.find(STORAGE, job.namespace, job.name)
        if stored is None:
            return None
        store = Store(Facts(), Fleet())
        store.put(JOB, {"apiVersion": JOB.api_version, "kind": JOB.kind, **stored})
        for pod in self.objects_.all("pods", job.namespace):
            store.put(POD, pod)
        return store.situation(job)

    def now(self) -> datetime:
        return START + timedelta(seconds=asyncio.get_running_loop().time()) + self.skew

    def kill_operator(self) -> None:
        """At once, wherever it is; another one starts a second later."""
        if self._process is not None:
            self._process.kill()

    def operators_tasks(self) -> list[asyncio.Task[None]]:
        return [self._process.task] if self._process and self._process.task else []

    async def operate(self) -> None:
        """The operator's Deployment."""
        while True:
            process = self._process = Process(self.history)
            process.task = start_in(process, self._live(process))
            await asyncio.wait([process.task])
            process.is_dead = True
            if not process.task.cancelled() and (error := process.task.exception()) and not isinstance(error, ApiError):
                raise error
            await asyncio.sleep(1)

    async def _live(self, process: Process) -> None:
        """One process of the operator. Nothing it does after a kill reaches the API server."""
        client = Client(self.api, process, self.weather, self.monitor)
        facts = await survey(client, Facts(namespace="dtj-system", started_at=self.now()), (None,))
        metrics = Metrics(asyncio.get_running_loop().time)
        controller = self.controller = Controller(
            client, facts, clock=self.now, leader=Sole(), lines=self.kubelet.lines, metrics=metrics
        )
        await controller.start()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(controller.run())
            for kind in LISTED:
                tasks.create_task(controller.reflector.follow(kind))

    def _mark(self) -> tuple[object, ...]:
        """What differs if anything in the world but the operator's memory does."""
        return self.api.state.store.revision, self.cluster.count, asyncio.get_running_loop().time()

    def _owned(self, job: JobKey) -> bool:
        if self.objects_.find(STORAGE, job.namespace, job.name) is not None:
            return True
        storages = ("pods", "services", "secrets", "networkpolicies.networking.k8s.io")
        return any(
            owner["name"] == job.name
            for storage in storages
            for one in self.objects_.all(storage, job.namespace)
            for owner in one["metadata"].get("ownerReferences") or ()
        )

    async def _request(self, verb: str, kind: Kind, name: str, body: Json | None = None, **more: Any) -> Json:
        served = self.api.kind(kind.api_version, kind.plural)
        try:
            reply = self.api.request(
                Request(
                    verb=verb,
                    kind=served,
                    namespace=NAMESPACE if served.namespaced else "",
                    name=name,
                    body=body,
                    **more,
                )
            )
        except ApiFailure as failure:
            raise Refused(str(failure)) from None
        await asyncio.sleep(0)
        found: Json = reply.body
        return found


STORAGE = f"{JOB.plural}.{JOB.group}"


def kind_of_any(api: Api, manifest: Json) -> Kind:
    """Kinds that the operator knows nothing of, too."""
    plural = {"ResourceQuota": "resourcequotas", "ConfigMap": "configmaps", "LimitRange": "limitranges"}
    if manifest["kind"] in plural:
        return Kind(manifest["kind"], "", "v1", plural[manifest["kind"]])
    return kind_named(manifest["kind"])


def start_in(steps: Steps, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """A task whose steps, and those of all tasks it starts, are counted there."""
    context = copy_context()
    context.run(RUNNING.set, steps)
    return asyncio.create_task(coroutine, context=context)


@asynccontextmanager
async def sim_world(**options: Any) -> AsyncIterator[SimWorld]:
    """A world in virtual time; must run on a loop of looptime. At the end nothing may have been wrong at any time."""
    loop = asyncio.get_running_loop()
    factory_before = loop.get_task_factory()
    loop.set_task_factory(stepwise)
    world = SimWorld(**options)
    log = logging.getLogger("dtj_operator")
    log.addHandler(world.monitor)
    controllers = (
        world.kubelet.run(),
        Scheduler(world.objects_).run(),
        Claims(world.objects_, Path("/nowhere")).run(),
        world.operate(),
    )
    tasks = [start_in(world.cluster, one) for one in controllers]
    try:
        yield world
        world.monitor.check()
        for task in tasks:
            if task.done():
                task.result()
    finally:
        log.removeHandler(world.monitor)
        world.kill_operator()
        everything = [*tasks, *world.kubelet.tasks(), *world.operators_tasks()]
        for task in everything:
            task.cancel()
        await asyncio.gather(*everything, return_exceptions=True)
        loop.set_task_factory(factory_before)
