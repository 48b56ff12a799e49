"""The nodes of the cluster and what is taken of them, as slim records, while someone needs them. Nothing is placed."""

import asyncio

from msgspec import Struct

from dtj_operator.api.observed import JobKey, NodeView
from dtj_operator.gang.demand import Load, load
from dtj_operator.kube import views
from dtj_operator.kube.client import NODE, Json, Kind


class Held(Struct, frozen=True):
    version: int
    kind: str
    view: NodeView | Load


class Fleet:
    """Filled by temporary watches of nodes and bound pods. Before and after, it is unknown, and that isn't empty.

    `changed` is set by any news that a placement may depend on.
    """

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self._held: dict[str, Held] = {}
        self._complete: set[str] = set()

    def nodes(self) -> tuple[NodeView, ...] | None:
        """All nodes by name; None while they aren't known."""
        if NODE.kind not in self._complete:
            return None
        nodes = [held.view for held in self._held.values() if isinstance(held.view, NodeView)]
        return tuple(sorted(nodes, key=lambda node: node.name))

    def loads(self) -> tuple[Load, ...] | None:
        """What each bound pod takes; None while they or the nodes aren't known."""
        if len(self._complete) < len(("nodes", "bound pods")):
            return None
        return tuple(held.view for held in self._held.values() if isinstance(held.view, Load))

    def clear(self) -> None:
        """Nobody watches any more, so nothing is known."""
        self._held.clear()
        self._complete.clear()
        self.changed.set()

    def put(self, kind: Kind, manifest: Json) -> JobKey | None:
        metadata = manifest["metadata"]
        view = views.node(manifest) if kind == NODE else load(manifest)
        if view is None:
            return self.remove(kind, manifest)
        held = Held(int(metadata["resourceVersion"]), kind.kind, view)
        known = self._held.get(metadata["uid"])
        if known is None or known.version < held.version:
            self._held[metadata["uid"]] = held
            if known is None or known.view != view:
                self.changed.set()
        return None

    def remove(self, kind: Kind, manifest: Json) -> JobKey | None:
        if self._held.pop(manifest["metadata"]["uid"], None):
            self.changed.set()
        return None

    def retain(self, kind: Kind, namespace: str | None, uids: set[str], version: str) -> set[JobKey]:
        """Take a list for complete: what it no longer shows is gone."""
        lost = [
            uid
            for uid, held in self._held.items()
            if held.kind == kind.kind and uid not in uids and held.version <= int(version)
        ]
        for uid in lost:
            del self._held[uid]
        self._complete.add(kind.kind)
        self.changed.set()
        return set()
