"""The example's loop under real supervisors: a worker is killed, the next attempt ends as if nothing had happened.

`tests/cli/test_demo.py` tells the same of the example's `fit`.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest

from dtj_worker.contract import CheckpointPlan, Fault
from tests.worker.supervisor.gang import Gang, Trainer

pytestmark = pytest.mark.tensorflow(supervised=True)

DIGITS = Path(__file__).parents[3] / "examples" / "digits"
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2"}


def run(gang: Gang, program: str) -> list[Trainer]:
    """One attempt, to its end."""
    trainers = gang.start_all(str(DIGITS / program))
    try:
        for trainer in trainers:
            trainer.process.wait(timeout=240)
    finally:
        gang.end()
    return trainers


def job(folder: Path, every: int | str, fault: Fault | None = None) -> Gang:
    folder.mkdir()
    plan = CheckpointPlan(str(folder / "checkpoints"), every=every)  # type: ignore[arg-type]
    return Gang(
        folder, ("worker-0", "worker-1"), checkpoint=plan, environ=QUIET, faults={"worker-1": fault} if fault else {}
    )


def losses(folder: Path, task: str = "worker-0") -> list[tuple[int, str]]:
    (path,) = folder.glob(f"checkpoints/*/logs/losses-{task}.txt")
    return [(int(step), loss) for step, loss in (line.split() for line in path.read_text().splitlines())]


@dataclass
class Loops:
    """The folders of a run that was killed and of one that wasn't; how both attempts of the former ended."""

    killed: Path
    whole: Path
    first: list[Trainer]
    second: list[Trainer]


@pytest.fixture(scope="module")
def loops(tmp_path_factory: pytest.TempPathFactory) -> Loops:
    root = tmp_path_factory.mktemp("loop")
    run(job(root / "whole", 25), "loop.py")
    killed = job(root / "killed", 25, Fault(60, signal="SIGKILL"))
    return Loops(root / "killed", root / "whole", run(killed, "loop.py"), run(killed.next_attempt(), "loop.py"))


def test_a_killed_loop_names_its_step(loops: Loops) -> None:
    chief, victim = loops.first
    assert (victim.verdict.kind, victim.verdict.signal, victim.verdict.step) == ("Program", "SIGKILL", 60)
    assert (chief.verdict.kind, chief.verdict.blames) == ("Peer", "worker-1")


def test_a_killed_loop_makes_every_step_as_if_it_had_not_been(loops: Loops) -> None:
    chief, other = loops.second
    assert (chief.verdict.kind, other.verdict.kind) == ("Done", "Done"), chief.log
    assert chief.verdict.step == 220
    assert [step for step, _ in losses(loops.whole)] == list(range(1, 221))
    made = losses(loops.killed)
    resumed_at = next(i for i, (step, _) in enumerate(made) if i and step <= made[i - 1][0])
    assert made[resumed_at][0] == 51
    assert set(made) == set(losses(loops.whole))


def test_all_workers_see_the_same_losses(loops: Loops) -> None:
    assert set(losses(loops.killed)) == set(losses(loops.killed, "worker-1"))


def test_the_loop_has_learnt_the_digits(loops: Loops) -> None:
    chief, other = loops.second
    (accuracy,) = [float(line.split()[-1]) for line in chief.log.splitlines() if line.startswith("test accuracy ")]
    assert accuracy >= 0.93
    assert "test accuracy" not in other.log
