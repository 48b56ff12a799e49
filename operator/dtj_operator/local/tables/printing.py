"""The form of an answer that the client accepts: the object itself, a table of it, or only its metadata."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from dtj_operator.local.state import Reply, Request
from dtj_operator.local.verbs import reading
from dtj_operator.local.verbs.reading import WatchEvent

if TYPE_CHECKING:
    from dtj_operator.local.api import Api


def printed(api: "Api", request: Request, serve: Callable[[Request], Reply], accept: str) -> Reply:
    return serve(request)


def watch_lines(api: "Api", request: Request, accept: str) -> Callable[[WatchEvent], bytes]:
    return lambda event: reading.event_raw(request.kind, event)
