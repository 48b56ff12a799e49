"""What one embedded API server is made of, handed to all that serves it; and requests and replies."""

import datetime
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from dtj_operator.local.admission.builtin import RULES
from dtj_operator.local.admission.quota import QuotaLedger
from dtj_operator.local.admission.rules import Rules
from dtj_operator.local.custom.rules import CustomRules
from dtj_operator.local.kinds import Kind, Kinds
from dtj_operator.local.store import Entry, Store

Json = dict[str, Any]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One call.

    `verb` is RBAC's (`get`, `list`, `create`, …); `content_type` tells a patch's kind, `agent` the client's name.
    """

    verb: str
    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    params: Mapping[str, str] = {}
    body: Any = None
    content_type: str = "application/json"
    agent: str = "unknown"


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """`raw` is the whole JSON answer; `warnings` go into `Warning` headers."""

    raw: bytes
    code: int = 200
    warnings: tuple[str, ...] = ()

    @property
    def body(self) -> Any:
        return msgspec.json.decode(self.raw)


class State:
    """The store, the kinds with their rules, the clock and the source of uids of one server."""

    def __init__(
        self, now: Callable[[], datetime.datetime], uid: Callable[[], str], history: int, backlog: int
    ) -> None:
        self.store = Store(history, backlog)
        self.kinds = Kinds()
        self.custom_rules: dict[str, CustomRules] = {}
        self.now = now
        self.uid = uid
        self.quotas = QuotaLedger(self)

    def timestamp(self) -> str:
        return self.now().strftime("%Y-%m-%dT%H:%M:%SZ")

    def read(self, kind: Kind, namespace: str, name: str) -> Entry | None:
        return self.store.read(kind.storage, namespace if kind.namespaced else "", name)

    def write(self, kind: Kind, body: Json) -> Entry:
        """Store the object; its metadata gets the new resourceVersion."""
        stored_as = kind if kind.resource == kind.storage else self.kinds.of_storage(kind.storage)
        return self.store.write(kind.storage, body, stored_as.fields_of(body))

    def rules(self, kind: Kind) -> Rules:
        if kind.custom:
            return self.custom_rules[kind.served_as]
        return RULES[kind.resource]
