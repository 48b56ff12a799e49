"""An unchanged script with two `fit` calls on two workers, killed in each of them, ends as if it never had been."""

from pathlib import Path

import pytest

from dtj_worker.contract import Fault
from dtj_worker.reports import Restore
from tests.worker.training.gang import Job, Trainer

pytestmark = pytest.mark.tensorflow

STEPS = 8
"""Per epoch. EarlyStopping ends the first `fit` after 7 epochs, the second has 3."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[Trainer]:
    return Job(tmp_path_factory.mktemp("whole"), "fit.py").run()


class Broken:
    """A job killed in its first `fit`, then in its second, then left to end."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        job = Job(directory, "fit.py")
        self.restores: list[Restore | None] = []
        self.attempts: list[list[Trainer]] = []
        self.attempts.append(job.run(faults={1: Fault(52, signal="SIGKILL")}))
        self.restores.append(job.restore)
        self.attempts.append(job.run(kill_at=lambda report: report.kind == "Saved" and (report.step or 0) > 7 * STEPS))
        # What is told may be read when the next save is done.
        self.last_saved = self.attempts[-1][0].told("Saved")[-1]
        self.restores.append(job.restore)
        self.attempts.append(job.run())
        self.restores.append(job.restore)


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Broken:
    return Broken(tmp_path_factory.mktemp("broken"))


def test_a_whole_run_reports_what_it_does(whole: list[Trainer]) -> None:
    chief, other = whole
    assert [t.code for t in whole] == [0, 0], chief.lines
    kinds = [r.kind for r in chief.reports if r.kind not in ("Step", "Phase", "Saved")]
    assert kinds == ["Constructing", "Built", "Built", "Reports", "Built", "Reports"]
    assert chief.told("Constructing")[0].message == "MultiWorkerMirroredStrategy"
    assert {(r.replicas, r.global_batch) for r in chief.told("Built")[1:]} == {(2, 64)}
    assert [(r.step, r.epoch) for r in chief.told("Saved")] == [
        *((STEPS * epoch, epoch) for epoch in range(1, 8)),
        *((STEPS * (7 + epoch), epoch) for epoch in range(1, 4)),
    ]
    assert other.told("Saved") == []


def test_the_loss_is_that_of_all_workers(whole: list[Trainer]) -> None:
    last = whole[0].told("Step")[-1]
    assert (last.step, last.epoch, last.epochs) == (10 * STEPS, 2, 3)
    assert last.loss == whole[1].told("Step")[-1].loss
    assert f"{last.loss}" in whole[0].value("second")


def test_a_restart_begins_behind_the_last_save(broken: Broken) -> None:
    last = broken.last_saved
    assert [(r.step, r.epoch) if r else None for r in broken.restores] == [
        None,
        (6 * STEPS, 6),
        (last.step, last.epoch),
    ]
    for attempt, restore in zip(broken.attempts[1:], broken.restores[1:], strict=True):
        assert restore
        for worker in attempt:
            assert [(r.step, r.epoch) for r in worker.told("Restored")] == [(restore.step, restore.epoch)]
            assert worker.told("Step")[0].step == restore.step + 1


@pytest.mark.parametrize("name", ["first", "after first", "second", "after second"])
def test_the_end_is_that_of_the_whole_run(whole: list[Trainer], broken: Broken, name: str) -> None:
    """Losses of all epochs, EarlyStopping's count and the weights, at the end of either `fit`."""
    assert {worker.value(name) for worker in [*whole, *broken.attempts[-1]]} == {whole[0].value(name)}


def test_of_older_attempts_the_last_of_each_fit_is_left(broken: Broken) -> None:
    left = sorted(str(p.relative_to(broken.directory)) for p in broken.directory.rglob("*.manifest.json"))
    assert left == [
        "3b3f9a52/attempt-1/call-0/ckpt-56.manifest.json",
        f"3b3f9a52/attempt-1/call-1/ckpt-{broken.last_saved.step}.manifest.json",
        *(
            f"3b3f9a52/attempt-2/call-1/ckpt-{step}.manifest.json"
            for step in (9 * STEPS, 10 * STEPS)
            if step > (broken.last_saved.step or 0)
        ),
    ]
