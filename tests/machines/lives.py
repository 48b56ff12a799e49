"""Lives of jobs to be told again and again, with the operator killed at another step each time."""

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable, Iterable

import looptime
from msgspec import Struct

from dtj_operator.api.observed import Situation
from dtj_operator.api.status import Restarts
from tests.worlds.process import History
from tests.worlds.sim import SimWorld, sim_world

Story = Callable[[SimWorld], Awaitable[Situation | None]]
"""From the first manifest to the end; the last situation, or None when the job is gone."""
SETTLING_SECONDS = 5.0


class End(Struct, frozen=True):
    """What must be the same however often the operator has died on the way."""

    phase: str = "Gone"
    restarts: Restarts = Restarts()
    attempt: int = 0
    failure: str | None = None
    outcomes: tuple[str | None, ...] = ()
    resumed_from: tuple[int | None, ...] = ()


class Life(Struct):
    end: End
    history: History


def live(story: Story, kill_at: int | None = None, *, keep_marks: bool = False) -> Life:
    """Tell the story in a new world. AssertionError where anything was wrong at any time."""
    random.seed(0)
    loop = looptime.new_event_loop(noop_cycles=0)
    try:
        return loop.run_until_complete(_live(story, kill_at, keep_marks=keep_marks))
    finally:
        loop.close()


def places(life: Life, *, with_requests: bool = False) -> list[int]:
    """Steps before which to kill the operator: one for each state of the world that its death can leave behind.

    Or only those at which requests are under way that would still arrive.
    """
    marks = life.history.marks
    assert marks is not None, "the life was lived without marks"
    numbered = zip(itertools.count(1), [None, *marks], marks, strict=False)
    return [n for n, before, mark in numbered if mark != before and (mark.under_way or not with_requests)]


def first_difference(story: Story, end: End, kills: Iterable[int | None]) -> str | None:
    """What a kill at one of these steps has led to, other than the end of the undisturbed life; None: to nothing."""
    for kill_at in kills:
        try:
            life = live(story, kill_at)
        except AssertionError as wrong:
            return f"killed before step {kill_at}: {wrong}"
        if life.end != end:
            return f"killed before step {kill_at}: {life.end} in place of {end}"
    return None


async def _live(story: Story, kill_at: int | None, *, keep_marks: bool) -> Life:
    async with sim_world() as world:
        world.history.kill_at = kill_at
        world.history.marks = [] if keep_marks else None
        last = await story(world)
        await asyncio.sleep(SETTLING_SECONDS)
        if last is not None:
            last = world.situation(last.key)
        world.monitor.check_left_behind()
        return Life(_end(last, world), world.history)


def _end(s: Situation | None, world: SimWorld) -> End:
    if s is None:
        return End()
    attempts = sorted((number, run.resumed) for (uid, number), run in world.kubelet.attempts.items() if uid == s.uid)
    failure = s.status.last_failure
    return End(
        phase=s.status.phase,
        restarts=s.status.restarts,
        attempt=s.status.attempt,
        failure=f"{failure.failure_class} of {failure.role}-{failure.index}" if failure else None,
        outcomes=tuple(attempt.outcome for attempt in s.status.timeline),
        resumed_from=tuple(step for _, step in attempts),
    )
