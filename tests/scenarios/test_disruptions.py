"""A pod or its node goes for reasons that are not the program's: the gang comes back, and its budget is untouched."""

import pytest

from dtj_operator.api.observed import Situation
from dtj_operator.api.status import FailureClass, Restarts
from dtj_worker.contract import Task
from tests.worlds.world import (
    GPUS,
    NO_FINALIZERS,
    DeletePod,
    Evict,
    LoseNode,
    World,
    checkpoint_reached,
    counting,
    in_phase,
    on,
    resumed,
    trains,
)

WORKER_0, WORKER_1 = Task("worker", 0), Task("worker", 1)
UNFORGIVING = {"maxRestarts": 0}


@pytest.mark.parametrize(
    "what",
    [
        pytest.param(DeletePod(WORKER_0), id="the chief's pod is deleted"),
        pytest.param(Evict(WORKER_1), id="a pod is evicted"),
    ],
)
async def test_a_pod_that_is_taken_away_costs_nothing(world: World, what: DeletePod | Evict) -> None:
    job = await world.submit(counting(steps=10_000, recovery=UNFORGIVING))
    await world.until(job, checkpoint_reached(10))
    await world.hurt(job, what)
    after = await world.until(job, resumed(attempt=1))
    assert after.status.restarts == Restarts(disruptions=1, total=1)
    assert told(after) == ("Disruption", "worker", what.task.index)


async def test_a_disruption_before_the_first_step_costs_nothing_either(world: World) -> None:
    job = await world.submit(counting(steps=10_000, recovery=UNFORGIVING))
    await world.until(job, in_phase("Starting"))
    await world.hurt(job, DeletePod(WORKER_1))
    after = await world.until(job, trains(attempt=1))
    assert after.status.restarts == Restarts(disruptions=1, total=1)


async def test_a_pod_that_cannot_go_is_not_waited_for_when_its_containers_have_ended(world: World) -> None:
    job = await world.submit(counting(steps=10_000, finalizers=("example.com/not-yet",)))
    await world.until(job, checkpoint_reached(10))
    await world.hurt(job, DeletePod(WORKER_1))
    after = await world.until(job, resumed(attempt=1))
    assert after.status.restarts == Restarts(disruptions=1, total=1)
    stuck = {pod.name for pod in after.pods if pod.deleting_since}
    assert "count-worker-1-0" in stuck
    await world.delete(job)
    for pod in await world.objects("Pod"):
        await world.change("Pod", pod["metadata"]["name"], NO_FINALIZERS)
    await world.gone(job)


@pytest.mark.needs("Nodes")
async def test_a_lost_node_is_left_behind(world: World) -> None:
    """The trainer there may run on, unheard; nothing waits for it longer than its pod's grace."""
    recovery = UNFORGIVING | {"lostNodeSeconds": 30, "terminationSeconds": 10}
    job = await world.submit(counting(steps=10_000, step_seconds=0.5, trainer=on(GPUS), recovery=recovery))
    before = await world.until(job, checkpoint_reached(10))
    lost = next(pod.node for pod in before.pods if pod.task == WORKER_1)
    await world.hurt(job, LoseNode(WORKER_1))
    after = await world.until(job, resumed(attempt=1), within=180)
    assert after.status.restarts == Restarts(disruptions=1, total=1)
    assert told(after) == ("Disruption", "worker", 1)
    assert lost not in {pod.node for pod in after.pods if pod.round > 0}


def told(s: Situation) -> tuple[FailureClass, str | None, int | None]:
    """Class and culprit of the last failure."""
    assert s.status.last_failure is not None
    return s.status.last_failure.failure_class, s.status.last_failure.role, s.status.last_failure.index
