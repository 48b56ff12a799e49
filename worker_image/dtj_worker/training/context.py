"""What a program may ask about its job: task, strategy, batch sizes, folders, attempt. And `busy`, what it may say.

Pure values out of the environment. TensorFlow is imported only when a batch size asks how many replicas there are.
"""

import contextlib
import functools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from dtj_worker.codec import decode
from dtj_worker.contract import ENV_CHECKPOINT_FOLDER, ENV_RESTORE, ENV_TASK, Strategy, Task, TaskSpec
from dtj_worker.reports import Restore
from dtj_worker.training.audit import indivisible
from dtj_worker.training.report import reporter


@dataclass(frozen=True)
class Context:
    """One task's view of its job. Outside of a job: a single worker without strategy, batch or folders."""

    spec: TaskSpec
    restore: Restore | None = None
    checkpoint_folder: str | None = None
    """This attempt's own folder; None where the job keeps no checkpoints, or this task's disk isn't theirs."""

    @property
    def job(self) -> str:
        return self.spec.job

    @property
    def strategy(self) -> Strategy:
        """The name of the job's strategy; `dtj.strategy()` builds it."""
        return self.spec.strategy

    @property
    def task(self) -> Task:
        return Task.parse(self.spec.task)

    @property
    def is_chief(self) -> bool:
        """Whether this task writes what is written once: checkpoints, the exported model, summaries."""
        return self.spec.task == self.spec.chief

    @property
    def attempt(self) -> int:
        return self.spec.attempt

    @property
    def workers(self) -> int:
        """How many tasks compute gradients: workers, and the chief except under ParameterServer."""
        roles = {"worker"} if self.strategy == "ParameterServer" else {"worker", "chief"}
        return sum(Task.parse(name).role in roles for name in self.spec.peers)

    @property
    def log_folder(self) -> str | None:
        """Where summaries and logs of all attempts may go; None where this task has no disk for them."""
        return f"{os.path.dirname(self.checkpoint_folder)}/logs" if self.checkpoint_folder else None  # noqa: PTH120 - may be a URL

    @property
    def batch_per_replica(self) -> int | None:
        """Examples in one replica's step; None if the job declares no batch."""
        batch = self.spec.batch
        if batch.per_replica is None and batch.global_size is not None:
            return _share(batch.global_size, self._replicas()[0])
        return batch.per_replica

    @property
    def batch_per_worker(self) -> int | None:
        """Examples in one worker's step, all its replicas together: what `distribute_datasets_from_function` wants."""
        return None if (one := self.batch_per_replica) is None else one * self._replicas()[1]

    @property
    def global_batch(self) -> int | None:
        """Examples in one step of all replicas: what `Dataset.batch` wants before the dataset is distributed."""
        batch = self.spec.batch
        if batch.global_size is None and batch.per_replica is not None:
            return batch.per_replica * self._replicas()[0]
        return batch.global_size

    def scale_learning_rate(self, base: float, base_batch: int, rule: Literal["linear", "sqrt"] = "linear") -> float:
        """The learning rate for the job's global batch, where `base` was right for `base_batch` examples.

        Linear suits SGD (Goyal et al. 2017, with a warm-up), sqrt Adam and its kin (Malladi et al. 2022). ValueError if
        the job declares no batch.
        """
        if self.global_batch is None:
            raise ValueError("scale_learning_rate: the job declares no batch; set spec.batch.global or perReplica")
        ratio = self.global_batch / base_batch
        return float(base * (ratio if rule == "linear" else ratio**0.5))

    @staticmethod
    def _replicas() -> tuple[int, int]:
        """Replicas of the job and of this worker; builds the strategy."""
        from dtj_worker.training import strategies  # noqa: PLC0415 - imports TensorFlow, which takes seconds

        made = strategies.strategy()
        return made.num_replicas_in_sync, strategies.local_replicas(made)


@functools.cache
def context() -> Context:
    """The context of this process."""
    return read_context(os.environ)


def read_context(environ: Mapping[str, str]) -> Context:
    """The context that an environment describes; ContractError if the supervisor wrote what doesn't parse."""
    if ENV_TASK not in environ:
        return Context(_ALONE)
    spec = decode(TaskSpec, environ[ENV_TASK])
    restore = environ.get(ENV_RESTORE)
    mounted = spec.checkpoint is not None and (spec.checkpoint.access == "Shared" or spec.task == spec.chief)
    return Context(
        spec,
        decode(Restore, restore) if restore else None,
        environ.get(ENV_CHECKPOINT_FOLDER) if mounted else None,
    )


@contextlib.contextmanager
def busy(what: str) -> Iterator[None]:
    """Say that something long goes on that isn't a step, as in `with dtj.busy("download"):`; deadlines wait for it."""
    reporter().busy(what)
    try:
        yield
    finally:
        reporter().busy("")


_ALONE = TaskSpec(
    namespace="",
    job="",
    uid="",
    task="worker-0",
    attempt=0,
    strategy="None",
    chief="worker-0",
    chief_status="",
    status="",
    peers={"worker-0": ""},
)


def _share(total: int, replicas: int) -> int:
    share, rest = divmod(total, replicas)
    if rest:
        reporter().refused(indivisible(total, replicas))
    return share
