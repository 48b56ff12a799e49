"""One Event for each transition of a life, none twice."""

import pytest

from dtj_operator.api.reasons import Reason
from dtj_operator.api.status import GangStatus, JobStatus
from dtj_operator.decide.actions import Emit, Plan
from dtj_operator.decide.conditions import with_condition
from dtj_operator.decide.events import events
from tests.decide.fake_world import World
from tests.decide.situations import NOW, spec


def told(plans: list[Plan]) -> list[tuple[str, str]]:
    return [(e.type, e.reason) for made in plans for e in made.actions if isinstance(e, Emit)]


def test_the_life_of_a_job_that_fails_once() -> None:
    world = World(spec(gang={"scheduler": "BuiltIn"}))
    assert told(world.settle()) == [("Normal", "Queued")]
    world.admit()
    assert told(world.settle()) == []
    world.schedule()
    assert told(world.settle()) == [("Normal", "Starting")]
    world.report(1)
    assert told(world.settle()) == [("Normal", "Running")]
    world.report(20, checkpoint=10)
    assert told(world.settle()) == []
    world.end("mnist-worker-1-0", 9)
    assert told(world.settle()) == [("Warning", "Application")]
    world.reap()
    assert told(world.settle()) == [("Normal", "Queued")]
    world.admit()
    world.settle()
    world.schedule()
    assert told(world.settle()) == [("Normal", "Starting")]
    world.report(11)
    assert told(world.settle()) == [("Normal", "Running")]
    world.end("mnist-worker-1-1", 0)
    world.end("mnist-worker-0-1", 0)
    assert told(world.settle()) == [("Normal", "Succeeded")]
    world.wait(3600)
    assert told(world.settle()) == []


def test_what_a_person_should_know_besides() -> None:
    world = World(spec(supervisor="None", checkpoint=None, network={"policy": "None"}))
    assert told(world.settle()) == [("Normal", "Queued"), ("Normal", "PolicyOff")]
    world.schedule()
    assert told(world.settle()) == [
        ("Normal", "Starting"),
        ("Normal", "NoSupervisor"),
        ("Normal", "NoCheckpoint"),
        ("Normal", "Running"),
    ]
    world.edit(suspend=True)
    assert told(world.settle()) == [("Normal", "Suspending")]
    world.reap()
    assert told(world.settle()) == [("Normal", "Suspended")]
    world.edit(suspend=False)
    assert ("Normal", "Queued") in told(world.settle())


def test_a_job_is_suspended_while_it_backs_off() -> None:
    world = World(spec())
    world.run()
    world.end("mnist-worker-1-0", 1)
    assert told(world.settle()) == [("Warning", "Application")]
    world.edit(suspend=True)
    assert told(world.settle()) == [("Normal", "Suspending")]


def test_a_restart_on_request_is_called_a_restart() -> None:
    world = World(spec())
    world.run()
    world.edit(restart_request="now")
    assert told(world.settle()) == [("Normal", "Restarting")]


def test_a_gang_that_misses_its_time_and_a_job_that_gives_up() -> None:
    world = World(spec(recovery={"maxRestarts": 0}))
    world.settle()
    world.wait(300)
    assert told(world.settle()) == [("Warning", "Missed")]
    world.wait(20)
    world.run()
    world.end("mnist-worker-1-1", 1)
    assert told(world.settle()) == [("Warning", "RestartsExhausted")]


def test_an_evaluator_s_end_is_told() -> None:
    world = World(spec(roles={"evaluator": {}}))
    world.run()
    world.schedule()
    world.settle()
    world.end("mnist-evaluator-0-0", 1)
    assert told(world.settle()) == [("Warning", "Application")]


@pytest.mark.parametrize(
    ("lacks", "kind"),
    [("Waiting", "Normal"), ("QuotaExceeded", "Normal"), ("CannotFit", "Warning"), ("ClaimMissing", "Warning")],
)
def test_what_does_not_come_by_itself_is_a_warning(lacks: Reason, kind: str) -> None:
    before = JobStatus(phase="Queued", gang=GangStatus(waiting_for="waits for its turn"))
    after = JobStatus(phase="Queued", gang=GangStatus(waiting_for="other words"), reason="other words")
    after = with_condition(after, "GangScheduled", "False", lacks, "other words", now=NOW)
    assert events(before, after) == (Emit(kind, lacks, "other words"),)  # type: ignore[arg-type]  # of the table
