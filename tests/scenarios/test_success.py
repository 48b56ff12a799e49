"""A job trains from its manifest to its end."""

import pytest

from dtj_operator.api.status import Restarts
from dtj_worker.contract import Task
from tests.worlds.world import World, counting, is_over


@pytest.mark.core
@pytest.mark.smoke
async def test_two_workers_count_to_the_end(world: World) -> None:
    job = await world.submit(counting(steps=40, checkpoint_every=10))
    end = await world.until(job, is_over)
    assert (end.status.phase, end.status.restarts, end.status.attempt) == ("Succeeded", Restarts(), 0)
    assert end.status.checkpoint is not None
    assert end.status.checkpoint.step == 40
    assert "worker-0: counted to 40" in await world.log(job, Task("worker", 0))
