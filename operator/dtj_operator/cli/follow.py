"""One job of the embedded cluster as it changes: every status in order, and every line that its programs print."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import suppress
from typing import Any

from dtj_operator.api import names
from dtj_operator.api.observed import JobKey, PodView
from dtj_operator.cli.pods import trainer as trainer_of
from dtj_operator.kube import views
from dtj_operator.local.cluster import Cluster
from dtj_operator.local.failures import ApiFailure
from dtj_operator.local.logs import LogQuery
from dtj_operator.local.objects import Objects

Json = dict[str, Any]

JOBS = f"{names.PLURAL}.{names.GROUP}"
_FAREWELL_SECONDS = 5.0
"""How long the last lines of programs that have ended are waited for."""


class Follower:
    """Reads what the cluster's own store tells; nothing is asked for twice, nothing missed."""

    def __init__(self, cluster: Cluster, key: JobKey, on_line: Callable[[str, str], None]) -> None:
        """`on_line` gets each line as it is written, a trainer's with its task, a sidecar's with `worker-0/name`."""
        self._kubelet = cluster.kubelet
        self._key = key
        self._objects = Objects(cluster.api, "dtj")
        self._on_line = on_line
        self._readers: dict[str, asyncio.Task[None]] = {}

    async def jobs(self) -> AsyncGenerator[Json | None, None]:
        """The job at each change of it or of its pods; None once it is deleted."""
        with (
            self._objects.watch(JOBS, lambda change: change.entry.name == self._key.name) as jobs,
            self._objects.watch(
                "pods", lambda change: change.entry.labels.get(names.LABEL_JOB) == self._key.name
            ) as pods,
        ):
            yield self._job()
            while True:
                arrivals = [asyncio.ensure_future(jobs.arrival()), asyncio.ensure_future(pods.arrival())]
                try:
                    await asyncio.wait(arrivals, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for arrival in arrivals:
                        arrival.cancel()
                self._read_logs(change.entry.decode() for change in pods.take())
                changes = [change for change in jobs.take() if change.entry.namespace == self._key.namespace]
                for change in changes:
                    yield None if change.type == "DELETED" else change.entry.decode()
                if not changes:
                    yield self._job()

    def _job(self) -> Json | None:
        return self._objects.find(JOBS, self._key.namespace, self._key.name)

    def pods(self) -> list[PodView]:
        """The newest pod of each task."""
        newest: dict[str, PodView] = {}
        for body in self._objects.all("pods", self._key.namespace):
            view = views.pod(body)
            if view is not None and (body["metadata"].get("labels") or {}).get(names.LABEL_JOB) == self._key.name:
                known = newest.get(str(view.task))
                if known is None or view.round > known.round:
                    newest[str(view.task)] = view
        return [newest[task] for task in sorted(newest)]

    async def finish(self) -> None:
        """Wait until all lines of the programs that have ended are told."""
        if self._readers:
            await asyncio.wait(self._readers.values(), timeout=_FAREWELL_SECONDS)

    async def close(self) -> None:
        for reader in self._readers.values():
            reader.cancel()
        await asyncio.gather(*self._readers.values(), return_exceptions=True)

    def _read_logs(self, pods: Iterable[Json]) -> None:
        """Begin to read the log of each container that has started."""
        for pod in pods:
            metadata = pod["metadata"]
            view = views.pod(pod)
            if view is None or metadata["namespace"] != self._key.namespace:
                continue
            trainer = trainer_of(pod) or {}
            for container in (pod.get("status") or {}).get("containerStatuses") or ():
                at = f"{view.uid}/{container['name']}"
                if at not in self._readers and set(container.get("state") or {}) & {"running", "terminated"}:
                    is_trainer = container["name"] == trainer.get("name")
                    shown = str(view.task) if is_trainer else f"{view.task}/{container['name']}"
                    query = LogQuery(
                        namespace=self._key.namespace, pod=view.name, container=container["name"], follow=True
                    )
                    self._readers[at] = asyncio.create_task(self._read(query, shown), name=f"log of {view.name}")

    async def _read(self, query: LogQuery, shown: str) -> None:
        rest = b""
        # Refused where it can't be read: the container never ran, and the pod's status says why.
        with suppress(ApiFailure):
            async for chunk in self._kubelet.logs(query):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._on_line(shown, line.decode(errors="replace"))
        if rest:
            self._on_line(shown, rest.decode(errors="replace"))
