"""Our callback as tf_keras wants it: `fit` asks the model's training state for the epoch and step to start at."""

from typing import Any

import tf_keras

from dtj_worker.training.keras import Backup
from dtj_worker.training.strategies import is_multi_worker


class BackupAndRestore(Backup, tf_keras.callbacks.BackupAndRestore):
    """Of this name, so that Keras doesn't time it as a stranger's callback and call it slow."""

    original = tf_keras.callbacks.BackupAndRestore

    def __init__(self) -> None:
        tf_keras.callbacks.Callback.__init__(self)

    def on_train_begin(self, logs: Any = None) -> None:
        super().on_train_begin(logs)
        if self._start:
            self.model._training_state = self

    def maybe_load_initial_counters_from_ckpt(self, steps: int | None, initial_epoch: int, mode: Any = None) -> Any:
        """`fit` asks here, after all callbacks' on_train_begin and before the first epoch."""
        self._put_back_callbacks()
        self._put_back_history()
        return self._start

    def on_train_end(self, logs: Any = None) -> None:
        super().on_train_end(logs)
        # Not deleted, as the original does: the next `fit` without this callback would fail for want of the attribute.
        self.model._training_state = None

    def _loss(self, logged: Any) -> Any:
        # Between hosts tf_keras adds up the replicas' means, which its progress bar shows too.
        strategy = self.model.distribute_strategy
        is_sum = is_multi_worker(strategy) and self.model.distribute_reduction_method in ("auto", "sum")
        return logged / strategy.num_replicas_in_sync if is_sum and logged is not None else logged
