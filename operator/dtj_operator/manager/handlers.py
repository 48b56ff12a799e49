"""kopf as watcher: the permanent watches of jobs and pods, and the login. Handlers take note of what they are told."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import kopf

from dtj_operator.api import names
from dtj_operator.kube.client import JOB, POD, Kind
from dtj_operator.kube.login import Login
from dtj_operator.manager.controller import Controller


async def watch(
    controller: Controller, login: Login, namespaces: tuple[str | None, ...], *, on_end: Callable[[], Awaitable[None]]
) -> None:
    """Feed the controller until a signal says to end. An error of a watch that kopf does not get over is raised.

    `on_end` is awaited when the watches have ended, whatever the reason.
    """
    named = [namespace for namespace in namespaces if namespace]
    await kopf.operator(
        registry=registry(controller, login, on_end),
        settings=settings(),
        clusterwide=not named,
        namespaces=named,
        standalone=True,
        # Else it asks for the user's name, and in a container the user may have none. Nobody reads it: no peers.
        identity=cast(Any, "dtj-operator"),
    )


def registry(controller: Controller, login: Login, on_end: Callable[[], Awaitable[None]]) -> kopf.OperatorRegistry:
    """All handlers. No kind of them makes kopf write: neither finalizer nor annotation ever gets onto an object."""
    known = kopf.OperatorRegistry()

    def observe(kind: Kind, event: kopf.RawEvent) -> None:
        controller.observe(kind, dict(event["object"]), is_gone=event["type"] == "DELETED")

    @kopf.on.event(JOB.group, JOB.version, JOB.plural, id="jobs", registry=known)
    async def jobs(event: kopf.RawEvent, **_: Any) -> None:
        observe(JOB, event)

    @kopf.on.event(POD.version, POD.plural, id="pods", registry=known)
    async def pods(event: kopf.RawEvent, **_: Any) -> None:
        observe(POD, event)

    @kopf.on.login(id="login", registry=known)
    async def log_in(**_: Any) -> kopf.ConnectionInfo:
        # A small file; the service account's token rotates, and kopf asks again when it is refused.
        return await asyncio.to_thread(login.connection)

    @kopf.on.cleanup(id="cleanup", registry=known)
    async def end(**_: Any) -> None:
        await on_end()

    return known


def settings() -> kopf.OperatorSettings:
    """What kopf is told, each for a reason that was measured."""
    s = kopf.OperatorSettings()
    s.peering.standalone = True
    s.posting.enabled = False
    s.posting.loggers = False
    # Under its default name kopf takes the finalizers of other people's kopf operators off our pods.
    s.persistence.finalizer = f"{names.GROUP}/finalizer"
    s.watching.label_selectors["v1", "pods"] = names.LABEL_JOB
    s.watching.chunk_size = 500
    s.watching.server_timeout = 300
    s.watching.connect_timeout = 10
    s.networking.request_timeout = 30
    s.networking.connect_timeout = 10
    # A worker keeps its place for the idle time after its one event: with 5 s a first list of 10,000 never ends.
    s.queueing.worker_limit = 200
    s.queueing.idle_timeout = 0.1
    # Watching CRDs and namespaces takes rights we do without; whether our CRD is there is checked at the start.
    s.scanning.disabled = True
    return s
