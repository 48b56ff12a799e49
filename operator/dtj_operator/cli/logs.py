"""`dtj logs`: what the trainers of a job print, on any cluster; followed, the pods of later attempts too."""

import queue
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import urllib3
from kubernetes.client import ApiException

from dtj_operator.api.parse import parse_status, salvage
from dtj_operator.cli import pods, story
from dtj_operator.cli.outcome import BAD_MANIFEST, FAILED, Ended
from dtj_operator.cli.remote import Access, Remote
from dtj_operator.kube import views
from dtj_worker.codec import ContractError
from dtj_worker.contract import ROLES, Task

Json = dict[str, Any]

_LOOK_SECONDS = 1.0
_MOST_TASKS = 8
"""That are named one by one."""


class Source(msgspec.Struct, frozen=True):
    """One trainer container and the attempt that its pod was made for."""

    task: Task
    pod: str
    container: str
    attempt: int
    has_started: bool


def logs(access: Access, name: str, *, task: str | None, attempt: int | None, follow: bool) -> None:
    """Print them, each line with its task before it unless one task alone is asked for."""
    wanted = _parsed(task)
    remote = Remote(access)
    job = remote.job(name)
    sources = _chosen(_sources(remote, job), wanted, attempt)
    if wanted is not None and not sources and (stranger := _stranger(job, wanted)):
        raise Ended(BAD_MANIFEST, [stranger])
    if not follow:
        if not sources:
            raise Ended(FAILED, [_nothing(job, wanted, attempt)])
        for source in sources:
            for line in _lines(remote, source, follow=False):
                print(_shown(line, source, alone=wanted is not None))
        return
    _follow(remote, name, wanted, attempt)


def _follow(remote: Remote, name: str, wanted: Task | None, attempt: int | None) -> None:
    """Until the job is over and every line is told. One thread reads one log: the client knows no other way."""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    readers: dict[str, threading.Thread] = {}

    def read(source: Source) -> None:
        for line in _lines(remote, source, follow=True):
            lines.put(_shown(line, source, alone=wanted is not None))

    is_over = False
    while not is_over or any(reader.is_alive() for reader in readers.values()):
        looked_at = time.monotonic()
        if not is_over:
            # Asked before its pods, whose logs are the last ones then.
            job = remote.job(name)
            is_over = story.is_final(parse_status(job))
            for source in _chosen(_sources(remote, job), wanted, attempt, every=True):
                if source.has_started and source.pod not in readers:
                    readers[source.pod] = threading.Thread(target=read, args=(source,), daemon=True)
                    readers[source.pod].start()
        while (left := looked_at + _LOOK_SECONDS - time.monotonic()) > 0:
            try:
                print(lines.get(timeout=left), flush=True)
            except queue.Empty:
                break
    while not lines.empty():
        print(lines.get(), flush=True)


def _lines(remote: Remote, source: Source, *, follow: bool) -> Iterator[str]:
    try:
        yield from remote.log(source.pod, source.container, follow=follow)
    except ApiException as refusal:
        yield f"(no log: {refusal.reason})"
    except urllib3.exceptions.HTTPError as problem:
        yield f"(the log breaks off: {problem})"


def _sources(remote: Remote, job: Json) -> list[Source]:
    found = []
    for pod in remote.pods(job):
        view = views.pod(pod)
        trainer = pods.trainer(pod)
        if view is not None and trainer is not None:
            statuses = (pod.get("status") or {}).get("containerStatuses") or ()
            state = next((s.get("state") or {} for s in statuses if s["name"] == trainer["name"]), {})
            has_started = bool({"running", "terminated"} & set(state))
            found.append(Source(view.task, view.name, trainer["name"], pods.attempt(trainer), has_started))
    return sorted(found, key=lambda source: (source.attempt, source.task.role, source.task.index))


def _chosen(sources: Sequence[Source], task: Task | None, attempt: int | None, *, every: bool = False) -> list[Source]:
    """Those asked for; of each task's pods the newest, unless `every` one is wanted or an attempt is named."""
    found = [s for s in sources if task in (None, s.task) and attempt in (None, s.attempt)]
    return found if every else list({source.task: source for source in found}.values())


def _stranger(job: Json, task: Task) -> str | None:
    """That the job has no such task, and which it has; None where it has it, or can't be read."""
    spec, _ = salvage(job)
    if spec is None:
        return None
    roles = {role: own.replicas for role in ROLES if (own := getattr(spec.roles, role)) is not None}
    if task.index < roles.get(task.role, 0):
        return None
    shown = [f"{role}-{index}" for role, count in roles.items() for index in range(count)]
    if len(shown) > _MOST_TASKS:
        shown = [f"{role}-0" + (f" to {role}-{count - 1}" if count > 1 else "") for role, count in roles.items()]
    return f"{job['metadata']['name']} has no {task}; its tasks are {', '.join(shown)}"


def _nothing(job: Json, task: Task | None, attempt: int | None) -> str:
    who = "" if task is None else f" of {task}"
    when = "" if attempt is None else f" of attempt {attempt}"
    state = parse_status(job)
    return (
        f"there is no pod{who}{when} (the job is {state.phase}: {state.reason}); "
        "of failed attempts spec.keepFailedPods keeps the culprit's pod, spec.cleanPodPolicy None all of them"
    )


def _parsed(task: str | None) -> Task | None:
    try:
        return None if task is None else Task.parse(task)
    except ContractError as problem:
        raise Ended(BAD_MANIFEST, [f"--task: {problem}"]) from None


def _shown(line: str, source: Source, *, alone: bool) -> str:
    return line if alone else f"{source.task} | {line}"
