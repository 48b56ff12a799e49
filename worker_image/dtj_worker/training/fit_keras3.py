"""Our callback as Keras 3 wants it: `fit` takes the model's initial epoch, and knows no step to start at."""

from typing import Any

import keras

from dtj_worker.training.keras import Backup


class BackupAndRestore(Backup, keras.callbacks.BackupAndRestore):
    original = keras.callbacks.BackupAndRestore

    def __init__(self) -> None:
        keras.callbacks.Callback.__init__(self)

    def on_train_begin(self, logs: Any = None) -> None:
        super().on_train_begin(logs)
        self._done = 0
        self._has_history = self._start is None
        if self._start:
            self.model._initial_epoch, self._done = self._start
            self._put_back_callbacks()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_begin(epoch, logs)
        self._put_back_history_once()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        # The first epoch after a restore has `_done` steps behind it, which its batches know nothing of.
        self._steps_ended(batch - self._first_step + 1, self._done + batch + 1, logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        self._done = 0

    def on_train_end(self, logs: Any = None) -> None:
        self._put_back_history_once()
        super().on_train_end(logs)
        # The original leaves it, and the next `fit` would skip epochs.
        self.model._initial_epoch = None

    def _put_back_history_once(self) -> None:
        # Keras 3 puts its History callback behind ours, so that its on_train_begin comes after ours.
        if not self._has_history:
            self._has_history = True
            self._put_back_history()
