"""Real trainers on loopback without supervisors: what those would give them is set here, all they report is kept."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import dtj_worker
from dtj_worker import folders
from dtj_worker.codec import decode, encode
from dtj_worker.contract import Batch, CheckpointPlan, Fault, Strategy, TaskSpec
from dtj_worker.reports import Report, Restore
from dtj_worker.supervisor import choice
from tests.worker.supervisor.gang import free_ports

SITE = Path(dtj_worker.__file__).parent / "training" / "site"
PROGRAMS = Path(__file__).parent / "programs"
LEAN = Path(__file__).parent / "lean"
UID = "3b3f9a52-0000-4000-8000-000000000000"


@dataclass
class Trainer:
    """How one worker ended and what it said."""

    code: int
    reports: list[Report]
    lines: list[str]

    def told(self, kind: str) -> list[Report]:
        return [report for report in self.reports if report.kind == kind]

    def value(self, name: str) -> str:
        """Of the last line `name: value` that it printed."""
        found = [line.removeprefix(f"{name}: ") for line in self.lines if line.startswith(f"{name}: ")]
        assert found, "\n".join([f"no line {name}:", *self.lines[-40:]])
        return found[-1]

    @property
    def problem(self) -> str:
        return next(r.message or "" for r in self.reports if r.kind in ("Problem", "Refused"))


@dataclass
class Job:
    """A job's attempts, one after the other, with its checkpoints in one directory."""

    directory: Path
    program: str
    workers: int = 2
    strategy: Strategy = "MultiWorkerMirrored"
    legacy: bool = True
    every: int | str = "epoch"
    keeps: bool = True
    batch: Batch = field(default_factory=Batch)
    started: int | None = None
    """How many of the workers are really started; None: all."""
    attempt: int = -1
    restore: Restore | None = None

    def run(
        self,
        *arguments: str,
        faults: Mapping[int, Fault] | None = None,
        kill_at: Callable[[Report], bool] | None = None,
        before: Callable[[Path], None] | None = None,
    ) -> list[Trainer]:
        """The next attempt, until all have ended; when one dies, the others are killed, as supervisors would.

        The last worker is killed when the first reports what `kill_at` waits for; `before` may hurt the chosen
        checkpoint.
        """
        self.attempt += 1
        self.directory.mkdir(parents=True, exist_ok=True)
        plan = CheckpointPlan(str(self.directory), every=self.every) if self.keeps else None  # type: ignore[arg-type]
        self.restore = choice.begin(plan, UID, self.program).restore if plan else None
        if before and self.restore and self.restore.path:
            before(Path(self.restore.path))
        port = free_ports(self.workers)
        peers = {f"worker-{index}": f"127.0.0.1:{port + index}" for index in range(self.workers)}
        spec = TaskSpec(
            namespace="default",
            job="digits",
            uid=UID,
            task="",
            attempt=self.attempt,
            strategy=self.strategy,
            chief="worker-0",
            chief_status="",
            status="",
            peers=peers,
            batch=self.batch,
            checkpoint=plan,
        )
        started = []
        for index in range(self.workers if self.started is None else self.started):
            mine = replace(spec, task=f"worker-{index}", fault=(faults or {}).get(index))
            started.append(_start(self._environ(mine, index), [str(PROGRAMS / self.program), *arguments]))
        return _collect(started, kill_at)

    def _environ(self, spec: TaskSpec, index: int) -> dict[str, str]:
        made = {
            **os.environ,
            "DTJ_TASK": encode(spec),
            "PYTHONPATH": os.pathsep.join(map(str, (SITE, LEAN))),
            "PYTHONUNBUFFERED": "1",
            "TF_CPP_MIN_LOG_LEVEL": "2",
            "TF_USE_LEGACY_KERAS": "1" if self.legacy else "0",
        }
        if self.strategy == "MultiWorkerMirrored":
            cluster = {"worker": list(spec.peers.values())}
            made["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})
        if spec.checkpoint:
            made["DTJ_CHECKPOINT_FOLDER"] = str(folders.attempt_folder(spec.checkpoint, UID, self.attempt))
        if self.restore:
            made["DTJ_RESTORE"] = encode(self.restore if index == 0 else replace(self.restore, path=None))
        return made


@dataclass
class _Process:
    process: "subprocess.Popen[str]"
    reports: int
    """The reading end of its pipe."""


def _start(environ: Mapping[str, str], command: list[str]) -> _Process:
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, *command],
        env={**environ, "DTJ_REPORT_FD": str(writing)},
        pass_fds=(writing,),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    os.close(writing)
    return _Process(process, reading)


def _collect(started: list[_Process], kill_at: Callable[[Report], bool] | None) -> list[Trainer]:
    trainers = [Trainer(0, [], []) for _ in started]

    def read_lines(each: _Process, trainer: Trainer) -> None:
        assert each.process.stdout
        with each.process.stdout as lines:
            trainer.lines.extend(line.rstrip("\n") for line in lines)
        trainer.code = each.process.wait()
        if trainer.code != 0:
            for other in started:
                other.process.kill()

    def read_reports(each: _Process, trainer: Trainer) -> None:
        with os.fdopen(each.reports) as lines:
            for line in lines:
                trainer.reports.append(decode(Report, line))
                if kill_at and each is started[0] and kill_at(trainer.reports[-1]):
                    started[-1].process.kill()

    threads = [
        threading.Thread(target=read, args=pair)
        for pair in zip(started, trainers, strict=True)
        for read in (read_lines, read_reports)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return trainers
