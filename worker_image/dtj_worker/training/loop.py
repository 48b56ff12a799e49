"""`dtj.loop`, the one hook of a custom training loop: it restores, hands out the batches left, saves and reports.

A resumed loop goes on at the very step, bit for bit on a CPU: variables and generators come out of the checkpoint, and
the dataset is the same one behind the steps that were made.
"""

from collections.abc import Iterator
from types import TracebackType
from typing import Any, SupportsFloat

import tensorflow as tf

from dtj_worker.training import audit, models
from dtj_worker.training.checkpoint import Checkpoints, calls
from dtj_worker.training.context import context
from dtj_worker.training.progress import Progress
from dtj_worker.training.report import reporter
from dtj_worker.training.strategies import is_multi_worker, local_replicas


def loop(
    model: Any,
    optimizer: Any,
    dataset: Any,
    *,
    epochs: int = 1,
    steps_per_epoch: int | None = None,
    **tracked: Any,
) -> "Loop":
    """`with dtj.loop(model, optimizer, dataset) as run: for batch in run: run.end_step(step(batch))`.

    `dataset` is a tf.data.Dataset of global batches, which is distributed here, a dataset that the program has
    distributed, or a function that makes an epoch's dataset. Its order must follow from seeds: `shuffle(n, seed=7)`.
    `tracked` is what else changes while training, such as a `tf.random.Generator` or a variable of one's own.
    """
    return Loop(model, optimizer, dataset, epochs=epochs, steps_per_epoch=steps_per_epoch, tracked=tracked)


class Loop:
    """Made by `loop`. `step` counts this loop's finished steps, `epoch` its finished epochs."""

    def __init__(
        self,
        model: Any,
        optimizer: Any,
        dataset: Any,
        *,
        epochs: int,
        steps_per_epoch: int | None,
        tracked: dict[str, Any],
    ) -> None:
        self.epoch = 0
        self.epochs = epochs
        self._model, self._optimizer, self._dataset, self._tracked = model, optimizer, dataset, tracked
        self._strategy = models.strategy_of(model)
        self._steps = steps_per_epoch or _length(dataset)
        self._step_of_epoch = 0
        self._is_open = self._is_over = self._has_begun = False
        self._progress = Progress(calls().steps, context().global_batch)
        if self._steps is None and not callable(dataset) and (epochs > 1 or self._progress.saves_epochs):
            raise ValueError("dtj.loop: the dataset doesn't say how long an epoch is: pass steps_per_epoch")

    @property
    def step(self) -> int:
        return self._progress.step

    def __enter__(self) -> "Loop":
        with self._strategy.scope():
            models.build(self._model, self._optimizer, self._dataset)
        self._checkpoints = Checkpoints(self._strategy, self._model, self._optimizer, self._tracked)
        reporter().built(self._strategy.num_replicas_in_sync, context().global_batch)
        if self._checkpoints.restore():
            position = self._checkpoints.position.values
            self.epoch, self._step_of_epoch, self._is_over = (position[k] for k in ("epoch", "step_of_epoch", "stop"))
            self._progress.resume(position["step"])
            if not self._checkpoints.is_past:
                reporter().restored(self._progress.total, self.epoch)
        else:
            _say_what_a_restart_keeps(self._checkpoints.number)
        reporter().reports()
        calls().depth += 1
        return self

    def __iter__(self) -> Iterator[Any]:
        """The batches that are left, as `strategy.run` takes them."""
        if self._is_over:
            return
        for batch in self._batches():
            self._check_ended()
            if not self._has_begun:
                self._look_at(batch)
            self._is_open = True
            yield batch
        self._check_ended()
        self._is_over = True

    def end_step(self, loss: SupportsFloat | None = None) -> None:
        """To be called once for each batch, after its step. The loss is for people, read at most ten times a second."""
        self._is_open = False
        if isinstance(loss, tf.distribute.DistributedValues):
            loss = self._strategy.experimental_local_results(loss)[0]
        epoch, is_last = self.epoch, self._step_of_epoch + 1 == self._steps
        self._step_of_epoch += 1
        if is_last:
            self.epoch, self._step_of_epoch = epoch + 1, 0
        is_due = self._progress.advance(1, epoch, self.epochs, loss)
        if is_due or (is_last and self._progress.saves_epochs):
            self._save()
        if is_last:
            self._progress.epoch_ended()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        calls().depth -= 1
        if kind is None and not (self._is_over and self._progress.saved_step == self.step):
            self._is_over = True  # Also when left by `break`: a restart must not go on with it.
            self._save()
        calls().steps += self.step
        reporter().phase("")  # What the program does now takes as long as it takes.

    def _save(self) -> None:
        if context().spec.checkpoint is None:
            return
        self._checkpoints.position.values = {
            "step": self.step,
            "epoch": self.epoch,
            "step_of_epoch": self._step_of_epoch,
            "stop": self._is_over,
        }
        self._checkpoints.save(self._progress.total, self.epoch)
        self._progress.saved()

    def _batches(self) -> Iterator[Any]:
        if callable(self._dataset):
            return self._epoch_by_epoch()
        total = None if self._steps is None else self._steps * self.epochs
        if not isinstance(self._dataset, tf.data.Dataset):
            return self._consumed(total)
        # All epochs as one dataset: so a seeded shuffle gives epoch k the same order in every run.
        return self._distributed(self._dataset if total is None else self._dataset.repeat().take(total), self.step)

    def _epoch_by_epoch(self) -> Iterator[Any]:
        while self.epoch < self.epochs:
            epoch, data = self.epoch, self._dataset(self.epoch)
            self._steps = _length(data)
            yield from self._distributed(data, self._step_of_epoch)
            if self.epoch == epoch:  # Its length was unknown, so that no step was known to be its last.
                self.epoch, self._step_of_epoch = epoch + 1, 0
                if self._progress.saves_epochs:
                    self._save()
                self._progress.epoch_ended()

    def _distributed(self, data: Any, skipped: int) -> Iterator[Any]:
        data = data.skip(skipped) if skipped else data
        spans = self._strategy.num_replicas_in_sync > 1 or is_multi_worker(self._strategy)
        yield from self._strategy.experimental_distribute_dataset(data) if spans else data

    def _consumed(self, total: int | None) -> Iterator[Any]:
        """What the program has distributed itself can't be skipped into: the batches of the steps made are dropped."""
        made = -1
        while total is None or made + 1 < total:
            before = made
            for made, batch in enumerate(self._dataset, before + 1):
                if made >= self.step:
                    yield batch
                if made + 1 == total:
                    return
            if total is None or made == before:
                return

    def _look_at(self, batch: Any) -> None:
        """The first batch shows how many examples a step has."""
        self._has_begun = True
        parts = self._strategy.experimental_local_results(tf.nest.flatten(batch)[0])
        replicas = self._strategy.num_replicas_in_sync
        seen = sum(int(part.shape[0]) for part in parts) * replicas // local_replicas(self._strategy)
        if problem := audit.of_batch(context().spec, replicas, seen):
            reporter().refused(problem)
        self._progress.batch = seen

    def _check_ended(self) -> None:
        if self._is_open:
            raise RuntimeError("dtj.loop: a batch was asked for before run.end_step(loss) had ended the one before")


def _length(dataset: Any) -> int | None:
    """In batches; None where that is unknown or endless."""
    length = int(dataset.cardinality()) if isinstance(dataset, tf.data.Dataset) else -1
    return length if length >= 0 else None


def _say_what_a_restart_keeps(number: int) -> None:
    plan = context().spec.checkpoint
    if plan and context().is_chief and number == 0:
        when = "epoch" if plan.every == "epoch" else f"{plan.every} steps"
        print(
            f"dtj: a save every {when}; a restart makes the same steps as a run without one, on CPUs to the last bit, "
            "if the dataset's order follows from seeds (BatchNorm's statistics come back as the mean of all workers)"
        )
