"""The garbage collector: what is owned goes with its last owner, in the background, in the foreground or not at all.

As in a real cluster it works after the request that made it work; who drives it decides when (`Api`).
"""

from collections.abc import Callable
from typing import Any

from dtj_operator.local.failures import ApiFailure
from dtj_operator.local.state import State
from dtj_operator.local.store import Change, Entry
from dtj_operator.local.verbs import deleting
from dtj_operator.local.verbs.deleting import FOREGROUND, ORPHAN
from dtj_operator.local.verbs.options import DeleteOptions

Json = dict[str, Any]
Place = tuple[str, str, str]


class Garbage:
    """Follows the store; `work` is what it has noticed and not yet dealt with."""

    def __init__(self, state: State, notify: Callable[[], None]) -> None:
        self._state = state
        self._notify = notify
        self._places: dict[str, Place] = {}
        self._dependents: dict[str, set[Place]] = {}
        self._foreground: set[str] = set()
        self._work: dict[Place, None] = {}
        state.store.listen(self._changed)

    @property
    def pending(self) -> bool:
        return bool(self._work)

    def run(self) -> None:
        """Deal with everything noticed, what that leads to included."""
        while self._work:
            place = next(iter(self._work))
            del self._work[place]
            entry = self._state.store.read(*place)
            if entry is not None:
                self._examine(place, entry)

    def _changed(self, change: Change) -> None:
        place = (change.storage, change.entry.namespace, change.entry.name)
        entry = change.entry
        if change.previous is not None:
            for owner in change.previous.owners:
                self._dependents.get(owner, set()).discard(place)
        if change.type == "DELETED":
            self._places.pop(entry.uid, None)
            self._foreground.discard(entry.uid)
            self._note(*self._dependents.pop(entry.uid, set()))
            # An owner that is deleted in the foreground may have waited for this one.
            self._note(*(self._places[owner] for owner in entry.owners if owner in self._places))
            return
        self._places[entry.uid] = place
        for owner in entry.owners:
            self._dependents.setdefault(owner, set()).add(place)
        # Most changes are of objects whose owners are well: those cost no decoding.
        lost = any(owner not in self._places or owner in self._foreground for owner in entry.owners)
        if lost or b'"foregroundDeletion"' in entry.raw or b'"orphan"' in entry.raw:
            self._note(place)

    def _note(self, *places: Place) -> None:
        idle = not self._work
        self._work.update(dict.fromkeys(places))
        if idle and self._work:
            self._notify()

    def _examine(self, place: Place, entry: Entry) -> None:
        body = entry.decode()
        metadata = body["metadata"]
        finalizers = metadata.get("finalizers") or []
        if metadata.get("deletionTimestamp"):
            if ORPHAN in finalizers:
                self._orphan(place, entry, body)
            elif FOREGROUND in finalizers:
                self._delete_dependents_first(place, entry, body)
            return
        owners = metadata.get("ownerReferences") or []
        if not owners:
            return
        solid = [owner for owner in owners if owner["uid"] in self._places]
        if not solid:
            self._delete(place, DeleteOptions(uid=entry.uid, propagation="Background"))
        elif len(solid) < len(owners):
            metadata["ownerReferences"] = solid
            self._write(place, body)
        elif all(owner["uid"] in self._foreground for owner in owners):
            self._delete(place, DeleteOptions(uid=entry.uid, propagation="Foreground"))

    def _delete_dependents_first(self, place: Place, entry: Entry, body: Json) -> None:
        self._foreground.add(entry.uid)
        blocking = False
        for dependent in sorted(self._dependents.get(entry.uid, set())):
            found = self._state.store.read(*dependent)
            if found is None:
                continue
            references = found.decode()["metadata"].get("ownerReferences") or []
            blocking |= any(one["uid"] == entry.uid and one.get("blockOwnerDeletion") for one in references)
            self._note(dependent)
        if not blocking:
            self._drop_finalizer(place, body, FOREGROUND)

    def _orphan(self, place: Place, entry: Entry, body: Json) -> None:
        for dependent in sorted(self._dependents.get(entry.uid, set())):
            found = self._state.store.read(*dependent)
            if found is None:
                continue
            orphan = found.decode()
            rest = [one for one in orphan["metadata"]["ownerReferences"] if one["uid"] != entry.uid]
            if rest:
                orphan["metadata"]["ownerReferences"] = rest
            else:
                del orphan["metadata"]["ownerReferences"]
            self._write(dependent, orphan)
        self._drop_finalizer(place, body, ORPHAN)

    def _drop_finalizer(self, place: Place, body: Json, finalizer: str) -> None:
        rest = [one for one in body["metadata"]["finalizers"] if one != finalizer]
        if rest:
            body["metadata"]["finalizers"] = rest
        else:
            del body["metadata"]["finalizers"]
        self._write(place, body)
        deleting.finish(self._state, self._state.kinds.of_storage(place[0]), body)

    def _write(self, place: Place, body: Json) -> None:
        self._state.write(self._state.kinds.of_storage(place[0]), body)

    def _delete(self, place: Place, options: DeleteOptions) -> None:
        entry = self._state.store.read(*place)
        if entry is None:
            return
        try:
            deleting.delete_entry(self._state, self._state.kinds.of_storage(place[0]), entry, options)
        except ApiFailure:
            # What may not be deleted stays, as it does in a real cluster.
            return
