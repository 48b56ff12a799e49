"""A wrong manifest is told with its path, and an edit mends it; a wrong edit of a running job breaks nothing."""

import pytest

from dtj_worker.contract import Task
from tests.worlds.world import (
    KillTrainer,
    Refused,
    World,
    checkpoint_reached,
    condition_of,
    counting,
    is_over,
    resumed,
    says,
)


async def test_an_edit_mends_a_manifest(world: World) -> None:
    job = await world.submit(counting(steps=10, trainer={"env": [{"name": "TF_CONFIG", "value": "{}"}]}))
    s = await world.until(job, says("Accepted", "False", "Invalid"))
    assert s.status.phase == "Pending"
    accepted = condition_of(s, "Accepted")
    assert accepted is not None
    assert "spec.template.spec.containers[0].env[0]" in accepted.message
    await world.edit(job, {"spec": {"template": counting(steps=10)["spec"]["template"]}})
    end = await world.until(job, is_over)
    assert end.status.phase == "Succeeded"


async def test_what_the_schema_refuses_is_never_a_job(world: World) -> None:
    with pytest.raises(Refused, match=r"spec\.roles\.worker\.replicas"):
        await world.submit(counting(workers=0))


async def test_what_has_started_keeps_its_roles(world: World) -> None:
    job = await world.submit(counting(steps=10_000))
    await world.until(job, checkpoint_reached(10))
    with pytest.raises(Refused, match=r"set spec\.suspend: true"):
        await world.edit(job, {"spec": {"roles": {"worker": {"replicas": 3}}}})


async def test_a_bad_edit_waits_until_it_is_mended(world: World) -> None:
    """The attempt that runs is left alone, and no other begins before."""
    job = await world.submit(counting(steps=10_000))
    await world.until(job, checkpoint_reached(10))
    await world.edit(job, {"spec": {"recovery": {"rules": [{"messagePattern": "(", "action": "Restart"}]}}})
    s = await world.until(job, says("Accepted", "False", "InvalidEdit"))
    assert s.status.phase == "Running"
    await world.hurt(job, KillTrainer(Task("worker", 1)))
    await world.until(job, lambda s: s.status.attempt == 1 and says("Accepted", "False", "Invalid")(s))
    await world.until(job, lambda s: all(pod.is_over for pod in s.pods))
    await world.edit(job, {"spec": {"recovery": {"rules": []}}})
    after = await world.until(job, resumed(attempt=1))
    assert after.status.restarts.failures == 1
