"""Objects as a version serves them: with their type header, and Events in either of their two shapes."""

from typing import Any

import msgspec

from dtj_operator.local.kinds import Kind

Json = dict[str, Any]

# core/v1 on the left, which is how events are stored; events.k8s.io/v1 on the right.
_EVENT_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_LEFT_OUT = ("reportingController", "reportingInstance")
_STORED_NAMES = {served: stored for stored, served in _EVENT_NAMES.items()}


def served(kind: Kind, raw: bytes, *, header: bool = True) -> bytes:
    """The stored JSON as this kind answers it."""
    if kind.group == "events.k8s.io":
        raw = msgspec.json.encode(_new_event(msgspec.json.decode(raw)))
    return with_header(kind, raw) if header else raw


def served_body(kind: Kind, body: Json) -> Json:
    """The same for a decoded object."""
    return {**kind.header, **(_new_event(body) if kind.group == "events.k8s.io" else body)}


def stored_body(kind: Kind, body: Json) -> Json:
    """What a client sent in this kind, as it is stored: without header."""
    plain = {key: value for key, value in body.items() if key not in ("apiVersion", "kind")}
    return _renamed(plain, _STORED_NAMES) if kind.group == "events.k8s.io" else plain


def with_header(kind: Kind, raw: bytes) -> bytes:
    return msgspec.json.encode(kind.header)[:-1] + b"," + raw[1:]


def _new_event(stored: Json) -> Json:
    """What core/v1 always writes, events.k8s.io/v1 leaves out when it is empty."""
    found = _renamed(stored, _EVENT_NAMES)
    return {key: value for key, value in found.items() if value or key not in _LEFT_OUT}


def _renamed(body: Json, names: dict[str, str]) -> Json:
    return {names.get(key, key): value for key, value in body.items()}
