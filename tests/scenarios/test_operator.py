"""The operator dies and comes back: nothing of the job changes, and nothing is counted twice."""

from dtj_operator.api.status import Restarts
from dtj_worker.contract import Task
from tests.worlds.world import (
    KillOperator,
    KillTrainer,
    World,
    checkpoint_reached,
    counting,
    in_phase,
    is_over,
    resumed,
)


async def test_a_job_that_trains_does_not_notice(world: World) -> None:
    job = await world.submit(counting(steps=60))
    await world.until(job, checkpoint_reached(10))
    await world.hurt(job, KillOperator())
    end = await world.until(job, is_over)
    assert (end.status.phase, end.status.attempt, end.status.restarts) == ("Succeeded", 0, Restarts())
    assert {pod.name for pod in end.pods} == {"count-worker-0-0", "count-worker-1-0"}


async def test_a_gang_that_comes_back_is_counted_once(world: World) -> None:
    job = await world.submit(counting(steps=10_000))
    await world.until(job, checkpoint_reached(10))
    await world.hurt(job, KillTrainer(Task("worker", 1)))
    await world.hurt(job, KillOperator())
    await world.until(job, in_phase("Restarting", "Queued", "Starting"))
    await world.hurt(job, KillOperator())
    after = await world.until(job, resumed(attempt=1))
    assert after.status.restarts == Restarts(failures=1, total=1)
