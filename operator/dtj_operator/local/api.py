"""The whole Kubernetes API of the embedded cluster as one plain object: HTTP (`apiserver.py`) and simulations lie on top of it."""

import datetime
import uuid
from collections.abc import Callable
from typing import Any

from dtj_operator.local.conversion import served
from dtj_operator.local.failures import method_not_allowed, no_such_path
from dtj_operator.local.kinds import Kind
from dtj_operator.local.state import Reply, Request, State
from dtj_operator.local.store import HISTORY
from dtj_operator.local.verbs import deleting, reading, writing
from dtj_operator.local.verbs.reading import Follower

Json = dict[str, Any]

_WRITES: dict[str, Callable[[State, Request], Reply]] = {
    "create": writing.create,
    "update": writing.update,
    "patch": writing.patch,
    "delete": deleting.delete,
    "deletecollection": deleting.delete_collection,
}


class Api:
    """Serves requests one at a time, each wholly or not at all. Refusals are raised as ApiFailure.

    `now` and `uid` are what makes two runs differ; a simulation gives its own.
    """

    def __init__(
        self,
        *,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
        uid: Callable[[], str] = lambda: str(uuid.uuid4()),
        history: int = HISTORY,
    ) -> None:
        self.state = State(now, uid, history)
        for name in ("default", "kube-node-lease", "kube-public", "kube-system"):
            namespaces = self.kind("v1", "namespaces")
            self.request(Request(verb="create", kind=namespaces, body={"metadata": {"name": name}}))

    def kind(self, api_version: str, plural: str) -> Kind:
        """404 for a resource that is not served."""
        group, _, version = api_version.rpartition("/")
        found = self.state.kinds.find(group, version, plural)
        if found is None:
            raise no_such_path()
        return found

    def request(self, request: Request) -> Reply:
        """Any verb but watch."""
        kind = request.kind
        match request.verb:
            case "get":
                return Reply(raw=served(kind, reading.get(self.state, request).raw))
            case "list":
                return Reply(raw=reading.page_raw(kind, reading.list_page(self.state, request)))
            case verb if verb in _WRITES:
                return _WRITES[verb](self.state, request)
            case verb:
                raise method_not_allowed(verb, kind.resource)

    def watch(self, request: Request) -> Follower:
        """A stream from the state or the revision that the parameters name; iterate its `events()`."""
        return Follower(self.state, request)
