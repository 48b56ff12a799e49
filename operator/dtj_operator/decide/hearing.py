"""What was heard of a job's supervisors through the chief's, and whether it is about the present attempt, and fresh."""

from datetime import timedelta

from dtj_operator.api.observed import Situation
from dtj_operator.api.status import Time
from dtj_operator.decide.members import Members
from dtj_worker.contract import HEARTBEAT_SECONDS, Task

FRESH = timedelta(seconds=3 * HEARTBEAT_SECONDS)
SILENCE = timedelta(seconds=60)
"""After which the progress counts as unknown."""


def speaks(s: Situation) -> bool:
    """Whether what was heard last is about the present attempt."""
    return s.training is not None and s.training.status.attempt == s.status.attempt


def is_fresh(s: Situation, now: Time) -> bool:
    """Whether the chief's supervisor was heard about this attempt just now."""
    return s.training is not None and speaks(s) and now - s.training.heard_at <= FRESH


def last_word(s: Situation) -> Time | None:
    """When the chief's supervisor was last heard about this attempt, or could first have been by this process."""
    return s.training.heard_at if s.training is not None and speaks(s) else s.facts.started_at


def step(s: Situation) -> int | None:
    """The newest step of this attempt that was heard of."""
    return s.training.status.step if s.training is not None and speaks(s) else None


def saved(s: Situation, m: Members) -> tuple[int | None, int | None]:
    """Step and epoch of this attempt's last checkpoint: the chief's verdict knows it even if its stream broke off."""
    chief = m.wanted.get(m.topology.chief)
    verdict = chief.verdict if chief else None
    if verdict and verdict.attempt == s.status.attempt and verdict.checkpoint_step is not None:
        return verdict.checkpoint_step, verdict.checkpoint_epoch
    if s.training is not None and speaks(s):
        return s.training.status.checkpoint_step, s.training.status.checkpoint_epoch
    return None, None


def unregistered(s: Situation, m: Members) -> tuple[Task, ...]:
    """Tasks of the gang whose supervisors the chief's has not seen, as far as it was heard."""
    if s.training is None or not speaks(s):
        return ()
    stages = s.training.status.tasks
    return tuple(task for task in m.topology.gang if stages.get(str(task), "Waiting") == "Waiting")


def heard_of(s: Situation, task: Task) -> Time | None:
    """When the task's supervisor was last known to live: by the chief's word, which is its own too."""
    if s.training is None or not speaks(s) or s.training.status.tasks.get(str(task)) in (None, "Waiting", "Dead"):
        return None
    return s.training.heard_at
