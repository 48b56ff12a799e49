"""The examples under real supervisors: a worker is killed, the next attempt ends as if nothing had happened."""

from pathlib import Path

import pytest

from dtj_worker.contract import CheckpointPlan, Fault
from tests.worker.supervisor.gang import Gang, Trainer

pytestmark = pytest.mark.tensorflow

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


@pytest.fixture(scope="module")
def killed_fit(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Trainer], list[Trainer]]:
    first = job(tmp_path_factory.mktemp("fit") / "job", "epoch", Fault(60, signal="SIGKILL"))
    return run(first, "fit.py"), run(first.next_attempt(), "fit.py")


def test_a_killed_fit_names_its_step(killed_fit: tuple[list[Trainer], list[Trainer]]) -> None:
    chief, victim = killed_fit[0]
    assert (victim.verdict.kind, victim.verdict.signal, victim.verdict.step) == ("Program", "SIGKILL", 60)
    assert (chief.verdict.kind, chief.verdict.blames) == ("Peer", "worker-1")


def test_the_next_attempt_of_fit_ends_well(killed_fit: tuple[list[Trainer], list[Trainer]]) -> None:
    chief, other = killed_fit[1]
    assert (chief.verdict.kind, other.verdict.kind) == ("Done", "Done"), chief.log
    assert chief.verdict.step == 220
    assert "Epoch 5/20" not in chief.log
    assert "Epoch 6/20" in chief.log
    (accuracy,) = [float(line.split()[-1]) for line in chief.log.splitlines() if line.startswith("test accuracy ")]
    assert accuracy >= 0.93
    assert "test accuracy" not in other.log


@pytest.fixture(scope="module")
def loops(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, list[Trainer]]:
    """Folders of a run that was killed and of one that wasn't, and how the former's second attempt ended."""
    root = tmp_path_factory.mktemp("loop")
    run(job(root / "whole", 25), "loop.py")
    killed = job(root / "killed", 25, Fault(60, signal="SIGKILL"))
    run(killed, "loop.py")
    return root / "killed", root / "whole", run(killed.next_attempt(), "loop.py")


def test_a_killed_loop_makes_every_step_as_if_it_had_not_been(loops: tuple[Path, Path, list[Trainer]]) -> None:
    killed, whole, trainers = loops
    assert [t.verdict.kind for t in trainers] == ["Done", "Done"], trainers[0].log
    assert [step for step, _ in losses(whole)] == list(range(1, 221))
    resumed_at = next(i for i, (step, _) in enumerate(losses(killed)) if i and step <= losses(killed)[i - 1][0])
    assert losses(killed)[resumed_at][0] == 51
    assert set(losses(killed)) == set(losses(whole))


def test_all_workers_see_the_same_losses(loops: tuple[Path, Path, list[Trainer]]) -> None:
    killed, _, _ = loops
    assert set(losses(killed)) == set(losses(killed, "worker-1"))
