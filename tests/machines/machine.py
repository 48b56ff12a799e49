"""Anything may happen to two jobs, their nodes, the API server and the operator, in any order; then peace returns."""

import asyncio
import contextlib
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any, TypeVar

import looptime
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from dtj_operator.api.observed import JobKey, Situation
from dtj_operator.api.status import round_of
from dtj_operator.local.failures import ApiFailure
from tests.machines.jobs import jobs
from tests.worlds.process import Fault
from tests.worlds.sim import SimWorld, sim_world
from tests.worlds.world import (
    NAMESPACE,
    AskToStop,
    DeletePod,
    Evict,
    ExhaustMemory,
    Json,
    KillSupervisor,
    KillTrainer,
    Refused,
    is_over,
)

NAMES = st.sampled_from(("a", "b"))
OfTask = KillTrainer | KillSupervisor | AskToStop | ExhaustMemory | DeletePod | Evict
Value = TypeVar("Value")

KINDS = st.sampled_from(sorted(jobs("a")))
NODES = st.sampled_from(("n0", "n1", "n2"))
PICK = st.integers(0, 3)
SECONDS = st.sampled_from((0.05, 0.2, 0.5, 1.0, 2.0, 5.0, 30.0, 400.0))
HURTS = st.sampled_from((KillTrainer, KillSupervisor, AskToStop, ExhaustMemory, DeletePod, Evict))
STEPS = st.integers(1, 150)
FAULTS = st.builds(
    Fault, st.sampled_from(("before", "after")), st.sampled_from((0, 409, 429, 500, 504)), st.integers(0, 20)
)
EDITS: dict[str, Json] = {
    "suspend": {"suspend": True},
    "resume": {"suspend": False},
    "restart": {"restartRequest": "again"},
    "restart once more": {"restartRequest": "and again"},
    "more workers": {"roles": {"worker": {"replicas": 3}}},
    "wrong": {
        "template": {"spec": {"containers": [{"name": "trainer", "env": [{"name": "TF_CONFIG", "value": "{}"}]}]}}
    },
    "short deadline": {"activeDeadlineSeconds": 30},
    "short life": {"ttlSecondsAfterFinished": 1},
}
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "quota", "namespace": NAMESPACE},
    "spec": {"hard": {"pods": "1"}},
}
FINALIZER = "example.org/keeps"
PEACE_SECONDS = 6 * 3600.0


class Jobs(RuleBasedStateMachine):
    """What must hold is looked at with each change, by the world's monitor; and in the end all comes to its end."""

    first = "plain"
    """The kind of the job that is there from the start."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = looptime.new_event_loop(noop_cycles=0)
        self.open = AsyncExitStack()
        self.world: SimWorld = self.run(self.open.enter_async_context(sim_world()))
        self.manifests: dict[str, Json] = {}
        self.may_vanish: set[str] = set()
        self.submit("a", self.first)

    def run(self, what: Coroutine[Any, Any, Value]) -> Value:
        return self.loop.run_until_complete(what)

    def ask(self, what: Coroutine[Any, Any, Any]) -> None:
        """As a person would; the API server may say no."""
        with contextlib.suppress(Refused, ApiFailure):
            self.run(what)

    @rule(name=NAMES, kind=KINDS)
    def submit(self, name: str, kind: str) -> None:
        if name not in self.manifests:
            self.manifests[name] = jobs(name)[kind]
            if kind == "short-lived":
                self.may_vanish.add(name)
            self.run(self.world.submit(self.manifests[name]))

    @rule(seconds=SECONDS)
    def time_passes(self, seconds: float) -> None:
        self.run(asyncio.sleep(seconds))

    @rule(name=NAMES, pick=PICK, what=HURTS)
    def pod_is_hurt(self, name: str, pick: int, what: type[OfTask]) -> None:
        self.ask(self.hurt(JobKey(NAMESPACE, name), pick, what))

    async def hurt(self, key: JobKey, pick: int, what: type[OfTask]) -> None:
        # In one step: between two, the operator may take the pod away.
        s = self.world.situation(key)
        wanted = [pod for pod in s.pods if pod.round == round_of(s.status, pod.task)] if s else []
        pods = [pod for pod in wanted if pod.uid in self.world.kubelet.runs or what is DeletePod]
        if pods:
            await self.world.hurt(key, what(pods[pick % len(pods)].task))

    @rule(name=NAMES, edit=st.sampled_from(sorted(EDITS)))
    def job_is_edited(self, name: str, edit: str) -> None:
        if edit == "short life":
            self.may_vanish.add(name)
        self.ask(self.world.edit(JobKey(NAMESPACE, name), {"spec": EDITS[edit]}))

    @rule(name=NAMES)
    def edits_are_taken_back(self, name: str) -> None:
        if name in self.manifests:
            spec = self.manifests[name]["spec"]
            back = {
                "suspend": False,
                "trainerContainer": None,
                "activeDeadlineSeconds": spec.get("activeDeadlineSeconds"),
            }
            back |= {"roles": spec["roles"], "template": spec["template"]}
            self.ask(self.world.edit(JobKey(NAMESPACE, name), {"spec": back}))

    @rule(name=NAMES, again=st.booleans())
    def job_is_deleted(self, name: str, *, again: bool) -> None:
        if self.manifests.pop(name, None):
            self.may_vanish.discard(name)
            self.ask(self.world.delete(JobKey(NAMESPACE, name)))
            if again:
                self.submit(name, "plain")

    @rule(node=NODES)
    def node_is_drained(self, node: str) -> None:
        self.run(self.world.cordon(node, cordoned=True))
        for pod in self.run(self.world.objects("Pod")):
            if pod["spec"].get("nodeName") == node:
                self.ask(self.world.evict(pod["metadata"]["name"]))

    @rule(node=NODES)
    def node_is_lost(self, node: str) -> None:
        if node not in self.world.kubelet.lost:
            self.run(self.world.lose(node))

    @rule(node=NODES)
    def node_is_back(self, node: str) -> None:
        self.run(self.world.cordon(node, cordoned=False))
        if node in self.world.kubelet.lost:
            self.run(self.world.recover(node))

    @rule()
    def operator_is_killed(self) -> None:
        self.world.kill_operator()

    @rule(steps=STEPS, seconds=SECONDS, lateness=st.sampled_from((None, 0.01, 0.5)))
    def operator_is_killed_soon(self, steps: int, seconds: float, lateness: float | None) -> None:
        """In the middle of something; what it had sent may still arrive."""
        self.world.weather.lateness = lateness
        self.world.history.kill_at = self.world.history.steps + steps
        self.time_passes(seconds)

    @rule(faults=st.lists(FAULTS, min_size=1, max_size=3))
    def api_server_has_troubles(self, faults: list[Fault]) -> None:
        self.world.weather.faults += faults

    @rule(seconds=SECONDS)
    def watches_are_late(self, seconds: float) -> None:
        self.world.weather.deaf_until = self.loop.time() + seconds

    @rule(stutters=st.booleans())
    def watches_break_or_stutter(self, *, stutters: bool) -> None:
        self.world.weather.stutters = stutters
        self.world.weather.broken_watches += not stutters

    @rule(seconds=st.sampled_from((-30, -1, 1, 60, 3600)))
    def clock_is_set(self, seconds: int) -> None:
        self.world.skew += timedelta(seconds=seconds)

    @rule(pick=PICK)
    def somebody_keeps_a_pod(self, pick: int) -> None:
        pods = [p for p in self.run(self.world.objects("Pod")) if "deletionTimestamp" not in p["metadata"]]
        if pods:
            self.ask(self.world.keep(pods[pick % len(pods)], [FINALIZER]))

    @rule()
    def nobody_keeps_pods(self) -> None:
        for pod in self.run(self.world.objects("Pod")):
            if pod["metadata"].get("finalizers"):
                self.ask(self.world.keep(pod, []))

    @rule(limited=st.booleans())
    def quota_comes_or_goes(self, *, limited: bool) -> None:
        self.ask(self.world.create(QUOTA) if limited else self.world.remove("ResourceQuota", "quota"))

    @invariant()
    def nothing_was_wrong(self) -> None:
        self.world.check()

    def teardown(self) -> None:
        try:
            self.world.check()
            self.peace_returns()
            self.run(self.all_come_to_their_end())
        finally:
            self.run(self.open.aclose())
            self.loop.close()

    def peace_returns(self) -> None:
        self.world.history.kill_at = None
        self.world.weather.clear_up()
        for node in ("n0", "n1", "n2"):
            self.node_is_back(node)
        self.nobody_keeps_pods()
        self.quota_comes_or_goes(limited=False)
        for name in self.manifests:
            self.edits_are_taken_back(name)

    async def all_come_to_their_end(self) -> None:
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + PEACE_SECONDS
        while unfinished := [s for name in self.manifests if (s := self._of(name)) and not is_over(s)]:
            told = [f"{s.key} is not over: {s.status} {s.pods}" for s in unfinished]
            assert loop.time() < ends_at, "\n".join(told)
            await asyncio.sleep(10)
        await asyncio.sleep(60)
        self.world.monitor.check_left_behind()
        lost = [name for name in self.manifests if name not in self.may_vanish and not self._of(name)]
        assert not lost, f"nobody has deleted {lost}"

    def _of(self, name: str) -> Situation | None:
        return self.world.situation(JobKey(NAMESPACE, name))
