"""`dtj status`: a job of a cluster, or all of a namespace, for people: what it does, what it waits for, what failed."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from dtj_operator.api.parse import parse_status
from dtj_operator.api.status import Condition, JobStatus
from dtj_operator.cli import story
from dtj_operator.cli.printing import Format, printed
from dtj_operator.cli.remote import Access, Remote
from dtj_operator.cli.show import plain_console, task_table
from dtj_operator.kube import views

Json = dict[str, Any]

_GOOD_WHEN_TRUE = ("Accepted", "GangScheduled", "Supervised", "Training", "CheckpointReady", "Isolated")


def status(access: Access, name: str | None, output: Format | None) -> None:
    """Print it, as text or as the object itself."""
    remote = Remote(access)
    if name is None:
        jobs = remote.jobs()
        if output:
            print(printed({"apiVersion": "v1", "kind": "List", "items": jobs}, output), end="")
        else:
            _print_jobs(jobs, remote.namespace)
        return
    job = remote.job(name)
    if output:
        print(printed(job, output), end="")
        return
    pods = [view for view in map(views.pod, remote.pods(job)) if view is not None]
    console = plain_console()
    for line in described(job, datetime.now(UTC)):
        console.print(Text(line))
    if pods:
        console.print(task_table(sorted(pods, key=lambda pod: (pod.task.role, pod.task.index, pod.round))))


def described(job: Json, now: datetime) -> Iterator[str]:
    """A job in a few lines, the most telling first."""
    state = parse_status(job)
    metadata = job["metadata"]
    yield f"{metadata['namespace']}/{metadata['name']}: {story.where(state)}"
    if not job.get("status"):
        yield "  no operator has looked at it yet; does one run here, and for this namespace?"
    if state.reason:
        yield f"  {state.reason}"
    if state.strategy:
        yield f"  strategy {state.strategy}" + (f": {state.strategy_reason}" if state.strategy_reason else "")
    if checkpoint := state.checkpoint:
        on = f" on claim {checkpoint.claim}" if checkpoint.claim else ""
        yield f"  newest checkpoint: step {checkpoint.step}{on}"
    if told := story.restarts(state):
        yield f"  {told}"
    yield from (f"  {line}" for line in _history(state, now))
    yield from (f"  {condition.type}: {_why(condition)}" for condition in _troubles(state.conditions))


def _history(state: JobStatus, now: datetime) -> Iterator[str]:
    for attempt in state.timeline:
        took = ((attempt.end or now) - attempt.start).total_seconds()
        if attempt.first_step and (attempt.attempt > 0 or attempt.resumed_from_step):
            yield story.resumed(attempt)
        if attempt.outcome is None:
            yield f"attempt {attempt.attempt} has run for {took:.0f} s"
        elif attempt.outcome == "Succeeded":
            yield f"attempt {attempt.attempt} succeeded after {took:.0f} s"
        else:
            yield f"after {took:.0f} s {story.ended(attempt, state.last_failure)}"


def _troubles(conditions: Sequence[Condition]) -> Iterator[Condition]:
    """The conditions that are not as one would wish, but for what the phase says already."""
    for condition in conditions:
        wish = "True" if condition.type in _GOOD_WHEN_TRUE else "False"
        is_plain = condition.type in ("Complete", "Failed", "Suspended", "Training", "GangScheduled")
        if condition.status != wish and not is_plain:
            yield condition


def _why(condition: Condition) -> str:
    return condition.message or condition.reason


def _print_jobs(jobs: Sequence[Json], namespace: str) -> None:
    if not jobs:
        print(f"there are no jobs in namespace {namespace}")
        return
    table = Table("NAME", "PHASE", "STRATEGY", "READY", "STEP", "RESTARTS", "REASON", box=None, pad_edge=False)
    for job in jobs:
        state = parse_status(job)
        step = "" if state.progress is None or state.progress.step is None else str(state.progress.step)
        row = (
            state.phase,
            state.strategy or "",
            state.ready or "",
            step,
            str(state.restarts.total),
            state.reason or "",
        )
        table.add_row(job["metadata"]["name"], *row)
    plain_console().print(table)
