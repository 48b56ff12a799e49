"""The work queue in virtual time: coalescing, one look at a time for each key, wake-ups, back-off."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from dtj_operator.manager.queue import FORGOTTEN_TIMERS, LONGEST_BACKOFF_SECONDS, Queue

pytestmark = pytest.mark.looptime
START = datetime(2026, 11, 30, tzinfo=UTC)


def clock() -> datetime:
    return START + timedelta(seconds=asyncio.get_running_loop().time())


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


class Looks:
    """Notes when each key was looked at; a look takes as long, or fails, as the test says."""

    def __init__(self) -> None:
        self.queue: Queue[str] = Queue(clock)
        self.seen: list[tuple[float, str]] = []
        self.busy: set[str] = set()
        self.takes = 0.0
        self.then: Callable[[str], Awaitable[None]] | None = None
        self.fails = False

    async def look(self, key: str) -> None:
        assert key not in self.busy
        self.busy.add(key)
        self.seen.append((asyncio.get_running_loop().time(), key))
        try:
            await asyncio.sleep(self.takes)
            if self.then:
                await self.then(key)
            if self.fails:
                raise RuntimeError("no")
        finally:
            self.busy.discard(key)

    @asynccontextmanager
    async def at_work(self, workers: int = 4) -> AsyncIterator[None]:
        task = asyncio.create_task(self.queue.run(self.look, workers))
        yield
        task.cancel()
        await asyncio.wait([task])


@pytest.fixture
def looks() -> Looks:
    return Looks()


async def test_marks_of_one_key_come_together(looks: Looks) -> None:
    for key in ("a", "b", "a", "a"):
        looks.queue.mark(key)
    assert len(looks.queue) == 2
    async with looks.at_work():
        await asyncio.sleep(1)
    assert looks.seen == [(0, "a"), (0, "b")]
    assert len(looks.queue) == 0


async def test_a_key_marked_while_it_is_looked_at_comes_once_more_afterwards(looks: Looks) -> None:
    looks.takes = 10
    async with looks.at_work():
        looks.queue.mark("a")
        await asyncio.sleep(1)
        looks.queue.mark("a")
        looks.queue.mark("a")
        await asyncio.sleep(100)
    assert looks.seen == [(0, "a"), (10, "a")]


async def test_others_do_not_wait_for_a_slow_one_but_for_a_worker(looks: Looks) -> None:
    looks.takes = 10
    async with looks.at_work(workers=2):
        for key in ("a", "b", "c"):
            looks.queue.mark(key)
        await asyncio.sleep(100)
    assert looks.seen == [(0, "a"), (0, "b"), (10, "c")]


async def test_the_last_word_about_a_wake_up_holds(looks: Looks) -> None:
    async with looks.at_work():
        looks.queue.wake("earlier", at(50))
        looks.queue.wake("earlier", at(20))
        looks.queue.wake("later", at(10))
        looks.queue.wake("later", at(30))
        looks.queue.wake("never", at(10))
        looks.queue.wake("never", None)
        looks.queue.wake("same", at(40))
        looks.queue.wake("same", at(40))
        looks.queue.wake("past", at(-5))
        await asyncio.sleep(200)
    assert looks.seen == [(0, "past"), (20, "earlier"), (30, "later"), (40, "same")]


async def test_a_wake_up_may_be_set_from_within_a_look(looks: Looks) -> None:
    async def then(key: str) -> None:
        looks.queue.wake(key, clock() + timedelta(hours=1))

    looks.then = then
    async with looks.at_work():
        looks.queue.mark("a")
        await asyncio.sleep(3 * 3600 + 1)
    assert [seconds for seconds, _ in looks.seen] == [0, 3600, 7200, 10800]


async def test_a_failing_look_is_repeated_ever_more_seldom(looks: Looks) -> None:
    looks.fails = True
    async with looks.at_work():
        looks.queue.mark("a")
        await asyncio.sleep(2000)
        times = [seconds for seconds, _ in looks.seen]
        pauses = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert pauses[:9] == [1, 2, 4, 8, 16, 32, 64, 128, 256]
        assert max(pauses) == LONGEST_BACKOFF_SECONDS
        # News are not held up by a back-off, and a success ends it.
        looks.fails = False
        looks.queue.mark("a")
        await asyncio.sleep(1)
        looks.fails = True
        before = asyncio.get_running_loop().time()
        looks.queue.mark("a")
        await asyncio.sleep(1.5)
        assert looks.seen[-2:] == [(before, "a"), (before + 1, "a")]


async def test_a_deadline_is_kept_through_failures(looks: Looks) -> None:
    async with looks.at_work():
        looks.queue.wake("a", at(10))
        looks.fails = True
        looks.queue.mark("a")
        await asyncio.sleep(20)
    assert [seconds for seconds, _ in looks.seen] == [0, 1, 3, 7, 10]


async def test_timers_that_nobody_waits_for_do_not_pile_up(looks: Looks) -> None:
    for number in range(5 * FORGOTTEN_TIMERS):
        looks.queue.wake("a", at(10_000 + number))
    assert len(looks.queue._timers) <= FORGOTTEN_TIMERS + 3


async def test_a_clock_that_jumps_ahead_is_noticed_within_a_minute() -> None:
    """As after the machine was suspended: timers of the loop stood still meanwhile."""
    offset = timedelta()
    queue: Queue[str] = Queue(lambda: clock() + offset)
    woken = asyncio.Event()

    async def look(key: str) -> None:
        woken.set()

    task = asyncio.create_task(queue.run(look, 1))
    queue.wake("a", at(3600))
    await asyncio.sleep(1)
    offset = timedelta(hours=2)
    await asyncio.wait_for(woken.wait(), 61)
    task.cancel()
