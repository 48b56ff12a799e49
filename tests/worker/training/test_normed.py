"""Two workers whose BatchNorm statistics differ: saved by both together, equal after a restart, exported once."""

from pathlib import Path

import pytest

from dtj_worker.contract import Batch, Fault
from tests.worker.training.gang import Job, Trainer

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def attempts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Trainer], list[Trainer]]:
    folder = tmp_path_factory.mktemp("normed")
    job = Job(folder, "normed.py", batch=Batch(per_replica=16))
    return folder, job.run(faults={0: Fault(20, exit_code=3)}), job.run()


def test_both_end_with_the_same_weights(attempts: tuple[Path, list[Trainer], list[Trainer]]) -> None:
    _, first, (chief, other) = attempts
    assert first[0].code == 3
    assert (chief.code, other.code) == (0, 0), chief.lines + other.lines
    assert [(r.step, r.epoch) for r in other.told("Restored")] == [(16, 2)]
    assert chief.value("trained") == other.value("trained")
    assert chief.value("means") == other.value("means")


def test_a_batch_per_replica_is_known_in_all_its_sizes(attempts: tuple[Path, list[Trainer], list[Trainer]]) -> None:
    assert attempts[2][1].value("batches") == "16 16 32"


def test_the_model_is_exported_by_the_chief(attempts: tuple[Path, list[Trainer], list[Trainer]]) -> None:
    folder, _, (chief, _) = attempts
    assert chief.value("equal") == "True True"
    assert (folder / "saved-model" / "saved_model.pb").exists()
    assert (folder / "model.keras").exists()
    assert [r.message for r in chief.told("Phase")][-3:] == ["", "Exporting", ""]
