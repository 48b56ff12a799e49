"""What must hold in SimWorld at every instant, whatever happens; looked at with each change of an object."""

from typing import TYPE_CHECKING

import msgspec

from dtj_operator.api import names
from dtj_operator.api.status import FINAL, JobStatus
from dtj_operator.kube.client import JOB
from dtj_operator.local.objects import Objects
from dtj_operator.local.store import Change, Store

if TYPE_CHECKING:
    from tests.worlds.played import PlayedKubelet

JOBS = f"{JOB.plural}.{JOB.group}"


class Monitor:
    """Collects what was wrong, since an exception in a listener would only hit whoever wrote; `check` raises it."""

    def __init__(self, objects: Objects, store: Store, kubelet: "PlayedKubelet") -> None:
        self._kubelet = kubelet
        self._names: set[tuple[str, str]] = set()
        self._last: dict[str, JobStatus] = {}
        self._wrong: list[str] = []
        store.listen(self._see)

    def check(self) -> None:
        assert not self._wrong, "\n".join(self._wrong)

    def _see(self, change: Change) -> None:
        if change.storage == "pods":
            self._see_pod(change)
        elif change.storage == JOBS:
            self._see_job(change)
        self._see_attempts()

    def _see_pod(self, change: Change) -> None:
        if change.type != "ADDED" or names.LABEL_JOB not in change.entry.labels:
            return
        body = change.entry.decode()
        owner = body["metadata"]["ownerReferences"][0]["uid"]
        if (owner, change.entry.name) in self._names:
            self._wrong.append(f"the name {change.entry.name} was used twice")
        self._names.add((owner, change.entry.name))

    def _see_job(self, change: Change) -> None:
        if change.type == "DELETED":
            self._last.pop(change.entry.uid, None)
            return
        status = msgspec.convert(change.entry.decode().get("status") or {}, JobStatus)
        before = self._last.get(change.entry.uid)
        self._last[change.entry.uid] = status
        if before is None or before == status:
            return
        name = change.entry.name
        if before.phase in FINAL and status.phase != before.phase:
            self._wrong.append(f"{name} left {before.phase} for {status.phase}")
        if before.phase in FINAL and before.cleanup is None:
            self._wrong.append(f"{name} is over and cleaned up, and its status was written again")
        if status.attempt < before.attempt:
            self._wrong.append(f"{name}: attempt {before.attempt} fell to {status.attempt}")
        for counter in ("failures", "disruptions", "stalls", "total"):
            if getattr(status.restarts, counter) < getattr(before.restarts, counter):
                self._wrong.append(f"{name}: restarts.{counter} fell")

    def _see_attempts(self) -> None:
        """Two attempts of a job are never alive together, except on a node that no longer answers."""
        alive: dict[str, set[int]] = {}
        twins: set[tuple[str, str]] = set()
        for run in self._kubelet.runs.values():
            if not run.is_alive or run.spec is None or run.node in self._kubelet.lost:
                continue
            alive.setdefault(run.spec.uid, set()).add(run.spec.attempt)
            if (run.spec.uid, run.spec.task) in twins:
                self._wrong.append(f"{run.spec.job}: two trainers are {run.spec.task} at once")
            twins.add((run.spec.uid, run.spec.task))
        for uid, attempts in alive.items():
            if len(attempts) > 1:
                self._wrong.append(f"{uid}: attempts {sorted(attempts)} are alive together")
