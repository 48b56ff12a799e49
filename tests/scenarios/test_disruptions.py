"""A pod or its node goes for reasons that are not the program's: the gang comes back, and its budget is untouched."""

from datetime import timedelta

import pytest

from dtj_operator.api.observed import Situation
from dtj_operator.api.status import FailureClass, Restarts
from dtj_worker.contract import Task
from tests.worlds.world import (
    GPUS,
    NO_FINALIZERS,
    DeletePod,
    Evict,
    Holds,
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
LOST_NODE_SECONDS, GRACE_SECONDS = 30, 20
ELSEWHERE = timedelta(seconds=LOST_NODE_SECONDS + GRACE_SECONDS + 90)
"""How soon after a cut a gang trains again. In 90 s Kubernetes notices, pods start and programs load; a promise of true
seconds, however patient the world is."""


@pytest.mark.core
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


@pytest.mark.core
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


@pytest.mark.needs("Gpus")
async def test_a_drained_node_is_left_behind(world: World) -> None:
    """The next attempt begins when the drain has left the gang's other nodes alone for a minute."""
    job = await world.submit(counting(steps=10_000, step_seconds=0.5, trainer=on(GPUS), recovery=UNFORGIVING))
    before = await world.until(job, checkpoint_reached(10))
    drained = next(pod.node for pod in before.pods if pod.task == WORKER_1)
    assert drained is not None
    await world.drain(drained)
    s = await world.until(job, lambda s: "cordoned" in (s.status.reason or ""))
    assert s.status.phase == "Restarting"
    after = await world.until(job, resumed(attempt=1), within=120)
    assert after.status.restarts == Restarts(disruptions=1, total=1)
    assert drained not in {pod.node for pod in after.pods if pod.round > 0}


@pytest.mark.core
@pytest.mark.needs("Gpus")
async def test_a_drain_of_one_node_after_the_other_costs_one_restart(world: World) -> None:
    """As an upgrade of all nodes does it: each comes back before the next one goes."""
    job = await world.submit(counting(steps=10_000, step_seconds=0.5, trainer=on(GPUS), recovery=UNFORGIVING))
    before = await world.until(job, checkpoint_reached(10))
    own = {pod.node for pod in before.pods}
    names = [node["metadata"]["name"] for node in await world.objects("Node")]
    for node in sorted(names, key=lambda name: name not in own):
        await world.drain(node)
        if node in own:
            await world.until(job, waits_for(node))
        await world.cordon(node, cordoned=False)
    after = await world.until(job, resumed(attempt=1), within=180)
    assert after.status.restarts == Restarts(disruptions=1, total=1)
    assert {pod.round for pod in after.pods} == {1}


@pytest.mark.core
@pytest.mark.needs("Nodes", "Gpus")
async def test_a_lost_node_is_left_behind(world: World) -> None:
    """The trainer there may run on, unheard; nothing waits for it longer than its pod's grace."""
    recovery = UNFORGIVING | {"lostNodeSeconds": LOST_NODE_SECONDS}
    pod = {"terminationGracePeriodSeconds": GRACE_SECONDS}
    job = await world.submit(counting(steps=10_000, step_seconds=0.5, trainer=on(GPUS), pod=pod, recovery=recovery))
    before = await world.until(job, checkpoint_reached(10))
    lost = next(pod.node for pod in before.pods if pod.task == WORKER_1)
    cut_at = world.now()
    await world.hurt(job, LoseNode(WORKER_1))
    after = await world.until(job, resumed(attempt=1), within=180)
    trains_at = after.status.timeline[-1].first_step
    assert trains_at is not None
    assert trains_at - cut_at <= ELSEWHERE
    assert after.status.restarts == Restarts(disruptions=1, total=1)
    assert told(after) == ("Disruption", "worker", 1)
    assert lost not in {pod.node for pod in after.pods if pod.round > 0}


def waits_for(node: str) -> Holds:
    """The next attempt waits because this node was cordoned."""
    return lambda s: node in s.status.recovery.cordoned


def told(s: Situation) -> tuple[FailureClass, str | None, int | None]:
    """Class and culprit of the last failure."""
    assert s.status.last_failure is not None
    return s.status.last_failure.failure_class, s.status.last_failure.role, s.status.last_failure.index
