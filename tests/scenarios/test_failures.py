"""A program, its supervisor or its memory fails: one class, one restart, and the run goes on at the last checkpoint."""

import pytest

from dtj_operator.api.status import JobStatus, LastFailure, Restarts
from dtj_worker.contract import Task
from tests.worlds.world import (
    ExhaustMemory,
    Holds,
    KillSupervisor,
    KillTrainer,
    World,
    checkpoint_reached,
    counting,
    in_phase,
    is_over,
    resumed,
    trains,
    why_failed,
)

WORKER_0, WORKER_1 = Task("worker", 0), Task("worker", 1)


@pytest.mark.core
@pytest.mark.smoke
async def test_a_killed_worker_costs_one_restart(world: World) -> None:
    job = await world.submit(counting(steps=10_000))
    before = await world.until(job, checkpoint_reached(10))
    await world.hurt(job, KillTrainer(WORKER_1))
    after = await world.until(job, resumed(attempt=1))
    assert after.status.restarts == Restarts(failures=1, total=1)
    failure = last_failure(after.status)
    assert (failure.failure_class, failure.role, failure.index) == ("Application", "worker", 1)
    assert (failure.signal, failure.attempt) == ("SIGKILL", 0)
    assert before.status.checkpoint is not None
    first, second = after.status.timeline
    assert (first.outcome, first.resumed_from_step) == ("Application", None)
    assert second.resumed_from_step is not None
    assert second.resumed_from_step >= (before.status.checkpoint.step or 0)


async def test_a_run_that_was_killed_ends_like_any_other(world: World) -> None:
    job = await world.submit(counting(steps=60, checkpoint_every=20, fault="worker:1@step=25"))
    end = await world.until(job, is_over)
    assert end.status.phase == "Succeeded"
    assert end.status.restarts == Restarts(failures=1, total=1)
    first, second = end.status.timeline
    assert (first.outcome, first.resumed_from_step, second.outcome) == ("Application", None, "Succeeded")
    assert second.resumed_from_step in (20, 40), "worker 0 may have gone on until it was told"
    assert last_failure(end.status).step == 25


async def test_an_exit_code_is_the_programs_own(world: World) -> None:
    job = await world.submit(counting(steps=30, fault="worker:0@step=15:exit=3"))
    end = await world.until(job, is_over)
    failure = last_failure(end.status)
    assert (failure.failure_class, failure.role, failure.index, failure.exit_code) == ("Application", "worker", 0, 3)
    assert (end.status.phase, end.status.restarts) == ("Succeeded", Restarts(failures=1, total=1))


async def test_a_program_that_always_fails_uses_up_its_restarts(world: World) -> None:
    options = ("--exit-code=3",)
    job = await world.submit(counting(steps=5, arguments=options, recovery={"maxRestarts": 1, "maxSameFailure": 9}))
    end = await world.until(job, is_over)
    assert (end.status.phase, end.status.restarts) == ("Failed", Restarts(failures=2, total=2))
    assert [one.outcome for one in end.status.timeline] == ["Application", "Application"]
    assert why_failed(end) == "RestartsExhausted"


@pytest.mark.core
@pytest.mark.needs("Processes")
async def test_the_end_of_a_supervisor_is_no_secret(world: World) -> None:
    job = await world.submit(counting(steps=10_000))
    await world.until(job, checkpoint_reached(10))
    await world.hurt(job, KillSupervisor(WORKER_0))
    after = await world.until(job, resumed(attempt=1))
    failure = last_failure(after.status)
    assert (failure.failure_class, failure.role, failure.index, failure.exit_code) == ("Application", "worker", 0, 137)
    assert after.status.restarts == Restarts(failures=1, total=1)


async def test_a_preempted_trainer_costs_no_restart_of_the_budget(world: World) -> None:
    job = await world.submit(counting(steps=60, fault="worker:1@step=15:SIGTERM", recovery={"maxRestarts": 0}))
    end = await world.until(job, is_over)
    assert (end.status.phase, end.status.restarts) == ("Succeeded", Restarts(disruptions=1, total=1))
    failure = last_failure(end.status)
    assert (failure.failure_class, failure.role, failure.index) == ("Preempted", "worker", 1)


@pytest.mark.core
@pytest.mark.needs("Memory")
async def test_memory_that_runs_out_again_ends_the_job_with_advice(world: World) -> None:
    """After two times; three, where both were on one node and another is there to try. No checkpoint comes between."""
    limited = {"resources": {"limits": {"memory": "100Mi"}}}
    job = await world.submit(counting(steps=10_000, checkpoint_every=10_000, trainer=limited))
    for attempt in range(3):
        end = await world.until(job, over_or(trains(attempt)))
        if not is_over(end):
            await world.hurt(job, ExhaustMemory(WORKER_1))
    end = await world.until(job, is_over)
    assert end.status.phase == "Failed"
    assert why_failed(end) == "OutOfMemory"
    assert "limit" in (end.status.reason or "")


async def test_a_program_that_does_not_exist_fails_at_once(world: World) -> None:
    job = await world.submit(counting(trainer={"args": ["absent.py"]}))
    end = await world.until(job, is_over)
    assert (end.status.phase, end.status.restarts.total) == ("Failed", 0)
    assert why_failed(end) == "Configuration"
    assert "absent.py" in (end.status.reason or "")


async def test_a_program_that_can_not_be_imported_fails_at_once(world: World) -> None:
    job = await world.submit(counting(trainer={"args": ["--", "python3", "-c", "import nosuchmodule"]}))
    end = await world.until(job, is_over)
    assert (end.status.phase, end.status.restarts.total, end.status.ready) == ("Failed", 0, "0/2")
    assert why_failed(end) == "Configuration"
    assert "No module named 'nosuchmodule'" in (end.status.reason or "")


async def test_the_last_failed_pod_stays_for_its_logs(world: World) -> None:
    job = await world.submit(counting(steps=30, fault="worker:1@step=15:exit=3"))
    end = await world.until(job, is_over)
    culprit = last_failure(end.status).pod
    kept = [pod for pod in await world.objects("Pod") if pod["metadata"]["name"] == culprit]
    assert [pod["status"]["phase"] for pod in kept] == ["Failed"]


async def test_a_failed_pod_goes_where_none_is_to_be_kept(world: World) -> None:
    job = await world.submit(counting(steps=30, fault="worker:1@step=15:exit=3", keepFailedPods=0))
    end = await world.until(job, is_over)
    culprit = last_failure(end.status).pod
    assert culprit not in [pod["metadata"]["name"] for pod in await world.objects("Pod")]


async def test_a_job_may_give_up_at_an_exit_code(world: World) -> None:
    rules = [{"exitCodes": [3], "action": "Fail"}]
    job = await world.submit(counting(steps=30, fault="worker:1@step=15:exit=3", recovery={"rules": rules}))
    end = await world.until(job, in_phase("Failed", "Succeeded"))
    assert (end.status.phase, why_failed(end)) == ("Failed", "FailedByRule")


def over_or(holds: Holds) -> Holds:
    return lambda s: is_over(s) or holds(s)


def last_failure(status: JobStatus) -> LastFailure:
    assert status.last_failure is not None
    return status.last_failure
