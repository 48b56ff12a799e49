"""Which job is looked at next: dirty keys, one look at a time for each, wake-ups, back-off. No look is taken here."""

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Generic, TypeVar

from dtj_operator.api.status import Time

Key = TypeVar("Key")

FIRST_BACKOFF_SECONDS = 1.0
LONGEST_BACKOFF_SECONDS = 300.0
FORGOTTEN_TIMERS = 1000
LONGEST_SLEEP_SECONDS = 60.0
"""Timers of the event loop stand still while the machine is suspended; the clock that wake-ups are told by does not."""


class Queue(Generic[Key]):
    """A set of keys in the order they got dirty. A key that gets dirty while it is worked on comes again afterwards."""

    def __init__(self, clock: Callable[[], Time]) -> None:
        self._clock = clock
        self._ready: asyncio.Queue[Key] = asyncio.Queue()
        self._dirty: set[Key] = set()
        self._busy: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._wanted: dict[Key, Time] = {}
        self._retries: dict[Key, Time] = {}
        self._timers: list[tuple[Time, int, Key]] = []
        self._timer_count = 0
        self._timers_changed = asyncio.Event()

    def __len__(self) -> int:
        """How many keys wait to be looked at."""
        return len(self._dirty)

    def mark(self, key: Key) -> None:
        """Have the key looked at as soon as possible."""
        if key not in self._dirty:
            self._dirty.add(key)
            if key not in self._busy:
                self._ready.put_nowait(key)

    def wake(self, key: Key, at: Time | None) -> None:
        """Have the key looked at then, in place of what was said before; None: not by the clock."""
        if at is None:
            self._wanted.pop(key, None)
        elif self._wanted.get(key) != at:
            self._wanted[key] = at
            self._set_timer(key, at)

    async def run(self, look: Callable[[Key], Awaitable[None]], workers: int) -> None:
        """Look at keys until cancelled, as many at a time as there are workers. `look` may raise: it is tried again."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._tell_time())
            for _ in range(workers):
                tasks.create_task(self._work(look))

    async def _work(self, look: Callable[[Key], Awaitable[None]]) -> None:
        while True:
            key = await self._ready.get()
            self._dirty.discard(key)
            self._busy.add(key)
            try:
                await look(key)
            except Exception:
                self._fail(key)
            else:
                self._failures.pop(key, None)
                self._retries.pop(key, None)
            finally:
                self._busy.discard(key)
                if key in self._dirty:
                    self._ready.put_nowait(key)

    def _fail(self, key: Key) -> None:
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        pause = min(FIRST_BACKOFF_SECONDS * 2 ** min(failures, 10), LONGEST_BACKOFF_SECONDS)
        # Beside the wake-up that was asked for, not in its place: a deadline is kept through any back-off.
        self._retries[key] = again = self._clock() + timedelta(seconds=pause)
        self._set_timer(key, again)

    def _set_timer(self, key: Key, at: Time) -> None:
        self._timer_count += 1
        heapq.heappush(self._timers, (at, self._timer_count, key))
        if len(self._timers) > 2 * (len(self._wanted) + len(self._retries)) + FORGOTTEN_TIMERS:
            self._timers = [timer for timer in self._timers if self._is_awaited(timer[2], timer[0])]
            heapq.heapify(self._timers)
        self._timers_changed.set()

    def _is_awaited(self, key: Key, at: Time) -> bool:
        return at in (self._wanted.get(key), self._retries.get(key))

    async def _tell_time(self) -> None:
        while True:
            now = self._clock()
            while self._timers and self._timers[0][0] <= now:
                at, _, key = heapq.heappop(self._timers)
                # Only the last word about a key holds; its older timers are left in the heap and pass unheard.
                if self._is_awaited(key, at):
                    if self._wanted.get(key) == at:
                        del self._wanted[key]
                    self.mark(key)
            self._timers_changed.clear()
            left = (self._timers[0][0] - now).total_seconds() if self._timers else LONGEST_SLEEP_SECONDS
            try:
                await asyncio.wait_for(self._timers_changed.wait(), min(left, LONGEST_SLEEP_SECONDS))
            except TimeoutError:
                continue
