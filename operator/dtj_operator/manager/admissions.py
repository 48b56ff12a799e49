"""Who needs to know of nodes: gangs that wait for an answer of `gang/builtin.py`, and jobs that wait for old pods."""

import asyncio
import contextlib
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from dtj_operator.api.observed import Admission, Admit, JobKey, Situation, Wait
from dtj_operator.api.status import JobStatus, Time
from dtj_operator.decide.conditions import says
from dtj_operator.desired.topology import topology
from dtj_operator.gang import builtin
from dtj_operator.gang.builtin import ReleasedGang, WaitingGang
from dtj_operator.gang.choose import choose
from dtj_operator.kube.fleet import Fleet
from dtj_operator.kube.store import Store

Value = TypeVar("Value")

TOGETHER_SECONDS = 0.1
"""News of a fleet come in bursts; one answer is enough for all that come within this time."""
WORDS = timedelta(seconds=10)
"""How often the words that a gang waits with may change: each time costs a write of its status."""


class Admissions:
    """Keeps who waits, who was released and who reads nodes: news of the fleet take no look at all other jobs."""

    def __init__(
        self,
        store: Store,
        fleet: Fleet,
        clock: Callable[[], Time],
        *,
        mark: Callable[[JobKey], None],
        want_fleet: Callable[[], None],
    ) -> None:
        self._store = store
        self._fleet = fleet
        self._clock = clock
        self._mark = mark
        self._want_fleet = want_fleet
        self._waiting: dict[JobKey, WaitingGang] = {}
        self._released: dict[JobKey, ReleasedGang] = {}
        self._told: dict[JobKey, Time] = {}
        self._reading: set[JobKey] = set()
        self._nodes: tuple[object, ...] = ()

    def consider(self, key: JobKey, s: Situation | None) -> None:
        """Take note of a job as it is now; None: it is gone."""
        if s is not None and (s.status.phase == "Restarting" or s.predecessors) and s.facts.has_node_rights:
            # Old pods may be on nodes that are gone, and a drain may go on: rules that read nodes.
            self._reading.add(key)
            self._want_fleet()
        else:
            self._reading.discard(key)
        waiting, released = _roles(s)
        if self._waiting.get(key) != waiting or self._released.get(key) != released:
            _keep(self._waiting, key, waiting)
            _keep(self._released, key, released)
            self._fleet.changed.set()
        if waiting is None:
            self._told.pop(key, None)

    def decided(self, key: JobKey, before: JobStatus, after: JobStatus) -> None:
        """An admission holds for one release: it is void once the gang was taken back, or waits for something else."""
        was_taken_back = before.gang.admitted_at is not None and after.gang.admitted_at is None
        waits_for_room = after.phase == "Queued" and not says(after, "GangScheduled", "ClaimMissing")
        if was_taken_back or (after.gang.admitted_at is None and not waits_for_room):
            self._store.notes(key).admission = None

    async def run(self) -> None:
        """Answer whenever something has changed and somebody waits; until cancelled."""
        while True:
            patience = self._patience() if self._waiting else None
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._fleet.changed.wait(), patience)
            await asyncio.sleep(TOGETHER_SECONDS)
            self._fleet.changed.clear()
            self._tell_of_nodes()
            if self._waiting:
                self._want_fleet()
                self.answer()

    def answer(self) -> None:
        """One pass: every waiting gang gets its answer, and the jobs whose answer is new are marked."""
        nodes, loads = self._fleet.nodes(), self._fleet.loads()
        if nodes is None or loads is None:
            return
        now = self._clock()
        fleet = builtin.Fleet(nodes, loads, tuple(self._released.values()), self._store.facts.has_autoscaler)
        for key, admission in builtin.admit(self._waiting.values(), fleet, now).items():
            notes = self._store.notes(key)
            if notes.admission == admission or (_differ_in_words(notes.admission, admission) and self._is_fresh(key)):
                continue
            notes.admission = admission
            self._told[key] = now
            if isinstance(admission, Admit):
                gang = self._waiting.pop(key)
                self._released[key] = ReleasedGang(key, gang.demands, admission.nodes)
            self._mark(key)

    def _tell_of_nodes(self) -> None:
        """Mark the jobs whose old pods are waited for when a node came, went, failed or was cordoned."""
        nodes = tuple((n.name, n.ready, n.unschedulable, n.taints) for n in self._fleet.nodes() or ())
        if nodes != self._nodes:
            self._nodes = nodes
            for key in self._reading:
                self._mark(key)

    def _is_fresh(self, key: JobKey) -> bool:
        told_at = self._told.get(key)
        return told_at is not None and self._clock() - told_at < WORDS

    def _patience(self) -> float:
        """Seconds until words may change, or a gang that backs off may be tried again."""
        now = self._clock()
        times = [now + WORDS, *(gang.not_before for gang in self._waiting.values() if gang.not_before)]
        return max((min(times) - now).total_seconds(), 1.0)


def _roles(s: Situation | None) -> tuple[WaitingGang | None, ReleasedGang | None]:
    """The job as a gang that waits, and as one that was released and isn't all bound."""
    if s is None or s.spec is None or s.deleting or not s.facts.has_node_rights:
        return None, None
    if choose(s.spec, s.facts)[0].name != "BuiltIn":
        return None, None
    t = topology(s)
    # Whoever was told to go and has not moved yet waits no more.
    waiting = None if isinstance(s.admission, Admit) else builtin.waiting_gang(s, t)
    return waiting, builtin.released_gang(s, t)


def _differ_in_words(before: Admission | None, after: Admission) -> bool:
    """Whether both say no, for the same kind of reason."""
    return isinstance(before, Wait) and isinstance(after, Wait) and before.can_never_fit == after.can_never_fit


def _keep(those: dict[JobKey, Value], key: JobKey, value: Value | None) -> None:
    if value is None:
        those.pop(key, None)
    else:
        those[key] = value
