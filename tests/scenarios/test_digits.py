"""Real training: the handwritten digits with TensorFlow, in the example's own manifest."""

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from dtj_operator.api.observed import JobKey, Situation
from dtj_operator.api.status import Restarts
from dtj_worker.contract import Task
from tests.worlds.world import GPUS, NAMESPACE, RESTRICTED, Evict, World, checkpoint_reached, is_over, on

pytestmark = [pytest.mark.tensorflow(supervised=True), pytest.mark.timeout(900), pytest.mark.needs("Programs")]
JOB: dict[str, Any] = yaml.safe_load((Path(__file__).parents[2] / "examples" / "digits" / "job.yaml").read_text())
WORKER_1 = Task("worker", 1)


async def test_digits_are_learnt_although_a_worker_is_evicted(world: World) -> None:
    job = await world.submit(digits())
    await world.until(job, checkpoint_reached(1), within=200)
    await world.hurt(job, Evict(WORKER_1))
    await learns(world, job, await world.until(job, is_over, within=200))


@pytest.mark.core
@pytest.mark.needs("PodSecurity", "Gpus")
async def test_digits_are_learnt_although_a_node_is_drained(world: World) -> None:
    """One worker on each of two nodes, in a namespace that is restricted."""
    await world.change("Namespace", NAMESPACE, RESTRICTED)
    job = await world.submit(digits(on(GPUS)))
    before = await world.until(job, checkpoint_reached(1), within=200)
    nodes = {pod.task: pod.node for pod in before.pods}
    drained = nodes[WORKER_1]
    assert drained is not None
    assert len(set(nodes.values())) == 2
    await world.drain(drained)
    end = await world.until(job, is_over, within=300)
    assert drained not in {pod.node for pod in end.pods if pod.round > 0}
    await learns(world, job, end)


def digits(trainer: dict[str, Any] | None = None) -> dict[str, Any]:
    """The example, its trainer with some fields more; its image is brought by nobody but this machine."""
    job = copy.deepcopy(JOB)
    container = job["spec"]["template"]["spec"]["containers"][0]
    resources = container["resources"] | (trainer or {}).get("resources", {})
    container |= {"imagePullPolicy": "IfNotPresent", "resources": resources}
    return job


async def learns(world: World, job: JobKey, end: Situation) -> None:
    """After one disruption, from a checkpoint on, as well as without."""
    assert (end.status.phase, end.status.restarts) == ("Succeeded", Restarts(disruptions=1, total=1))
    assert (end.status.timeline[-1].resumed_from_epoch or 0) >= 1
    accuracy = re.search(r"test accuracy (0\.\d+)", await world.log(job, Task("worker", 0)))
    assert accuracy is not None
    assert float(accuracy[1]) >= 0.93
