"""The wait before the start: what is said, how often, and whom its end blames."""

import dataclasses
from collections.abc import Callable, Iterator

import pytest

from dtj_worker.contract import Limits
from dtj_worker.supervisor.link import Link
from dtj_worker.supervisor.loop import Loop
from dtj_worker.supervisor.peers import Gang
from dtj_worker.supervisor.waiting import PROBE_BEFORE_SECONDS, Waiting
from tests.worker.supervisor.test_tfconfig import SPEC

SPEC_OF_THREE = dataclasses.replace(
    SPEC, peers=SPEC.peers | {"worker-2": "c:2222"}, limits=Limits(registration_seconds=100)
)


@dataclasses.dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def loop(clock: Clock) -> Iterator[Loop]:
    made = Loop(clock)
    yield made
    made.close()


@pytest.fixture
def at(clock: Clock, loop: Loop) -> Callable[[float], None]:
    """Let the clock stand at a time."""

    def move(now: float) -> None:
        clock.now = loop.now = now

    return move


@pytest.fixture
def gang(loop: Loop) -> Gang:
    made = Gang(loop, SPEC_OF_THREE, lambda _: None, lambda *_: None)
    made.members["worker-0"].stage = "Registered"
    return made


def test_a_short_wait_is_nothing_to_speak_of_a_long_one_is_said_once(
    loop: Loop, at: Callable[[float], None], gang: Gang, capsys: pytest.CaptureFixture[str]
) -> None:
    waiting = Waiting(loop, SPEC_OF_THREE, gang, None)
    for now in (0, 9, 10, 11, 30):
        at(now)
        assert waiting.look("") is None
    gang.members["worker-1"].stage = "Registered"
    waiting.look("")

    assert capsys.readouterr().err.splitlines() == [
        "dtj-worker: worker-0: 1 of 3 tasks have registered; waiting for worker-1, worker-2",
        "dtj-worker: worker-0: 2 of 3 tasks have registered; waiting for worker-2",
    ]


def test_a_peer_says_why_it_waits(loop: Loop, at: Callable[[float], None], capsys: pytest.CaptureFixture[str]) -> None:
    spec = dataclasses.replace(SPEC_OF_THREE, task="worker-1")
    link = Link(loop, spec, "token", lambda _: None, lambda _: None)
    waiting = Waiting(loop, spec, None, link)
    link.problem = "its name does not resolve"
    at(10)
    waiting.look("")
    link.problem, link.is_registered = "", True
    at(20)
    waiting.look("")

    assert capsys.readouterr().err.splitlines() == [
        "dtj-worker: worker-1: waiting for worker-0: its name does not resolve",
        "dtj-worker: worker-1: waiting for worker-0: it waits for other tasks",
    ]


def test_the_end_blames_the_missing(loop: Loop, at: Callable[[float], None], gang: Gang) -> None:
    waiting = Waiting(loop, SPEC_OF_THREE, gang, None)
    at(100)
    ending = waiting.look("")

    assert ending is not None
    assert ending.kind == "Rendezvous"
    assert ending.message.startswith("1 of 3 tasks registered within 100 s; missing: worker-1 (b), worker-2 (c)")
    assert gang.first_death is not None
    assert (gang.first_death.task, gang.first_death.kind) == ("worker-1", "Rendezvous")


def test_a_registered_peer_leaves_the_end_to_the_chief(loop: Loop, at: Callable[[float], None]) -> None:
    spec = dataclasses.replace(SPEC_OF_THREE, task="worker-1")
    link = Link(loop, spec, "token", lambda _: None, lambda _: None)
    link.is_registered, link.problem = True, ""
    waiting = Waiting(loop, spec, None, link)
    at(100)
    assert waiting.look("") is None
    at(100 + PROBE_BEFORE_SECONDS)
    ending = waiting.look("")

    assert ending is not None
    assert ending.message == "worker-0 did not start the attempt within 100 s: it waits for other tasks"


def test_a_disk_that_does_not_answer(loop: Loop, at: Callable[[float], None], gang: Gang) -> None:
    waiting = Waiting(loop, SPEC_OF_THREE, gang, None)
    at(100)
    ending = waiting.look("/checkpoints/ml/count")

    assert ending is not None
    assert ending.message == "the check of /checkpoints/ml/count has not come back within 100 s"
