"""What the operator says of itself, as a scraper, a kubelet and a log reader see it."""

import io
import json
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime

import aiohttp
import pytest
from prometheus_client import generate_latest

from dtj_operator.api.observed import JobKey
from dtj_operator.api.status import GangStatus, JobStatus, LastFailure
from dtj_operator.kube.client import POD
from dtj_operator.manager.telemetry import SILENCE_SECONDS, ConsoleLines, Health, JsonLines, Metrics

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
KEY = JobKey("ml", "mnist")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def metrics(clock: Clock) -> Metrics:
    return Metrics(clock)


Get = Callable[[str], Awaitable[tuple[int, str]]]


@pytest.fixture
def health(metrics: Metrics) -> Health:
    return Health(metrics)


@pytest.fixture
async def get(health: Health) -> AsyncIterator[Get]:
    """Asks the served Health for a path: code and text."""
    runner = await health.serve(0)
    # A free port is another one for each family of addresses.
    port = next(address[1] for address in runner.addresses if address[0] == "0.0.0.0")
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:

        async def get(path: str) -> tuple[int, str]:
            async with session.get(path) as response:
                return response.status, await response.text()

        yield get
    await runner.cleanup()


async def test_a_leader_that_hears_nothing_any_more_is_not_well(
    get: Get, health: Health, metrics: Metrics, clock: Clock
) -> None:
    health.role = "leader"
    assert (await get("/healthz"))[0] == 200
    clock.now += SILENCE_SECONDS + 1
    assert (await get("/healthz"))[0] == 503
    metrics.heard(POD)
    assert (await get("/healthz"))[0] == 200
    health.role = "standby"
    clock.now += SILENCE_SECONDS + 1
    assert (await get("/healthz"))[0] == 200


async def test_it_is_ready_when_it_leads_or_stands_by(get: Get, health: Health) -> None:
    assert await get("/readyz") == (503, "starting\n")
    for role in ("standby", "leader"):
        health.role = role
        assert await get("/readyz") == (200, f"{role}\n")


async def test_a_scrape_shows_jobs_queue_calls_and_what_statuses_tell(get: Get, metrics: Metrics) -> None:
    metrics.queue_depth = lambda: 3
    metrics.called("create", 201)
    metrics.called("get", 0)
    metrics.reconciled("Done", 0.01)
    running = JobStatus(phase="Running", gang=GangStatus(wait_seconds=20))
    metrics.moved(JobStatus(phase="Queued"), running)
    metrics.moved(running, running)
    failed = JobStatus(phase="Restarting", last_failure=LastFailure(at=NOW, attempt=0, failure_class="OutOfMemory"))
    metrics.moved(running, failed)
    metrics.moved(failed, failed)
    metrics.seen(KEY, running)
    metrics.seen(KEY, failed)
    metrics.seen(JobKey("ml", "gone"), running)
    metrics.seen(JobKey("ml", "gone"), None)
    _, text = await get("/metrics")
    lines = set(text.splitlines())
    assert {
        'dtj_jobs{phase="Restarting"} 1.0',
        "dtj_queue_depth 3.0",
        'dtj_api_calls_total{code="201",verb="create"} 1.0',
        'dtj_api_calls_total{code="none",verb="get"} 1.0',
        'dtj_reconcile_seconds_count{outcome="Done"} 1.0',
        'dtj_restarts_total{class="OutOfMemory"} 1.0',
        "dtj_gang_wait_seconds_count 1.0",
        "dtj_gang_wait_seconds_sum 20.0",
    } <= lines
    assert 'phase="Running"' not in text


def test_when_a_kind_was_last_heard_of_is_a_metric(metrics: Metrics) -> None:
    metrics.heard(POD)
    assert 'dtj_watch_last_event_timestamp_seconds{kind="pods"}' in generate_latest(metrics.registry).decode()


@pytest.fixture
def record() -> logging.LogRecord:
    record = logging.LogRecord("dtj_operator.x", logging.INFO, "f", 1, "%s ended", ("worker-1",), None)
    record.created = NOW.timestamp()
    record.job = KEY
    record.phase = "Restarting"
    return record


def test_a_line_for_machines(record: logging.LogRecord) -> None:
    assert json.loads(JsonLines().format(record)) == {
        "time": "2026-11-30T12:00:00.000+00:00",
        "level": "info",
        "logger": "dtj_operator.x",
        "message": "worker-1 ended",
        "job": "ml/mnist",
        "phase": "Restarting",
    }


def test_a_line_for_people(record: logging.LogRecord) -> None:
    assert ConsoleLines().format(record) == "12:00:00 info    ml/mnist Restarting: worker-1 ended"


@pytest.mark.parametrize("formatter", [JsonLines(), ConsoleLines()])
def test_an_exception_is_told_with_its_trace(record: logging.LogRecord, formatter: logging.Formatter) -> None:
    try:
        raise ValueError("no such thing")
    except ValueError:
        record.exc_info = sys.exc_info()
    written = io.StringIO(formatter.format(record)).read()
    assert "no such thing" in written
    assert "Traceback" in written
