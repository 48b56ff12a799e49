"""A real cluster as a store of this process: what watches tell, for the eyes that see the embedded one, too."""

import asyncio

from dtj_operator.api import names
from dtj_operator.api.observed import JobKey
from dtj_operator.kube.client import CLAIM, JOB, POD, SECRET, Client, Json, Kind, kind_named
from dtj_operator.kube.reflector import Feed
from dtj_operator.local.store import Store

CHILDREN = tuple(kind_named(name) for name in ("Service", "NetworkPolicy", "PodDisruptionBudget"))
SEEN: tuple[Kind, ...] = (JOB, POD, CLAIM, SECRET, *CHILDREN)


class Mirror:
    """A sink and the ears of feeds. Versions in its store are its own: the order in which things were heard of."""

    def __init__(self) -> None:
        self.store = Store()
        self._versions: dict[str, int] = {}
        self._silent = set(SEEN)
        self._complete = asyncio.Event()

    async def follow(self, client: Client, namespace: str) -> None:
        """List and watch every kind in the namespace, until cancelled."""
        # A selector for fields makes a feed do without its selector for labels: all claims are to be seen.
        here = f"metadata.namespace={namespace}"
        feeds = [
            Feed(client, kind, self, self, namespace=namespace, fields=here if kind == CLAIM else "") for kind in SEEN
        ]
        async with asyncio.TaskGroup() as tasks:
            for feed in feeds:
                tasks.create_task(feed.follow())

    async def complete(self) -> None:
        """Wait until every kind was listed once."""
        await self._complete.wait()

    def mark(self, key: JobKey) -> None:
        """The store tells its listeners by itself."""

    def heard(self, kind: Kind) -> None:
        self._silent.discard(kind)
        if not self._silent:
            self._complete.set()

    def put(self, kind: Kind, manifest: Json) -> JobKey | None:
        metadata = manifest["metadata"]
        version = int(metadata["resourceVersion"])
        if self._versions.get(metadata["uid"], 0) >= version:
            return None
        self._versions[metadata["uid"]] = version
        known = self.store.read(storage(kind), metadata["namespace"], metadata["name"])
        if known is not None and known.uid != metadata["uid"]:
            self.store.remove(storage(kind), known)
        # Whoever told it goes on from its version, which the store would overwrite.
        self.store.write(storage(kind), {**manifest, "metadata": {**metadata}}, {})
        return _key(kind, metadata)

    def remove(self, kind: Kind, manifest: Json) -> JobKey | None:
        metadata = manifest["metadata"]
        known = self.store.read(storage(kind), metadata["namespace"], metadata["name"])
        if known is None or known.uid != metadata["uid"]:
            return None
        self.store.remove(storage(kind), known)
        return _key(kind, metadata)

    def retain(self, kind: Kind, namespace: str | None, uids: set[str], version: str) -> set[JobKey]:
        for entry in list(self.store.entries(storage(kind), namespace or "")):
            if entry.uid not in uids and self._versions[entry.uid] <= int(version):
                self.store.remove(storage(kind), entry)
        return set()


def storage(kind: Kind) -> str:
    """As the embedded API server names it: `pods`, `networkpolicies.networking.k8s.io`."""
    return f"{kind.plural}.{kind.group}".rstrip(".")


def _key(kind: Kind, metadata: Json) -> JobKey | None:
    name = metadata["name"] if kind == JOB else (metadata.get("labels") or {}).get(names.LABEL_JOB)
    return JobKey(metadata["namespace"], name) if name else None
