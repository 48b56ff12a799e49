"""Checkpoints on disk: what counts as a copy, how damage shows, what a sweep leaves."""

import os
import tempfile
from pathlib import Path

import pytest

from dtj_worker import folders
from dtj_worker.contract import CheckpointPlan


def save(folder: Path, step: int, content: bytes = b"weights", fit: int = 0) -> Path:
    """A finished copy of two files, as TensorFlow names them."""
    folder.mkdir(parents=True, exist_ok=True)
    prefix = folder / f"ckpt-{step}"
    Path(f"{prefix}.index").write_bytes(b"index of " + content)
    Path(f"{prefix}.data-00000-of-00001").write_bytes(content)
    folders.write_manifest(prefix, step, step // 10, "tf_keras 2.21.0", fit)
    return prefix


def test_a_copy_is_what_has_a_manifest(tmp_path: Path) -> None:
    save(tmp_path / "attempt-0", 10)
    save(tmp_path / "attempt-0", 20)
    (tmp_path / "attempt-0" / "ckpt-30.index").write_bytes(b"half-written")

    found = folders.copies(tmp_path)

    assert [(copy.manifest.step, copy.manifest.epoch, copy.attempt) for copy in found] == [(20, 2, 0), (10, 1, 0)]
    assert set(found[0].manifest.files) == {"ckpt-20.index", "ckpt-20.data-00000-of-00001"}
    assert all(folders.damage(copy) is None for copy in found)


def test_a_copy_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        folders.write_manifest(tmp_path / "ckpt-1", 1, 0, "none")


def test_a_name_is_no_pattern(tmp_path: Path) -> None:
    for name in ("ckpt-1", "ckpt-[1]", "ckpt-*"):
        (tmp_path / f"{name}.data").write_bytes(name.encode())

    folders.write_manifest(tmp_path / "ckpt-*", 1, 0, "none")

    assert set(folders.copies(tmp_path)[0].manifest.files) == {"ckpt-*.data"}


def test_manifests_of_deleted_copies_go_with_the_next_save(tmp_path: Path) -> None:
    old = save(tmp_path, 10)
    for path in tmp_path.glob("ckpt-10.[di]*"):
        path.unlink()

    save(tmp_path, 20)

    assert not old.with_name("ckpt-10.manifest.json").exists()
    assert [copy.manifest.step for copy in folders.copies(tmp_path)] == [20]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param(lambda path: path.unlink(), "ckpt-10.data-00000-of-00001 is missing", id="missing"),
        pytest.param(lambda path: path.write_bytes(b"weigh"), "has 5 of 7 bytes", id="cut"),
        pytest.param(
            lambda path: path.write_bytes(b"weigjts"), "has changed since it was written (CRC)", id="a flipped bit"
        ),
    ],
)
def test_damage_is_seen(tmp_path: Path, change: object, problem: str) -> None:
    prefix = save(tmp_path, 10)
    assert callable(change)
    change(Path(f"{prefix}.data-00000-of-00001"))

    found = folders.damage(folders.copies(tmp_path)[0])

    assert found is not None
    assert problem in found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"step": 1, "epoch": 0, "keras": "", "files": {}}',
        '{"step": 1, "epoch": 0, "keras": "", "files": 7}',
        '{"step": 1, "epoch": 0, "keras": "", "files": {"../../etc/passwd": [1, 1]}}',
        '{"step": 1, "epoch": 0, "keras": "", "files": {"ckpt-1.index/../../x": [1, 1]}}',
        '{"step": Infinity, "epoch": 0, "keras": "", "files": {"ckpt-1.index": [1, 1]}}',
        pytest.param('{"step": 1, "epoch": 0, "keras": "", "files": {"ckpt-2.index": [1, 1]}}', id="another copy's"),
        pytest.param("[" * 100_000, id="deep"),
        pytest.param(" " * 2**20 + '{"step": 1, "epoch": 0, "keras": "", "files": {"ckpt-1.i": [1, 1]}}', id="large"),
    ],
)
def test_what_is_no_manifest_makes_no_copy(tmp_path: Path, text: str) -> None:
    (tmp_path / "ckpt-1.manifest.json").write_text(text)

    assert folders.copies(tmp_path) == []


def test_the_newest_is_of_the_last_fit_then_of_the_highest_step(tmp_path: Path) -> None:
    save(tmp_path / "attempt-0" / "call-0", 90)
    save(tmp_path / "attempt-1" / "call-0", 90)
    save(tmp_path / "attempt-0" / "call-1", 20, fit=1)

    order = [(copy.manifest.fit, copy.manifest.step, copy.attempt) for copy in folders.copies(tmp_path)]

    assert order == [(1, 20, 0), (0, 90, 1), (0, 90, 0)]


def test_a_sweep_leaves_the_newest_older_copy_of_each_fit(tmp_path: Path) -> None:
    plan = CheckpointPlan(str(tmp_path))
    run = folders.run_folder(plan, "6f1d2c3b-long")
    save(run / "attempt-0" / "call-0", 40)
    save(run / "attempt-0" / "call-1", 10, fit=1)
    save(run / "attempt-1" / "call-1", 20, fit=1)
    save(run / "attempt-1" / "call-1", 30, fit=1)
    (run / "attempt-1" / "ckpt-31_temp").mkdir()
    save(run / "attempt-2", 99, fit=1)
    save(run / "attempt-10", 35, fit=1)
    save(run / "unreadable" / "attempt-0", 39)

    folders.sweep(folders.attempt_folder(plan, "6f1d2c3b-long", 2))

    left = sorted(str(path.relative_to(run)) for path in run.rglob("*.index"))
    assert left == [
        "attempt-0/call-0/ckpt-40.index",
        "attempt-1/call-1/ckpt-30.index",
        "attempt-10/ckpt-35.index",
        "attempt-2/ckpt-99.index",
        "unreadable/attempt-0/ckpt-39.index",
    ]
    assert not (run / "attempt-1" / "ckpt-31_temp").exists()


def test_a_sweep_spares_no_copy_that_lacks_bytes(tmp_path: Path) -> None:
    save(tmp_path / "attempt-0", 10)
    cut = save(tmp_path / "attempt-0", 20)
    Path(f"{cut}.index").write_bytes(b"")
    save(tmp_path / "attempt-1", 30)

    folders.sweep(tmp_path / "attempt-1")

    assert [copy.manifest.step for copy in folders.copies(tmp_path)] == [30, 10]


def test_a_pipe_is_no_checkpoint_to_wait_for(tmp_path: Path) -> None:
    prefix = save(tmp_path, 10)
    Path(f"{prefix}.index").unlink()
    os.mkfifo(f"{prefix}.index")

    assert folders.damage(folders.copies(tmp_path)[0]) == "ckpt-10.index is missing"


def test_what_can_not_be_looked_into_does_not_count_as_empty() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become someone else")
    with tempfile.TemporaryDirectory() as made:  # Not below pytest's own folder, which is closed to others.
        run = Path(made)
        save(run / "attempt-0", 10)
        (run / "attempt-0").chmod(0o700)
        run.chmod(0o755)
        os.seteuid(65534)
        try:
            with pytest.raises(PermissionError):
                folders.copies(run)
        finally:
            os.seteuid(0)


def test_writing_durably_leaves_nothing_where_it_fails(tmp_path: Path) -> None:
    (tmp_path / "job.json").mkdir()

    with pytest.raises(OSError, match=r"job\.json"):
        folders.write_durably(tmp_path / "job.json", b"new")

    assert [path.name for path in tmp_path.iterdir()] == ["job.json"]


def test_writing_durably_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    folders.write_durably(path, b"old")
    folders.write_durably(path, b"new")

    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]
