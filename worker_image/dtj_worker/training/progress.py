"""The steps of one call of `fit` or `dtj.loop`: counted, reported, and which of them are to be saved."""

import math
import time
from typing import SupportsFloat

from dtj_worker.training.context import context
from dtj_worker.training.report import reporter

PACE_SECONDS = 2.0
"""Examples per second are counted over this long."""


class Progress:
    """`step` counts this call's steps, `total` the whole job's."""

    def __init__(self, before: int, batch: int | None) -> None:
        self.step = 0
        self.saved_step: int | None = None
        self.batch = batch
        """Examples in a step of all replicas, where that is known."""
        self._before = before
        self._plan = context().spec.checkpoint
        self._is_first_epoch = True
        self._pace: float | None = None
        self._counted = (-math.inf, 0)

    @property
    def total(self) -> int:
        return self._before + self.step

    def resume(self, step: int) -> None:
        """So many steps were made before, and the checkpoint that says so is still there."""
        self.step = self.saved_step = step

    def advance(self, steps: int, epoch: int, epochs: int | None, loss: SupportsFloat | None) -> bool:
        """Steps have ended (several under steps_per_execution); whether one is to be saved by its number."""
        self.step += steps
        reporter().step(self.total, epoch, epochs, loss, self._examples_per_s())
        if self._plan is None or self._plan.every == "epoch":
            return False
        return self.step // self._plan.every > (self.step - steps) // self._plan.every

    @property
    def saves_epochs(self) -> bool:
        return self._plan is not None and self._plan.every == "epoch"

    def saved(self) -> None:
        self.saved_step = self.step

    def epoch_ended(self) -> None:
        """After an epoch and its save: tell people, once, if a failure now would throw the run back to zero."""
        if self._is_first_epoch and self.saved_step is None and context().is_chief:
            why = f"the first save comes at step {self._plan.every}" if self._plan else "spec.checkpoint is not set"
            reporter().notice(f"NothingSaved: an epoch has ended, and a failure would start again from zero: {why}")
        self._is_first_epoch = False

    def _examples_per_s(self) -> float | None:
        now = time.monotonic()
        since, step = self._counted
        if now - since >= PACE_SECONDS:
            if self.batch and step:
                self._pace = self.batch * (self.step - step) / (now - since)
            self._counted = (now, self.step)
        return self._pace
