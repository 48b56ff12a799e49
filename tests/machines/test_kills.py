"""The operator is killed before every step of a job's life: the same end, no twin pod, no orphan, no wrong count."""

import pytest

from dtj_operator.api.observed import Situation
from tests.machines.lives import Story, first_difference, live, places
from tests.worlds.sim import SimWorld
from tests.worlds.world import counting, is_over, step_reached

PARTS = 2
"""For as many processes of pytest."""


async def killed_once(world: SimWorld) -> Situation | None:
    """A worker is killed, and the gang resumes from its checkpoint."""
    job = await world.submit(counting(steps=20, fault="worker:1@step=15"))
    return await world.until(job, is_over, within=400)


async def suspended(world: SimWorld) -> Situation | None:
    """A job is suspended, resumed, succeeds, and outlives its time."""
    job = await world.submit(counting(workers=1, steps=20, checkpoint_every=5, ttlSecondsAfterFinished=30))
    await world.until(job, step_reached(8), within=400)
    await world.edit(job, {"spec": {"suspend": True}})
    await world.until(job, lambda s: s.status.phase == "Suspended", within=400)
    await world.edit(job, {"spec": {"suspend": False}})
    await world.gone(job, within=400)
    return None


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("story", [killed_once, suspended])
def test_a_kill_at_any_step_changes_no_end(story: Story, part: int) -> None:
    undisturbed = live(story, keep_marks=True)
    assert undisturbed.history.marks is not None
    kills = list(places(undisturbed.history.marks))[part::PARTS]
    assert len(kills) > 20
    assert first_difference(story, undisturbed.end, kills) is None
