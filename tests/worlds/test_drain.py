"""A drain gives a disruption budget its time, and says what was in its way when that is over."""

import asyncio

import pytest

from tests.worlds.sim import SimWorld, sim_world
from tests.worlds.watched import DRAIN_SECONDS
from tests.worlds.world import NAMESPACE, Json, counting, trains

BUDGET: Json = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "all-stay", "namespace": NAMESPACE},
    "spec": {"selector": {}, "maxUnavailable": 0},
}


@pytest.mark.looptime
async def test_a_drain_goes_on_when_a_budget_allows_it() -> None:
    async with sim_world() as world:
        node = await guarded(world)
        draining = asyncio.create_task(world.drain(node))
        await asyncio.sleep(DRAIN_SECONDS / 2)
        assert not draining.done()
        await world.remove("PodDisruptionBudget", "all-stay")
        await draining
        assert all(pod["metadata"].get("deletionTimestamp") for pod in await world.objects("Pod"))


@pytest.mark.looptime
async def test_a_drain_does_not_wait_for_ever() -> None:
    async with sim_world() as world:
        node = await guarded(world)
        with pytest.RaisesGroup(
            *[pytest.RaisesExc(AssertionError, match=r"count-worker-\d-0 was not evicted: Cannot evict pod")] * 2
        ):
            await world.drain(node)


async def guarded(world: SimWorld) -> str:
    """The node of a job whose pods a budget keeps."""
    job = await world.submit(counting(steps=10_000))
    s = await world.until(job, trains(attempt=0))
    await world.create(BUDGET)
    (node,) = {pod.node for pod in s.pods if pod.node}
    return node
