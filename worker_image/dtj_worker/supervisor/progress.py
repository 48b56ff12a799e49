"""How far this task's program is, by what it reports, and which of its deadlines has passed. Nothing here acts."""

import math
from dataclasses import dataclass, field

from dtj_worker.contract import MESSAGE_BYTES, Limits, Stage, VerdictKind
from dtj_worker.reports import Report

EVALUATION_STALLS = 4.0
EXPORT_STALLS = 2.0
"""A validation run and an export may take so many times `limits.stall_seconds`, what a step may; a save as much."""

SILENT_SECONDS = 60.0
"""A single-host program that has reported nothing for so long does not report: it counts as running."""


@dataclass
class Progress:
    """One attempt of one task. `now` is always the monotonic clock; `held_by` names what peers are busy with."""

    limits: Limits
    has_peers: bool
    """Whether a rendezvous is to be expected, so that a program that never comes to it is overdue."""
    stage: Stage = "Registered"
    phase: str = "Training"
    reports: bool = False
    stepped: bool = False
    step: int | None = None
    epoch: int | None = None
    epochs: int | None = None
    loss: float | None = None
    examples_per_s: float | None = None
    step_seconds: float | None = None
    checkpoint: tuple[int, int] | None = None
    resumed: tuple[int, int] | None = None
    replicas: int | None = None
    global_batch: int | None = None
    strategy: str | None = None
    problem: str | None = None
    refused: str | None = None
    notice: str | None = None
    busy: str = ""
    held_by: str = ""
    _said_something: bool = False
    _failed: tuple[int, float] | None = None
    _stepped_at: float = math.nan
    _clock: float = field(default=math.nan)
    """Since when the present stage runs, or since the last step; moved on by pauses."""
    _looked_at: float = math.nan

    def started(self, now: float) -> None:
        """The child runs."""
        self.stage, self._clock, self._looked_at = "Program", now, now

    def hear(self, report: Report, now: float) -> None:
        self._said_something = True
        if report.kind in ("Constructing", "Built", "Reports", "Step"):
            self.problem = self._failed = None  # It was that of another program of the same script.
        text = (report.message or "")[:MESSAGE_BYTES]
        match report.kind:
            case "Constructing":
                self.strategy = text or None
                if not self.stepped:
                    self._enter("Rendezvous", now)
            case "Built":
                self.replicas, self.global_batch = report.replicas, report.global_batch or self.global_batch
                if not self.stepped:
                    self._enter("Built", now)
            case "Reports":
                self.reports, self.phase = True, "Training"
                self._enter("Training" if self.stepped else "Built", now)
            case "Restored":
                self.resumed = (report.step or 0, report.epoch or 0)
                self.step, self.epoch = self.resumed
            case "Step":
                self._hear_step(report, now)
            case "Saved":
                self.checkpoint = (report.step or 0, report.epoch or 0)
            case "Phase":
                self.phase = text
                self._enter(self._stage_of_phase(), now)
            case "Busy":
                self.busy = text
            case "Problem":
                self.problem = text
                self._failed = (report.process, now) if report.process else None
            case "Refused":
                self.refused = text
            case "Notice":
                self.notice = text

    def heard_port(self, now: float) -> None:
        """Its TensorFlow port takes connections: one that doesn't report its strategy has come to it all the same."""
        if self.stage == "Program":
            self._enter("Built", now)

    def look(self, now: float) -> None:
        """Let time pass: what pauses a deadline moves its start on."""
        pauses = self.held_by if self.stage == "Rendezvous" else self.busy
        if pauses:
            self._clock += now - self._looked_at
        self._looked_at = now
        silent = self.stage == "Program" and not self._said_something and not self.has_peers
        if silent and now - self._clock > SILENT_SECONDS:
            self._enter("Built", now)

    def seconds_left(self, now: float) -> float:
        """Until the deadline of the present stage; infinite where none runs."""
        return self._limit() - (now - self._clock)

    def overdue(self, now: float) -> tuple[VerdictKind, str] | None:
        """The deadline that has passed, as the kind of its Verdict and its words."""
        if self.seconds_left(now) > 0:
            return None
        waited = f"{self._limit():g} s"
        match self.stage:
            case "Program":
                return "Stall", f"no strategy was created within {waited} of the program's start"
            case "Rendezvous":
                return "Rendezvous", f"{self.strategy or 'the strategy'} was not built within {waited}"
            case "Built":
                return "Stall", f"no first step within {waited} after the strategy was built"
            case "Evaluating" | "Saving":
                return "Stall", f"{self.phase.lower()} took more than {waited}, after step {self.step or 0}"
            case _:
                return "Stall", f"no step for {waited}, after step {self.step}"

    def lingering(self, now: float) -> int | None:
        """The process whose exception should have ended it, once it has had its grace for that."""
        if self._failed is None or now - self._failed[1] <= self.limits.grace_seconds:
            return None
        return self._failed[0]

    def is_slow_to_step(self, now: float) -> bool:
        """Whether half of the time for the first step is gone."""
        return self.stage == "Built" and self.seconds_left(now) < self._limit() / 2

    def seconds_since_step(self, now: float) -> float | None:
        return max(0.0, now - self._stepped_at) if self.stepped else None

    def _hear_step(self, report: Report, now: float) -> None:
        if self.stepped and report.step and self.step is not None and report.step > self.step:
            self.step_seconds = (now - self._stepped_at) / (report.step - self.step)
        self.reports = self.stepped = True
        self.step, self.epoch, self.epochs = report.step, report.epoch, report.epochs or self.epochs
        self.loss = _finite(report.loss, self.loss)
        self.examples_per_s = _finite(report.examples_per_s, self.examples_per_s)
        self.phase = "Training"
        self._stepped_at = now
        self._enter("Training", now)

    def _enter(self, stage: Stage, now: float) -> None:
        self.stage, self._clock = stage, now

    def _stage_of_phase(self) -> Stage:
        if self.phase == "Evaluating":
            return "Evaluating"
        if self.phase in ("Saving", "Exporting"):
            return "Saving"
        return "Training" if self.stepped else "Built"

    def _limit(self) -> float:
        match self.stage:
            case "Program" if self.has_peers:
                return self.limits.program_seconds
            case "Rendezvous":
                return self.limits.rendezvous_seconds
            case "Built" if self.reports:
                return self.limits.first_step_seconds
            case "Training" if self.phase == "Training":
                return self.limits.stall_seconds
            case "Evaluating":
                return self.limits.stall_seconds * EVALUATION_STALLS
            case "Saving":
                return self.limits.stall_seconds * (EXPORT_STALLS if self.phase == "Exporting" else 1)
            case _:
                return math.inf


def _finite(value: float | None, before: float | None) -> float | None:
    # The status has no room for NaN, which is no JSON.
    return before if value is None or not math.isfinite(value) else value
