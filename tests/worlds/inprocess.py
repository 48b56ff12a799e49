"""What worlds have in common whose API server is an object of this process: what is asked of it, and waiting."""

import asyncio
from abc import abstractmethod
from typing import Any

from dtj_operator.api.observed import Facts, JobKey, PodView, Situation
from dtj_operator.api.status import round_of
from dtj_operator.kube.client import JOB, POD
from dtj_operator.kube.fleet import Fleet
from dtj_operator.kube.store import Store
from dtj_operator.local.api import Api
from dtj_operator.local.failures import ApiFailure
from dtj_operator.local.kinds import Kind
from dtj_operator.local.objects import Objects
from dtj_operator.local.state import Request
from dtj_worker.contract import Task
from tests.worlds.world import NAMESPACE, DeletePod, Evict, Holds, Hurt, Json, KillOperator, Refused

MERGE = "application/merge-patch+json"
JOBS = f"{JOB.plural}.{JOB.group}"


class InProcess:
    """A World without its programs: how they are hurt and what they print is the subclass's business."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.stored = Objects(api, "test")
        self._changed = asyncio.Event()
        api.state.store.listen(lambda change: self._changed.set())

    @abstractmethod
    def check(self) -> None:
        """AssertionError where something has been wrong up to now."""

    @abstractmethod
    async def hurt_operator(self) -> None: ...

    @abstractmethod
    async def hurt_pod(self, pod: PodView, what: Hurt) -> None: ...

    async def submit(self, manifest: Json) -> JobKey:
        await self.create(manifest)
        return JobKey(NAMESPACE, manifest["metadata"]["name"])

    async def until(self, job: JobKey, holds: Holds, within: float = 60) -> Situation:
        s: Situation | None = None
        try:
            async with asyncio.timeout(within):
                while (s := self.situation(job)) is None or not holds(s):
                    await self._change()
        except TimeoutError:
            raise AssertionError(f"{job} did not get there in {within} s: {s and s.status} {s and s.pods}") from None
        return s

    async def gone(self, job: JobKey, within: float = 60) -> None:
        try:
            async with asyncio.timeout(within):
                while self._owned(job):
                    await self._change()
        except TimeoutError:
            left = ", ".join(self._owned(job))
            raise AssertionError(f"of {job} there is left after {within} s: {left}") from None

    async def hurt(self, job: JobKey, what: Hurt) -> None:
        if isinstance(what, KillOperator):
            await self.hurt_operator()
            return
        pod = self._wanted(job, what.task)
        match what:
            case DeletePod():
                await self._request("delete", self._kind("Pod"), pod.name)
            case Evict():
                body = {"metadata": {"name": pod.name, "namespace": job.namespace}}
                await self._request("create", self._kind("Pod"), pod.name, body, subresource="eviction")
            case _:
                await self.hurt_pod(pod, what)

    async def edit(self, job: JobKey, patch: Json) -> None:
        await self._request("patch", self._kind(JOB.kind), job.name, patch, content_type=MERGE)

    async def delete(self, job: JobKey) -> None:
        await self._request("delete", self._kind(JOB.kind), job.name)

    async def create(self, manifest: Json) -> Json:
        return await self._request("create", self._kind(manifest["kind"]), "", manifest)

    async def remove(self, kind: str, name: str) -> None:
        await self._request("delete", self._kind(kind), name)

    async def release(self, kind: str, name: str) -> None:
        patch = {"metadata": {"finalizers": None}}
        await self._request("patch", self._kind(kind), name, patch, content_type=MERGE)

    async def objects(self, kind: str) -> list[Json]:
        found = self._kind(kind)
        return list(self.stored.all(found.storage, NAMESPACE if found.namespaced else ""))

    def situation(self, job: JobKey) -> Situation | None:
        """As the API server has it at this moment, whatever the operator knows."""
        stored = self.stored.find(JOBS, job.namespace, job.name)
        if stored is None:
            return None
        store = Store(Facts(), Fleet())
        store.put(JOB, stored)
        for pod in self.stored.all("pods", job.namespace):
            store.put(POD, pod)
        return store.situation(job)

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()
        self.check()

    def _wanted(self, job: JobKey, task: Task) -> PodView:
        s = self.situation(job)
        assert s is not None, f"{job} does not exist"
        pod = next((p for p in s.pods if p.task == task and p.round == round_of(s.status, task)), None)
        assert pod is not None, f"{task} of {job} has no pod"
        return pod

    def _owned(self, job: JobKey) -> list[str]:
        """The job and all that names it as its owner."""
        found = [job.name] if self.stored.find(JOBS, job.namespace, job.name) else []
        for kind in self.api.state.kinds:
            found += [
                f"{kind.kind} {one['metadata']['name']}"
                for one in (self.stored.all(kind.storage, job.namespace) if kind.namespaced else ())
                for owner in one["metadata"].get("ownerReferences") or ()
                if (owner["kind"], owner["name"]) == (JOB.kind, job.name)
            ]
        return found

    def _kind(self, name: str) -> Kind:
        return next(kind for kind in self.api.state.kinds if kind.kind == name)

    async def _request(self, verb: str, kind: Kind, name: str, body: Json | None = None, **more: Any) -> Json:
        namespace = NAMESPACE if kind.namespaced else ""
        try:
            reply = self.api.request(Request(verb=verb, kind=kind, namespace=namespace, name=name, body=body, **more))
        except ApiFailure as failure:
            raise Refused(str(failure)) from None
        await asyncio.sleep(0)
        found: Json = reply.body
        return found
