"""Real training: the handwritten digits with TensorFlow, in the example's own manifest."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from dtj_operator.api.status import Restarts
from dtj_worker.contract import Task
from tests.worlds.world import Evict, World, checkpoint_reached, is_over

JOB: dict[str, Any] = yaml.safe_load((Path(__file__).parents[2] / "examples" / "digits" / "job.yaml").read_text())


@pytest.mark.tensorflow(supervised=True)
@pytest.mark.timeout(600)
@pytest.mark.needs("Programs")
async def test_digits_are_learnt_although_a_worker_is_drained(world: World) -> None:
    job = await world.submit(JOB)
    await world.until(job, checkpoint_reached(1), within=200)
    await world.hurt(job, Evict(Task("worker", 1)))
    end = await world.until(job, is_over, within=200)
    assert (end.status.phase, end.status.restarts) == ("Succeeded", Restarts(disruptions=1, total=1))
    assert (end.status.timeline[-1].resumed_from_epoch or 0) >= 1
    accuracy = re.search(r"test accuracy (0\.\d+)", await world.log(job, Task("worker", 0)))
    assert accuracy is not None
    assert float(accuracy[1]) >= 0.93
