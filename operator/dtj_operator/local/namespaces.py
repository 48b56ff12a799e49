"""The namespace controller: a new namespace gets its service account, a terminating one is emptied and then goes."""

from collections.abc import Callable
from typing import Any

from dtj_operator.local.state import State
from dtj_operator.local.store import Change
from dtj_operator.local.verbs import deleting
from dtj_operator.local.verbs.options import DeleteOptions

Json = dict[str, Any]

_NAMESPACES = "namespaces"


class Namespaces:
    """Follows the store, like the garbage collector, and works when it is told to."""

    def __init__(self, state: State, notify: Callable[[], None]) -> None:
        self._state = state
        self._notify = notify
        self._terminating: set[str] = set()
        self._work: set[str] = set()
        state.store.listen(self._changed)

    @property
    def pending(self) -> bool:
        return bool(self._work)

    def run(self) -> None:
        """Empty the namespaces that are going, as far as their content lets go."""
        while self._work:
            self._drain(self._work.pop())

    def _changed(self, change: Change) -> None:
        name = change.entry.name
        if change.storage == _NAMESPACES:
            if change.type == "ADDED":
                self._create_account(name)
            elif change.type == "DELETED":
                self._terminating.discard(name)
            elif b'"deletionTimestamp"' in change.entry.raw:
                self._terminating.add(name)
                self._note(name)
        elif change.type == "DELETED" and change.entry.namespace in self._terminating:
            self._note(change.entry.namespace)

    def _note(self, namespace: str) -> None:
        self._work.add(namespace)
        self._notify()

    def _create_account(self, namespace: str) -> None:
        kind = self._state.kinds.of_storage("serviceaccounts")
        metadata = {
            "name": "default",
            "namespace": namespace,
            "uid": self._state.uid(),
            "creationTimestamp": self._state.timestamp(),
        }
        self._state.write(kind, {"metadata": metadata})

    def _drain(self, namespace: str) -> None:
        left = 0
        for storage in self._state.store.storages():
            kind = self._state.kinds.of_storage(storage)
            if not kind.namespaced:
                continue
            for entry in list(self._state.store.entries(storage, namespace)):
                if b'"deletionTimestamp"' not in entry.raw:
                    deleting.delete_entry(self._state, kind, entry, DeleteOptions(propagation="Background"))
                left += self._state.store.read(storage, namespace, entry.name) is not None
        found = self._state.store.read(_NAMESPACES, "", namespace)
        if left or found is None:
            return
        body = found.decode()
        body["spec"] = {key: value for key, value in body["spec"].items() if key != "finalizers"}
        deleting.finish(self._state, self._state.kinds.of_storage(_NAMESPACES), body)
