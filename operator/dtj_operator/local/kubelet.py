"""The kubelet of all nodes of the embedded cluster: runs what is bound to them as processes, and reports it."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from dtj_operator.local.failures import bad_request
from dtj_operator.local.logs import LogQuery
from dtj_operator.local.node import logs, machine
from dtj_operator.local.node.container import Container, Machine
from dtj_operator.local.node.podrun import USUAL, Pace, PodRun
from dtj_operator.local.node.status import Waiting
from dtj_operator.local.podenv import Place

Json = dict[str, Any]

log = logging.getLogger(__name__)

LOOK_AGAIN_SECONDS = 2.0
"""So long what is missing outside the API, as a folder of this machine, is waited for before the next look."""


class Known(msgspec.Struct, frozen=True):
    """A pod that is or was run here, and what runs it."""

    run: PodRun
    task: asyncio.Task[None]


class Kubelet:
    """Follows the pods that are bound to its nodes; serves their logs to the API server."""

    def __init__(self, settings: Machine, nodes: Sequence[str], pace: Pace = USUAL) -> None:
        self._machine = settings
        self._objects = settings.objects
        self._nodes = frozenset(nodes)
        self._pace = pace
        self._pods: dict[str, Known] = {}
        self._lost: set[str] = set()
        self._pulse = asyncio.Event()
        sources = ("configmaps", "secrets", "persistentvolumeclaims", "persistentvolumes")
        self._objects.listen(sources, self._beat)

    async def run(self) -> None:
        """Until cancelled; then every process is killed and gone before it returns."""
        try:
            with self._objects.watch("pods") as watch:
                for pod in self._objects.all("pods"):
                    self._see(pod)
                async for change in watch.changes():
                    if change.type == "DELETED":
                        self._see_gone(change.entry.uid)
                    elif change.entry.fields["spec.nodeName"] in self._nodes:
                        self._see(change.entry.decode())
        finally:
            for known in self._pods.values():
                known.run.stop(0)
            await asyncio.gather(*(known.task for known in self._pods.values()), return_exceptions=True)

    async def logs(self, query: LogQuery) -> AsyncGenerator[bytes, None]:
        """What `kubectl logs` shows; ApiFailure in the kubelet's words where there is nothing to show."""
        pod = self._objects.find("pods", query.namespace, query.pod)
        if pod is None or not pod["spec"].get("nodeName"):
            return
        container = self._container(pod, query.container)
        told = f'container "{query.container}" in pod "{query.pod}"'
        if container is None:
            raise bad_request(f"{told} is waiting to start: ContainerCreating")
        record = container.record
        number = record.restarts - 1 if query.previous else record.restarts
        if number < 0:
            raise bad_request(f"previous terminated {told} not found")
        if number == 0 and isinstance(record.state, Waiting) and record.last is None:
            raise bad_request(f"{told} is waiting to start: {record.state.reason}")
        file = container.log(number)
        if file.exists():
            async for chunk in logs.read(file, query, lambda: record.restarts != number or not container.runs):
                yield chunk

    def processes(self, namespace: str, pod: str, container: str = "") -> list[int]:
        """The container's processes, the command's own first, then children before their children.

        Without a name: of the pod's first container. Empty where it doesn't run.
        """
        found = self._objects.find("pods", namespace, pod)
        running = found and self._container(found, container or found["spec"]["containers"][0]["name"])
        if not running or running.process is None or not running.runs:
            return []
        parents = dict(_parents())
        tree = [running.process.pid]
        for parent in tree:
            tree += sorted(pid for pid, of in parents.items() if of == parent)
        return tree

    def lose(self, node: str) -> None:
        """The node answers no more: its processes run on, and nobody hears of them or can stop them."""
        self._lost.add(node)
        for known in self._pods.values():
            if known.run.node == node:
                known.run.is_heard = False
        body = self._objects.find("nodes", "", node)
        if body is not None:
            self._objects.update("nodes", machine.lost(body, self._objects.timestamp()), "status")

    def _see(self, pod: Json) -> None:
        metadata, node = pod["metadata"], pod["spec"].get("nodeName")
        if node not in self._nodes or node in self._lost:
            return
        known = self._pods.get(metadata["uid"])
        if known is None:
            if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
                return
            known = self._start(pod, node)
        if metadata.get("deletionTimestamp"):
            known.run.stop(metadata.get("deletionGracePeriodSeconds") or 0)
            if known.task.done():
                # It had ended, and was deleted before its end was written down.
                self._objects.delete("pods", metadata)

    def _see_gone(self, uid: str) -> None:
        known = self._pods.get(uid)
        if known is None or not known.run.is_heard:
            return
        # Deleted by force, or after its end.
        known.run.stop(0)
        if known.task.done():
            del self._pods[uid]
            known.run.forget()

    def _start(self, pod: Json, node: str) -> Known:
        body = self._objects.find("nodes", "", node) or {}
        place = Place(node, (body.get("status") or {}).get("allocatable") or {})
        run = PodRun(self._machine, pod, place, pace=self._pace, changed=self._change)
        name = f"pod {pod['metadata']['namespace']}/{pod['metadata']['name']}"
        known = self._pods[pod["metadata"]["uid"]] = Known(run, asyncio.create_task(self._live(run, pod), name=name))
        return known

    async def _live(self, run: PodRun, pod: Json) -> None:
        metadata = pod["metadata"]
        try:
            await run.run()
        except Exception:
            log.exception("the kubelet can't run pod %s/%s", metadata["namespace"], metadata["name"])
        self._machine.addresses.release(metadata["uid"])
        if run.was_asked and run.is_heard:
            self._objects.delete("pods", metadata)
        if metadata["uid"] not in self._objects.uids("pods", metadata["namespace"]):
            self._pods.pop(metadata["uid"], None)
            run.forget()

    def _container(self, pod: Json, name: str) -> Container | None:
        known = self._pods.get(pod["metadata"]["uid"])
        return next((one for one in known.run.containers if one.record.name == name), None) if known else None

    def _beat(self) -> None:
        self._pulse.set()
        self._pulse = asyncio.Event()

    async def _change(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_AGAIN_SECONDS):
                await self._pulse.wait()


def _parents() -> Iterator[tuple[int, int]]:
    """Every process with its parent; none where there is no /proc."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):
            # The name in parentheses may hold anything, spaces and parentheses too.
            yield int(entry.name), int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1])
