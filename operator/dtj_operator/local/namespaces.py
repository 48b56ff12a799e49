"""The namespace controller: a new namespace gets its service account, a terminating one is emptied and then goes."""

from collections import Counter
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
        left: Counter[str] = Counter()
        finalizers: Counter[str] = Counter()
        for storage in self._state.store.storages():
            kind = self._state.kinds.of_storage(storage)
            if not kind.namespaced:
                continue
            for entry in list(self._state.store.entries(storage, namespace)):
                if b'"deletionTimestamp"' not in entry.raw:
                    deleting.delete_entry(self._state, kind, entry, DeleteOptions(propagation="Background"))
                stays = self._state.store.read(storage, namespace, entry.name)
                if stays is not None:
                    left[storage] += 1
                    finalizers.update(stays.decode()["metadata"].get("finalizers") or ())
        found = self._state.store.read(_NAMESPACES, "", namespace)
        if found is None:
            return
        body = found.decode()
        if left:
            self._tell(body, left, finalizers)
            return
        body["spec"] = {key: value for key, value in body["spec"].items() if key != "finalizers"}
        deleting.finish(self._state, self._state.kinds.of_storage(_NAMESPACES), body)

    def _tell(self, body: Json, left: Counter[str], finalizers: Counter[str]) -> None:
        """Write what the namespace waits for into its status, in the words of kube-controller-manager."""
        remaining = ", ".join(
            f"{storage if '.' in storage else f'{storage}.'} has {count} resource instances"
            for storage, count in sorted(left.items())
        )
        held = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
        told = (
            ("DeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered", False),
            ("DeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed",
             False),
            ("DeletionContentFailure", "ContentDeleted",
             "All content successfully deleted, may be waiting on finalization", False),
            ("ContentRemaining", "SomeResourcesRemain", f"Some resources are remaining: {remaining}", True),
            ("FinalizersRemaining", "SomeFinalizersRemain",
             f"Some content in the namespace has finalizers remaining: {held}", True),
        )[: 5 if held else 4]  # fmt: skip
        before = {one["type"]: one for one in body["status"].get("conditions") or ()}
        conditions = []
        for name, reason, message, holds in told:
            condition = {"type": f"Namespace{name}", "status": str(holds), "reason": reason, "message": message}
            since = before.get(condition["type"], {}).get("lastTransitionTime") or self._state.timestamp()
            conditions.append({**condition, "lastTransitionTime": since})
        if conditions != body["status"].get("conditions"):
            self._state.write(
                self._state.kinds.of_storage(_NAMESPACES),
                {**body, "status": {**body["status"], "conditions": conditions}},
            )
