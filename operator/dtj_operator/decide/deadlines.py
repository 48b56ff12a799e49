"""Every deadline the operator keeps, each with its due time and whom it blames; the only source of `wake_at`.

Those of the job's clock (active, back-off, time to live) run on the status' own times. Those of health need an
observation by this process: an operator that was away for an hour declares nobody lost.
"""

from collections.abc import Iterator
from datetime import timedelta

from dtj_operator.api.observed import PodView, ProbeResult, Situation
from dtj_operator.api.status import FINAL, Time
from dtj_operator.decide import cordons, hearing, lost
from dtj_operator.decide.actions import Deadline
from dtj_operator.decide.conditions import condition, says
from dtj_operator.decide.members import LAST_WORDS, Members, holds_nothing, is_ending
from dtj_operator.desired.probes import probe_of
from dtj_worker.contract import Task

REGISTRATION = timedelta(seconds=60)
"""From all containers running to the first word of a supervisor; then the job counts as unsupervised."""
UNREPORTED = timedelta(seconds=60)
"""From a built strategy to Running, for programs that report no steps."""
OTHERS_END = timedelta(seconds=30)
"""What the other trainers get after the chief's exit 0."""
ASK_AGAIN = timedelta(minutes=5)
HTTP_REFUSAL = 400
PREDECESSOR = timedelta(seconds=5)
CLAIM = timedelta(seconds=10)
RETRY = timedelta(seconds=10)
"""For what is overdue and still there, such as a pod that was to be removed by force."""


def active(s: Situation) -> Deadline | None:
    """`activeDeadlineSeconds` of unsuspended time since the first admission."""
    clock = s.status.clock
    since = clock.since or s.status.gang.admitted_at  # which starts the clock, at the latest when the status is written
    if s.spec is None or s.spec.active_deadline_seconds is None or since is None or s.status.chief_finished_at:
        return None
    limit = s.spec.active_deadline_seconds
    left = timedelta(seconds=limit - clock.active_seconds)
    return Deadline("active", since + left, f"the job was active for {limit} s (activeDeadlineSeconds)")


def gang(s: Situation, m: Members) -> Deadline | None:
    """From release to all bound."""
    if s.spec is None or s.status.phase != "Queued" or s.status.gang.admitted_at is None:
        return None
    own = s.spec.gang
    scales = own.when_full == "Release" or (own.when_full == "Auto" and s.facts.has_autoscaler)
    seconds = own.scale_up_seconds if scales else own.timeout_seconds
    unbound = {task: m.wanted.get(task) for task in m.topology.gang if not _is_bound(m.wanted.get(task))}
    if not unbound:
        return None  # It formed while the operator was away.
    blames = f"{len(unbound)} of {len(m.topology.gang)} pods got no node in {seconds} s: {_waits(unbound)}"
    return Deadline("gang", s.status.gang.admitted_at + timedelta(seconds=seconds), blames)


def schedule(s: Situation, m: Members) -> Deadline | None:
    """From bound to all containers running: image pulls, volumes, config maps."""
    begun = s.status.timeline[-1].start if s.status.timeline else None
    if s.spec is None or s.status.phase != "Starting" or begun is None or m.all_run:
        return None
    seconds = s.spec.recovery.schedule_seconds
    blames = f"not all containers ran within {seconds} s: {_waits(dict(m.not_running()))}"
    return Deadline("schedule", begun + timedelta(seconds=seconds), blames)


def preflight(s: Situation, m: Members, now: Time) -> Deadline | None:
    """From all containers running to all supervisors registered, as the chief's tells it."""
    started = _all_started(s, m)
    waiting = hearing.unregistered(s, m)
    if s.spec is None or s.status.phase != "Starting" or started is None or not waiting or not hearing.is_fresh(s, now):
        return None
    seconds = s.spec.preflight.timeout_seconds
    registered = len(m.topology.gang) - len(waiting)
    who = ", ".join(map(str, waiting[:3])) + (f" and {len(waiting) - 3} more" if len(waiting) > 3 else "")
    blames = f"{registered} of {len(m.topology.gang)} tasks registered within {seconds} s; missing: {who}"
    return Deadline("preflight", started + timedelta(seconds=seconds), blames)


def registration(s: Situation, m: Members) -> Deadline | None:
    """When a job from which no supervisor was heard in this attempt counts as unsupervised."""
    started, told = _all_started(s, m), condition(s.status, "Supervised")
    is_known = told is not None and (told.status == "False" or s.status.phase == "Running")
    if started is None or is_known or hearing.speaks(s) or any(pod.verdict for pod in m.gang.values()):
        return None
    return Deadline("registration", started + REGISTRATION, "no supervisor registered")


def unreported(s: Situation) -> Deadline | None:
    """When a job whose program reports no steps counts as running."""
    built = condition(s.status, "Training")
    if s.status.phase != "Starting" or built is None or built.reason != "StrategyBuilt":
        return None
    return Deadline("unreported", built.last_transition_time + UNREPORTED, "the program reports no steps")


def others_end(s: Situation, m: Members) -> Deadline | None:
    """When the trainers that outlive the chief's success are stopped."""
    if s.status.chief_finished_at is None or all(pod.is_over for pod in m.gang.values()):
        return None
    return Deadline("others end", s.status.chief_finished_at + OTHERS_END, "trainers that outlive the chief")


def evaluator_ends(s: Situation) -> Deadline | None:
    """When an evaluator that is not done yet is stopped."""
    role = s.spec.roles.evaluator if s.spec else None
    if s.status.chief_finished_at is None or role is None:
        return None
    due = s.status.chief_finished_at + timedelta(seconds=role.finish_seconds)
    return Deadline("evaluator ends", due, f"the evaluator did not end within {role.finish_seconds} s")


def refused_template(answer: ProbeResult) -> Deadline | None:
    """When a refusal is asked for again: a service account is made, a policy is relaxed, without an edit of the job."""
    if answer.heard_at is None or answer.code < HTTP_REFUSAL:
        return None
    return Deadline("refused template", answer.heard_at + ASK_AGAIN, answer.message)


def time_to_live(s: Situation) -> Deadline | None:
    seconds = s.spec.ttl_seconds_after_finished if s.spec else None
    if s.status.completion_time is None or seconds is None:
        return None
    return Deadline("time to live", s.status.completion_time + timedelta(seconds=seconds), "the job is over")


def wake_at(s: Situation, m: Members | None, now: Time) -> Time | None:
    """When to look at the job again although nothing happens; None when nothing is waited for."""
    dues = [deadline.due for deadline in _all(s, m, now) if deadline is not None]
    return min((due if due > now else now + RETRY for due in dues), default=None)


def _all(s: Situation, m: Members | None, now: Time) -> Iterator[Deadline | None]:
    status = s.status
    if status.phase in FINAL and status.cleanup is None:
        yield time_to_live(s)
        return
    yield from (lost.termination(s, pod) for pod in s.pods if not pod.is_over)
    if status.last_failure is not None and any(not holds_nothing(pod) and is_ending(s, pod, now) for pod in s.pods):
        yield Deadline("last words", status.last_failure.at + LAST_WORDS, "the culprit's pod")
    if status.phase in FINAL or m is None:
        return
    yield from (active(s), unreported(s), others_end(s, m), evaluator_ends(s), gang(s, m), schedule(s, m))
    yield from (preflight(s, m, now), registration(s, m))
    yield from (lost.lost_node(s, pod) for pod in m.gang.values() if not pod.is_over)
    if status.recovery.not_before is not None and status.phase in ("Restarting", "Starting", "Running"):
        yield from _still_to_come("back-off", status.recovery.not_before, now)
    nodes = cordons.unseen(s, now)
    if nodes is not None:
        yield from _still_to_come(nodes.name, nodes.due, now)
    if status.gang.not_before is not None and status.phase == "Queued":
        yield from _still_to_come("queue", status.gang.not_before, now)
    if status.phase == "Pending" and says(status, "Accepted", "WaitingForPredecessor", "NameTaken"):
        yield Deadline("predecessor", now + PREDECESSOR, "objects that have the job's names")
    if status.phase == "Queued" and says(status, "GangScheduled", "ClaimMissing"):
        yield Deadline("claim", now + CLAIM, "the claim that the job names")
    if status.phase == "Pending" and says(status, "Accepted", "TemplateRefused"):
        answers = [probe_of(s, task.role) for task in m.topology.tasks if task.index == 0]
        yield from (refused_template(answer) for answer in answers if answer is not None)
    heard_at = hearing.last_word(s)
    if status.phase == "Running" and heard_at is not None:
        yield from _still_to_come("progress", heard_at + hearing.SILENCE, now)


def _still_to_come(name: str, due: Time, now: Time) -> Iterator[Deadline]:
    if due > now:
        yield Deadline(name, due, "")


def _all_started(s: Situation, m: Members) -> Time | None:
    """When the last container of the gang started, or this process if that was later; None before."""
    if s.status.phase not in ("Starting", "Running") or not m.all_run:
        return None
    times = [pod.started_at for pod in m.gang.values()] + [s.facts.started_at]
    return max((time for time in times if time is not None), default=None)


def _is_bound(pod: PodView | None) -> bool:
    return pod is not None and (pod.node is not None or pod.is_over)


def _waits(pods: dict[Task, PodView | None]) -> str:
    """Who waits for what, in people's words; the first three."""
    told = [f"{task} {_waits_for(pod)}" for task, pod in list(pods.items())[:3]]
    more = f" and {len(pods) - 3} more" if len(pods) > 3 else ""
    return "; ".join(told) + more


def _waits_for(pod: PodView | None) -> str:
    if pod is None:
        return "has no pod yet"
    where = f" on {pod.node}" if pod.node else ""
    what = pod.waiting_reason or ("waits for its turn" if pod.node is None else "has not started")
    return f"{what}{where}" + (f": {pod.waiting_message}" if pod.waiting_message else "")
