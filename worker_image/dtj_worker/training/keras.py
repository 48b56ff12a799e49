"""`fit` as it is watched: restore, saves and progress in one callback, the same under both Kerases.

`fit_legacy` and `fit_keras3` each put a class on top of the one here, which tells their `fit` where to start.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from dtj_worker.training import audit, callback_state, models
from dtj_worker.training.batches import global_batch
from dtj_worker.training.checkpoint import Checkpoints, calls
from dtj_worker.training.context import context
from dtj_worker.training.progress import Progress
from dtj_worker.training.report import reporter
from dtj_worker.training.strategies import is_multi_worker

FINISHED = 10**9
"""An epoch beyond every program's last: a `fit` that starts there has nothing left to do."""


def callbacks() -> list[Any]:
    """Restore, saves and progress for `fit` of `tf.keras`; put in by themselves where a program doesn't pass them."""
    return [_class_for("Legacy" if tf.keras.__name__.startswith("tf_keras") else "Keras3")()]


@contextlib.contextmanager
def watching(model: Any, arguments: dict[str, Any]) -> Iterator[None]:
    """One call of `fit` with these arguments, to whose callbacks ours is added; one within another is left alone."""
    flavour, strategy = models.flavour_of(model), model.distribute_strategy
    is_served = isinstance(strategy, tf.distribute.experimental.ParameterServerStrategy)
    if flavour == "Keras3" and (is_multi_worker(strategy) or is_served):
        reporter().refused(audit.of_keras(context().strategy, models.version_of(flavour)))
    if calls().depth or is_served:
        yield
        return
    arguments["callbacks"] = _with_ours(model, arguments, _class_for(flavour))
    calls().depth += 1
    try:
        yield
    finally:
        calls().depth -= 1


class _Cut:
    """A true value for `stop_training` that says: this epoch has had its steps, but there are more to come."""


class Backup:
    """Our callback. Everything but `expect` is called by `fit`."""

    model: Any
    params: dict[str, Any]
    _supports_tf_logs = True  # Else tf_keras would wait for the loss at every step.
    _chief_worker_only = False
    _x: Any = None
    _batch: int | None = None
    _others: tuple[Any, ...] = ()

    def expect(self, arguments: dict[str, Any], others: list[Any]) -> None:
        """What this call was given: its data, from which shapes follow, and the other callbacks."""
        self._x, self._others = arguments.get("x"), tuple(others)
        self._batch = global_batch(self._x, arguments.get("batch_size"))

    def on_train_begin(self, logs: Any = None) -> None:
        strategy = self.model.distribute_strategy
        replicas = strategy.num_replicas_in_sync
        if self._batch and (problem := audit.of_batch(context().spec, replicas, self._batch)):
            reporter().refused(problem)
        batch = self._batch or context().global_batch
        reporter().built(replicas, batch)
        with contextlib.suppress(Exception):
            # What the shapes of its data don't build builds itself at the first step; a restore would name it.
            models.build(self.model, self.model.optimizer, self._x)
        self._progress = Progress(calls().steps, batch)
        self._checkpoints = Checkpoints(strategy, self.model, self.model.optimizer)
        self._steps: int | None = self.params.get("steps")
        """Of an epoch; None until the first one has ended, where the data don't tell."""
        self._epoch = self._first_step = self._step_of_epoch = 0
        self._is_due = self._is_rest = False
        self._start: tuple[int, int] | None = None
        if self._checkpoints.restore():
            self._resume(self._checkpoints.position.values)
        else:
            _say_what_a_restart_keeps(self._checkpoints.number)
        reporter().reports()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._epoch = epoch

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._first_step = batch

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._steps_ended(batch - self._first_step + 1, batch + 1, logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if isinstance(self.model.stop_training, _Cut):
            self.model.stop_training = False
        if not self.model.stop_training:
            self._steps = self._steps or self._step_of_epoch
        # Where nobody knew how long the epoch is, its last step was saved as if others were to follow.
        is_stale = self._progress.saved_step == self._progress.step
        if self._progress.saves_epochs or self._is_due or is_stale:
            self._save(epoch + 1, 0, callback_state.history(self.model.history, epoch, logs))
        self._is_due = self._is_rest = False
        self._progress.epoch_ended()

    def on_test_begin(self, logs: Any = None) -> None:
        reporter().phase("Evaluating")

    def on_test_end(self, logs: Any = None) -> None:
        reporter().phase("Training")

    def on_train_end(self, logs: Any = None) -> None:
        if self._progress.saved_step != self._progress.step:
            self._save(self._epoch + 1, 0, callback_state.history(self.model.history))
        calls().steps += self._progress.step
        self._x, self._others = None, ()
        reporter().phase("")  # What the program does now takes as long as it takes.

    def _implements_train_batch_hooks(self) -> bool:
        return True

    def _steps_ended(self, steps: int, step_of_epoch: int, logs: Any) -> None:
        """Under steps_per_execution a batch of Keras is several steps: begin names the first of them, end the last."""
        self._step_of_epoch = step_of_epoch
        is_last = self._steps is not None and step_of_epoch >= self._steps
        loss = self._loss((logs or {}).get("loss"))
        if self._progress.advance(steps, self._epoch, self.params.get("epochs"), loss):
            if is_last:
                # Saved here, a resumed run would never hear of the epoch's end: no validation, no EarlyStopping.
                self._is_due = True
            else:
                self._save(self._epoch, step_of_epoch, callback_state.history(self.model.history))
        if is_last and self._is_rest and not self.model.stop_training:
            self.model.stop_training = _Cut()

    def _loss(self, logged: Any) -> Any:
        """The mean over all replicas, from what the logs of a batch call loss."""
        return logged

    def _save(self, epoch: int, step_of_epoch: int, history: dict[str, Any]) -> None:
        """Everything needed to go on in `epoch` behind its first `step_of_epoch` steps."""
        if context().spec.checkpoint is None:
            return
        memories, self._checkpoints.position.arrays = callback_state.take(self._others)
        self._checkpoints.position.values = {
            "step": self._progress.step,
            "epoch": epoch,
            "step_of_epoch": step_of_epoch,
            "steps_of_epoch": self._steps,
            "stop": bool(self.model.stop_training),
            "history": history,
            "callbacks": memories,
        }
        self._checkpoints.save(self._progress.total, epoch)
        self._progress.saved()

    def _resume(self, position: dict[str, Any]) -> None:
        self._progress.resume(position["step"])
        self._epoch, self._steps = position["epoch"], self._steps or position["steps_of_epoch"]
        self._is_rest = position["step_of_epoch"] > 0
        self._start = (FINISHED, 0) if position["stop"] else (self._epoch, position["step_of_epoch"])
        if not self._checkpoints.is_past:
            reporter().restored(self._progress.total, self._epoch)

    def _put_back_callbacks(self) -> None:
        """Their own on_train_begin has just made them forget."""
        position = self._checkpoints.position
        callback_state.put_back(self._others, position.values["callbacks"], position.arrays)
        self.model.stop_training = position.values["stop"]

    def _put_back_history(self) -> None:
        callback_state.put_back_history(self.model.history, self._checkpoints.position.values["history"])


def _with_ours(model: Any, arguments: dict[str, Any], ours: Any) -> Any:
    """The callbacks of a call, ours last: it saves what the others remember."""
    given: Any = arguments.get("callbacks")
    listed = getattr(given, "callbacks", given)
    flat = tf.nest.flatten(listed) if listed else []
    others = [callback for callback in flat if not isinstance(callback, Backup)]
    if context().spec.checkpoint and any(isinstance(callback, ours.original) for callback in others):
        print("dtj: the job's checkpoints take the place of BackupAndRestore: spec.checkpoint says where and when")
        others = [callback for callback in others if not isinstance(callback, ours.original)]
    passed = [callback for callback in flat if isinstance(callback, ours)]
    backup = passed[0] if passed else ours()
    backup.expect(arguments, others)
    if hasattr(given, "callbacks"):
        # What is appended to a CallbackList that stands never has its batch hooks called.
        params = getattr(given, "params", None) or {}
        return type(given)([*others, backup], add_history=True, model=model, **params)
    return [*others, backup]


def _class_for(flavour: models.Flavour) -> Any:
    if flavour == "Legacy":
        from dtj_worker.training import fit_legacy  # noqa: PLC0415 - an image may have one Keras alone

        return fit_legacy.BackupAndRestore
    from dtj_worker.training import fit_keras3  # noqa: PLC0415

    return fit_keras3.BackupAndRestore


def _say_what_a_restart_keeps(number: int) -> None:
    plan = context().spec.checkpoint
    if plan and context().is_chief and number == 0:
        when = "epoch" if plan.every == "epoch" else f"{plan.every} steps"
        print(
            f"dtj: a save every {when}; a restart loses no step up to the last one and has weights, optimizer and "
            "callbacks as they were, but shuffles the data anew (for the same steps to the last bit: dtj.loop)"
        )
