"""What the status tells of the world without moving the job: supervisors' words, checkpoints, refusals.

Numbers, and how often a status is written for what is told, are `figures.py`'s.
"""

from msgspec.structs import replace

from dtj_operator.api import names
from dtj_operator.api.bounds import cut
from dtj_operator.api.observed import Situation
from dtj_operator.api.reasons import Reason
from dtj_operator.api.status import CheckpointStatus, JobStatus, Time
from dtj_operator.decide import deadlines, hearing
from dtj_operator.decide.children import lost
from dtj_operator.decide.clock import current_attempt
from dtj_operator.decide.conditions import condition, says, with_condition
from dtj_operator.decide.members import Members, with_finished
from dtj_operator.desired.supervision import supervision
from dtj_worker.contract import TrainingStatus

STALL_SHARE = 6
"""A stall is told after this part of `stallSeconds`, long before it ends the attempt."""
LEAST_STALL_SECONDS = 60
EDITED = "can't start again as it was edited: "
REFUSED = "the API server refuses what the attempt needs: "
"""How a running job's reason begins as long as that is so."""
HELPS = {
    "EntryPoint": "; start the program with dtj-worker, or set a command, which the supervisor is put in front of",
    "Injected": "; it needs the image's python3, 3.11 or newer",
    "Absent": "",
}
"""What to do about a supervisor that is not heard, by how it was to come."""


def seen(s: Situation, m: Members, now: Time) -> JobStatus:
    """The status with what was heard and seen of the attempt under way. Only for a job that is starting or running."""
    status = s.status
    ended = [task for task, pod in m.wanted.items() if pod.stage == "Succeeded" and task not in m.finished]
    if ended:
        status = replace(status, finished=with_finished(status, ended))
    if s.training is not None and hearing.speaks(s):
        status = _heard(s, m, status, s.training.status, now)
    status = _saved(s, m, status, now)
    status = _supervised(s, m, status, now)
    status = _checkpoint_ready(s, status, now)
    status = _stalled(s, status, now)
    status = _progress_known(s, status, now)
    status = _with_refusal(s, m, status)
    return edited(replace(s, status=status), now)


def edited(s: Situation, now: Time) -> JobStatus:
    """A bad edit of a job that runs or is suspended stops nothing; it is told, and bars the next start."""
    if s.faults:
        reason: Reason = "Invalid" if s.status.phase == "Suspended" else "InvalidEdit"
        status = with_condition(s.status, "Accepted", "False", reason, "; ".join(s.faults), now=now)
        return replace(status, reason=cut(f"{EDITED}{s.faults[0]}")) if status.phase == "Running" else status
    if says(s.status, "Accepted", "InvalidEdit", "Invalid"):
        status = with_condition(s.status, "Accepted", "True", "Accepted", "", now=now)
        return _without(EDITED, status)
    return s.status


def _heard(s: Situation, m: Members, status: JobStatus, training: TrainingStatus, now: Time) -> JobStatus:
    """What the chief's supervisor says of this attempt."""
    attempt = current_attempt(status)
    if attempt is not None:
        resumed = training.resumed_from_step
        made_a_step = training.step is not None and (resumed is None or training.step > resumed)
        attempt = replace(
            attempt,
            first_step=attempt.first_step or (now if made_a_step else None),
            resumed_from_step=attempt.resumed_from_step if resumed is None else resumed,
            resumed_from_epoch=attempt.resumed_from_epoch
            if training.resumed_from_epoch is None
            else training.resumed_from_epoch,
        )
        status = replace(status, timeline=[*status.timeline[:-1], attempt])
    status = replace(
        status,
        replicas_in_sync=training.replicas or status.replicas_in_sync,
        global_batch_size=training.global_batch or status.global_batch_size,
    )
    is_built = training.stage == "Built" or (training.stage == "Program" and m.topology.strategy == "None")
    if status.phase == "Starting" and is_built and not training.reports:
        return with_condition(status, "Training", "Unknown", "StrategyBuilt", "no step was reported yet", now=now)
    return status


def _saved(s: Situation, m: Members, status: JobStatus, now: Time) -> JobStatus:
    step, epoch = hearing.saved(s, m)
    if step is None or (status.checkpoint is not None and status.checkpoint.step == step):
        return status
    return replace(status, checkpoint=CheckpointStatus(step, epoch, now, _claim(s)))


def _supervised(s: Situation, m: Members, status: JobStatus, now: Time) -> JobStatus:
    if s.spec is not None and s.spec.supervisor == "None":
        words = (
            "spec.supervisor is None: no progress, no preflight, no stop that saves; hangs end by TensorFlow's rules"
        )
        return with_condition(status, "Supervised", "False", "NoSupervisor", words, now=now)
    if s.training is not None and hearing.speaks(s) and not hearing.unregistered(s, m):
        return with_condition(status, "Supervised", "True", "AllRegistered", "", now=now)
    due = deadlines.registration(s, m)
    if due is None or due.due > now:
        return status
    how = supervision(s, (hearing.unregistered(s, m) or m.topology.gang)[0].role)
    words = (
        "no supervisor was heard 60 s after all containers started: no progress, no preflight, no stop that saves; "
        f"{how.reason}{HELPS[how.mode]}"
    )
    return with_condition(status, "Supervised", "False", "NotRegistered", words, now=now)


def _checkpoint_ready(s: Situation, status: JobStatus, now: Time) -> JobStatus:
    saved = status.checkpoint
    notice = s.training.status.notice if s.training and hearing.speaks(s) else None
    if s.spec is None or s.spec.checkpoint is None:
        words = "spec.checkpoint is not set: a restart begins from zero"
        return with_condition(status, "CheckpointReady", "False", "NoCheckpoint", words, now=now)
    if notice is not None and notice.startswith("NothingSaved"):
        words = notice.partition(":")[2].strip() or notice
        return with_condition(status, "CheckpointReady", "False", "NothingSaved", words, now=now)
    if saved is not None and saved.step is not None:
        return with_condition(status, "CheckpointReady", "True", "Verified", f"step {saved.step}", now=now)
    return status


def _stalled(s: Situation, status: JobStatus, now: Time) -> JobStatus:
    if s.spec is None or s.training is None or not hearing.is_fresh(s, now):
        return status
    training, limit = s.training.status, s.spec.recovery.stall_seconds
    without = training.seconds_since_step if training.stage == "Training" else None
    if without is not None and without >= max(LEAST_STALL_SECONDS, limit / STALL_SHARE):
        words = f"no step since step {training.step}; the attempt ends after {limit} s without one"
        return with_condition(status, "Stalled", "True", "NoStep", words, now=now)
    if says(status, "Stalled", "NoStep"):
        return with_condition(status, "Stalled", "False", "StepsMade", "", now=now)
    return status


def _progress_known(s: Situation, status: JobStatus, now: Time) -> JobStatus:
    """Whether the running job's progress can be heard; that it can't is no failure."""
    heard_at = hearing.last_word(s)
    if status.phase != "Running" or status.chief_finished_at is not None or heard_at is None:
        return status
    is_heard = hearing.speaks(s) and now < heard_at + hearing.SILENCE
    if is_heard and says(status, "Training", "ProgressUnknown"):
        attempt = current_attempt(status)
        steps = attempt is not None and attempt.first_step is not None
        return with_condition(status, "Training", "True", "StepsMade" if steps else "ContainersRunning", "", now=now)
    is_silent = not is_heard and now >= heard_at + hearing.SILENCE and says(status, "Supervised", "AllRegistered")
    if is_silent and says(status, "Training", "StepsMade", "ContainersRunning"):
        words = "the chief's supervisor can't be reached"
        return with_condition(status, "Training", "Unknown", "ProgressUnknown", words, now=now)
    return status


def _with_refusal(s: Situation, m: Members, status: JobStatus) -> JobStatus:
    """What the API server says against the evaluator or an object of a running attempt, until they are there."""
    is_told = status.reason is not None and status.reason.startswith(REFUSED)
    if status.phase != "Running" or not (s.refusals or is_told):
        return status
    if not m.missing_beside() and not lost(s, m):
        return _without(REFUSED, status)
    return replace(status, reason=cut(f"{REFUSED}{s.refusals[-1]}")) if s.refusals else status


def _without(told: str, status: JobStatus) -> JobStatus:
    """A reason that begins so is over; what is known of the training stands there again."""
    if not (status.reason or "").startswith(told):
        return status
    said = condition(status, "Training")
    return replace(status, reason=(said.message if said is not None and said.status == "True" else "") or None)


def _claim(s: Situation) -> str | None:
    place = s.spec.checkpoint if s.spec else None
    if place is None:
        return None
    return names.checkpoint_claim(s.key.name) if place.volume_claim_template else place.persistent_volume_claim
