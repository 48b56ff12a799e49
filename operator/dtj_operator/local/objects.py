"""The API as the embedded cluster's own controllers use it: in process, with nothing in between that may fail."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from dtj_operator.local.api import Api
from dtj_operator.local.failures import ApiFailure
from dtj_operator.local.kinds import Kind
from dtj_operator.local.state import Request
from dtj_operator.local.store import Change, Watch

Json = dict[str, Any]


class Objects:
    """Kinds are named by where they are stored: `pods`, `leases.coordination.k8s.io`. Objects carry no type header."""

    def __init__(self, api: Api, agent: str) -> None:
        self._api = api
        self._agent = agent
        self.timestamp = api.state.timestamp

    def find(self, storage: str, namespace: str, name: str) -> Json | None:
        entry = self._api.state.store.read(storage, namespace, name)
        return entry.decode() if entry else None

    def all(self, storage: str, namespace: str = "", **fields: str) -> Iterator[Json]:
        """As they are now, with these values of fields by which the kind can be selected (`spec.nodeName`)."""
        found = list(self._api.state.store.entries(storage, namespace))
        return (entry.decode() for entry in found if all(entry.fields[at] == value for at, value in fields.items()))

    def uids(self, storage: str, namespace: str = "") -> set[str]:
        return {entry.uid for entry in self._api.state.store.entries(storage, namespace)}

    def create(self, storage: str, body: Json) -> Json:
        """ApiFailure where it is refused."""
        return self._do(storage, "create", body["metadata"], body)

    def update(self, storage: str, body: Json, subresource: str = "") -> Json:
        """Put this in the place of the object as it was found; ApiFailure where it has changed since or is gone."""
        return self._do(storage, "update", body["metadata"], body, subresource=subresource)

    def patch(self, storage: str, metadata: Json, changes: Json) -> Json:
        """A merge patch, for this incarnation alone. ApiFailure where it is gone."""
        about = {"uid": metadata["uid"]}
        body = {**changes, "metadata": {**changes.get("metadata", {}), **about}}
        return self._do(storage, "patch", metadata, body, content_type="application/merge-patch+json")

    def bind(self, metadata: Json, node: str) -> None:
        """Put a pod on a node; ApiFailure where it may not be."""
        body = {"metadata": {"name": metadata["name"]}, "target": {"kind": "Node", "name": node}}
        self._do("pods", "create", metadata, body, subresource="binding")

    def delete(self, storage: str, metadata: Json, grace_seconds: int = 0) -> None:
        """This incarnation; nothing happens where it is gone."""
        body = {"gracePeriodSeconds": grace_seconds, "preconditions": {"uid": metadata["uid"]}}
        try:
            self._do(storage, "delete", metadata, body)
        except ApiFailure as failure:
            if failure.code not in (404, 409):
                raise

    @contextmanager
    def watch(self, storage: str, wanted: Callable[[Change], bool] = lambda change: True) -> Iterator[Watch]:
        """Every change from now on."""
        store = self._api.state.store
        watch = store.watch(storage, store.revision, wanted)
        try:
            yield watch
        finally:
            watch.close()

    def listen(self, storages: Collection[str], heard: Callable[[], None]) -> None:
        """Have every change of these kinds told at once, in the writer's own call."""

        def hear(change: Change) -> None:
            if change.storage in storages:
                heard()

        self._api.state.store.listen(hear)

    def _kind(self, storage: str) -> Kind:
        return self._api.state.kinds.of_storage(storage)

    def _do(self, storage: str, verb: str, metadata: Json, body: Json, **more: Any) -> Json:
        kind = self._kind(storage)
        if kind.custom and verb in ("create", "update"):
            body = {**kind.header, **body}
        reply = self._api.request(
            Request(
                verb=verb,
                kind=kind,
                namespace=metadata.get("namespace", ""),
                name=metadata.get("name", ""),
                body=body,
                agent=self._agent,
                **more,
            )
        )
        changed: Json = reply.body
        return changed
