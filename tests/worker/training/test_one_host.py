"""`fit` on one host under both Kerases: restarts in the midst of an epoch, checkpoints that don't fit the program."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dtj_worker import folders
from dtj_worker.contract import Fault
from tests.worker.training.gang import UID, Job, Trainer

pytestmark = pytest.mark.tensorflow

KILLED = {0: Fault(37, signal="SIGKILL")}
"""In the fifth epoch of eight steps, at whose end EarlyStopping, which has waited for three, will stop."""


@pytest.mark.parametrize("keras", [pytest.param("--keras3", id="Keras 3"), pytest.param("", id="tf_keras")])
def test_a_restart_in_an_epoch_loses_no_step(tmp_path: Path, keras: str) -> None:
    job = Job(tmp_path, "single.py", workers=1, strategy="Mirrored", legacy=not keras, every=5)
    arguments = [word for word in (keras, "--mirrored") if word]
    killed = job.run(*arguments, faults=KILLED)[0]
    assert killed.code == -9
    resumed = job.run(*arguments)[0]
    assert resumed.code == 0, resumed.lines
    assert resumed.value("replicas") == "2"
    assert [(r.step, r.epoch) for r in resumed.told("Restored")] == [(35, 4)]
    after = [int(line.split()[-1]) for line in resumed.lines if line.startswith("batch ")]
    assert after == list(range(35, 40))
    assert resumed.value("iterations") == "40"
    assert resumed.value("epochs") == "[0, 1, 2, 3, 4]"
    assert resumed.value("waited") == "4 4"
    assert any("take the place of BackupAndRestore" in line for line in resumed.lines)
    assert not (tmp_path / "never-used").exists()


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A Keras 3 run with a save at every epoch, killed in the fifth."""
    job = Job(tmp_path_factory.mktemp("killed"), "single.py", workers=1, strategy="None", legacy=False)
    job.run("--keras3", faults=KILLED)
    return job


@pytest.fixture
def again(killed: Job, tmp_path: Path) -> Callable[..., Trainer]:
    """The next attempt of a copy of that run, with some changes."""

    def run(*arguments: str, legacy: bool = False, damage: Callable[[Path], None] | None = None) -> Trainer:
        shutil.copytree(killed.directory, tmp_path / "job")
        job = replace(killed, directory=tmp_path / "job", legacy=legacy)
        return job.run(*arguments, before=damage)[0]

    return run


def test_keras_3_ends_as_the_whole_run(again: Callable[..., Trainer], tmp_path: Path) -> None:
    whole = Job(tmp_path / "whole", "single.py", workers=1, strategy="None", legacy=False).run("--keras3")[0]
    resumed = again("--keras3")
    assert resumed.told("Step")[0].step == 33
    for name in ("iterations", "epochs", "losses", "waited", "weights"):
        assert resumed.value(name) == whole.value(name)


def test_another_model_is_refused(again: Callable[..., Trainer]) -> None:
    # Its variables are those of the checkpoint and one more, the state of a generator: nothing differs in shape.
    refused = again("--keras3", "--dropout")
    assert refused.code == 64
    assert "holds another model than the program builds" in refused.problem
    assert "checkpoint.onExisting: StartFresh" in refused.problem


def test_another_keras_is_refused(again: Callable[..., Trainer]) -> None:
    refused = again(legacy=True)
    assert refused.code == 64
    assert refused.problem.startswith("the checkpoint was written with keras 3.")
    assert "the program runs with tf_keras 2." in refused.problem


def test_a_checkpoint_damaged_after_the_choice_ends_the_attempt(again: Callable[..., Trainer]) -> None:
    def damage(prefix: Path) -> None:
        data = prefix.with_name(prefix.name + ".data-00000-of-00001")
        content = bytearray(data.read_bytes())
        content[len(content) // 2] ^= 1
        data.write_bytes(content)

    ended = again("--keras3", damage=damage)
    assert ended.code == 1
    assert ended.problem.startswith("CheckpointUnreadable: ")
    assert "ckpt-32" in ended.problem


def test_a_full_disk_ends_nothing_and_nothing_is_left_of_failed_saves(tmp_path: Path) -> None:
    job = Job(tmp_path, "single.py", workers=1, strategy="None", legacy=False)

    trained = job.run("--keras3", "--full=2")[0]

    assert trained.code == 0, trained.lines
    assert [r.step for r in trained.told("Saved")] == [24, 32, 40]
    notices = [r.message or "" for r in trained.told("Notice")]
    assert notices[0].startswith("the checkpoint of step 8 could not be written: ")
    assert notices[-1] == ""
    left = {path.name.partition(".")[0] for path in (tmp_path / UID[:8] / "attempt-0" / "call-0").iterdir()}
    assert left == {"ckpt-32", "ckpt-40"}


def test_a_checkpoint_that_only_tensorflow_finds_unreadable_is_set_aside(killed: Job, tmp_path: Path) -> None:
    def spoil(prefix: Path) -> None:
        """As a disk would that lost bytes before they were measured."""
        prefix.with_name(prefix.name + ".index").write_bytes(b"\0" * 200)
        folders.write_manifest(prefix, 32, 4, "keras 3")

    shutil.copytree(killed.directory, tmp_path / "job")
    job = replace(killed, directory=tmp_path / "job")

    ended = job.run("--keras3", before=spoil)[0]

    assert ended.code == 1
    assert ended.problem.startswith("CheckpointUnreadable: ")
    assert "it was set aside in" in ended.problem
    resumed = job.run("--keras3")[0]
    assert resumed.code == 0, resumed.lines
    assert [(r.step, r.epoch) for r in resumed.told("Restored")] == [(24, 3)]
    assert (tmp_path / "job" / UID[:8] / "unreadable" / "attempt-0" / "ckpt-32.index").is_file()
