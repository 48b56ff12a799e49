"""The operator dies and comes back: nothing of the job changes, and nothing is counted twice."""

import asyncio
from random import Random

import pytest

from dtj_operator.api.status import Restarts
from dtj_worker.contract import Task
from tests.worlds.world import (
    DeletePod,
    KillOperator,
    KillTrainer,
    RestartApiServer,
    UpgradeOperator,
    World,
    checkpoint_reached,
    counting,
    is_over,
    resumed,
    trains,
)


async def test_a_job_that_trains_does_not_notice(world: World) -> None:
    job = await world.submit(counting(steps=60))
    await world.until(job, checkpoint_reached(10))
    await world.hurt(job, KillOperator())
    end = await world.until(job, is_over)
    assert (end.status.phase, end.status.attempt, end.status.restarts) == ("Succeeded", 0, Restarts())
    assert {pod.name for pod in end.pods} == {"count-worker-0-0", "count-worker-1-0"}


@pytest.mark.core
async def test_an_upgrade_is_not_noticed_by_a_job_that_trains(world: World) -> None:
    """And the new operator goes on with it."""
    job = await world.submit(counting(steps=10_000))
    before = await world.until(job, checkpoint_reached(10))
    await world.hurt(job, UpgradeOperator())
    step = (before.status.checkpoint and before.status.checkpoint.step) or 0
    s = await world.until(job, checkpoint_reached(step + 100))
    assert (s.status.attempt, s.status.restarts, s.pods) == (0, Restarts(), before.pods)
    await world.hurt(job, KillTrainer(Task("worker", 1)))
    after = await world.until(job, resumed(attempt=1))
    assert after.status.restarts == Restarts(failures=1, total=1)


@pytest.mark.core
@pytest.mark.needs("ApiServer")
async def test_a_job_trains_on_without_an_api_server(world: World) -> None:
    job = await world.submit(counting(steps=10_000))
    before = await world.until(job, checkpoint_reached(10))
    await world.hurt(job, RestartApiServer())
    step = (before.status.checkpoint and before.status.checkpoint.step) or 0
    s = await world.until(job, checkpoint_reached(step + 100))
    assert (s.status.attempt, s.status.restarts) == (0, Restarts())
    await world.hurt(job, DeletePod(Task("worker", 1)))
    after = await world.until(job, resumed(attempt=1))
    assert after.status.restarts == Restarts(disruptions=1, total=1)


async def test_a_gang_that_comes_back_is_counted_once(world: World) -> None:
    job = await world.submit(counting(steps=10_000))
    await world.until(job, checkpoint_reached(10))
    await world.hurt(job, KillTrainer(Task("worker", 1)))
    await world.hurt(job, KillOperator())
    await world.until(job, lambda s: s.status.attempt == 1)
    await world.hurt(job, KillOperator())
    after = await world.until(job, resumed(attempt=1))
    assert after.status.restarts == Restarts(failures=1, total=1)


@pytest.mark.timeout(1200)  # with --kills=20
async def test_a_life_in_which_the_operator_is_killed_at_random_moments(world: World, kills: int) -> None:
    """Each time something happens to the job, and a moment later to the operator; each thing counts once."""
    chance = Random(kills)
    job = await world.submit(counting(steps=100_000, checkpoint_every=5))
    failures = disruptions = 0
    for attempt in range(kills):
        before = await world.until(job, trains(attempt))
        known = before.status.checkpoint.step if before.status.checkpoint else None
        # Without progress each failure would wait longer than the one before.
        await world.until(job, checkpoint_reached((known or 0) + 5))
        task = Task("worker", chance.randrange(2))
        if chance.random() < 0.5:
            failures += 1
            await world.hurt(job, KillTrainer(task))
        else:
            disruptions += 1
            await world.hurt(job, DeletePod(task))
        await asyncio.sleep(chance.uniform(0, 3))
        await world.hurt(job, KillOperator())
    after = await world.until(job, trains(kills))
    assert after.status.restarts == Restarts(failures, disruptions, total=kills)
    assert {pod.task for pod in after.pods if not pod.is_over} == {Task("worker", 0), Task("worker", 1)}
    await world.delete(job)
    await world.gone(job)
