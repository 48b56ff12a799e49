"""KubeWorld: a real Kubernetes, seen through our own client's watches; on a machine of our own it can be hurt, too.

On a cluster that was given, nothing is touched but the scenarios' namespace, the operator's pods, and nodes' cordons.
"""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from dtj_operator.api.observed import JobKey, PodView
from dtj_operator.kube.client import CLAIM as CLAIMS
from dtj_operator.kube.client import JOB
from dtj_operator.kube.login import Login
from dtj_worker.contract import Task
from e2e.cluster import Cluster
from e2e.given import Given
from tests.worlds import inside, operators
from tests.worlds.admin import Admin, kind_of
from tests.worlds.mirror import Mirror, storage
from tests.worlds.monitor import Monitor
from tests.worlds.operators import Installed
from tests.worlds.provisioner import provide
from tests.worlds.watched import Watched
from tests.worlds.world import (
    CLAIM,
    GPU,
    GPUS,
    NAMESPACE,
    NO_FINALIZERS,
    RESTRICTED,
    Ability,
    AskToStop,
    ExhaustMemory,
    HurtPod,
    Json,
    KillOperator,
    KillSupervisor,
    KillTrainer,
    LoseNode,
    Refused,
    UpgradeOperator,
    Verb,
)

ANYWHERE: frozenset[Ability] = frozenset({"Gpus", "Memory", "Images", "Programs", "PodSecurity"})
"""On a cluster that was given; whether it has the GPUs is seen when it is there."""
ABILITIES: frozenset[Ability] = ANYWHERE | {"Nodes", "Processes", "Policies", "ApiServer"}
"""With a machine of our own."""
TRAINER = "trainer"
CLEAN_SECONDS = 120
CORDONED = "dtj.dev/cordoned-by-scenarios"
"""Annotates a node, so that also a later run can undo it."""
UNRESTRICTED: Json = {"metadata": {"labels": dict.fromkeys(RESTRICTED["metadata"]["labels"])}}
DRAINED = (NAMESPACE, operators.NAMESPACE)
MADE = ("ConfigMap", "ResourceQuota", "LimitRange", "NetworkPolicy")
"""What scenarios make in the namespace beside jobs and claims."""
ROOT_CA = "kube-root-ca.crt"
"""A ConfigMap that Kubernetes makes in each namespace, and pods mount."""


class KubeWorld(Watched):
    """Use `kube_world()`."""

    name = "kube"
    patience = 3.0  # a pod is started by a runtime here, and two cores carry three nodes

    def __init__(self, admin: Admin, mirror: Mirror, operator: Installed, cluster: Cluster | Given) -> None:
        super().__init__(mirror.store)
        self.admin = admin
        self.operator = operator
        self.kubectl = cluster.kubectl
        self.machine = cluster if isinstance(cluster, Cluster) else None
        self.has_gpus = True
        self.monitor = Monitor(self.store, self.alive)
        self._was_cut_off = False
        """The operator from the API server, for a while."""
        self._broken: BaseException | None = None

    def can(self, ability: Ability) -> bool:
        return ability in (ABILITIES if self.machine else ANYWHERE) and (ability != "Gpus" or self.has_gpus)

    def check(self) -> None:
        if self._broken is not None:
            raise AssertionError(f"the world itself has ended: {self._broken!r}") from self._broken
        self.monitor.check()

    def lean_on(self, task: "asyncio.Task[None]") -> None:
        """Whoever waits for something is told when this task fails, and not to wait for ever."""

        def ended(_: "asyncio.Task[None]") -> None:
            if not task.cancelled() and self._broken is None:
                self._broken = task.exception()
                self._look()

        task.add_done_callback(ended)

    async def ask(self, verb: Verb, kind: str, name: str = "", body: Json | None = None, subresource: str = "") -> Json:
        namespace = (body or {}).get("metadata", {}).get("namespace", NAMESPACE)
        return await self.admin.ask(verb, kind_of(kind), namespace, name, body=body, subresource=subresource)

    async def log(self, job: JobKey, task: Task) -> str:
        return await self.admin.log(job.namespace, self.wanted(job, task).name, TRAINER)

    async def pods_on(self, node: str) -> list[tuple[str, str]]:
        """Jobs' and the operator's: others have no part in a story, and on a cluster that was given are somebody's."""
        there = {"fieldSelector": f"spec.nodeName={node}"}
        lists = [await self.admin.ask("list", kind_of("Pod"), name, params=there) for name in DRAINED]
        found = [pod["metadata"] for one in lists for pod in one["items"]]
        return [(metadata["namespace"], metadata["name"]) for metadata in found]

    async def cordon(self, node: str, *, cordoned: bool = True) -> None:
        """A node that somebody else has cordoned stays as it is."""
        found = await self.admin.get(kind_of("Node"), None, node)
        is_to_change = not found["spec"].get("unschedulable") if cordoned else was_cordoned(found)
        if is_to_change:
            note = {"annotations": {CORDONED: "" if cordoned else None}}
            await self.change("Node", node, {"metadata": note, "spec": {"unschedulable": cordoned or None}})

    async def hurt_operator(self, what: KillOperator | UpgradeOperator) -> None:
        await self.operator.hurt(self.admin, what)

    async def hurt_api_server(self) -> None:
        assert self.machine is not None
        self._was_cut_off = True
        await asyncio.to_thread(self.machine.restart_api_server)

    async def hurt_pod(self, pod: PodView, what: HurtPod) -> None:
        match what:
            case KillTrainer():
                await self._signal(pod, inside.PROGRAM, signal.SIGKILL)
            case KillSupervisor():
                await self._signal(pod, inside.SUPERVISOR, signal.SIGKILL)
            case AskToStop():
                await self._signal(pod, inside.SUPERVISOR, signal.SIGTERM)
            case ExhaustMemory():
                await self._signal(pod, inside.PROGRAM, signal.SIGUSR1)
            case LoseNode():
                assert self.machine is not None
                assert pod.node is not None, f"{pod.name} is on no node"
                self.lost.add(pod.node)
                await asyncio.to_thread(self.machine.nodes[pod.node].kill)
            case _:
                raise NotImplementedError(what)

    async def _signal(self, pod: PodView, process: int, number: signal.Signals) -> None:
        if self.machine is None:
            enter = self.kubectl.command("exec", f"--namespace={NAMESPACE}", pod.name, f"--container={TRAINER}", "--")
            await inside.signal_by_exec(enter, process, number)
            return
        assert pod.node is not None, f"{pod.name} is on no node"
        entry = self.store.read("pods", NAMESPACE, pod.name)
        assert entry is not None
        statuses = entry.decode()["status"].get("containerStatuses") or ()
        container = next(one["containerID"] for one in statuses if one["name"] == TRAINER)
        pids = self.machine.nodes[pod.node].processes(pod.uid, container)
        assert pids, f"{pod.name} runs no process"
        await inside.signal_from_here(pids[0], process, number)

    async def clean(self) -> None:
        """The nodes as they were before any scenario, the namespace empty, and nobody's finalizer in the way."""
        nodes = await self.objects("Node")
        if self.machine is not None:
            silent = {node["metadata"]["name"] for node in nodes if not is_ready(node)}
            for name in sorted(self.lost | silent):
                await asyncio.to_thread(self.machine.nodes[name].restore)
        self.lost.clear()
        for node in nodes:
            if was_cordoned(node):
                await self.cordon(node["metadata"]["name"], cordoned=False)
        await self.change("Namespace", NAMESPACE, UNRESTRICTED)
        for kind in (*MADE, JOB.kind, CLAIMS.kind):
            for one in await self.objects(kind):
                if one["metadata"]["name"] != ROOT_CA:
                    await self._remove(kind, one["metadata"]["name"])
        for pod in await self.objects("Pod"):
            if pod["metadata"].get("finalizers"):
                with suppress(Refused):  # it went meanwhile
                    await self.change("Pod", pod["metadata"]["name"], NO_FINALIZERS)
        await self._wait(lambda: not self._left(), CLEAN_SECONDS / self.patience, lambda: f"{self._left()} did not go")
        for one in await self.objects("PersistentVolume"):
            if (one["spec"].get("claimRef") or {}).get("namespace") == NAMESPACE and self.machine:
                await self._remove("PersistentVolume", one["metadata"]["name"])

    async def settle(self) -> None:
        """Nothing is left of a job that is over or gone; garbage collection takes its time."""
        await self._wait(lambda: not self.monitor.left_behind(), 30, lambda: "\n".join(self.monitor.left_behind()))
        errors = await self.operator.errors(self.admin)
        # A process that can't renew its Lease ends, or starts again, and says so.
        assert not errors or self._was_cut_off, "\n".join(errors)

    def _left(self) -> list[str]:
        kinds = ("pods", storage(JOB), storage(CLAIMS))
        left = [f"{kind} {entry.name}" for kind in kinds for entry in self.store.entries(kind, NAMESPACE)]
        owned = [f"{kind} {e.name}" for kind in self.store.storages() for e in self.store.entries(kind) if e.owners]
        return left + owned

    async def _remove(self, kind: str, name: str) -> None:
        with suppress(Refused):  # gone already
            await self.remove(kind, name)


def is_ready(node: Json) -> bool:
    conditions = node["status"].get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def was_cordoned(node: Json) -> bool:
    """By scenarios."""
    return CORDONED in (node["metadata"].get("annotations") or {})


def have_gpus(nodes: list[Json]) -> bool:
    """Whether three nodes offer what the stories of room for gangs count on, and no other node any."""
    offered = [node["status"].get("allocatable", {}).get(GPU, "0") for node in nodes]
    return [number for number in offered if number != "0"] == [str(GPUS)] * 3


async def listed(mirror: Mirror, following: "asyncio.Task[None]") -> None:
    """Return when the mirror knows all that is there."""
    complete = asyncio.create_task(mirror.complete())
    done, _ = await asyncio.wait([complete, following], timeout=60, return_when=asyncio.FIRST_COMPLETED)
    complete.cancel()
    if following in done:
        following.result()
    assert complete in done, f"after 60 s not all kinds of {NAMESPACE} are listed"


@asynccontextmanager
async def kube_world(operator: Installed, cluster: Cluster | Given) -> AsyncIterator[KubeWorld]:
    """A clean namespace of the cluster that KUBECONFIG names; it is left clean, too. `home.take` has made it."""
    mirror = Mirror()
    async with Admin(Login()) as admin:
        tasks = [asyncio.create_task(mirror.follow(admin, NAMESPACE))]
        try:
            world = KubeWorld(admin, mirror, operator, cluster)
            world.lean_on(tasks[0])
            await listed(mirror, tasks[0])
            await world.clean()
            has_gpus = have_gpus(await world.objects("Node"))
            assert has_gpus or world.machine is None, f"not every node of this machine offers {GPUS} {GPU}"
            world.has_gpus = has_gpus
            await operator.errors(admin)
            if world.machine is not None:
                tasks.append(asyncio.create_task(provide(mirror.store, world.machine, world.create)))
                world.lean_on(tasks[-1])
            await world.create(CLAIM)
            try:
                yield world
                await world.settle()
            finally:
                await world.clean()
            world.check()
        finally:
            await admin.cut()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
