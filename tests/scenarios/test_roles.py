"""Tasks beside the workers."""

from dtj_operator.api.status import Restarts
from tests.worlds.world import Json, World, counting, in_phase, is_over, says


def counter(*arguments: str) -> Json:
    """A role's template: the program with other arguments than the job's."""
    return {"template": {"spec": {"containers": [{"name": "trainer", "args": ["counter.py", *arguments]}]}}}


async def test_the_smallest_parameter_server_job(world: World) -> None:
    roles = {"chief": {}, "ps": {"replicas": 1}}
    job = await world.submit(counting(workers=1, steps=10, strategy="ParameterServer", roles=roles))
    end = await world.until(job, is_over)
    assert (end.status.phase, end.status.restarts) == ("Succeeded", Restarts())
    assert says("Complete", "True", "ChiefSucceeded")(end)
    assert {role: one.desired for role, one in end.status.roles.items()} == {"chief": 1, "worker": 1, "ps": 1}


async def test_an_evaluator_finishes_after_the_training(world: World) -> None:
    evaluator = counter("--steps=60", "--step-seconds=0.1")
    job = await world.submit(counting(steps=10, roles={"evaluator": evaluator}))
    await world.until(job, says("Training", "True", "EvaluatorFinishing"))
    end = await world.until(job, is_over)
    assert end.status.phase == "Succeeded"
    assert end.status.roles["evaluator"].succeeded == 1


async def test_an_evaluator_gets_its_time_and_no_more(world: World) -> None:
    evaluator = counter("--steps=100000") | {"finishSeconds": 2}
    job = await world.submit(counting(steps=10, roles={"evaluator": evaluator}))
    end = await world.until(job, is_over)
    assert (end.status.phase, end.status.restarts) == ("Succeeded", Restarts())


async def test_one_worker_is_enough(world: World) -> None:
    job = await world.submit(counting(workers=1, steps=10, strategy="Auto"))
    end = await world.until(job, is_over)
    assert end.status.phase == "Succeeded"
    assert end.status.strategy in ("None", "OneDevice", "Mirrored")
    await world.until(job, in_phase("Succeeded"))
