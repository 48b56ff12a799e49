"""An attempt under way: from its gang's formation to its first step, and on. How it ends is `ending.py`'s business."""

from dtj_operator.api.observed import Situation
from dtj_operator.api.status import Time
from dtj_operator.decide import deadlines, hearing, starts
from dtj_operator.decide.actions import Action, Create, Plan
from dtj_operator.decide.children import lost
from dtj_operator.decide.clock import current_attempt
from dtj_operator.decide.conditions import says
from dtj_operator.decide.members import Members
from dtj_operator.decide.stopping import deletes
from dtj_operator.desired.pods import pod

ALIVE = ("Program", "Built", "Training", "Evaluating", "Saving", "Done")


def starting(s: Situation, m: Members, now: Time) -> Plan | None:
    """Images, volumes, preflight and rendezvous; over with the first step, or when nothing says that there are any."""
    if s.status.phase != "Starting":
        return None
    attempt = current_attempt(s.status)
    if attempt is not None and attempt.first_step is not None:
        step = s.training.status.step if s.training else None
        words = f"step {step} was reported" if step is not None else "the first step was reported"
        return Plan(starts.running(s, "StepsMade", "", now), reason=words)
    if m.all_run and says(s.status, "Supervised", "NoSupervisor", "NotRegistered"):
        words = "all trainers run; without supervisors nothing tells their steps"
        return Plan(starts.running(s, "ContainersRunning", words, now), reason=words)
    built = deadlines.unreported(s)
    if built is not None and built.due <= now and _all_alive(s, m):
        words = "all programs run; they report no steps"
        return Plan(starts.running(s, "ContainersRunning", words, now), reason=words)
    waits = deadlines.schedule(s, m)
    return Plan(None, _upkeep(s, m, now), reason=waits.blames if waits else "all containers run; no step yet")


def running(s: Situation, m: Members, now: Time) -> Plan | None:
    """Steps are made, or the job's success is known and the rest of it comes to its end."""
    if s.status.phase != "Running":
        return None
    late = deadlines.others_end(s, m)
    others = m.gang.values() if late is not None and late.due <= now else ()
    stops = deletes(s, [member for member in others if not member.is_over], now)
    return Plan(None, (*_upkeep(s, m, now), *stops), reason=s.status.reason or "steps are made")


def _upkeep(s: Situation, m: Members, now: Time) -> tuple[Action, ...]:
    """What a running attempt needs of the operator: old pods go, its objects and the evaluator are there."""
    stops: tuple[Action, ...] = (*deletes(s, m.leftovers, now), *lost(s, m))
    due = s.status.recovery.not_before
    if due is not None and due > now:
        return stops
    made = [pod(s, m.topology, task, m.rounds[task], s.status.attempt) for task in m.missing_beside()]
    return (*stops, *(Create(manifest) for manifest in made))


def _all_alive(s: Situation, m: Members) -> bool:
    """Whether every child of the gang runs and none will report steps, as the supervisors say."""
    if s.training is None or not hearing.speaks(s) or s.training.status.reports:
        return False
    stages = s.training.status.tasks
    return all(stages.get(str(task)) in ALIVE for task in m.topology.gang)
