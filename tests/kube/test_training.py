"""The status stream of a job, from a supervisor and from whoever else may answer in a pod."""

import asyncio
import dataclasses
import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web

from dtj_operator.api.observed import Facts, JobKey, TrainingView
from dtj_operator.desired import objects
from dtj_operator.kube import training
from dtj_operator.kube.client import JOB, POD
from dtj_operator.kube.fleet import Fleet
from dtj_operator.kube.store import Store
from dtj_operator.kube.training import Source, Trainings, lines_over_http, source_of
from dtj_worker.codec import encode
from dtj_worker.contract import Death, TrainingStatus
from tests.kube.conftest import Answer, Script, says
from tests.kube.test_store import job, pod

KEY = JobKey("ml", "mnist")
START = datetime(2026, 11, 30, 12, tzinfo=UTC)
STATUS = TrainingStatus(attempt=0, stage="Training", reports=True, step=7, loss=0.5, tasks={"worker-0": "Training"})


class World:
    """A running job whose chief listens where the script does."""

    def __init__(self) -> None:
        self.now = START
        self.store = Store(Facts(local=True, token_key=b"key"), Fleet())
        self.marks = 0
        self.heard = asyncio.Event()
        self.asked = asyncio.Event()

    def clock(self) -> datetime:
        """Asked for each line."""
        self.asked.set()
        return self.now

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not holds():
                await self.asked.wait()
                self.asked.clear()
                await asyncio.sleep(0)

    def mark(self, key: JobKey) -> None:
        assert key == KEY
        self.marks += 1
        self.heard.set()

    def runs(self, url: str, *, uid: str = "", round_: int = 0, version: int = 2) -> None:
        rounds = {"worker": [{"indexes": "0-1", "round": round_}]}
        self.store.put(JOB, job(version, status={"phase": "Running", "rounds": rounds}))
        running = {"running": {"startedAt": "2026-11-30T10:00:00Z"}}
        status = {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [{"name": "trainer", "state": running}]}
        chief = pod(0, version, node="n1", uid=uid)
        chief["metadata"]["labels"]["dtj.dev/round"] = str(round_)
        chief["metadata"]["annotations"] = {"dtj.dev/status-address": url.removeprefix("http://")}
        self.store.put(POD, {**chief, "status": status})

    @property
    def training(self) -> TrainingView | None:
        s = self.store.situation(KEY)
        assert s is not None
        return s.training

    def source(self) -> Source | None:
        s = self.store.situation(KEY)
        assert s is not None
        return source_of(s)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(training, "FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(training, "BETWEEN_LINES_SECONDS", 0.0)
    return World()


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        yield session


def says_lines(*lines: bytes, stays: bool = False, **headers: str) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        for line in lines:
            await response.write(line)
        if stays:
            await asyncio.sleep(60)
        return response

    return answer


def line(status: TrainingStatus) -> bytes:
    return encode(status).encode() + b"\n"


async def test_what_the_chiefs_supervisor_says_lies_in_the_store(
    script: Script, world: World, session: aiohttp.ClientSession
) -> None:
    world.runs(script.url)
    script.answers = [says_lines(line(STATUS), stays=True)]
    async with Trainings(lines_over_http(session), world.store, world.clock, world.mark) as trainings:
        trainings.follow(KEY, world.store.situation(KEY))
        trainings.follow(KEY, world.store.situation(KEY))
        await asyncio.wait_for(world.heard.wait(), 60)
    assert world.training == TrainingView(STATUS, START)
    assert script.requests == [("GET", "/v1/training", f"Bearer {objects.token(b'key', 'job')}")]


async def test_a_lost_stream_is_taken_up_again_and_fails_nothing(
    script: Script, world: World, session: aiohttp.ClientSession
) -> None:
    world.runs(script.url)
    later = says_lines(line(TrainingStatus(1, "Program")), stays=True)
    script.answers = [says(503), says_lines(line(STATUS)), says(404), later]
    async with Trainings(lines_over_http(session), world.store, world.clock, world.mark) as trainings:
        trainings.follow(KEY, world.store.situation(KEY))
        await world.until(lambda: world.training is not None and world.training.status.attempt == 1)
    assert world.marks == 2


HOSTILE = {
    "no JSON": b"hello\n",
    "JSON of something else": b"[1, 2]\n",
    "a stage there isn't": b'{"attempt": 0, "stage": "Winning"}\n',
    "nested without end": b"[" * 60_000 + b"\n",
    "a line without end": b"x" * 70_000,
    "a line too long": b'{"attempt": 0, "stage": "Program", "notice": "' + b"x" * 70_000 + b'"}\n',
    "a huge number": b'{"attempt": 0, "stage": "Training", "step": 1' + b"0" * 400 + b"}\n",
    "a huge loss": b'{"attempt": 0, "stage": "Training", "loss": 1' + b"0" * 400 + b"}\n",
    "too many tasks": line(TrainingStatus(0, "Program", tasks={f"worker-{n}": "Done" for n in range(2100)})),
    "a contract of the future": b'{"attempt": 0, "stage": "Program", "contract": 99}\n',
    "compressed": gzip.compress(line(STATUS)) + b"\n",
}


@pytest.mark.parametrize("sent", HOSTILE.values(), ids=HOSTILE.keys())
async def test_a_hostile_answer_is_no_word(
    script: Script, world: World, session: aiohttp.ClientSession, sent: bytes
) -> None:
    world.runs(script.url)
    script.answers = [says_lines(sent, stays=True), says_lines(line(STATUS), stays=True)]
    async with Trainings(lines_over_http(session), world.store, world.clock, world.mark) as trainings:
        trainings.follow(KEY, world.store.situation(KEY))
        await asyncio.wait_for(world.heard.wait(), 60)
    assert world.training == TrainingView(STATUS, START)
    assert len(script.requests) == 2


async def test_a_redirect_leads_nowhere(script: Script, world: World, session: aiohttp.ClientSession) -> None:
    world.runs(script.url)
    script.answers = [says(302, Location=f"{script.url}/elsewhere"), says_lines(line(STATUS), stays=True)]
    async with Trainings(lines_over_http(session), world.store, world.clock, world.mark) as trainings:
        trainings.follow(KEY, world.store.situation(KEY))
        await asyncio.wait_for(world.heard.wait(), 60)
    assert {path for _, path, _ in script.requests} == {"/v1/training"}


async def test_words_are_cleaned(script: Script, world: World, session: aiohttp.ClientSession) -> None:
    world.runs(script.url)
    death = Death("worker-1", "Program", message="\x1b[31mboom\x07" + "x" * 5000)
    sent = TrainingStatus(0, "Dead", loss=float("nan"), first_death=death, notice="a\x00b")
    script.answers = [says_lines(line(sent), stays=True)]
    async with Trainings(lines_over_http(session), world.store, world.clock, world.mark) as trainings:
        trainings.follow(KEY, world.store.situation(KEY))
        await asyncio.wait_for(world.heard.wait(), 60)
    assert world.training is not None
    told = world.training.status
    assert (told.loss, told.notice) == (None, "a b")
    assert told.first_death is not None
    assert told.first_death.message.startswith("[31mboom x")
    assert len(told.first_death.message) <= 1024


async def test_new_numbers_alone_are_worth_a_plan_only_now_and_then(world: World) -> None:
    """Two lines a second from a thousand jobs must not become two thousand plans a second."""
    fed: asyncio.Queue[tuple[int, TrainingStatus]] = asyncio.Queue()

    @asynccontextmanager
    async def lines(url: str, token: str) -> AsyncIterator[AsyncIterator[bytes]]:
        async def feed() -> AsyncIterator[bytes]:
            while True:
                seconds, status = await fed.get()
                world.now = START + timedelta(seconds=seconds)
                yield line(status)

        yield feed()

    world.runs("http://10.0.0.1:2280")
    told = [
        (0, STATUS, 1),
        (1, _with(STATUS, step=8, loss=0.4), 1),
        (29, _with(STATUS, step=30), 1),
        (30, _with(STATUS, step=31), 2),
        (61, _with(STATUS, step=31, seconds_since_step=9.0), 2),
        (62, _with(STATUS, step=31, checkpoint_step=31), 3),
        (63, _with(STATUS, step=31, checkpoint_step=31, tasks={"worker-0": "Dead"}), 4),
    ]
    async with Trainings(lines, world.store, world.clock, world.mark) as trainings:
        trainings.follow(KEY, world.store.situation(KEY))
        for seconds, status, marks in told:
            fed.put_nowait((seconds, status))
            await world.until(partial(_heard_at, world, seconds))
            assert world.marks == marks, status


async def test_another_pod_is_another_source_and_the_old_word_is_void(
    script: Script, world: World, session: aiohttp.ClientSession
) -> None:
    world.runs(script.url, uid="first")
    script.answers = [says_lines(line(STATUS), stays=True), says(503)]
    async with Trainings(lines_over_http(session), world.store, world.clock, world.mark) as trainings:
        trainings.follow(KEY, world.store.situation(KEY))
        await asyncio.wait_for(world.heard.wait(), 60)
        world.runs(script.url, uid="second", round_=1, version=9)
        trainings.follow(KEY, world.store.situation(KEY))
        assert world.training is None
        trainings.follow(KEY, None)
        assert trainings._streams == {}


def test_who_is_asked(world: World) -> None:
    world.runs("http://127.0.0.1:4000")
    token = objects.token(b"key", "job")
    assert world.source() == Source("http://127.0.0.1:4000/v1/training", token, "uid-mnist-worker-0-0")
    world.store.facts = Facts(token_key=b"key")
    # What a pod's annotations say is believed on the embedded cluster alone.
    assert world.source() == Source("http://10.0.0.1:2280/v1/training", token, "uid-mnist-worker-0-0")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"status": {"phase": "Succeeded"}}, id="a job that is over"),
        pytest.param({"status": {"rounds": {"worker": [{"indexes": "0", "round": 5}]}}}, id="an old pod"),
        pytest.param({"spec": {**job(1)["spec"], "supervisor": "None"}}, id="no supervisor"),
        pytest.param({"spec": {}}, id="no readable spec"),
    ],
)
def test_who_is_not_asked(world: World, change: dict[str, Any]) -> None:
    world.runs("http://127.0.0.1:4000")
    assert world.source() is not None
    world.store.put(JOB, job(9, **change))
    assert world.source() is None


def test_an_address_of_version_6_stands_in_brackets(world: World) -> None:
    world.runs("http://127.0.0.1:4000")
    world.store.facts = Facts(token_key=b"key")
    s = world.store.situation(KEY)
    assert s is not None
    assert training._address(s, _with(s.pods[0], address="fd00::1"), 2280) == "[fd00::1]:2280"


def _with(record: Any, **changes: Any) -> Any:
    is_struct = isinstance(record, msgspec.Struct)
    return msgspec.structs.replace(record, **changes) if is_struct else dataclasses.replace(record, **changes)


def _heard_at(world: World, seconds: int) -> bool:
    return world.training is not None and world.training.heard_at == START + timedelta(seconds=seconds)
