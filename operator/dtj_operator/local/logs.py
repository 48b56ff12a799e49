"""How the API server reads container logs: what is asked, and the interface that the kubelet implements.

The kubelet keeps the logs.
"""

import datetime
import time
from collections.abc import AsyncGenerator
from typing import Any, Protocol

import msgspec

from dtj_operator.local.failures import ApiFailure, FieldFault, bad_request, invalid, unprocessable
from dtj_operator.local.state import Request

Json = dict[str, Any]


class LogQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What `kubectl logs` asked for. `since` is a Unix time, `tail` a number of lines."""

    namespace: str
    pod: str
    container: str
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail: int | None = None
    since: float | None = None
    limit_bytes: int | None = None


class LogSource(Protocol):
    """The kubelet, as far as the API server asks it."""

    def logs(self, query: LogQuery) -> AsyncGenerator[bytes, None]:
        """The log in chunks; ApiFailure where the container has none (yet)."""


class NoLogs:
    """Stands in while no kubelet has registered."""

    async def logs(self, query: LogQuery) -> AsyncGenerator[bytes, None]:
        raise bad_request(f'container "{query.container}" in pod "{query.pod}" is waiting to start: ContainerCreating')
        yield b""


def all_containers(spec: Json) -> list[Json]:
    """Containers before init containers, as `kubectl logs` numbers them."""
    return [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]


def log_query(request: Request, spec: Json) -> LogQuery:
    """The parameters of `pods/<name>/log`.

    400 for a pod of several containers when none is named, or for an unknown one.
    """
    params = request.params
    tail, limit = _positive(request, "tailLines", 0), _positive(request, "limitBytes", 1)
    since_seconds = _positive(request, "sinceSeconds", 1)
    if since_seconds is not None and "sinceTime" in params:
        told = "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"
        raise _refused(request, FieldFault("FieldValueForbidden", "[]", told))
    containers = [one["name"] for one in spec.get("containers") or []]
    container = params.get("container", "")
    if not container and len(containers) > 1:
        listed = " ".join([*(one["name"] for one in spec.get("initContainers") or []), *containers])
        raise bad_request(f"a container name must be specified for pod {request.name}, choose one of: [{listed}]")
    if container and container not in {one["name"] for one in all_containers(spec)}:
        raise bad_request(f"container {container} is not valid for pod {request.name}")
    since = None
    if "sinceTime" in params:
        since = datetime.datetime.fromisoformat(params["sinceTime"]).timestamp()
    elif since_seconds is not None:
        since = time.time() - since_seconds
    return LogQuery(
        namespace=request.namespace,
        pod=request.name,
        container=container or containers[0],
        follow=params.get("follow") == "true",
        previous=params.get("previous") == "true",
        timestamps=params.get("timestamps") == "true",
        tail=tail,
        since=since,
        limit_bytes=limit,
    )


def _positive(request: Request, name: str, least: int) -> int | None:
    given = request.params.get(name)
    if given is None:
        return None
    try:
        number = int(given)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{given}": invalid syntax') from None
    if number < least:
        told = "must be greater than 0" if least else "must be greater than or equal to 0"
        raise _refused(request, invalid(name, number, told))
    return number


def _refused(request: Request, fault: FieldFault) -> ApiFailure:
    return unprocessable("PodLogOptions", "", request.name, [fault])
