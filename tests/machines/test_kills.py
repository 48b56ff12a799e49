"""The operator is killed before every step of a job's life: the same end, no twin pod, no orphan, no wrong count."""

import pytest

from tests.machines.lives import Story, first_difference, live, places
from tests.machines.stories import killed_once, replaced, suspended

PARTS = 2
"""For as many processes of pytest."""


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("story", [killed_once, suspended])
def test_a_kill_at_any_step_changes_no_end(story: Story, part: int) -> None:
    undisturbed = live(story, keep_marks=True)
    kills = places(undisturbed)[part::PARTS]
    assert len(kills) > 30
    assert first_difference(story, undisturbed.end, kills) is None


def test_what_a_killed_operator_had_sent_hits_nothing_that_came_later() -> None:
    undisturbed = live(replaced, keep_marks=True)
    kills = places(undisturbed, with_requests=True)
    assert len(kills) > 10
    assert first_difference(replaced, undisturbed.end, kills) is None
