"""How a job ends, and what of it is left then."""

import pytest

from dtj_operator.api.status import Restarts
from dtj_worker.contract import Task
from tests.worlds.world import Json, KillOperator, World, checkpoint_reached, counting, is_over, says, why_failed

FOREVER: Json = {
    "name": "forwards-logs",
    "image": "dtj/worker:latest",
    "imagePullPolicy": "IfNotPresent",
    "command": ["sh", "-c", "trap 'exit 0' TERM; sleep 100000 & wait"],
}


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        pytest.param("Running", {"count-worker-0-0", "count-worker-1-0"}, id="what ended by itself stays"),
        pytest.param("All", set(), id="nothing stays"),
        pytest.param("None", {"count-worker-0-0", "count-worker-1-0"}, id="everything stays"),
    ],
)
async def test_clean_up(world: World, policy: str, left: set[str]) -> None:
    job = await world.submit(counting(steps=10, successPolicy="AllWorkers", cleanPodPolicy=policy))
    end = await world.until(job, lambda s: is_over(s) and {pod.name for pod in s.pods} == left)
    assert end.status.phase == "Succeeded"
    assert not await world.objects("Service")
    assert not await world.objects("NetworkPolicy")


@pytest.mark.core
async def test_a_sidecar_that_never_ends_holds_up_nothing(world: World) -> None:
    job = await world.submit(counting(steps=10, beside=(FOREVER,)))
    end = await world.until(job, lambda s: is_over(s) and not s.pods)
    assert (end.status.phase, end.status.restarts) == ("Succeeded", Restarts())


@pytest.mark.core
@pytest.mark.smoke
async def test_a_native_sidecar_ends_with_the_trainer(world: World) -> None:
    sidecar = FOREVER | {"restartPolicy": "Always"}
    job = await world.submit(counting(steps=10, pod={"initContainers": [sidecar]}, successPolicy="AllWorkers"))
    end = await world.until(job, is_over)
    assert (end.status.phase, end.status.restarts) == ("Succeeded", Restarts())
    assert {pod.stage for pod in end.pods} == {"Succeeded"}


@pytest.mark.core
async def test_a_finished_job_goes_when_its_time_is_over(world: World) -> None:
    """Though no event reminds the operator, and another process than the one that saw the job end."""
    job = await world.submit(counting(steps=5, ttlSecondsAfterFinished=4))
    end = await world.until(job, is_over)
    assert end.status.phase == "Succeeded"
    await world.hurt(job, KillOperator())
    await world.gone(job)
    assert await world.objects("Pod") == []


async def test_a_job_fails_when_its_time_is_over(world: World) -> None:
    job = await world.submit(counting(steps=10_000, activeDeadlineSeconds=4))
    await world.until(job, checkpoint_reached(10))
    end = await world.until(job, is_over)
    assert (end.status.phase, why_failed(end)) == ("Failed", "DeadlineExceeded")
    assert end.status.restarts == Restarts()


async def test_every_worker_may_have_to_succeed(world: World) -> None:
    """Worker 0 is killed in its last step, when the others have ended or are about to; all of them count again."""
    job = await world.submit(counting(steps=20, fault="worker:0@step=20", successPolicy="AllWorkers"))
    end = await world.until(job, is_over)
    assert (end.status.phase, end.status.attempt) == ("Succeeded", 1)
    assert says("Complete", "True", "AllWorkersSucceeded")(end)


@pytest.mark.core
@pytest.mark.smoke
async def test_deleting_a_job_leaves_nothing(world: World) -> None:
    job = await world.submit(counting(steps=10_000))
    await world.until(job, checkpoint_reached(10))
    await world.delete(job)
    await world.gone(job)
    assert [claim["metadata"]["name"] for claim in await world.objects("PersistentVolumeClaim")] == ["checkpoints"]


async def test_the_log_of_a_finished_task_can_be_read(world: World) -> None:
    job = await world.submit(counting(steps=10))
    await world.until(job, is_over)
    assert "worker-0: counted to 10" in await world.log(job, Task("worker", 0))
