"""Lists and watches of our own: regular full lists, which heal what watches missed, and temporary watches of the fleet.

The permanent watches of jobs and pods are kopf's (`manager/handlers.py`); without kopf, `follow` does their work.
"""

import asyncio
import logging
from contextlib import aclosing
from http import HTTPStatus
from typing import Protocol

from dtj_operator.api import names
from dtj_operator.api.observed import JobKey
from dtj_operator.kube.client import JOB, NODE, POD, ApiError, Client, Json, Kind, WatchEvent, kind_named
from dtj_operator.kube.fleet import Fleet
from dtj_operator.kube.store import Store

log = logging.getLogger(__name__)

CHILDREN = tuple(
    kind_named(name) for name in ("Service", "NetworkPolicy", "PersistentVolumeClaim", "PodDisruptionBudget")
)
"""Kinds of children that may be listed. Not among them: Secrets, which the operator has no right to read."""
LISTED = (JOB, POD, *CHILDREN)

FIRST_RELIST_SECONDS = 15.0
"""kopf lists on its own after us, and what was deleted in between it never tells."""
RELIST_SECONDS = 300.0
FLEET_SECONDS = 600.0
"""How long nodes and bound pods stay watched after the last gang needed them."""
BOUND = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0


class Sink(Protocol):
    """Where objects go. Each call says which jobs it has changed something for."""

    def put(self, kind: Kind, manifest: Json) -> JobKey | None: ...

    def remove(self, kind: Kind, manifest: Json) -> JobKey | None: ...

    def retain(self, kind: Kind, namespace: str | None, uids: set[str], version: str) -> set[JobKey]: ...


class Ears(Protocol):
    """Who is told what the lists and watches found."""

    def mark(self, key: JobKey) -> None:
        """Something has changed for this job."""

    def heard(self, kind: Kind) -> None:
        """A list or watch of this kind is alive."""


class Feed:
    """One kind in one namespace (None: in all) as it goes into a sink."""

    def __init__(
        self, client: Client, kind: Kind, sink: Sink, ears: Ears, *, namespace: str | None = None, fields: str = ""
    ) -> None:
        self._client = client
        self._kind = kind
        self._sink = sink
        self._ears = ears
        self._namespace = namespace
        self._fields = fields
        self._labels = "" if kind in (JOB, NODE) or fields else names.LABEL_JOB

    async def relist(self) -> str:
        """Take in all objects, and drop those that are gone. The version that the sink is up to."""
        uids: set[str] = set()
        version = ""
        pages = self._client.pages(self._kind, self._namespace, labels=self._labels, fields=self._fields)
        async with aclosing(pages):
            async for page in pages:
                version = page.resource_version
                for item in page.items:
                    uids.add(item["metadata"]["uid"])
                    self._put(item)
        for key in self._sink.retain(self._kind, self._namespace, uids, version):
            self._ears.mark(key)
        self._ears.heard(self._kind)
        return version

    async def follow(self) -> None:
        """List, then watch, until cancelled: through closed streams, lost connections and forgotten versions."""
        version, pause = "", FIRST_PAUSE_SECONDS
        while True:
            try:
                version = version or await self.relist()
                events = self._client.watch(
                    self._kind, self._namespace, version, labels=self._labels, fields=self._fields
                )
                async with aclosing(events):
                    async for event in events:
                        self._take(event)
                        version, pause = event.resource_version, FIRST_PAUSE_SECONDS
            except ApiError as error:
                if error.code == HTTPStatus.GONE:
                    version = ""
                else:
                    log.warning("the watch is taken up again in %.0f s: %s", pause, error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def _take(self, event: WatchEvent) -> None:
        self._ears.heard(self._kind)
        match event.type:
            case "ADDED" | "MODIFIED":
                self._put(event.object)
            case "DELETED":
                self._tell(self._sink.remove(self._kind, event.object))
            case "BOOKMARK":
                pass

    def _put(self, manifest: Json) -> None:
        try:
            key = self._sink.put(self._kind, manifest)
        except Exception:
            # Anybody who may make a pod may give it our labels and what no type foresees; that is no other job's fault.
            log.exception("a %s is passed over: %s", self._kind.kind, manifest.get("metadata", {}).get("name"))
            return
        self._tell(key)

    def _tell(self, key: JobKey | None) -> None:
        if key is not None:
            self._ears.mark(key)


class Reflector:
    """All lists and watches of the process but kopf's. `namespaces` holds None alone for the whole cluster."""

    def __init__(
        self, client: Client, store: Store, fleet: Fleet, ears: Ears, *, namespaces: tuple[str | None, ...] = (None,)
    ) -> None:
        self._fleet = fleet
        self._fleet_wanted = asyncio.Event()
        self._fleet_wanted_at = 0.0
        self._feeds = {
            kind: [Feed(client, kind, store, ears, namespace=namespace) for namespace in namespaces] for kind in LISTED
        }
        self._fleet_feeds = [Feed(client, NODE, fleet, ears), Feed(client, POD, fleet, ears, fields=BOUND)]

    async def relist(self) -> None:
        """Make the store complete; nothing may be decided before this was done once. ApiError when it can't be."""
        await asyncio.gather(*(feed.relist() for feeds in self._feeds.values() for feed in feeds))

    async def follow(self, kind: Kind) -> None:
        """Do what kopf does for a kind, until cancelled: for simulations, which have no kopf."""
        async with asyncio.TaskGroup() as tasks:
            for feed in self._feeds[kind]:
                tasks.create_task(feed.follow())

    def want_fleet(self) -> None:
        """Have nodes and bound pods watched from now on for a while. Only with the right to do so."""
        self._fleet_wanted_at = asyncio.get_running_loop().time()
        self._fleet_wanted.set()

    async def run(self) -> None:
        """List at regular intervals, and watch the fleet while it is wanted; until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._relist_regularly())
            tasks.create_task(self._watch_fleet())

    async def _relist_regularly(self) -> None:
        await asyncio.sleep(FIRST_RELIST_SECONDS)
        while True:
            try:
                await self.relist()
            except ApiError as error:
                log.warning("the full list is tried again in %.0f s: %s", LONGEST_PAUSE_SECONDS, error)
                await asyncio.sleep(LONGEST_PAUSE_SECONDS)
            else:
                await asyncio.sleep(RELIST_SECONDS)

    async def _watch_fleet(self) -> None:
        while True:
            await self._fleet_wanted.wait()
            async with asyncio.TaskGroup() as tasks:
                watches = [tasks.create_task(feed.follow()) for feed in self._fleet_feeds]
                await self._fleet_unwanted()
                # Before anything is waited for, or a wish that comes meanwhile would be lost.
                self._fleet_wanted.clear()
                for watch in watches:
                    watch.cancel()
            self._fleet.clear()

    async def _fleet_unwanted(self) -> None:
        """Return when nobody has wanted the fleet for a while."""
        loop = asyncio.get_running_loop()
        left = FLEET_SECONDS
        while left > 0:
            await asyncio.sleep(left)
            left = self._fleet_wanted_at + FLEET_SECONDS - loop.time()
