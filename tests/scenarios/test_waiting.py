"""A job that can't start says what it waits for, holds nothing meanwhile, and starts by itself when that comes."""

import pytest

from dtj_operator.api.status import Restarts
from tests.worlds.world import (
    GPUS,
    NAMESPACE,
    World,
    condition_of,
    counting,
    in_phase,
    is_over,
    on,
    says,
    trains,
    why_failed,
)

QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "small", "namespace": NAMESPACE},
    "spec": {"hard": {"pods": "1"}},
}


@pytest.mark.core
async def test_a_gang_that_can_never_fit_says_so(world: World) -> None:
    job = await world.submit(counting(trainer=on(GPUS + 1)))
    s = await world.until(job, says("GangScheduled", "False", "CannotFit"))
    assert s.status.phase == "Queued"
    assert s.status.gang.waiting_for is not None
    assert "5 × nvidia.com/gpu" in s.status.gang.waiting_for
    assert await world.objects("Pod") == []


@pytest.mark.needs("Gpus")
async def test_two_jobs_take_turns(world: World) -> None:
    """Three nodes carry one gang of two whole nodes, never two halves of two gangs."""
    first = await world.submit(counting("first", steps=10_000, trainer=on(GPUS)))
    await world.until(first, trains(attempt=0))
    second = await world.submit(counting("second", steps=10, trainer=on(GPUS)))
    s = await world.until(second, lambda s: "nvidia.com/gpu" in (s.status.gang.waiting_for or ""))
    assert (s.status.phase, s.pods) == ("Queued", ())
    await world.delete(first)
    end = await world.until(second, is_over)
    assert end.status.phase == "Succeeded"


@pytest.mark.core
async def test_two_jobs_run_side_by_side(world: World) -> None:
    jobs = [await world.submit(counting(name, steps=20, fault="worker:1@step=15")) for name in ("left", "right")]
    for job in jobs:
        end = await world.until(job, is_over)
        assert (end.status.phase, end.status.restarts) == ("Succeeded", Restarts(failures=1, total=1))


async def test_a_full_quota_queues_a_job(world: World) -> None:
    await world.create(QUOTA)
    job = await world.submit(counting(steps=10))
    s = await world.until(job, says("GangScheduled", "False", "QuotaExceeded"))
    assert s.status.phase == "Queued"
    assert "exceeded quota: small" in (s.status.reason or "")
    await world.until(job, lambda s: not s.pods)
    await world.remove("ResourceQuota", "small")
    end = await world.until(job, is_over)
    assert (end.status.phase, end.status.restarts) == ("Succeeded", Restarts())


async def test_a_missing_claim_is_named(world: World) -> None:
    job = await world.submit(counting(steps=10, checkpoint={"persistentVolumeClaim": "absent"}))
    s = await world.until(job, says("GangScheduled", "False", "ClaimMissing"))
    field = "spec.checkpoint.persistentVolumeClaim"
    words = f"{field}: there is no PersistentVolumeClaim absent in namespace {NAMESPACE}"
    assert (s.status.phase, s.status.reason) == ("Queued", words)
    assert await world.objects("Pod") == []
    claims = await world.objects("PersistentVolumeClaim")
    await world.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "absent", "namespace": NAMESPACE},
            "spec": {key: claims[0]["spec"][key] for key in ("accessModes", "resources")},
        }
    )
    end = await world.until(job, is_over)
    assert (end.status.phase, end.status.restarts) == ("Succeeded", Restarts())


async def test_a_missing_config_map_is_named(world: World) -> None:
    job = await world.submit(counting(steps=10, trainer={"envFrom": [{"configMapRef": {"name": "settings"}}]}))
    s = await world.until(job, lambda s: 'configmap "settings" not found' in str(condition_of(s, "Training")))
    assert s.status.phase == "Starting"
    settings = {"name": "settings", "namespace": NAMESPACE}
    await world.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": settings, "data": {"LEVEL": "3"}})
    end = await world.until(job, is_over)
    assert (end.status.phase, end.status.restarts) == ("Succeeded", Restarts())


@pytest.mark.needs("Images")
async def test_an_image_that_does_not_exist_fails_at_its_deadline(world: World) -> None:
    recovery = {"scheduleSeconds": 30, "maxRestarts": 0}
    job = await world.submit(counting(trainer={"image": "dtj/missing"}, recovery=recovery))
    await world.until(job, in_phase("Starting"))
    end = await world.until(job, is_over)
    assert (end.status.phase, why_failed(end)) == ("Failed", "RestartsExhausted")
    assert end.status.last_failure is not None
    assert end.status.last_failure.failure_class == "Image"
    assert "dtj/missing" in end.status.last_failure.message
