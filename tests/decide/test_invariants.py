"""What holds in every order of events, with the operator killed anywhere: a machine over the fake world."""

from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from msgspec.structs import replace

from dtj_operator.api.status import FINAL
from dtj_operator.decide.actions import DeleteJob, Emit
from dtj_operator.decide.plan import plan
from tests.decide.fake_world import World
from tests.decide.situations import spec

JOBS = {
    "plain": spec(),
    "alone": spec(workers=1),
    "gated": spec(gang={"scheduler": "BuiltIn"}),
    "evaluated": spec(roles={"evaluator": {}}, ttlSecondsAfterFinished=60),
    "bounded": spec(activeDeadlineSeconds=900, recovery={"maxRestarts": 1}),
    "all workers": spec(successPolicy="AllWorkers", cleanPodPolicy="All"),
    "many logs": spec(keepFailedPods=3, cleanPodPolicy="None", recovery={"maxRestarts": 3}),
}


class JobMachine(RuleBasedStateMachine):
    """Anything may happen to a job between two looks of its operator."""

    @initialize(name=st.sampled_from(sorted(JOBS)), runs=st.booleans())
    def begin(self, name: str, *, runs: bool) -> None:
        self.world = World(JOBS[name])
        self.final: str | None = None
        if runs:
            self.all_goes_well()

    @rule()
    def look(self) -> None:
        self.look_closely()

    @rule(writes=st.integers(0, 5))
    def operator_is_killed_during_a_look(self, writes: int) -> None:
        self.world.look(killed_after=writes)

    @rule()
    def watch_catches_up(self) -> None:
        self.world.watch()

    @rule()
    def all_goes_well(self) -> None:
        """As on most days; else hardly any run would get far."""
        for _ in range(5):
            self.world.reap()
            self.world.watch()
            self.look_closely()
            self.world.admit()
            self.world.schedule()

    @rule()
    def gang_scheduler_decides(self) -> None:
        self.world.admit()

    @rule()
    def pods_start(self) -> None:
        self.world.schedule()

    @rule()
    def pods_go(self) -> None:
        self.world.reap()

    @rule(data=st.data(), code=st.sampled_from([0, 0, 1, 137]))
    def a_pod_ends(self, data: st.DataObject, code: int) -> None:
        if self.world.pods:
            self.world.end(data.draw(st.sampled_from(sorted(self.world.pods))), code)

    @rule(data=st.data())
    def somebody_deletes_a_pod(self, data: st.DataObject) -> None:
        if self.world.pods:
            self.world.delete(data.draw(st.sampled_from(sorted(self.world.pods))))

    @rule(step=st.integers(1, 50), saves=st.booleans())
    def a_step_is_reported(self, step: int, *, saves: bool) -> None:
        self.world.report(step, step // 10 * 10 if saves else None)

    @rule(seconds=st.sampled_from([1, 10, 31, 61, 301, 1000]))
    def time_passes(self, seconds: int) -> None:
        self.world.wait(seconds)

    @rule(suspend=st.booleans())
    def the_user_suspends_or_resumes(self, *, suspend: bool) -> None:
        self.world.edit(suspend=suspend)

    @rule(word=st.sampled_from(["a", "b"]))
    def the_user_asks_for_a_restart(self, word: str) -> None:
        self.world.edit(restart_request=word)

    @rule(quota=st.sampled_from([1, 100]))
    def the_quota_changes(self, quota: int) -> None:
        self.world.quota = quota

    @invariant()
    def final_is_final(self) -> None:
        phase = self.world.status.phase
        assert self.final in (None, phase)
        self.final = phase if phase in FINAL else None

    @invariant()
    def counters_never_fall(self) -> None:
        before, after = self.world.history[-2:] if len(self.world.history) > 1 else [self.world.status] * 2
        old, new = before.restarts, after.restarts
        assert (old.failures, old.disruptions, old.stalls) <= (new.failures, new.disruptions, new.stalls)
        assert old.failures <= new.failures
        assert old.disruptions <= new.disruptions
        assert old.total <= new.total
        assert before.attempt <= after.attempt
        assert (before.gang.formed or 0) <= (after.gang.formed or 0)
        assert before.clock.active_seconds <= after.clock.active_seconds
        assert before.start_time in (None, after.start_time)

    @invariant()
    def two_attempts_are_never_alive_together(self) -> None:
        rounds = {pod.round for pod in self.world.pods.values() if not pod.is_over and pod.task.role != "evaluator"}
        assert len(rounds) <= 1

    @invariant()
    def no_name_is_used_twice(self) -> None:
        gang = [name for name in self.world.made if "evaluator" not in name]
        assert len(gang) == len(set(gang))

    def look_closely(self) -> None:
        """A pass, and what holds of every plan."""
        before, status = self.world.situation(), self.world.status
        was_over = status.phase in FINAL and status.cleanup is None
        made = self.world.look()
        status = self.world.status
        assert not was_over or all(isinstance(action, DeleteJob) for action in made.actions)
        # The operator may die right after the status was written: the rest follows from it again, and nothing else.
        again = plan(replace(before, status=status, refusals=(), admission=self.world.admission), self.world.now)
        assert again.status is None, f"{made.reason} / {again.reason}"
        assert again.actions == tuple(action for action in made.actions if not isinstance(action, Emit))
        waits = (
            (status.phase == "Queued" and status.gang.admitted_at is not None)
            or status.chief_finished_at is not None
            or (status.recovery.not_before is not None and status.recovery.not_before > self.world.now)
            or any(pod.deleting_since is not None and not pod.is_over for pod in self.world.seen.values())
            or (status.clock.since is not None and self.world.spec.active_deadline_seconds is not None)
        )
        if waits and status.phase not in FINAL:
            assert again.wake_at is not None, status
        assert again.wake_at is None or again.wake_at > self.world.now - timedelta(seconds=1)


def test_whatever_happens_to_a_job() -> None:
    run_state_machine_as_test(JobMachine, settings=settings(max_examples=60, stateful_step_count=40, deadline=None))
