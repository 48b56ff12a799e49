"""The operator's process from start to end: log in, lead, survey, run; and what it does about each way to end."""

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from http import HTTPStatus
from typing import NoReturn

import aiohttp
import msgspec
from aiohttp import web

from dtj_operator.api.status import Time
from dtj_operator.kube.client import ApiError
from dtj_operator.kube.http import HttpClient
from dtj_operator.kube.lease import Lease, LeaseLost, Sole
from dtj_operator.kube.login import Login, NoLogin
from dtj_operator.kube.training import lines_over_http
from dtj_operator.manager.controller import Controller
from dtj_operator.manager.handlers import watch
from dtj_operator.manager.options import Options, parse
from dtj_operator.manager.survey import BadConfiguration, survey
from dtj_operator.manager.telemetry import Health, Metrics, log_to_stderr

log = logging.getLogger(__name__)

LEASE_NAME = "dtj-operator"
EXIT_CONFIGURATION = 2
EXIT_LEASE_LOST = 3
ENV_RESTARTS = "DTJ_INTERNAL_RESTARTS"
"""How often in a row the process has started itself again; it does not outlive a while without trouble."""
LONGEST_PAUSE_SECONDS = 60.0
QUIET_SECONDS = 600.0
DEEPEST = 30_000
"""Calls within calls. An API server takes JSON of 10,000 levels from anybody who may make a job; at Python's own limit
of 1000 one such template would end every list and watch, for all jobs. It takes 5 MB of the 8 MB that a stack has."""


def main() -> int:
    """Run the operator. 0: it was asked to stop; 2: it can't work here; 3: another process leads."""
    started = time.monotonic()
    sys.setrecursionlimit(DEEPEST)
    options = parse(sys.argv[1:])
    log_to_stderr(as_json=options.json_logs, verbose=options.verbose)
    if options.kubeconfig:
        os.environ["KUBECONFIG"] = options.kubeconfig
    try:
        asyncio.run(operate(options))
    except (BadConfiguration, NoLogin) as error:
        log.critical("the operator can't work here: %s", error)
        return EXIT_CONFIGURATION
    except LeaseLost as error:
        log.critical("the operator ends: %s", error)
        return EXIT_LEASE_LOST
    except Exception:
        log.exception("the operator starts again")
        _start_again(ran_seconds=time.monotonic() - started)
    log.info("the operator was asked to stop, and has")
    return 0


async def operate(options: Options) -> None:
    """Work until asked to stop. Anything that can't be got over in place is raised."""
    stopped = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        # Until kopf is up: it listens to them itself, and ends.
        asyncio.get_running_loop().add_signal_handler(name, stopped.set)
    await _race(_work(options), stopped.wait())


async def _work(options: Options) -> None:
    metrics = Metrics(time.monotonic)
    health = Health(metrics)
    login = Login()
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(HttpClient(login, metrics.called))
        connector = aiohttp.TCPConnector(limit=0)
        session = await stack.enter_async_context(
            aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False)
        )
        if options.port:
            # On a machine that is no cluster's nobody else has to know how many jobs there are.
            host = "127.0.0.1" if options.local else None
            stack.push_async_callback((await _serve(health, options.port, host)).cleanup)
        facts = await survey(client, options.facts(), options.namespaces)
        lease = Lease(client, options.operator_namespace, LEASE_NAME, options.identity) if options.lease else None
        if lease:
            health.role = "standby"
            await lease.acquire()
            stack.push_async_callback(lease.release)
        controller = Controller(
            client,
            # Not before it leads: what it has not watched itself, it holds against nobody.
            msgspec.structs.replace(facts, started_at=_now()),
            clock=_now,
            leader=lease or Sole(),
            lines=lines_over_http(session),
            metrics=metrics,
            namespaces=options.namespaces,
        )
        await _start(controller)
        health.role = "leader"
        log.info("the operator is ready: %d jobs", len(controller.store.keys()))
        loop_over_jobs = asyncio.create_task(controller.run())

        async def stop_writing() -> None:
            # kopf, when it ends, waits for all tasks it did not start, and then cancels them wherever they are.
            loop_over_jobs.cancel()
            await asyncio.wait([loop_over_jobs])

        watching = watch(controller, login, options.namespaces, on_end=stop_writing)
        await _race(loop_over_jobs, *([lease.keep()] if lease else []), watching)


async def _serve(health: Health, port: int, host: str | None) -> web.AppRunner:
    try:
        return await health.serve(port, host)
    except OSError as error:
        raise BadConfiguration(f"port {port} can't be listened on: {error.strerror}; name another by --port") from error


async def _start(controller: Controller) -> None:
    try:
        await controller.start()
    except ApiError as error:
        if error.code != HTTPStatus.FORBIDDEN:
            raise
        raise BadConfiguration(f"a right is missing that the chart's role grants: {error}") from error


async def _race(*those: Awaitable[object]) -> None:
    """Run all until the first ends by itself; then end the others, in their order. Raises what any of them raised."""
    tasks = [asyncio.ensure_future(one) for one in those]
    try:
        pending = set(tasks)
        while pending and all(task.cancelled() for task in tasks if task.done()):
            _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
            await asyncio.wait([task])
    for task in tasks:
        if not task.cancelled() and (error := task.exception()):
            raise error


def _start_again(ran_seconds: float) -> NoReturn:
    """Replace the process by a fresh one: nothing in memory is worth keeping, and half of it may be wrong."""
    restarts = int(os.environ.get(ENV_RESTARTS, "0")) if ran_seconds < QUIET_SECONDS else 0
    os.environ[ENV_RESTARTS] = str(restarts + 1)
    time.sleep(pause_seconds(restarts))
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def pause_seconds(restarts: int) -> float:
    """How long to wait after so many restarts in a row."""
    # A process that starts again for days would otherwise meet the largest float.
    return min(2.0 ** min(restarts, 10), LONGEST_PAUSE_SECONDS)


def _now() -> Time:
    return datetime.now(UTC)
