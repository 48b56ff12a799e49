"""What must hold in a world at every instant, whatever happens; looked at with each change of an object."""

import logging
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from dtj_operator.api import names
from dtj_operator.api.status import FINAL, JobStatus
from dtj_operator.kube.client import JOB, Kind
from dtj_operator.local.store import Change, Entry, Store
from dtj_worker.contract import TaskSpec

JOBS = f"{JOB.plural}.{JOB.group}"
CLEANED = ("services", "networkpolicies.networking.k8s.io")
"""Nothing of this is left of a job that is over."""


class Monitor(logging.Handler):
    """Collects what was wrong, since an exception in a listener would only hit whoever wrote; `check` raises it.

    As a log handler it takes each error of the operator as wrong: those are exceptions nobody foresaw.
    """

    def __init__(self, store: Store, alive: Callable[[], Iterable[TaskSpec]]) -> None:
        """`alive`: the trainers that run at the moment, but for those on nodes that are lost."""
        super().__init__(logging.ERROR)
        self._store = store
        self._alive = alive
        self._names: set[tuple[str, str]] = set()
        self._last: dict[str, JobStatus] = {}
        self._wrong: list[str] = []
        self.meant: set[str] = set()
        """UIDs of all that the operator has ever wanted to delete."""
        self.answers_lost = 0
        self.is_operators_turn: Callable[[], bool] = lambda: False
        store.listen(self._see)

    def check(self) -> None:
        assert not self._wrong, "\n".join(self._wrong)

    def emit(self, record: logging.LogRecord) -> None:
        self._wrong.append(self.format(record))

    def asked(self, verb: str, kind: Kind, namespace: str | None, name: str, body: Any) -> None:
        """A call of the operator is about to be carried out."""
        if verb == "list" or (verb == "delete" and kind == JOB):
            return
        job = name if kind == JOB else self._labels(verb, kind, namespace, name, body).get(names.LABEL_JOB)
        entry = self._store.read(JOBS, namespace or "", job) if job else None
        status = self._last.get(entry.uid) if entry else None
        if status and status.phase in FINAL and status.cleanup is None and not self.answers_lost:
            self._wrong.append(
                f"{job} is over and cleaned up, and yet the operator asks for: {verb} {kind.kind} {name}"
            )

    def _labels(self, verb: str, kind: Kind, namespace: str | None, name: str, body: Any) -> dict[str, str]:
        if verb == "create":
            return body["metadata"].get("labels") or {}
        entry = self._store.read(f"{kind.plural}.{kind.group}".rstrip("."), namespace or "", name)
        return entry.labels if entry else {}

    def check_left_behind(self) -> None:
        """At the end of a world."""
        self._wrong += self.left_behind()
        self.check()

    def left_behind(self) -> list[str]:
        """What a job that is over may not have left, and one that is gone."""
        found: list[str] = []
        jobs = {entry.uid: entry for entry in self._store.entries(JOBS, "")}
        for storage in (*CLEANED, "pods"):
            for entry in self._store.entries(storage, ""):
                owner = _owner(entry)
                if owner is None:
                    continue
                status = self._last.get(owner)
                if owner not in jobs or status is None:
                    found.append(f"{storage} {entry.name} has outlived its job")
                elif status.phase in FINAL and status.cleanup is None and storage in CLEANED:
                    found.append(f"{storage} {entry.name} is left of a job that is over")
        return found

    def _see(self, change: Change) -> None:
        if change.storage == "pods":
            self._see_pod(change)
        elif change.storage == JOBS:
            self._see_job(change)
        if change.storage in (*CLEANED, "pods", JOBS) and _has_gone(change) and self.is_operators_turn():
            self._must_be_meant(change)
        self._see_attempts()

    def _see_pod(self, change: Change) -> None:
        if names.LABEL_JOB not in change.entry.labels:
            return
        owner = _owner(change.entry) or ""
        if _may_run(change.entry) and not (change.previous and _may_run(change.previous)):
            self._see_twins(owner, change)
        if change.type != "ADDED":
            return
        if (owner, change.entry.name) in self._names:
            self._wrong.append(f"the name {change.entry.name} was used twice")
        self._names.add((owner, change.entry.name))

    def _see_twins(self, owner: str, change: Change) -> None:
        twins = [
            entry.name
            for entry in self._store.entries("pods", change.entry.namespace)
            if _task(entry) == _task(change.entry) and _owner(entry) == owner and _may_run(entry)
        ]
        if len(twins) > 1:
            self._wrong.append(f"twin pods: {twins}")

    def _see_job(self, change: Change) -> None:
        name = change.entry.name
        if change.type == "DELETED":
            self._last.pop(change.entry.uid, None)
            return
        status = msgspec.convert(change.entry.decode().get("status") or {}, JobStatus)
        before = self._last.get(change.entry.uid)
        self._last[change.entry.uid] = status
        if before is None or before == status:
            return
        if before.phase in FINAL and status.phase != before.phase:
            self._wrong.append(f"{name} left {before.phase} for {status.phase}")
        if before.phase in FINAL and before.cleanup is None:
            self._wrong.append(f"{name} is over and cleaned up, and its status was written again")
        if status.attempt < before.attempt:
            self._wrong.append(f"{name}: attempt {before.attempt} fell to {status.attempt}")
        for counter in ("failures", "disruptions", "stalls", "total"):
            if getattr(status.restarts, counter) < getattr(before.restarts, counter):
                self._wrong.append(f"{name}: restarts.{counter} fell")

    def _must_be_meant(self, change: Change) -> None:
        owner = _owner(change.entry)
        was_collected = owner is not None and all(job.uid != owner for job in self._store.entries(JOBS, ""))
        if change.entry.uid not in self.meant and not was_collected:
            self._wrong.append(f"{change.storage} {change.entry.name} was deleted in place of another of its name")

    def _see_attempts(self) -> None:
        """Two attempts of a job are never alive together, except on a node that no longer answers."""
        attempts: dict[str, set[int]] = {}
        tasks: set[tuple[str, str]] = set()
        for spec in self._alive():
            attempts.setdefault(spec.uid, set()).add(spec.attempt)
            if (spec.uid, spec.task) in tasks:
                self._wrong.append(f"{spec.job}: two trainers are {spec.task} at once")
            tasks.add((spec.uid, spec.task))
        for uid, alive in attempts.items():
            if len(alive) > 1:
                self._wrong.append(f"{uid}: attempts {sorted(alive)} are alive together")


def _has_gone(change: Change) -> bool:
    """Whether its deletion was asked for just now, or is done at once."""
    if change.type == "DELETED":
        return change.previous is None or not _deleting(change.previous)
    return (
        change.type == "MODIFIED" and _deleting(change.entry) and not (change.previous and _deleting(change.previous))
    )


def _deleting(entry: Entry) -> bool:
    return "deletionTimestamp" in entry.decode()["metadata"]


def _may_run(entry: Entry) -> bool:
    """What a killed operator had sent may still make a pod that nobody wants any more; gated, it does no harm."""
    body = entry.decode()
    status = body.get("status") or {}
    # A kubelet tells that the containers have ended, and of the pod only when it has cleared up behind them.
    ended = [one["state"].get("terminated") for one in status.get("containerStatuses") or ()]
    is_over = status.get("phase") in ("Succeeded", "Failed") or (bool(ended) and all(ended))
    return not is_over and not _deleting(entry) and not body["spec"].get("schedulingGates")


def _task(entry: Entry) -> tuple[str | None, str | None]:
    return entry.labels.get(names.LABEL_ROLE), entry.labels.get(names.LABEL_INDEX)


def _owner(entry: Entry) -> str | None:
    """The UID of the job that it belongs to."""
    return next(iter(entry.owners), None)
