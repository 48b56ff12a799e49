"""Stories of jobs that are told again and again, with the operator killed at another step each time."""

from dtj_operator.api.observed import Situation
from tests.worlds.sim import SimWorld
from tests.worlds.world import counting, in_phase, is_over, step_reached

LONG = 400.0


async def killed_once(world: SimWorld) -> Situation | None:
    """A worker is killed, and the gang resumes from its checkpoint."""
    job = await world.submit(counting(steps=20, fault="worker:1@step=15"))
    return await world.until(job, is_over, within=LONG)


async def suspended(world: SimWorld) -> Situation | None:
    """A job is suspended, resumed, succeeds, and outlives its time."""
    manifest = counting(workers=1, steps=12, step_seconds=1, checkpoint_every=2, ttlSecondsAfterFinished=30)
    job = await world.submit(manifest)
    await world.until(job, step_reached(4), within=LONG)
    await world.edit(job, {"spec": {"suspend": True}})
    await world.until(job, in_phase("Suspended"), within=LONG)
    await world.edit(job, {"spec": {"suspend": False}})
    await world.gone(job, within=LONG)
    return None


async def replaced(world: SimWorld) -> Situation | None:
    """A job that has just succeeded is deleted and made anew; what a killed operator had sent arrives later."""
    world.weather.lateness = 1.5
    manifest = counting(workers=1, steps=5)
    job = await world.submit(manifest)
    await world.until(job, in_phase("Succeeded"), within=LONG)
    await world.delete(job)
    await world.submit(manifest)
    return await world.until(job, is_over, within=LONG)
