"""The status streams: one GET per running job, to its chief's supervisor. What was heard lies in the store, for plans.

Whoever answers is not to be trusted: it may be any program in a user's pod. An answer is a hint about progress; nothing
here fails a job, and no answer costs the operator more than a few hundred kilobytes or milliseconds.
"""

import asyncio
import dataclasses
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from datetime import timedelta
from http import HTTPStatus
from typing import Self

import aiohttp
from msgspec import Struct

from dtj_operator.api.observed import JobKey, PodView, Situation, TrainingView
from dtj_operator.api.status import FINAL, Time, round_of
from dtj_operator.desired import objects
from dtj_operator.desired.supervision import supervision
from dtj_operator.desired.topology import topology
from dtj_operator.kube import hostile
from dtj_operator.kube.store import Store
from dtj_worker.codec import ContractError, decode
from dtj_worker.contract import HEARTBEAT_SECONDS, PATH_TRAINING, STATUS_BYTES, VERSION, TrainingStatus

log = logging.getLogger(__name__)

VERSIONS = (VERSION, VERSION - 1)
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
BETWEEN_LINES_SECONDS = 0.2
"""A supervisor sends two lines a second at the most; a faster sender waits for us, not we for it."""
PROGRESS = timedelta(seconds=30)
"""How often a plan is made for nothing but new numbers."""
LIMITS = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=3 * HEARTBEAT_SECONDS)

Lines = Callable[[str, str], AbstractAsyncContextManager[AsyncIterator[bytes]]]
"""Opens the stream at a URL with a token. Any of its errors but CancelledError means: try again later."""


class Source(Struct, frozen=True):
    """Whom to ask about a job. Another pod, or the same one at another address, is another source."""

    url: str
    token: str
    pod_uid: str


class Trainings:
    """The streams that are open. To be used as `async with`: leaving it ends them all."""

    def __init__(self, lines: Lines, store: Store, clock: Callable[[], Time], mark: Callable[[JobKey], None]) -> None:
        self._lines = lines
        self._store = store
        self._clock = clock
        self._mark = mark
        self._streams: dict[JobKey, tuple[Source, asyncio.Task[None]]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = [task for _, task in self._streams.values()]
        self._streams.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def follow(self, key: JobKey, s: Situation | None) -> None:
        """Open, keep or end the job's stream, as its situation asks; None: the job is gone."""
        source = None if s is None else source_of(s)
        known = self._streams.get(key)
        if known and known[0] == source:
            return
        if known:
            known[1].cancel()
            del self._streams[key]
        if source:
            # What another pod said is no word about this one.
            if known is None or known[0].pod_uid != source.pod_uid:
                self._store.notes(key).training = None
            task = asyncio.create_task(self._listen(key, source), name=f"training of {key}")
            self._streams[key] = (source, task)

    async def _listen(self, key: JobKey, source: Source) -> None:
        pause = FIRST_PAUSE_SECONDS
        told: tuple[TrainingStatus, Time] | None = None
        while True:
            try:
                async with self._lines(source.url, source.token) as lines:
                    async for line in lines:
                        told = self._hear(key, line, told)
                        pause = FIRST_PAUSE_SECONDS
                        await asyncio.sleep(BETWEEN_LINES_SECONDS)
            except Exception as error:
                # Nothing that a pod sends may end its stream for good, foreseen or not.
                log.debug("%s: no word from %s: %r", key, source.url, error)
            await asyncio.sleep(pause * random.uniform(0.75, 1.25))
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def _hear(self, key: JobKey, line: bytes, told: tuple[TrainingStatus, Time] | None) -> tuple[TrainingStatus, Time]:
        """Note what was said; have a plan made if it may change one. The last word a plan was made for, and when."""
        status = hostile.record(decode(TrainingStatus, line))
        if status.contract not in VERSIONS:
            raise ContractError(f"contract {status.contract}; this operator reads {VERSIONS}")
        now = self._clock()
        self._store.notes(key).training = TrainingView(status=status, heard_at=now)
        if told and _without_numbers(told[0]) == _without_numbers(status):
            is_same = dataclasses.replace(told[0], seconds_since_step=status.seconds_since_step) == status
            if is_same or now - told[1] < PROGRESS:
                return told
        self._mark(key)
        return status, now


def source_of(s: Situation) -> Source | None:
    """Whom to ask about the job; None while nobody can know anything."""
    if s.spec is None or s.deleting or s.status.phase in FINAL:
        return None
    t = topology(s)
    chief = next((pod for pod in s.pods if pod.task == t.chief and pod.round == round_of(s.status, t.chief)), None)
    if chief is None or chief.stage != "Running" or not supervision(s, t.chief.role).is_supervised:
        return None
    address = _address(s, chief, s.spec.network.status_port)
    if address is None:
        return None
    return Source(f"http://{address}{PATH_TRAINING}", objects.token(s.facts.token_key, s.uid), chief.uid)


def lines_over_http(session: aiohttp.ClientSession) -> Lines:
    """Streams over HTTP. `session` must not decompress: a kilobyte can become a gigabyte."""

    @asynccontextmanager
    async def lines(url: str, token: str) -> AsyncIterator[AsyncIterator[bytes]]:
        headers = {"Authorization": f"Bearer {token}", "Accept-Encoding": "identity"}
        async with session.get(url, headers=headers, allow_redirects=False, timeout=LIMITS) as response:
            if response.status != HTTPStatus.OK:
                raise ContractError(f"answered {response.status}")
            async with aclosing(_lines(response)) as found:
                yield found

    return lines


async def _lines(response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    begun = bytearray()
    async for part in response.content.iter_any():
        *ends, rest = part.split(b"\n")
        for end in ends:
            begun += end
            _bounded(begun)
            yield bytes(begun)
            begun.clear()
        begun += rest
        _bounded(begun)


def _bounded(line: bytearray) -> None:
    if len(line) > STATUS_BYTES:
        raise ContractError(f"a line of more than {STATUS_BYTES} bytes")


def _address(s: Situation, pod: PodView, port: int) -> str | None:
    if s.facts.local:
        return pod.status_address
    if pod.address is None:
        return None
    return f"[{pod.address}]:{port}" if ":" in pod.address else f"{pod.address}:{port}"


def _without_numbers(status: TrainingStatus) -> TrainingStatus:
    """What of it may change a plan at once; that a first step was made is in `stage`."""
    return dataclasses.replace(status, step=None, epoch=None, loss=None, examples_per_s=None, seconds_since_step=None)
