"""The loop over jobs: situation, plan, apply. It holds the parts together; what a plan says is decided in `decide/`.

There is no kopf in here: whoever watches jobs and pods calls `observe`. So the same loop runs in the operator's process
and, in virtual time, in a simulation.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta

import msgspec

from dtj_operator.api.observed import Facts, JobKey, Situation
from dtj_operator.api.status import Clock, JobStatus, Time
from dtj_operator.decide.actions import Action, Plan
from dtj_operator.decide.plan import plan
from dtj_operator.kube.apply import Applier
from dtj_operator.kube.client import ApiError, Client, Json, Kind
from dtj_operator.kube.fleet import Fleet
from dtj_operator.kube.lease import Leader, LeaseLost
from dtj_operator.kube.lookups import Lookups
from dtj_operator.kube.reflector import Reflector
from dtj_operator.kube.store import Store
from dtj_operator.kube.training import Lines, Trainings
from dtj_operator.manager.admissions import Admissions
from dtj_operator.manager.queue import Queue
from dtj_operator.manager.telemetry import Metrics

log = logging.getLogger(__name__)

WORKERS = 16
SOON = timedelta(seconds=0.1)
"""No plan is made for a job more often than that by the clock alone."""
AGAIN = timedelta(seconds=1)
"""When to look again after something stood in the way that only time removes; twice as late each time it still does."""
LONGEST_AGAIN = timedelta(seconds=60)


class Controller:
    """Level-triggered: a mark says that something has changed for a job, never what.

    `lines` opens the status stream of a job's supervisor; `namespaces` holds None alone for the whole cluster.
    """

    def __init__(
        self,
        client: Client,
        facts: Facts,
        *,
        clock: Callable[[], Time],
        leader: Leader,
        lines: Lines,
        metrics: Metrics,
        namespaces: tuple[str | None, ...] = (None,),
    ) -> None:
        fleet = Fleet()
        self.store = Store(facts, fleet)
        self.reflector = Reflector(client, self.store, fleet, self, namespaces=namespaces)
        self._clock = clock
        self._metrics = metrics
        self._queue: Queue[JobKey] = Queue(clock)
        self._done: dict[JobKey, tuple[Action, ...]] = {}
        self._applier = Applier(client, self.store, leader, clock)
        self._lookups = Lookups(client, self.store, clock)
        self._trainings = Trainings(lines, self.store, clock, self.mark)
        self._admissions = Admissions(self.store, fleet, clock, mark=self.mark, want_fleet=self.reflector.want_fleet)
        metrics.queue_depth = lambda: len(self._queue)

    def mark(self, key: JobKey) -> None:
        """Have a plan made for the job."""
        self._queue.mark(key)

    def heard(self, kind: Kind) -> None:
        self._metrics.heard(kind)

    def observe(self, kind: Kind, manifest: Json, *, is_gone: bool) -> None:
        """Take in what a permanent watch tells of a job or a pod."""
        self.heard(kind)
        key = self.store.remove(kind, manifest) if is_gone else self.store.put(kind, manifest)
        if key is not None:
            self.mark(key)

    async def start(self) -> None:
        """Make the store complete: on half of it every second job would look as if its pods were lost. ApiError."""
        await self.reflector.relist()

    async def run(self) -> None:
        """Work until cancelled; after `start`."""
        async with self._trainings, asyncio.TaskGroup() as tasks:
            tasks.create_task(self._queue.run(self._look, WORKERS), name="queue")
            tasks.create_task(self.reflector.run(), name="reflector")
            tasks.create_task(self._admissions.run(), name="admissions")

    async def _look(self, key: JobKey) -> None:
        outcome = "Error"
        started = asyncio.get_running_loop().time()
        try:
            outcome = await self._reconcile(key)
        except (ApiError, LeaseLost) as error:
            log.warning("tried again later: %s", error, extra={"job": key})
            raise
        except Exception:
            log.exception("no plan could be made or carried out", extra={"job": key})
            raise
        finally:
            self._metrics.reconciled(outcome, asyncio.get_running_loop().time() - started)

    async def _reconcile(self, key: JobKey) -> str:
        s = self.store.situation(key)
        if s is not None and await self._lookups.refresh(s):
            s = self.store.situation(key)
        self._trainings.follow(key, s)
        self._admissions.consider(key, s)
        if s is None:
            self._metrics.seen(key, None)
            self._queue.wake(key, None)
            self._done.pop(key, None)
            return "Gone"
        now = self._clock()
        began = s.facts.started_at
        if began is not None and now < began:
            # The clock was set back. What this process writes from now on must not look as if another one had.
            self.store.facts = msgspec.structs.replace(s.facts, started_at=now)
            s = msgspec.structs.replace(s, facts=self.store.facts)
        decision = plan(s, now)
        _say(s, decision, self._done.get(key, ()))
        outcome = await self._applier.apply(s, decision)
        if outcome == "Dropped":
            self.mark(key)
            return outcome
        after = decision.status or s.status
        self._metrics.moved(s.status, after)
        self._metrics.seen(key, after)
        self._admissions.decided(key, s.status, after)
        times = [max(decision.wake_at, now + SOON)] if decision.wake_at else []
        if outcome in ("Refused", "Unsettled"):
            times.append(now + min(AGAIN * float(1 << len(s.refusals)), LONGEST_AGAIN))
        if self._repeats(key, decision):
            times.append(now + AGAIN)
        elif outcome == "Done" or self._was_told_no(s):
            # What was written is in the store already: the next plan needs no event to be made, nor to be right.
            self.mark(key)
        self._queue.wake(key, min(times, default=None))
        return outcome

    def _repeats(self, key: JobKey, decision: Plan) -> bool:
        """Whether a plan asks for what was just done: its effect has not shown yet, and asking faster won't show it."""
        actions = () if decision.status else decision.actions
        before = self._done.pop(key, ())
        if actions:
            self._done[key] = actions
        return bool(actions) and actions == before

    def _was_told_no(self, s: Situation) -> bool:
        """Whether the plan has met with a refusal that no plan has seen yet."""
        notes = self.store.notes(s.key)
        return tuple(notes.foreign.values()) != s.foreign_names or bool(notes.refusals and not s.refusals)


def _say(s: Situation, decision: Plan, done: tuple[Action, ...]) -> None:
    """One line for each decision, none for a look that changed nothing, or nothing but how far the job is.

    `done`: what the look before asked for; to ask for it again is no news.
    """
    after = decision.status or s.status
    is_new_act = bool(decision.actions) and decision.actions != done
    is_news = is_new_act or _without_figures(after) != _without_figures(s.status)
    level = logging.INFO if is_news else logging.DEBUG
    log.log(level, "%s", decision.reason, extra={"job": s.key, "phase": after.phase})


def _without_figures(status: JobStatus) -> JobStatus:
    """Without what goes on while nothing is decided: progress, checkpoints, counts of pods, time."""
    told = [msgspec.structs.replace(condition, message="") for condition in status.conditions]
    return msgspec.structs.replace(
        status, conditions=told, progress=None, checkpoint=None, roles={}, ready=None, clock=Clock(), goodput=None
    )
