"""Which checkpoint an attempt starts from: the newest that is intact, and nothing from zero in silence."""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dtj_worker import folders
from dtj_worker.contract import CheckpointPlan, ConfigFault
from dtj_worker.reports import Restore
from dtj_worker.supervisor import choice
from dtj_worker.supervisor.choice import Run

ME, OTHER = "11111111-own", "22222222-before"
Save = Callable[..., Path]


@pytest.fixture
def plan(tmp_path: Path) -> Callable[..., CheckpointPlan]:
    return lambda **changes: CheckpointPlan(str(tmp_path / "ml" / "count"), **changes)


@pytest.fixture
def save(plan: Callable[..., CheckpointPlan]) -> Save:
    def make(step: int, uid: str = ME, attempt: int = 0) -> Path:
        folder = folders.attempt_folder(plan(), uid, attempt)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"ckpt-{step}.data"
        path.write_bytes(b"weights")
        folders.write_manifest(folder / f"ckpt-{step}", step, step // 10, "none")
        return path

    return make


def restored(plan: CheckpointPlan, **of: Any) -> tuple[int, int] | None:
    found = choice.begin(plan, of.get("uid", ME), "digest").restore
    return (found.step, int(Path(found.path or "").parent.name.removeprefix("attempt-"))) if found else None


def test_a_new_job_starts_from_zero_and_is_noted(plan: Any) -> None:
    Path(plan().directory).mkdir(parents=True)

    assert choice.begin(plan(), ME, "digest") == choice.Choice(None)
    assert choice.read_runs(plan()) == [Run(ME, "digest")]


def test_the_newest_intact_copy_of_any_attempt_is_chosen(plan: Any, save: Save) -> None:
    save(10)
    save(30, attempt=1)
    save(20, attempt=2)

    assert choice.begin(plan(), ME, "digest").restore == Restore(
        30, 3, str(folders.attempt_folder(plan(), ME, 1) / "ckpt-30")
    )


def test_damaged_copies_are_set_aside(plan: Any, save: Save) -> None:
    save(10)
    save(20).write_bytes(b"weighty")
    save(30, attempt=1).unlink()

    found = choice.begin(plan(), ME, "digest")

    assert found.restore is not None
    assert found.restore.step == 10
    assert "set aside step 30 of attempt 1" in found.notes[0]
    assert "ckpt-30.data is missing" in found.notes[0]
    aside = folders.run_folder(plan(), ME) / "unreadable" / "attempt-0"
    assert (aside / "ckpt-20.data").read_bytes() == b"weighty"
    assert choice.begin(plan(), ME, "digest").notes[0].startswith("resuming from step 10 of attempt 0")


@pytest.mark.parametrize("progressed", [True, False])
def test_nothing_starts_from_zero_in_silence(plan: Any, save: Save, progressed: bool) -> None:
    if not progressed:
        save(10).unlink()
    Path(plan().directory).mkdir(parents=True, exist_ok=True)

    with pytest.raises(ConfigFault, match=r"no readable checkpoint is left .* set recovery\.allowRestartFromZero"):
        choice.begin(plan(progressed=progressed), ME, "digest")


def test_from_zero_where_that_is_allowed(plan: Any, save: Save) -> None:
    save(10).unlink()

    found = choice.begin(plan(allow_restart_from_zero=True), ME, "digest")

    assert found.restore is None
    assert "starting from zero, as recovery.allowRestartFromZero says" in found.notes[-1]


@pytest.mark.parametrize(
    ("on_existing", "finished", "found"),
    [
        pytest.param("Auto", False, (40, 0), id="an unfinished run is resumed"),
        pytest.param("Auto", True, "a finished run of this name", id="a finished one is refused"),
        pytest.param("Resume", False, (40, 0), id="resume"),
        pytest.param("Resume", True, (40, 0), id="resume even a finished one"),
        pytest.param("StartFresh", False, None, id="start fresh"),
        pytest.param("StartFresh", True, None, id="start fresh after a finished one"),
        pytest.param("Fail", False, "an unfinished run of this name", id="fail"),
        pytest.param("Fail", True, "checkpoint.onExisting is Fail", id="fail after a finished one"),
    ],
)
def test_another_run_of_the_name(plan: Any, save: Save, on_existing: str, finished: bool, found: Any) -> None:
    save(40, uid=OTHER)
    choice.begin(plan(on_existing="Resume"), OTHER, "another digest")
    if finished:
        choice.finish(plan(), OTHER)

    if isinstance(found, str):
        with pytest.raises(ConfigFault, match=found):
            restored(plan(on_existing=on_existing))
        assert [run.uid for run in choice.read_runs(plan())] == [OTHER]
    else:
        assert restored(plan(on_existing=on_existing)) == found


def test_it_is_said_whose_run_is_resumed(plan: Any, save: Save) -> None:
    save(40, uid=OTHER)
    choice.begin(plan(), OTHER, "another digest")

    notes = choice.begin(plan(), ME, "digest").notes

    assert f"an unfinished run of this name (uid {OTHER})" in notes[0]
    assert notes[0].endswith("it ran another program")


def test_ones_own_checkpoint_comes_before_anything_else(plan: Any, save: Save) -> None:
    save(40, uid=OTHER)
    choice.begin(plan(), OTHER, "digest")
    choice.finish(plan(), OTHER)
    save(10)

    assert restored(plan(on_existing="Fail", resume_from="/nowhere")) == (10, 0)


def test_a_run_without_a_copy_is_no_obstacle(plan: Any) -> None:
    Path(plan().directory).mkdir(parents=True)
    choice.begin(plan(), OTHER, "digest")

    assert restored(plan(on_existing="Fail")) is None


@pytest.mark.parametrize("uid", [ME, OTHER], ids=["its own", "another run's"])
def test_a_copy_that_was_set_aside_is_a_loss_at_every_attempt(plan: Any, save: Save, uid: str) -> None:
    save(40, uid=uid).write_bytes(b"")
    choice.begin(plan(allow_restart_from_zero=True), uid, "digest")

    for _ in range(2):
        with pytest.raises(ConfigFault, match=r"no readable checkpoint is left .* \(1 damaged\)"):
            restored(plan())


def test_another_runs_damaged_copy_is_a_loss_too(plan: Any, save: Save) -> None:
    Path(plan().directory).mkdir(parents=True)
    choice.begin(plan(), OTHER, "digest")
    save(40, uid=OTHER).write_bytes(b"")

    with pytest.raises(ConfigFault, match="no readable checkpoint is left"):
        restored(plan())


def test_what_was_lost_is_not_replaced_by_what_the_run_began_with(plan: Any, save: Save, tmp_path: Path) -> None:
    pretrained = tmp_path / "pretrained" / "ckpt-7"
    pretrained.parent.mkdir()
    Path(f"{pretrained}.index").write_bytes(b"")
    save(40).write_bytes(b"")

    with pytest.raises(ConfigFault, match="no readable checkpoint is left"):
        restored(plan(resume_from=str(pretrained)))
    found = choice.begin(plan(resume_from=str(pretrained), allow_restart_from_zero=True), ME, "digest")
    assert found.restore == Restore(0, 0, str(pretrained))


def test_a_damaged_copy_that_can_not_be_moved_is_passed_over(plan: Any, save: Save) -> None:
    save(10)
    save(20).unlink()
    (folders.run_folder(plan(), ME) / "unreadable").write_text("a file where a folder should be")

    found = choice.begin(plan(), ME, "digest")

    assert found.restore is not None
    assert found.restore.step == 10
    assert "passed over step 20 of attempt 0" in found.notes[0]
    assert "it can't be set aside" in found.notes[0]


def test_resume_from_a_prefix_a_folder_or_nothing(plan: Any, save: Save, tmp_path: Path) -> None:
    path = save(40, uid=OTHER)
    bare = tmp_path / "pretrained" / "ckpt-7"
    bare.parent.mkdir()
    Path(f"{bare}.index").write_bytes(b"")

    assert restored(plan(resume_from=str(path.with_suffix("")))) == (40, 0)
    assert restored(plan(resume_from=str(path.parent.parent))) == (40, 0)
    assert choice.begin(plan(resume_from=str(bare)), ME, "digest").restore == Restore(0, 0, str(bare))
    with pytest.raises(ConfigFault, match=r"checkpoint\.resumeFrom: /nowhere/ckpt-1: no checkpoint there"):
        restored(plan(resume_from="/nowhere/ckpt-1"))
    path.write_bytes(b"")
    with pytest.raises(ConfigFault, match="all copies there are damaged"):
        restored(plan(resume_from=str(path.parent)))
    assert path.exists()


def test_a_damaged_job_json_loses_no_run(plan: Any, save: Save) -> None:
    save(40, uid=OTHER[:8])
    Path(plan().directory, "job.json").write_text('{"runs": [{"uid":')

    assert restored(plan()) == (40, 0)
    assert Path(plan().directory, "job.json.unreadable").exists()
    assert [run.uid for run in choice.read_runs(plan())] == [OTHER[:8], ME]


def test_another_users_checkpoints_are_named() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become someone else")
    with tempfile.TemporaryDirectory() as made:  # Not below pytest's own folder, which is closed to others.
        Path(made).chmod(0o777)
        plan = CheckpointPlan(made)
        attempt = folders.attempt_folder(plan, ME, 0)
        attempt.mkdir(parents=True)
        attempt.chmod(0o700)
        os.seteuid(65534)
        try:
            with pytest.raises(ConfigFault, match=f"checkpoints at {attempt} can't be read: .* this is user 65534"):
                choice.begin(plan, ME, "digest")
        finally:
            os.seteuid(0)


def test_finishing_is_noted(plan: Any) -> None:
    Path(plan().directory).mkdir(parents=True)
    choice.begin(plan(), OTHER, "digest")
    choice.begin(plan(), ME, "digest")

    choice.finish(plan(), ME)

    assert [run["finished"] for run in json.loads(Path(plan().directory, "job.json").read_text())["runs"]] == [
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("directory", "says"),
    [
        ("s3://bucket/x", "CSI driver"),
        ("gs://bucket/x", "gs:// checkpoints are not there yet"),
        ("hdfs://x", "hdfs:// is no place"),
    ],
)
def test_a_directory_that_is_none(directory: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigFault, match=says):
        choice.check(CheckpointPlan(directory), tmp_path)


def test_the_check_leaves_nothing_but_the_folder(plan: Any) -> None:
    folder = folders.attempt_folder(plan(), ME, 0)

    choice.check(plan(), folder)

    assert list(folder.iterdir()) == []


def test_a_folder_that_can_not_be_made(plan: Any, tmp_path: Path) -> None:
    (tmp_path / "ml").write_text("a file where a folder should be")

    with pytest.raises(ConfigFault, match="can't be written: Not a directory"):
        choice.check(plan(), folders.attempt_folder(plan(), ME, 0))
