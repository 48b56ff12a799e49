"""What the operator says of itself: metrics, health, logs. What it says of a job is in the job's status and Events."""

import json
import logging
import sys
from collections import Counter as Tally
from collections.abc import Callable
from datetime import UTC, datetime

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from dtj_operator.api.observed import JobKey
from dtj_operator.api.status import JobStatus, Phase
from dtj_operator.kube.client import Kind, Verb
from dtj_operator.kube.reflector import RELIST_SECONDS

SILENCE_SECONDS = 3 * RELIST_SECONDS
"""A process that has neither seen an event nor completed a list for so long is of no use, whatever its tasks do."""
LOG_FIELDS = ("job", "phase", "outcome")


class Metrics:
    """All metrics of one process. `seconds` is a monotonic clock."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self._phases: dict[JobKey, Phase] = {}
        self._heard_at = seconds()
        self.queue_depth: Callable[[], int] = lambda: 0
        self.registry = CollectorRegistry()
        self.registry.register(_Snapshot(self._snapshot))
        self._reconciles = Histogram(
            "dtj_reconcile_seconds", "Time of one look at a job, by its outcome.", ["outcome"], registry=self.registry
        )
        self._restarts = Counter(
            "dtj_restarts", "Attempts that ended otherwise than well, by class.", ["class"], registry=self.registry
        )
        self._gang_wait = Histogram(
            "dtj_gang_wait_seconds",
            "From queueing until all pods of a gang had a node.",
            buckets=(1, 5, 15, 60, 300, 900, 3600, 14400, 86400),
            registry=self.registry,
        )
        self._calls = Counter(
            "dtj_api_calls", "Calls to the API server, by verb and code.", ["verb", "code"], registry=self.registry
        )
        self._events = Gauge(
            "dtj_watch_last_event_timestamp_seconds", "When a kind was last heard of.", ["kind"], registry=self.registry
        )

    @property
    def silence(self) -> float:
        """Seconds since the last event or complete list of any kind."""
        return self._seconds() - self._heard_at

    def heard(self, kind: Kind) -> None:
        """An event, or a complete list, of this kind came."""
        self._heard_at = self._seconds()
        self._events.labels(kind.plural).set_to_current_time()

    def called(self, verb: Verb, code: int) -> None:
        self._calls.labels(verb, str(code or "none")).inc()

    def reconciled(self, outcome: str, seconds: float) -> None:
        self._reconciles.labels(outcome).observe(seconds)

    def seen(self, key: JobKey, status: JobStatus | None) -> None:
        """A job as it is now; None: it is gone."""
        if status is None:
            self._phases.pop(key, None)
        else:
            self._phases[key] = status.phase

    def moved(self, before: JobStatus, after: JobStatus) -> None:
        """What the difference of two statuses of a job tells."""
        if after.last_failure and after.last_failure != before.last_failure:
            self._restarts.labels(after.last_failure.failure_class).inc()
        waited = after.gang.wait_seconds
        if waited is not None and waited != before.gang.wait_seconds:
            self._gang_wait.observe(waited)

    def _snapshot(self) -> list[GaugeMetricFamily]:
        jobs = GaugeMetricFamily("dtj_jobs", "Jobs by phase.", labels=["phase"])
        for phase, count in Tally(self._phases.values()).items():
            jobs.add_metric([phase], count)
        return [jobs, GaugeMetricFamily("dtj_queue_depth", "Jobs that wait to be looked at.", self.queue_depth())]


class _Snapshot(Collector):
    """Numbers that are counted when somebody asks."""

    def __init__(self, collect: Callable[[], list[GaugeMetricFamily]]) -> None:
        self._collect = collect

    def collect(self) -> list[GaugeMetricFamily]:
        return self._collect()


class Health:
    """The HTTP side: /healthz, /readyz, /metrics. `role` is `standby`, then `leader` once the store is complete."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self.role = "starting"

    async def serve(self, port: int, host: str | None = None) -> web.AppRunner:
        """Listen, on all addresses where none is named. The caller cleans the runner up."""
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._show)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, host, port).start()
        return runner

    async def _healthz(self, _: web.Request) -> web.Response:
        silence = self._metrics.silence
        # A standby has no watch; that it answers is all it has to do.
        is_well = self.role != "leader" or silence < SILENCE_SECONDS
        return web.Response(status=200 if is_well else 503, text=f"{self.role}; last word {silence:.0f} s ago\n")

    async def _readyz(self, _: web.Request) -> web.Response:
        return web.Response(status=503 if self.role == "starting" else 200, text=f"{self.role}\n")

    async def _show(self, _: web.Request) -> web.Response:
        return web.Response(body=generate_latest(self._metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})


class JsonLines(logging.Formatter):
    """One JSON object a line, with the fields that a record carries beside its message."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{name: str(getattr(record, name)) for name in LOG_FIELDS if hasattr(record, name)},
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


class ConsoleLines(logging.Formatter):
    """The same for people: `21:49:52 info  ml/mnist Running: 4 of 4 bound`."""

    def format(self, record: logging.LogRecord) -> str:
        told = [str(getattr(record, name)) for name in ("job", "phase") if hasattr(record, name)]
        subject = f"{' '.join(told)}: " if told else ""
        clock = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        line = f"{clock} {record.levelname.lower():<7} {subject}{record.getMessage()}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def log_to_stderr(*, as_json: bool, verbose: bool) -> None:
    """Set up logging for the process. kopf's own messages are of interest only when something is looked for."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if as_json else ConsoleLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if verbose else logging.INFO)
    logging.getLogger("kopf").setLevel(logging.DEBUG if verbose else logging.WARNING)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
