"""What an attempt starts from: job.json and the choice of one checkpoint, by the chief's supervisor, once.

Layout and manifests are `folders.py`'s business. Reading gigabytes takes time: nothing here may run in the loop's
thread.
"""

import errno
import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from dtj_worker import folders
from dtj_worker.contract import CheckpointPlan, ConfigFault
from dtj_worker.folders import Copy
from dtj_worker.reports import Restore

LASTING = (errno.EROFS, errno.ENOSPC, errno.EDQUOT)
"""What no restart of the job changes about a disk."""


@dataclass(frozen=True)
class Choice:
    """Where an attempt starts, from zero without `restore`; `notes` are lines for people."""

    restore: Restore | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """One job's life under its name, which another job may have had before. `program` is a digest of what was run."""

    uid: str
    program: str
    finished: bool = False


@dataclass
class _Search:
    """What was found on the way to a choice."""

    notes: list[str]
    damaged: int = 0


def check(plan: CheckpointPlan, folder: Path) -> None:
    """Make the folder, write a file in it, remove it. ConfigFault for what only a person can change; else OSError."""
    for where in (plan.directory, plan.resume_from or ""):
        _refuse_uri(where)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".dtj-probe-{os.getpid()}"
        folders.write_durably(probe, b"dtj")
        probe.unlink()
    except (PermissionError, FileExistsError, NotADirectoryError) as error:
        raise ConfigFault(f"checkpoint folder {folder} can't be written: {error.strerror}; {_whose()}") from None
    except OSError as error:
        if error.errno in LASTING:
            raise ConfigFault(f"checkpoint folder {folder} can't be written: {error.strerror}") from None
        raise


def begin(plan: CheckpointPlan, uid: str, program: str) -> Choice:
    """Choose and verify what a run's next attempt starts from, and enter the run in job.json.

    Damaged copies are set aside on the way. ConfigFault where starting would lose something: `onExisting` forbids it,
    or there was progress and no readable copy is left. OSError where the disk fails: that may heal.
    """
    try:
        return _begin(plan, uid, program)
    except PermissionError as error:
        raise ConfigFault(f"checkpoints at {error.filename} can't be read: {error.strerror}; {_whose()}") from None


def finish(plan: CheckpointPlan, uid: str) -> None:
    """Note in job.json that this run has reached its end."""
    _write_runs(plan, [replace(run, finished=run.finished or run.uid == uid) for run in read_runs(plan)])


def read_runs(plan: CheckpointPlan) -> list[Run]:
    """The runs of this job's name, oldest first. Where job.json is damaged, the folders speak, all as unfinished."""
    path = Path(plan.directory, "job.json")
    try:
        found = json.loads(path.read_bytes())["runs"]
        return [Run(str(run["uid"]), str(run["program"]), run["finished"] is True) for run in found]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError, RecursionError):
        path.rename(path.with_name("job.json.unreadable"))
        with_copies = [p for p in Path(plan.directory).iterdir() if p.is_dir() and any(p.glob("attempt-*"))]
        return [Run(p.name, "") for p in sorted(with_copies, key=lambda p: p.stat().st_mtime)]


def _begin(plan: CheckpointPlan, uid: str, program: str) -> Choice:
    runs = read_runs(plan)
    search = _Search([])
    restore = _restore(_newest_intact(folders.run_folder(plan, uid), search))
    if restore is None and not plan.progressed and not search.damaged and not plan.resume_from:
        others = [run for run in runs if run.uid != uid]
        restore = _restore(_of_another_run(plan, others, program, search))
    if restore is None and (plan.progressed or search.damaged):
        lost = f"no readable checkpoint is left in {plan.directory}, though there was one ({search.damaged} damaged)"
        if not plan.allow_restart_from_zero:
            raise ConfigFault(f"{lost}; to start from zero all the same, set recovery.allowRestartFromZero")
        search.notes.append(f"{lost}: starting from zero, as recovery.allowRestartFromZero says")
    if restore is None and plan.resume_from:
        restore = _named(plan.resume_from, search)
    if uid not in [run.uid for run in runs]:
        _write_runs(plan, [*runs, Run(uid, program)])
    return Choice(restore, tuple(search.notes))


def _write_runs(plan: CheckpointPlan, runs: list[Run]) -> None:
    content = json.dumps({"runs": [asdict(run) for run in runs]}, indent=1)
    folders.write_durably(Path(plan.directory, "job.json"), content.encode())


def _newest_intact(folder: Path, search: _Search) -> Copy | None:
    """The newest copy below a run's folder that is as it was written; the damaged ones before it are set aside."""
    damaged = folders.number_set_aside(folder)
    for copy in folders.copies(folder):
        problem = folders.damage(copy)
        if problem is None:
            search.notes.append(f"resuming from {copy}")
            return copy
        damaged += 1
        try:
            folders.set_aside(folder, copy)
            search.notes.append(f"set aside {copy}: {problem}")
        except OSError as error:
            search.notes.append(f"passed over {copy}: {problem}; it can't be set aside: {error.strerror}")
    search.damaged += damaged
    return None


def _of_another_run(plan: CheckpointPlan, others: list[Run], program: str, search: _Search) -> Copy | None:
    """What `onExisting` says about the newest run of the same name that has left a copy."""
    if plan.on_existing == "StartFresh":
        return None
    for run in reversed(others):
        folder = folders.run_folder(plan, run.uid)
        if not folders.copies(folder) and not folders.number_set_aside(folder):
            continue
        kind = "a finished" if run.finished else "an unfinished"
        state = f"{kind} run of this name (uid {run.uid}) is in {plan.directory}"
        if plan.on_existing == "Fail" or (plan.on_existing == "Auto" and run.finished):
            remedy = "set it to Resume or StartFresh, or name another directory"
            raise ConfigFault(f"{state}, and checkpoint.onExisting is {plan.on_existing}: {remedy}")
        same = "the same program" if run.program == program else "another program"
        search.notes.append(f"{state}; it ran {same}")
        return _newest_intact(folder, search)
    return None


def _named(where: str, search: _Search) -> Restore:
    """What `resumeFrom` names: a checkpoint's prefix, or a folder with finished copies. Nothing there is set aside."""
    path = Path(where)
    manifest = path.with_name(path.name + folders.MANIFEST)
    if path.is_dir():
        found = folders.copies(path)
    elif manifest.is_file():
        found = [Copy(path, 0, read) for read in [folders.read_manifest(manifest)] if read]
    elif path.with_name(path.name + ".index").is_file():
        search.notes.append(f"resuming from {where}, as checkpoint.resumeFrom says; it has no manifest to verify it by")
        return Restore(0, 0, where)
    else:
        found = []
    intact = next((copy for copy in found if folders.damage(copy) is None), None)
    if intact is None:
        why = (
            "all copies there are damaged"
            if found
            else "no checkpoint there; expected a prefix as …/ckpt-5, or a folder"
        )
        raise ConfigFault(f"checkpoint.resumeFrom: {where}: {why}")
    search.notes.append(f"resuming from {intact}, as checkpoint.resumeFrom says")
    return Restore(intact.manifest.step, intact.manifest.epoch, str(intact.prefix))


def _restore(copy: Copy | None) -> Restore | None:
    return Restore(copy.manifest.step, copy.manifest.epoch, str(copy.prefix)) if copy else None


def _whose() -> str:
    return f"this is user {os.geteuid()}: does the volume belong to another one?"


def _refuse_uri(where: str) -> None:
    scheme, is_uri, _ = where.partition("://")
    if is_uri and scheme == "s3":
        raise ConfigFault(
            f"{where}: TensorFlow has no s3 file system; mount the bucket by a CSI driver and name its path"
        )
    if is_uri and scheme == "gs":
        raise ConfigFault(
            f"{where}: gs:// checkpoints are not there yet; mount the bucket (Cloud Storage FUSE CSI driver)"
        )
    if is_uri:
        raise ConfigFault(f"{where}: {scheme}:// is no place for checkpoints; name a path on a volume")
