"""SimWorld: the real controller on the embedded API in one process and in virtual time; only the programs are played."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from dtj_operator.api.crd import crd
from dtj_operator.api.observed import Facts, JobKey, Situation
from dtj_operator.api.status import round_of
from dtj_operator.kube.client import JOB, POD, ApiError, Kind, kind_named
from dtj_operator.kube.lease import Sole
from dtj_operator.kube.reflector import LISTED
from dtj_operator.kube.store import Store
from dtj_operator.kube.fleet import Fleet
from dtj_operator.local.api import Api
from dtj_operator.local.claims import Claims
from dtj_operator.local.direct import DirectClient
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
Answer = TypeVar("Answer")


def clock() -> datetime:
    return START + timedelta(seconds=asyncio.get_running_loop().time())


class Faulty(DirectClient):
    """The operator's client. `at` is called at each place where the operator may be killed or the API server may fail:
    before a request is sent, and after it was carried out and before its answer is read."""

    def __init__(self, api: Api, at: Callable[[str], Awaitable[None]]) -> None:
        super().__init__(api)
        self._at = at

    async def _answer(self, verb: Any, kind: Kind, namespace: str | None, name: str = "", **rest: Any) -> Json:
        what = f"{verb} {kind.kind} {name or rest.get('body', {}).get('metadata', {}).get('name', '')}"
        await self._at(f"before {what}")
        answer = await super()._answer(verb, kind, namespace, name, **rest)
        await self._at(f"after {what}")
        return answer


class SimWorld:
    """Use `sim_world()`. `places` counts the places at which the operator may be killed; `kill_at` names one of them."""

    name = "sim"

    def __init__(self, *, nodes: int = 3, gpus: int = 4) -> None:
        uids = (f"{n:08x}-0000-4000-8000-000000000000" for n in itertools.count(1))
        self.api = Api(now=clock, uid=lambda: next(uids))
        self.objects_ = Objects(self.api, "sim")
        self.objects_.create("customresourcedefinitions.apiextensions.k8s.io", crd())
        self.objects_.create("namespaces", {"metadata": {"name": "dtj-system"}})
        for index in range(nodes):
            self.objects_.create("nodes", node(f"n{index}", gpus, self.objects_.timestamp()))
        self.objects_.create("persistentvolumeclaims", CLAIM)
        self.kubelet = PlayedKubelet(self.objects_, clock)
        self.monitor = Monitor(self.objects_, self.api.state.store, self.kubelet)
        self.store: Store | None = None
        self.places = 0
        self.kill_at: int | None = None
        self.killed_at = ""
        self.fail_next: list[Callable[[str], None]] = []
        self._changed = asyncio.Event()
        self.api.state.store.listen(lambda change: self._changed.set())
        self._operator: asyncio.Task[None] | None = None
        self._restarts = asyncio.Event()

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

    def kill_operator(self) -> None:
        """At once, wherever it is; another one starts a second later."""
        assert self._operator is not None, "there is no operator"
        self._operator.cancel()

    async def operate(self) -> None:
        """The operator's Deployment."""
        while True:
            self._operator = asyncio.create_task(self._live())
            await asyncio.wait([self._operator])
            if not self._operator.cancelled() and (error := self._operator.exception()):
                raise error
            await asyncio.sleep(1)

    async def _live(self) -> None:
        """One process of the operator. Nothing it does after a kill reaches the API server."""
        dead = False

        async def at(place: str) -> None:
            if dead:
                raise asyncio.CancelledError
            self.places += 1
            if self.places == self.kill_at:
                self.killed_at = place
                self.kill_operator()
                await asyncio.Event().wait()
            if self.fail_next:
                self.fail_next.pop(0)(place)

        client = Faulty(self.api, at)
        try:
            facts = await survey(client, Facts(namespace="dtj-system", started_at=clock()), (None,))
            loop = asyncio.get_running_loop()
            controller = Controller(
                client, facts, clock=clock, leader=Sole(), lines=self.kubelet.lines, metrics=Metrics(loop.time)
            )
            self.store = controller.store
            await controller.start()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(controller.run())
                for kind in LISTED:
                    tasks.create_task(controller.reflector.follow(kind))
        finally:
            dead = True

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
                Request(verb=verb, kind=served, namespace=NAMESPACE if served.namespaced else "", name=name, body=body, **more)
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


@asynccontextmanager
async def sim_world(**options: Any) -> AsyncIterator[SimWorld]:
    """A world in virtual time; must run on a loop of looptime. At the end nothing may have been wrong at any time."""
    world = SimWorld(**options)
    controllers = (
        world.kubelet.run(),
        Scheduler(world.objects_).run(),
        Claims(world.objects_, Path("/nowhere")).run(),
        world.operate(),
    )
    tasks = [asyncio.create_task(one) for one in controllers]
    try:
        yield world
        world.monitor.check()
        for task in tasks:
            if task.done():
                task.result()
    finally:
        if world._operator is not None:
            world._operator.cancel()
            await asyncio.wait([world._operator])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
