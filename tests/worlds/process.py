"""One process of the operator in SimWorld: it can be killed before any step it takes, and its calls meet any weather.

A step is what a task does between two awaits. What is left of a killed process in memory still unwinds; none of it
reaches the API server.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import aclosing
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any, Literal

import msgspec

from dtj_operator.kube.client import JOB, ApiError, Json, Kind, Propagation, WatchEvent
from dtj_operator.local.api import Api
from dtj_operator.local.direct import DirectClient
from dtj_operator.local.failures import ApiFailure
from dtj_operator.local.state import Request
from tests.worlds.monitor import Monitor


class Steps:
    """Who runs at the moment counts here: the processes of the operator one by one, and the rest of the cluster."""

    def __init__(self) -> None:
        self.count = 0

    def take(self) -> bool:
        """Count one step. Whether whoever takes it was killed and has to unwind."""
        self.count += 1
        return False


RUNNING: ContextVar[Steps | None] = ContextVar("RUNNING", default=None)
"""Inherited by all tasks that a task starts."""


class Stepwise(Coroutine[Any, Any, Any]):
    """A coroutine whose steps are counted."""

    def __init__(self, inner: Coroutine[Any, Any, Any], steps: Steps) -> None:
        self._inner = inner
        self._steps = steps
        self._unwinds = False

    def send(self, value: Any) -> Any:
        if self._steps.take() and not self._unwinds:
            self._unwinds = True
            return self._inner.throw(asyncio.CancelledError())
        return self._inner.send(value)

    def throw(self, *error: Any) -> Any:
        self._steps.take()
        return self._inner.throw(*error)

    def close(self) -> None:
        self._inner.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        raise NotImplementedError("only tasks run it")


def stepwise(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
    """A loop's task factory: tasks of a process and of the cluster are counted, others are left as they are."""
    context = options.get("context")
    steps = context.get(RUNNING) if context is not None else RUNNING.get()
    wrapped = coroutine if steps is None else Stepwise(coroutine, steps)
    return asyncio.Task(wrapped, loop=loop, **options)


class Fault(msgspec.Struct, frozen=True):
    """What happens to a call: refused before it was carried out, or its answer lost afterwards (code 0).

    Before a 409, somebody really changes the job whose status is to be written; it does nothing to other calls.
    """

    when: Literal["before", "after"]
    code: int
    in_calls: int = 0
    """How many calls come through first."""


class Weather(msgspec.Struct):
    """Between the operator and the API server, whichever process it is."""

    faults: list[Fault] = []
    deaf_until: float = 0.0
    """No watch tells anything before this time of the loop; then all of it comes."""
    stutters: bool = False
    """Each event is told twice."""
    broken_watches: int = 0
    """Raised by one, each watch loses its next event and has to list again."""
    lateness: float | None = None
    """Seconds after which the server still carries out what a killed process had under way; None: it never arrived."""
    under_way: int = 0
    """Requests that were sent and have not arrived yet."""

    def clear_up(self) -> None:
        self.faults.clear()
        self.deaf_until, self.stutters, self.lateness = 0.0, False, None

    def next_fault(self) -> Fault | None:
        if not self.faults:
            return None
        first = self.faults[0]
        if first.in_calls > 0:
            self.faults[0] = msgspec.structs.replace(first, in_calls=first.in_calls - 1)
            return None
        return self.faults.pop(0)


class Process(Steps):
    """Killed by `kill`, or before its step number `kill_at`, counted over all processes of the world."""

    def __init__(self, history: "History") -> None:
        super().__init__()
        self._history = history
        self.is_dead = False
        self.task: asyncio.Task[None] | None = None

    def take(self) -> bool:
        if not self.is_dead and self._history.step():
            self.kill()
        return self.is_dead

    def kill(self) -> None:
        self.is_dead = True
        if self.task is not None:
            self.task.cancel()


class Mark(msgspec.Struct, frozen=True):
    """What differs if anything in the world but the operator's memory does."""

    revision: int
    """Of the API server's store."""
    cluster_steps: int
    time: float
    under_way: int
    """Requests on their way, where those of a killed process still arrive."""


class History:
    """All steps of the operator.

    Between two of them with the same mark the world has not changed: whether the process dies before the one or the
    other, it leaves the same world behind.
    """

    def __init__(self, mark: Callable[[], Mark]) -> None:
        self._mark = mark
        self.steps = 0
        self.marks: list[Mark] | None = None
        """One for each step, if they are kept."""
        self.kill_at: int | None = None

    def step(self) -> bool:
        """Whether the process dies before it."""
        self.steps += 1
        if self.marks is not None:
            self.marks.append(self._mark())
        return self.steps == self.kill_at


class Client(DirectClient):
    """The way of one process to the API server."""

    def __init__(self, api: Api, process: Process, weather: Weather, monitor: Monitor) -> None:
        super().__init__(api)
        self._process = process
        self._weather = weather
        self._monitor = monitor

    async def watch(
        self, kind: Kind, namespace: str | None, since: str, *, labels: str = "", fields: str = ""
    ) -> AsyncGenerator[WatchEvent, None]:
        loop, weather = asyncio.get_running_loop(), self._weather
        broken = weather.broken_watches
        async with aclosing(super().watch(kind, namespace, since, labels=labels, fields=fields)) as events:
            async for event in events:
                await asyncio.sleep(weather.deaf_until - loop.time())
                if broken != weather.broken_watches:
                    raise ApiError(410, "Expired", "the watch was lost")
                yield event
                if weather.stutters:
                    yield event

    async def delete(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        *,
        uid: str,
        force: bool = False,
        propagation: Propagation = "Background",
    ) -> None:
        self._monitor.meant.add(uid)
        await super().delete(kind, namespace, name, uid=uid, force=force, propagation=propagation)

    async def _answer(self, verb: Any, kind: Kind, namespace: str | None, name: str = "", **rest: Any) -> Json:
        what = f"{verb} {kind.kind} {name}"
        fault = self._weather.next_fault()
        try:
            self._weather.under_way += 1
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            if self._weather.lateness is not None and verb in ("create", "patch", "delete"):
                loop = asyncio.get_running_loop()
                loop.call_later(
                    self._weather.lateness, self._arrive, self._request(verb, kind, namespace, name, **rest)
                )
            raise
        finally:
            self._weather.under_way -= 1
        if self._process.is_dead:
            raise asyncio.CancelledError
        if fault and fault.code == HTTPStatus.CONFLICT:
            fault = None
            if verb == "patch" and kind == JOB:
                self._touch(namespace, name)
        if fault and fault.when == "before":
            raise ApiError(fault.code, "InternalError", "the API server has its troubles", what=what)
        self._monitor.asked(verb, kind, namespace, name, rest.get("body"))
        answer = await super()._answer(verb, kind, namespace, name, **rest)
        if fault:
            self._monitor.answers_lost += 1
            raise ApiError(fault.code, "Unknown", "the answer was lost", what=what)
        return answer

    def _touch(self, namespace: str | None, name: str) -> None:
        """What anybody may do to a job at any time."""
        noted = {"metadata": {"annotations": {"example.org/touched": str(asyncio.get_running_loop().time())}}}
        self._arrive(
            self._request("patch", JOB, namespace, name, body=noted, content_type="application/merge-patch+json")
        )

    def _arrive(self, request: Request) -> None:
        with contextlib.suppress(ApiFailure):
            self._api.request(request)
