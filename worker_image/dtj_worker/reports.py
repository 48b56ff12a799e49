"""What a supervisor and its child say to each other: reports, the checkpoint to start from, the signal for stacks.

Standard library only. The variables that carry them are named in `contract.py`, beside those of the container.
"""

from dataclasses import dataclass
from typing import Literal

STACKS_SIGNAL = "SIGUSR2"
"""Makes the child write its threads' stacks to stderr, even while a rendezvous holds the GIL. Deadly before its Python
has set up the handler: send it only where SigCgt in /proc/<pid>/status shows one."""

ReportKind = Literal[
    "Constructing", "Built", "Reports", "Restored", "Step", "Saved", "Phase", "Busy", "Notice", "Problem", "Refused"
]
"""Child to supervisor. Constructing: a strategy's constructor was entered (message: its class); Built: it returned;
Reports: `fit` or `dtj.loop` was entered, so steps will follow; Restored: position after a restore; Step: a finished
step; Saved: a verified checkpoint; Phase: what the child does now (message: Training, Evaluating, Saving or Exporting;
empty: nothing that has steps); Busy: `dtj.busy` (message: what, empty when over); Notice: what becomes
`TrainingStatus.notice` (message); Problem: the exception that ends the program (message, process); Refused: a fault of
configuration, the child ends itself next (message: one clear line)."""


@dataclass(frozen=True)
class Restore:
    """The checkpoint an attempt starts from. Only the chief's child has a `path`; the others get the values from it."""

    step: int
    epoch: int
    path: str | None = None


@dataclass(frozen=True)
class Report:
    """One line from child to supervisor; its kind says which fields are set. `epoch` counts from 0, `step` from 1."""

    kind: ReportKind
    step: int | None = None
    epoch: int | None = None
    epochs: int | None = None
    loss: float | None = None
    examples_per_s: float | None = None
    replicas: int | None = None
    global_batch: int | None = None
    message: str | None = None
    process: int | None = None
    """Who says so: the child itself, or a Python that its script has started."""
