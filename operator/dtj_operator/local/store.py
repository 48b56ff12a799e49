"""Objects in memory under one resourceVersion counter, with the history that watches and continued lists need.

No rule of any kind lives here.

Objects are kept as JSON without their type header (`apiVersion`, `kind`): one resource is served in several versions,
and lists of built-in kinds carry no headers. What is stored is never changed afterwards, so readers share it.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Literal

import msgspec

Json = dict[str, Any]
ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]

# A kube-apiserver keeps five minutes of history; here it is a number of changes, so that tests can make it small.
HISTORY = 8192
# A watcher that far behind is cut off, and its client lists again.
BACKLOG = 100_000


class Entry(msgspec.Struct, frozen=True):
    """One stored version of an object, with the few values that are read without decoding it."""

    namespace: str
    name: str
    uid: str
    revision: int
    raw: bytes
    labels: dict[str, str]
    fields: dict[str, str]
    owners: tuple[str, ...]

    def decode(self) -> Json:
        decoded: Json = msgspec.json.decode(self.raw)
        return decoded


class Change(msgspec.Struct, frozen=True):
    """What happened to one object.

    `entry` is its state afterwards, for a deletion the last one under the deletion's revision.
    """

    type: ChangeType
    storage: str
    entry: Entry
    previous: Entry | None


class Expired(Exception):
    """The history no longer reaches back to the revision asked for."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {asked} ({oldest})")


class Watch:
    """Changes of one storage in order, as one reader takes them. Close it, or its backlog grows."""

    def __init__(self, wanted: Callable[[Change], bool], limit: int, on_close: Callable[["Watch"], None]) -> None:
        self._wanted = wanted
        self._limit = limit
        self._on_close = on_close
        self._backlog: deque[Change] = deque()
        self._arrived = asyncio.Event()
        self.fell_behind = False

    def offer(self, change: Change) -> None:
        if self.fell_behind or not self._wanted(change):
            return
        if len(self._backlog) >= self._limit:
            self.fell_behind = True
            self._backlog.clear()
        else:
            self._backlog.append(change)
        self._arrived.set()

    def take(self) -> list[Change]:
        """All changes that have come since the last call."""
        taken = list(self._backlog)
        self._backlog.clear()
        self._arrived.clear()
        return taken

    async def arrival(self) -> None:
        await self._arrived.wait()

    async def changes(self) -> AsyncIterator[Change]:
        """Every change, one by one, until the reader stops."""
        while True:
            await self.arrival()
            for change in self.take():
                yield change

    def close(self) -> None:
        self._on_close(self)


class Store:
    """The counter, the objects by storage (`pods`, `leases.coordination.k8s.io`), the newest changes, the watches."""

    def __init__(self, history: int = HISTORY, backlog: int = BACKLOG) -> None:
        self.revision = 1
        self._backlog = backlog
        self._objects: dict[str, dict[str, dict[str, Entry]]] = {}
        self._history: deque[Change] = deque(maxlen=history)
        self._forgotten = 1
        self._watches: dict[str, list[Watch]] = {}
        self._listeners: list[Callable[[Change], None]] = []

    def read(self, storage: str, namespace: str, name: str) -> Entry | None:
        return self._objects.get(storage, {}).get(namespace, {}).get(name)

    def entries(self, storage: str, namespace: str = "") -> Iterator[Entry]:
        """The live objects in the order of their keys; of all namespaces when none is named."""
        spaces = self._objects.get(storage, {})
        for space in [namespace] if namespace else sorted(spaces):
            objects = spaces.get(space, {})
            for name in sorted(objects):
                yield objects[name]

    def entries_at(self, storage: str, namespace: str, revision: int) -> list[Entry]:
        """The objects as they were at an earlier revision: today's, with the changes since undone. Raises Expired."""
        self._reaches(revision)
        found = {(one.namespace, one.name): one for one in self.entries(storage, namespace)}
        for change in reversed(self._history):
            if change.entry.revision <= revision:
                break
            if change.storage != storage or (namespace and change.entry.namespace != namespace):
                continue
            key = (change.entry.namespace, change.entry.name)
            if change.previous is None:
                found.pop(key, None)
            else:
                found[key] = change.previous
        return [found[key] for key in sorted(found)]

    def count(self, storage: str, namespace: str) -> int:
        return len(self._objects.get(storage, {}).get(namespace, {}))

    def storages(self) -> list[str]:
        """Those that hold anything."""
        return sorted(storage for storage, spaces in self._objects.items() if spaces)

    def write(self, storage: str, body: Json, fields: dict[str, str]) -> Entry:
        """Store a new version of the object under the next revision, which is written into its metadata."""
        metadata = body["metadata"]
        previous = self.read(storage, metadata.get("namespace", ""), metadata["name"])
        entry = self._entry(body, fields)
        self._objects.setdefault(storage, {}).setdefault(entry.namespace, {})[entry.name] = entry
        self._publish(Change("ADDED" if previous is None else "MODIFIED", storage, entry, previous))
        return entry

    def remove(self, storage: str, entry: Entry) -> Entry:
        """Take the object away; its last state is told to watchers under the deletion's own revision, and returned."""
        last = self._entry(entry.decode(), entry.fields)
        space = self._objects[storage][entry.namespace]
        del space[entry.name]
        if not space:
            del self._objects[storage][entry.namespace]
        self._publish(Change("DELETED", storage, last, entry))
        return last

    def watch(self, storage: str, since: int, wanted: Callable[[Change], bool]) -> Watch:
        """The wanted changes after a revision, those of the past included. Raises Expired."""
        self._reaches(since)
        watch = Watch(wanted, self._backlog, self._forget_watch(storage))
        for change in self._history:
            if change.entry.revision > since and change.storage == storage:
                watch.offer(change)
        self._watches.setdefault(storage, []).append(watch)
        return watch

    def listen(self, listener: Callable[[Change], None]) -> None:
        """Have every change told at once, in the writer's own call."""
        self._listeners.append(listener)

    def _entry(self, body: Json, fields: dict[str, str]) -> Entry:
        self.revision += 1
        metadata = body["metadata"]
        metadata["resourceVersion"] = str(self.revision)
        return Entry(
            namespace=metadata.get("namespace", ""),
            name=metadata["name"],
            uid=metadata.get("uid", ""),
            revision=self.revision,
            raw=msgspec.json.encode(body),
            labels=dict(metadata.get("labels") or {}),
            fields=fields,
            owners=tuple(owner["uid"] for owner in metadata.get("ownerReferences") or ()),
        )

    def _publish(self, change: Change) -> None:
        if len(self._history) == self._history.maxlen:
            self._forgotten = self._history[0].entry.revision
        self._history.append(change)
        for watch in self._watches.get(change.storage, ()):
            watch.offer(change)
        for listener in self._listeners:
            listener(change)

    def _reaches(self, revision: int) -> None:
        if revision < self._forgotten:
            raise Expired(revision, self._forgotten)

    def _forget_watch(self, storage: str) -> Callable[[Watch], None]:
        def forget(watch: Watch) -> None:
            watches = self._watches.get(storage, [])
            if watch in watches:
                watches.remove(watch)

        return forget
