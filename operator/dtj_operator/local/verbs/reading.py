"""get, list in chunks, and watch: what is read and how a reader follows it.

How answers are printed as tables is `tables/`'s business.
"""

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Literal

import msgspec

from dtj_operator.local import selectors
from dtj_operator.local.conversion import served
from dtj_operator.local.failures import ApiFailure, bad_request, expired, not_found, unexpected
from dtj_operator.local.kinds import Kind
from dtj_operator.local.selectors import Selector
from dtj_operator.local.state import Request, State
from dtj_operator.local.store import Change, ChangeType, Entry, Expired, Watch
from dtj_operator.local.verbs.options import ListOptions, list_options

Json = dict[str, Any]

# How often a quiet watch is told the newest revision. kube-apiserver takes a minute; kopf's limit is 70 s.
BOOKMARK_SECONDS = 50.0
DEFAULT_WATCH_SECONDS = 1800.0


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One chunk of a list, in the store's own entries."""

    entries: list[Entry]
    revision: int
    continues: str = ""
    remaining: int | None = None


class WatchEvent(msgspec.Struct, frozen=True):
    """`revision` stands alone in a bookmark; `status` is the refusal that ends a stream."""

    type: ChangeType | Literal["BOOKMARK", "ERROR"]
    entry: Entry | None = None
    revision: int = 0
    status: Json | None = None
    ends_initial: bool = False


def get(state: State, request: Request) -> Entry:
    """404 when there is none. Subresources that are read like their object come here too."""
    version = request.params.get("resourceVersion", "")
    if version and not version.isdigit():
        raise unexpected(
            f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing "{version}": invalid syntax'
        )
    entry = state.read(request.kind, request.namespace, request.name)
    if entry is None:
        raise not_found(request.kind.resource, request.name)
    return entry


def list_page(state: State, request: Request) -> Page:
    """The chunk asked for.

    A continued list goes on in the state of its first chunk, or is refused when that is forgotten.
    """
    options = list_options(request)
    selector = selector_of(request.kind, options)
    entries, revision = _snapshot(state, request, options)
    start = _token(options.continues)[1] if options.continues else ("", "")
    found = [
        entry
        for entry in entries
        if (entry.namespace, entry.name) > start and selector.matches(entry.labels, entry.fields)
    ]
    if request.name:
        found = [entry for entry in found if entry.name == request.name]
    if not options.limit or len(found) <= options.limit:
        return Page(entries=found, revision=revision)
    last = found[options.limit - 1]
    # With a selector the number left is not told, since a real server doesn't know it.
    remaining = None if selector != Selector() else len(found) - options.limit
    token = msgspec.json.encode({"rv": revision, "start": [last.namespace, last.name]})
    continues = base64.urlsafe_b64encode(token).decode()
    return Page(entries=found[: options.limit], revision=revision, continues=continues, remaining=remaining)


def selector_of(kind: Kind, options: ListOptions) -> Selector:
    return Selector(
        selectors.parse_labels(options.labels),
        selectors.parse_fields(options.fields, kind.selectable_fields, custom=kind.custom),
    )


def _snapshot(state: State, request: Request, options: ListOptions) -> tuple[Iterable[Entry], int]:
    store, storage = state.store, request.kind.storage
    if options.continues:
        if options.resource_version:
            raise bad_request("specifying resource version is not allowed when using continue")
        revision, _ = _token(options.continues)
        try:
            return store.entries_at(storage, request.namespace, revision), revision
        except Expired:
            raise expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a new "
                "list without the continue parameter."
            ) from None
    asked = int(options.resource_version or "0")
    if asked > store.revision:
        raise _too_large(asked, store.revision)
    if options.match == "Exact":
        try:
            return store.entries_at(storage, request.namespace, asked), asked
        except Expired:
            raise expired(f"The resourceVersion for the provided list is too old: {asked}") from None
    return store.entries(storage, request.namespace), store.revision


def _token(text: str) -> tuple[int, tuple[str, str]]:
    try:
        decoded = msgspec.json.decode(base64.urlsafe_b64decode(text))
        namespace, name = decoded["start"]
        return int(decoded["rv"]), (namespace, name)
    except (binascii.Error, msgspec.DecodeError, KeyError, TypeError, ValueError):
        raise bad_request(f"invalid continue token: continue key is not valid: {text}") from None


def _too_large(asked: int, current: int) -> ApiFailure:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    details = {"causes": [cause], "retryAfterSeconds": 1}
    return ApiFailure(504, "Timeout", f"Timeout: Too large resource version: {asked}, current: {current}", details)


class Follower:
    """One watch request: what it shows at its start, then every change its selector lets through."""

    def __init__(self, state: State, request: Request) -> None:
        self._state = state
        self.kind = request.kind
        self._options = list_options(request)
        self._name = request.name
        self._selector = selector_of(request.kind, self._options)
        asked = int(self._options.resource_version or "0")
        shows = self._options.initial_events or asked == 0
        self._initial: list[Entry] = []
        if (shows and "sendInitialEvents" not in request.params) or self._options.initial_events:
            self._initial = [
                entry for entry in state.store.entries(self.kind.storage, request.namespace) if self._passes(entry)
            ]
        since = state.store.revision if shows else asked
        self._refusal: Json | None = None
        try:
            self._watch: Watch | None = state.store.watch(self.kind.storage, since, self._wants(request.namespace))
        except Expired as why:
            # The stream itself is granted: the refusal comes as its first event, as kube-apiserver's watch cache does
            # it.
            self._watch, self._refusal = None, expired(str(why)).status
        self._since = since

    async def events(self) -> AsyncIterator[WatchEvent]:
        """Until the time asked for is over or the reader leaves; ends with an ERROR event where history is lost."""
        if self._watch is None:
            yield WatchEvent("ERROR", status=self._refusal)
            return
        try:
            for entry in self._initial:
                yield WatchEvent("ADDED", entry)
            self._initial = []
            if self._options.initial_events and self._options.bookmarks:
                yield WatchEvent("BOOKMARK", revision=self._since, ends_initial=True)
            async for event in self._follow(self._watch):
                yield event
        finally:
            self._watch.close()

    def close(self) -> None:
        """For a reader that never starts on the events."""
        if self._watch is not None:
            self._watch.close()

    async def _follow(self, watch: Watch) -> AsyncIterator[WatchEvent]:
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + (self._options.timeout_seconds or DEFAULT_WATCH_SECONDS)
        while (left := ends_at - loop.time()) > 0:
            try:
                async with asyncio.timeout(min(left, BOOKMARK_SECONDS)):
                    await watch.arrival()
            except TimeoutError:
                if self._options.bookmarks:
                    yield WatchEvent("BOOKMARK", revision=self._state.store.revision)
                continue
            if watch.fell_behind:
                yield WatchEvent("ERROR", status=expired("too many changes for this watch, list again").status)
                return
            for change in watch.take():
                yield self._event(change)

    def _passes(self, entry: Entry) -> bool:
        return (not self._name or entry.name == self._name) and self._selector.matches(entry.labels, entry.fields)

    def _wants(self, namespace: str) -> Callable[[Change], bool]:
        def wants(change: Change) -> bool:
            if namespace and change.entry.namespace != namespace:
                return False
            return self._passes(change.entry) or (change.previous is not None and self._passes(change.previous))

        return wants

    def _event(self, change: Change) -> WatchEvent:
        """An object that comes into the selection was added, one that leaves it deleted, whatever happened to it."""
        if change.type == "DELETED":
            return WatchEvent("DELETED", change.entry)
        before = change.previous is not None and self._passes(change.previous)
        if self._passes(change.entry):
            return WatchEvent("MODIFIED" if before else "ADDED", change.entry)
        assert change.previous is not None
        return WatchEvent("DELETED", _at_revision(change.previous, change.entry.revision))


def bookmark(kind: Kind, event: WatchEvent) -> Json:
    metadata: Json = {"resourceVersion": str(event.revision)}
    if event.ends_initial:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return {**kind.header, "metadata": metadata}


def event_raw(kind: Kind, event: WatchEvent) -> bytes:
    """The line of a watch stream."""
    if event.entry is not None:
        item = served(kind, event.entry.raw)
    else:
        item = msgspec.json.encode(event.status if event.status is not None else bookmark(kind, event))
    return b'{"type":"' + event.type.encode() + b'","object":' + item + b"}\n"


def page_raw(kind: Kind, page: Page) -> bytes:
    """The list object. Items of built-in kinds carry no header, custom ones do, as kube-apiserver has it."""
    metadata: Json = {"resourceVersion": str(page.revision)} | ({"continue": ""} if kind.custom else {})
    if page.continues:
        metadata["continue"] = page.continues
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
    head = msgspec.json.encode({"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata})
    items = b",".join(served(kind, entry.raw, header=kind.custom) for entry in page.entries)
    return head[:-1] + b',"items":[' + items + b"]}"


def _at_revision(entry: Entry, revision: int) -> Entry:
    body = entry.decode()
    body["metadata"]["resourceVersion"] = str(revision)
    return msgspec.structs.replace(entry, revision=revision, raw=msgspec.json.encode(body))
