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

from dtj_operator.api import names
from dtj_operator.api.crd import crd
from dtj_operator.api.observed import Facts, JobKey, PodView
from dtj_operator.kube.client import ApiError
from dtj_operator.kube.lease import Sole
from dtj_operator.kube.reflector import LISTED
from dtj_operator.local.api import Api
from dtj_operator.local.claims import Claims
from dtj_operator.local.node.machine import node
from dtj_operator.local.scheduler import Scheduler
from dtj_operator.manager.controller import Controller
from dtj_operator.manager.survey import survey
from dtj_operator.manager.telemetry import Metrics
from dtj_worker.contract import Task
from tests.worlds.inprocess import InProcess
from tests.worlds.monitor import Monitor
from tests.worlds.played import PlayedKubelet
from tests.worlds.process import RUNNING, Client, History, Mark, Process, Steps, Weather, stepwise
from tests.worlds.world import CLAIM, NAMESPACE, Ability, HurtPod, Json, KillOperator, LoseNode, UpgradeOperator

ABILITIES: frozenset[Ability] = frozenset({"Gpus", "Nodes", "Memory", "Images", "Processes"})
START = datetime(2026, 11, 30, 12, tzinfo=UTC)
CRD = crd()


class SimWorld(InProcess):
    """Use `sim_world()`. `history` knows the operator's steps, `weather` is what stands between it and the API."""

    name = "sim"

    def __init__(self, *, nodes: int = 3, gpus: int = 4) -> None:
        uids = (f"{n:08x}-0000-4000-8000-000000000000" for n in itertools.count(1))
        self.skew = timedelta()
        """How far the operator's and everyone's clock was set apart from the time that has passed."""
        super().__init__(Api(now=self.now, uid=lambda: next(uids)))
        self.stored.create("customresourcedefinitions.apiextensions.k8s.io", CRD)
        for namespace in ("dtj-system", NAMESPACE):
            self.stored.create("namespaces", {"metadata": {"name": namespace}})
        for index in range(nodes):
            self.stored.create("nodes", node(f"n{index}", gpus, self.stored.timestamp()))
        self.stored.create("persistentvolumeclaims", CLAIM)
        self.kubelet = PlayedKubelet(self.stored, self.now)
        self.cluster = Steps()
        self.monitor = Monitor(self.api.state.store, self.kubelet.alive)
        self.monitor.is_operators_turn = lambda: isinstance(RUNNING.get(), Process)
        self.weather = Weather()
        self.history = History(self._mark)
        self.controller: Controller | None = None
        self._process: Process | None = None

    def can(self, ability: Ability) -> bool:
        return ability in ABILITIES

    def check(self) -> None:
        self.monitor.check()

    async def hurt_operator(self, what: KillOperator | UpgradeOperator) -> None:
        self.kill_operator()

    async def hurt_pod(self, pod: PodView, what: HurtPod) -> None:
        if isinstance(what, LoseNode):
            assert pod.node is not None, f"{pod.name} is on no node"
            await self.lose(pod.node)
        else:
            self.kubelet.hurt(pod.uid, what)

    async def lose(self, node: str) -> None:
        self.kubelet.lose(node)

    async def recover(self, node: str) -> None:
        self.kubelet.recover(node)

    async def evict(self, pod: str) -> None:
        await self._evict(NAMESPACE, pod)

    async def keep(self, pod: Json, finalizers: list[str]) -> None:
        """Have a pod's object stay until somebody takes the finalizers away again."""
        self.stored.patch("pods", pod["metadata"], {"metadata": {"finalizers": finalizers or None}})

    async def remove(self, kind: str, name: str) -> None:
        await super().remove(kind, name)
        if kind == "PersistentVolumeClaim":
            for job in [job for job in self.kubelet.disk if names.checkpoint_claim(job.name) == name]:
                del self.kubelet.disk[job]

    async def log(self, job: JobKey, task: Task) -> str:
        return self.kubelet.log(job, task)

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

    def _mark(self) -> Mark:
        under_way = 0 if self.weather.lateness is None else self.weather.under_way
        return Mark(self.api.state.store.revision, self.cluster.count, asyncio.get_running_loop().time(), under_way)


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
        Scheduler(world.stored).run(),
        Claims(world.stored, Path("/nowhere")).run(),
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
