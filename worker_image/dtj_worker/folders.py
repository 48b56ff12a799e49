"""Checkpoints on disk: the layout of a job's directory, finished copies and their manifests, what may be deleted.

    <directory>/job.json                                        the runs of the job's name (supervisor/choice.py)
    <directory>/<uid, 8 characters>/attempt-<n>/…               what one attempt wrote; a program may use sub-folders
    <directory>/<uid, 8 characters>/unreadable/attempt-<n>/…    damaged copies, set aside

A copy is a checkpoint prefix with its files and a manifest, `<prefix>.manifest.json`, written last: without one it was
not finished and is none. Standard library only: the training library writes, the supervisor verifies and chooses.
"""

import contextlib
import json
import os
import re
import shutil
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path

from dtj_worker.contract import CheckpointPlan

MANIFEST = ".manifest.json"
MANIFEST_BYTES = 1024**2
"""One of a thousand files has a tenth of that."""

UNREADABLE = "unreadable"
BLOCK_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Manifest:
    """What a finished copy consists of. `epoch` counts from 0 and is where training goes on."""

    step: int
    epoch: int
    keras: str
    """Name and version of the Keras that wrote it, as in `tf_keras 2.21.0`; for people."""
    files: dict[str, tuple[int, int]]
    """Bytes and CRC-32 of each file, by name."""
    fit: int = 0
    """Which of the program's `fit` calls wrote it, from 0."""


@dataclass(frozen=True)
class Copy:
    """A finished copy; whether it still is as it was written, only `damage` tells."""

    prefix: Path
    attempt: int
    manifest: Manifest

    @property
    def order(self) -> tuple[int, int, int]:
        """The newest copy of a run has the greatest."""
        return self.manifest.fit, self.manifest.step, self.attempt

    def __str__(self) -> str:
        return f"step {self.manifest.step} of attempt {self.attempt} ({self.prefix})"


def run_folder(plan: CheckpointPlan, uid: str) -> Path:
    """What all attempts of a run wrote."""
    return Path(plan.directory, uid[:8])


def attempt_folder(plan: CheckpointPlan, uid: str, attempt: int) -> Path:
    """Where this attempt writes, and no other."""
    return run_folder(plan, uid) / f"attempt-{attempt}"


def write_manifest(prefix: Path, step: int, epoch: int, keras: str, fit: int = 0) -> Path:
    """Make the files `<prefix>.*` a finished copy: all on disk, measured, the manifest renamed into place last.

    Manifests in the same folder whose files are all gone (CheckpointManager deletes old copies) are removed.
    """
    files = {}
    for path in sorted(prefix.parent.glob(f"{_literal(prefix.name)}.*")):
        if path.is_file() and not path.name.endswith((MANIFEST, ".tmp")):
            files[path.name] = _measure(path, sync=True)
    if not files:
        raise FileNotFoundError(f"{prefix}.*: no such checkpoint")
    target = prefix.with_name(prefix.name + MANIFEST)
    write_durably(target, json.dumps(asdict(Manifest(step, epoch, keras, files, fit))).encode())
    for other in prefix.parent.glob(f"*{MANIFEST}"):
        manifest = read_manifest(other)
        if other != target and manifest and not any((other.parent / name).exists() for name in manifest.files):
            other.unlink(missing_ok=True)
    return target


def read_manifest(path: Path) -> Manifest | None:
    """None if it is no manifest, or that of another copy; OSError if it can't be read."""
    prefix = path.name.removesuffix(MANIFEST)
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(MANIFEST_BYTES))
        files = {str(name): (int(size), int(crc)) for name, (size, crc) in found["files"].items()}
        if not files or any("/" in name or not name.startswith(f"{prefix}.") for name in files):
            return None
        return Manifest(int(found["step"]), int(found["epoch"]), str(found["keras"]), files, int(found.get("fit", 0)))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


def copies(folder: Path) -> list[Copy]:
    """The finished copies below a run's or an attempt's folder, newest first; without those that were set aside.

    OSError where something can't be looked into: what isn't seen must not count as not there.
    """
    found = []
    for path in _manifests(folder):
        numbers = [int(match[1]) for part in path.parts if (match := re.fullmatch(r"attempt-(\d+)", part))]
        with contextlib.suppress(FileNotFoundError):  # A straggler of an older attempt may still delete its own.
            manifest = read_manifest(path)
            if manifest and UNREADABLE not in path.relative_to(folder).parts:
                prefix = path.with_name(path.name.removesuffix(MANIFEST))
                found.append(Copy(prefix, numbers[-1] if numbers else 0, manifest))
    return sorted(found, key=lambda copy: copy.order, reverse=True)


def number_set_aside(run: Path) -> int:
    """How many copies of a run were found damaged so far."""
    return len(_manifests(run / UNREADABLE))


def damage(copy: Copy) -> str | None:
    """What is wrong with a copy, read to its last byte; None if it is as it was written. OSError if the disk fails."""
    for name, (bytes_written, crc_written) in copy.manifest.files.items():
        path = copy.prefix.with_name(name)
        if not path.is_file():  # A pipe of that name would be waited for.
            return f"{name} is missing"
        size, crc = _measure(path, sync=False)
        if size != bytes_written:
            return f"{name} has {size} of {bytes_written} bytes"
        if crc != crc_written:
            return f"{name} has changed since it was written (CRC)"
    return None


def set_aside(run: Path, copy: Copy) -> None:
    """Move a damaged copy where nothing reads or deletes it."""
    target = run / UNREADABLE / f"attempt-{copy.attempt}"
    target.mkdir(parents=True, exist_ok=True)
    # The manifest last: were it gone first, a crash in between would leave files that no one knows to be damaged.
    for name in [*copy.manifest.files, copy.prefix.name + MANIFEST]:
        with contextlib.suppress(FileNotFoundError):
            copy.prefix.with_name(name).rename(target / name)


def sweep(folder: Path) -> None:
    """After an attempt's first verified save: delete what older attempts left, but for each fit call's newest copy.

    `folder` is the attempt's own (DTJ_CHECKPOINT_FOLDER); only the chief calls it. Half-written rests go with the rest,
    what was set aside stays.
    """
    own = int(folder.name.removeprefix("attempt-"))
    keep: dict[int, set[Path]] = {}
    for copy in copies(folder.parent):
        if copy.attempt < own and copy.manifest.fit not in keep and _has_its_sizes(copy):
            names = [*copy.manifest.files, copy.prefix.name + MANIFEST]
            keep[copy.manifest.fit] = {copy.prefix.with_name(name) for name in names}
    kept = set[Path]().union(*keep.values())
    for attempt in folder.parent.glob("attempt-*"):
        number = attempt.name.removeprefix("attempt-")
        if number.isdecimal() and int(number) < own:
            _delete_all_but(attempt, kept)


def write_durably(path: Path, content: bytes) -> None:
    """Whole or not at all, across a crash of the node too: written beside, synced, renamed, and the folder synced."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.rename(path)
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _measure(path: Path, sync: bool) -> tuple[int, int]:
    """Bytes and CRC-32 of a file; with `sync` it is brought to the disk first, which TensorFlow doesn't see to."""
    size = crc = 0
    with path.open("rb") as file:
        if sync:
            os.fsync(file.fileno())
        while block := file.read(BLOCK_BYTES):
            size += len(block)
            crc = zlib.crc32(block, crc)
    return size, crc


def _manifests(folder: Path) -> list[Path]:
    def fail(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            raise error

    walk = os.walk(folder, onerror=fail)
    return [Path(where, name) for where, _, names in walk for name in names if name.endswith(MANIFEST)]


def _literal(name: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", name)


def _has_its_sizes(copy: Copy) -> bool:
    paths = {copy.prefix.with_name(name): size for name, (size, _) in copy.manifest.files.items()}
    return all(path.is_file() and path.stat().st_size == size for path, size in paths.items())


def _delete_all_but(folder: Path, kept: set[Path]) -> None:
    if not any(folder in path.parents for path in kept):
        shutil.rmtree(folder, ignore_errors=True)
        return
    for path in sorted(folder.rglob("*"), reverse=True):
        with contextlib.suppress(OSError):  # A folder that holds what is kept is not empty.
            if path.is_dir():
                path.rmdir()
            elif path not in kept:
                path.unlink()
