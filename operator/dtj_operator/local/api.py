"""The whole API of the embedded cluster as one plain object: HTTP (`apiserver.py`) and simulations lie on top."""

import datetime
import uuid
from collections.abc import Callable
from typing import Any

from dtj_operator.local.budgets import Budgets
from dtj_operator.local.conversion import served
from dtj_operator.local.custom.definitions import Definitions
from dtj_operator.local.failures import method_not_allowed, no_such_path
from dtj_operator.local.garbage import Garbage
from dtj_operator.local.kinds import Kind
from dtj_operator.local.namespaces import Namespaces
from dtj_operator.local.state import Reply, Request, State
from dtj_operator.local.store import BACKLOG, HISTORY
from dtj_operator.local.verbs import deleting, reading, subresources, writing
from dtj_operator.local.verbs.reading import Follower

Json = dict[str, Any]

_WRITES: dict[str, Callable[[State, Request], Reply]] = {
    "create": writing.create,
    "update": writing.update,
    "patch": writing.patch,
    "delete": deleting.delete,
    "deletecollection": deleting.delete_collection,
}
_SUBRESOURCES: dict[str, Callable[[State, Request], Reply]] = {
    "binding": subresources.bind,
    "eviction": subresources.evict,
    "finalize": subresources.finalize,
}


class Api:
    """Serves requests one at a time, each wholly or not at all. Refusals are raised as ApiFailure.

    `now` and `uid` are what makes two runs differ; a simulation gives its own. What controllers do (`run_upkeep`)
    follows each write at once, unless `on_upkeep` is set: then that is called when there is something to do, and
    decides when.
    """

    def __init__(
        self,
        *,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
        uid: Callable[[], str] = lambda: str(uuid.uuid4()),
        history: int = HISTORY,
        backlog: int = BACKLOG,
    ) -> None:
        self.state = State(now, uid, history, backlog)
        self.on_upkeep: Callable[[], None] | None = None
        self._definitions = Definitions(self.state)
        self._garbage = Garbage(self.state, self._upkeep_due)
        self._namespaces = Namespaces(self.state, self._upkeep_due)
        self._budgets = Budgets(self.state, self._upkeep_due)
        for name in ("default", "kube-node-lease", "kube-public", "kube-system"):
            namespaces = self.kind("v1", "namespaces")
            self.request(Request(verb="create", kind=namespaces, body={"metadata": {"name": name}}))

    def run_upkeep(self) -> None:
        """What a cluster's controllers do on their own: collect garbage, empty namespaces that go, count budgets."""
        controllers = (self._garbage, self._namespaces, self._budgets)
        while any(one.pending for one in controllers):
            for one in controllers:
                one.run()

    def _upkeep_due(self) -> None:
        if self.on_upkeep is not None:
            self.on_upkeep()

    def kind(self, api_version: str, plural: str) -> Kind:
        """404 for a resource that is not served."""
        group, _, version = api_version.rpartition("/")
        found = self.state.kinds.find(group, version, plural)
        if found is None:
            raise no_such_path()
        return found

    def request(self, request: Request) -> Reply:
        """Any verb but watch."""
        match request.verb:
            case "get":
                return Reply(raw=served(request.kind, reading.get(self.state, request).raw))
            case "list":
                return Reply(raw=reading.page_raw(request.kind, reading.list_page(self.state, request)))
            case _:
                reply = self._writer(request)(self.state, request)
                if self.on_upkeep is None:
                    self.run_upkeep()
                return reply

    def _writer(self, request: Request) -> Callable[[State, Request], Reply]:
        if "list" not in request.kind.verbs:
            return subresources.review
        writer = _SUBRESOURCES.get(request.subresource) or _WRITES.get(request.verb)
        if writer is None:
            raise method_not_allowed()
        return writer

    def watch(self, request: Request) -> Follower:
        """A stream from the state or the revision that the parameters name; iterate its `events()`."""
        return Follower(self.state, request)
