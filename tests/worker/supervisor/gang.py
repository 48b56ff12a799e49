"""Real supervisors on loopback, as a kubelet would start them: what they are told, what they leave, whom to hurt."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from dtj_operator.local.node.ports import Ports, Slot
from dtj_worker.codec import decode, encode
from dtj_worker.contract import (
    ENV_TASK,
    ENV_TERMINATION_LOG,
    ENV_TOKEN,
    PATH_TRAINING,
    CheckpointPlan,
    Fault,
    Limits,
    TaskSpec,
    TrainingStatus,
    Verdict,
    parse_verdict,
)

COUNTER = str(Path(__file__).parents[2] / "programs" / "counter.py")
PORTS, RESERVED = Ports(is_private=False), list[Slot]()
TOKEN = "a-token-of-the-job"
UID = "6f1d2c3b-aaaa-bbbb-cccc-000000000001"
WITHIN = 60.0
"""Seconds that anything here may take before a test says what it waited for."""


@dataclass
class Trainer:
    """One supervisor's process and what it wrote."""

    task: str
    process: "subprocess.Popen[bytes]"
    folder: Path

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def end(self) -> int:
        """Its exit code, once it has ended."""
        return self.process.wait(WITHIN)

    @property
    def verdict(self) -> Verdict:
        self.end()
        found = parse_verdict((self.folder / "termination-log").read_text())
        assert found, self.log
        return found

    @property
    def child(self) -> int:
        """The process number of its program."""
        return int(until(lambda: children(self.process.pid), f"{self.task} has a child")[0])


@dataclass
class Gang:
    """The tasks of one job. `make` prepares, `start` runs; everything is ended with the test."""

    root: Path
    tasks: Sequence[str]
    strategy: Any = "MultiWorkerMirrored"
    attempt: int = 0
    limits: Limits = field(default_factory=Limits)
    checkpoint: CheckpointPlan | None = None
    faults: Mapping[str, Fault] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    uid: str = UID
    ports: dict[str, int] = field(default_factory=dict)
    trainers: dict[str, Trainer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Eight ports in a row for each task's TensorFlow, as the embedded cluster does, and one for its status."""
        for task in self.tasks:
            self.ports[task] = free_ports(9)

    def spec(self, task: str) -> TaskSpec:
        status = {name: f"127.0.0.1:{port + 8}" for name, port in self.ports.items()}
        chief = next(name for name in ("chief-0", "worker-0") if name in self.tasks)
        return TaskSpec(
            namespace="ml",
            job="count",
            uid=self.uid,
            task=task,
            attempt=self.attempt,
            strategy=self.strategy,
            chief=chief,
            chief_status=status[chief],
            status=status[task],
            peers={t: f"127.0.0.1:{port}" for t, port in self.ports.items() if not t.startswith("evaluator")},
            limits=self.limits,
            checkpoint=self.checkpoint,
            fault=self.faults.get(task),
        )

    def folder(self, task: str) -> Path:
        """Where a task of this attempt works."""
        made = self.root / f"{task}-attempt-{self.attempt}"
        made.mkdir(exist_ok=True)
        return made

    def tf_config(self, task: str) -> str:
        cluster: dict[str, list[str]] = {}
        for name, port in self.ports.items():
            if not name.startswith("evaluator") or name == task:
                cluster.setdefault(name.partition("-")[0], []).append(f"127.0.0.1:{port}")
        role, _, index = task.partition("-")
        return json.dumps({"cluster": cluster, "task": {"type": role, "index": int(index)}})

    def start(
        self, task: str, *words: str, environ: Mapping[str, str | None] | None = None, log: BinaryIO | None = None
    ) -> Trainer:
        """Start the supervisor of a task with a program; a variable that is None is left out."""
        folder = self.folder(task)
        told = {
            **os.environ,
            ENV_TASK: encode(self.spec(task)),
            ENV_TOKEN: TOKEN,
            ENV_TERMINATION_LOG: str(folder / "termination-log"),
            "TF_CONFIG": self.tf_config(task),
            **self.environ,
            **(environ or {}),
        }
        with (folder / "log").open("wb") as own:
            process = subprocess.Popen(
                [sys.executable, "-m", "dtj_worker.supervisor.main", *(words or (COUNTER,))],
                env={name: value for name, value in told.items() if value is not None},
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log or own,
                stderr=log or own,
            )
        self.trainers[task] = Trainer(task, process, folder)
        return self.trainers[task]

    def start_all(self, *words: str) -> list[Trainer]:
        return [self.start(task, *words) for task in self.tasks]

    def next_attempt(self, **changes: Any) -> "Gang":
        """The same job, one attempt later."""
        return replace(self, attempt=self.attempt + 1, trainers={}, ports={}, faults={}, **changes)

    def statuses(self, task: str | None = None) -> Iterator[TrainingStatus]:
        """The stream of the chief's supervisor, until it ends."""
        chief = self.spec(task or self.tasks[0]).chief_status
        connection = http.client.HTTPConnection(chief, timeout=WITHIN)
        until(lambda: _connects(connection), "the status port is open")
        connection.request("GET", PATH_TRAINING, headers={"Authorization": f"Bearer {TOKEN}"})
        with contextlib.closing(connection), connection.getresponse() as answer:
            assert answer.status == 200, answer.read()
            for line in answer:
                yield decode(TrainingStatus, line)

    def status_when(self, holds: Callable[[TrainingStatus], object]) -> TrainingStatus:
        for status in self.statuses():
            if holds(status):
                return status
        raise AssertionError(f"the stream ended before; {self.logs()}")

    def logs(self) -> str:
        return "\n".join(f"--- {task}\n{trainer.log}" for task, trainer in self.trainers.items())

    def end(self) -> None:
        """What still runs is killed; its children die with it."""
        for trainer in self.trainers.values():
            if trainer.process.poll() is None:
                trainer.process.send_signal(signal.SIGKILL)
                trainer.process.wait(WITHIN)


def until(found: Callable[[], Any], what: str) -> Any:
    """The first true value of `found`; the test fails if none comes."""
    end = time.monotonic() + WITHIN
    while time.monotonic() < end:
        if value := found():
            return value
        time.sleep(0.02)
    raise AssertionError(f"not within {WITHIN:g} s: {what}")


def children(pid: int) -> list[str]:
    with contextlib.suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return []


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent doesn't."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def free_ports(count: int) -> int:
    """The first of so many free ports in a row, which no other test is given as long as this process lives.

    They are not those that the system hands out: between our look and a program's one of these may be anybody's.
    """
    slot = PORTS.slot()
    RESERVED.append(slot)
    first = slot.take(count)
    assert first is not None, f"no {count} ports in a row"
    return first


def _connects(connection: http.client.HTTPConnection) -> bool:
    with contextlib.suppress(ConnectionError):
        connection.connect()
        return True
    return False
