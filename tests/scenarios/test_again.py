"""The same job once more: suspended and resumed, restarted on request, deleted and applied again."""

import pytest

from dtj_operator.api.status import Restarts
from tests.worlds.world import NO_FINALIZERS, World, checkpoint_reached, counting, in_phase, is_over, resumed, says


@pytest.mark.core
@pytest.mark.smoke
async def test_a_suspended_job_holds_nothing_and_goes_on_where_it_was(world: World) -> None:
    job = await world.submit(counting(steps=10_000))
    before = await world.until(job, checkpoint_reached(10))
    await world.edit(job, {"spec": {"suspend": True}})
    s = await world.until(job, in_phase("Suspended"))
    assert all(pod.is_over for pod in s.pods)
    await world.edit(job, {"spec": {"suspend": False}})
    after = await world.until(job, resumed(attempt=1))
    assert after.status.restarts == Restarts()
    assert [one.outcome for one in after.status.timeline] == ["Suspended", None]
    assert before.status.checkpoint is not None
    assert (after.status.timeline[-1].resumed_from_step or 0) >= (before.status.checkpoint.step or 0)


async def test_a_job_may_be_made_suspended(world: World) -> None:
    job = await world.submit(counting(steps=10, suspend=True))
    await world.until(job, in_phase("Suspended"))
    assert await world.objects("Pod") == []
    await world.edit(job, {"spec": {"suspend": False}})
    end = await world.until(job, is_over)
    assert (end.status.phase, end.status.restarts) == ("Succeeded", Restarts())


async def test_a_requested_restart_is_not_counted(world: World) -> None:
    job = await world.submit(counting(steps=10_000))
    await world.until(job, checkpoint_reached(10))
    await world.edit(job, {"spec": {"restartRequest": "once"}})
    after = await world.until(job, resumed(attempt=1))
    assert after.status.restarts == Restarts()
    assert [one.outcome for one in after.status.timeline] == ["Requested", None]


@pytest.mark.core
async def test_a_job_that_is_deleted_and_applied_again_goes_on(world: World) -> None:
    """While the pods of the first one are still going."""
    job = await world.submit(counting(steps=10_000))
    await world.until(job, checkpoint_reached(10))
    await world.delete(job)
    again = await world.submit(counting(steps=200, step_seconds=0.02))
    end = await world.until(again, is_over)
    assert (end.status.phase, end.status.attempt, end.status.restarts) == ("Succeeded", 0, Restarts())
    assert (end.status.timeline[0].resumed_from_step or 0) >= 10


async def test_a_job_whose_claim_was_deleted_begins_anew(world: World) -> None:
    """Nothing waits for a claim that only a list of some minutes ago has shown."""
    template = {"spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}}
    manifest = counting(steps=30, checkpoint={"volumeClaimTemplate": template})
    job = await world.submit(manifest)
    await world.until(job, is_over)
    await world.delete(job)
    await world.gone(job)
    await world.remove("PersistentVolumeClaim", "count-checkpoints")
    again = await world.submit(manifest)
    end = await world.until(again, is_over)
    assert (end.status.phase, end.status.gang.missed) == ("Succeeded", 0), end.status.reason
    assert end.status.timeline[0].resumed_from_step is None


async def test_a_predecessor_that_cannot_go_is_waited_for(world: World) -> None:
    job = await world.submit(counting(steps=10_000, finalizers=("example.com/not-yet",)))
    await world.until(job, checkpoint_reached(10))
    await world.delete(job)
    again = await world.submit(counting(steps=10_000))
    s = await world.until(again, says("Accepted", "False", "WaitingForPredecessor"))
    assert "count-worker-0-0" in (s.status.reason or "")
    for pod in await world.objects("Pod"):
        await world.change("Pod", pod["metadata"]["name"], NO_FINALIZERS)
    await world.until(again, resumed(attempt=0))
