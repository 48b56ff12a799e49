"""How attempts and jobs end: success, failure, deadline; then what is left of a final job.

What a failure leads to is ruled in `recovery.py`.
"""

from msgspec.structs import replace

from dtj_operator.api.observed import PodView, Situation
from dtj_operator.api.status import FINAL, Time
from dtj_operator.decide import deadlines, ends, failure, recovery, starts
from dtj_operator.decide.actions import Delete, DeleteJob, Failure, Plan
from dtj_operator.decide.children import STAYS
from dtj_operator.decide.forming import next_try
from dtj_operator.decide.members import Members, holds_nothing, is_ending, members
from dtj_operator.decide.stopping import deletes
from dtj_operator.desired.topology import spec_of
from dtj_worker.contract import Task


def finished(s: Situation, now: Time) -> Plan | None:
    """A final job: what it no longer needs goes, then nothing happens any more but its own deletion in due time."""
    if s.status.phase not in FINAL:
        return None
    if s.status.cleanup is None:
        due = deadlines.time_to_live(s)
        if due is None or due.due > now:
            return Plan(None, reason="over")
        return Plan(None, (DeleteJob(s.key.name, s.uid),), reason="its time to live is over")
    pods = _pods_to_go(s, now)
    objects = [(kind, name, uid) for kind, name, uid, _ in sorted(s.children) if kind not in STAYS]
    if not pods and not objects and all(holds_nothing(pod) for pod in s.pods):
        return Plan(replace(s.status, cleanup=None), reason="nothing is left to clean up")
    stops = (*(Delete(kind, name, uid) for kind, name, uid in objects), *deletes(s, pods, now))
    return Plan(None, stops, reason=f"cleans up {len(pods)} pods and {len(objects)} objects")


def succeeded(s: Situation, m: Members, now: Time) -> Plan | None:
    """The success policy holds. It wins over any failure that is seen with it, and over all that comes after."""
    if s.status.chief_finished_at is None:
        done = _tasks_that_succeeded(s, m)
        if done is None:
            return None
        words = "; ".join(f"{task} exited 0" for task in done[:3])
        return Plan(ends.succeeding(s, m, done, words, now), reason=words)
    evaluator = next((task for task in m.topology.tasks if task.role == "evaluator"), None)
    evaluator_due = deadlines.evaluator_ends(s)
    evaluates = evaluator is not None and evaluator not in m.finished
    is_late = evaluator_due is None or evaluator_due.due <= now
    others_due = deadlines.others_end(s, m)
    if (evaluates and not is_late) or (others_due is not None and others_due.due > now):
        return None
    role = spec_of(s).roles.evaluator
    if evaluates and role is not None and role.required:
        words = f"{evaluator} did not exit 0 within {role.finish_seconds} s of the chief's success"
        return Plan(ends.failed(s, "EvaluatorFailed", words, "Application", now), reason=words)
    is_chief = spec_of(s).success_policy == "Chief"
    words = f"{m.topology.chief} exited 0" if is_chief else "every worker exited 0"
    status = ends.succeeded(s, "ChiefSucceeded" if is_chief else "AllWorkersSucceeded", words, now)
    return Plan(status, reason=f"succeeded: {words}")


def attempt_ended(s: Situation, m: Members, now: Time) -> Plan | None:
    """A task of the gang has ended otherwise than 0, or is gone."""
    if not _is_under_way(s):
        return None
    found = failure.culprit(s, m, now)
    return None if found is None else _ended_by(s, m, found, now)


def evaluator_ended(s: Situation, m: Members, now: Time) -> Plan | None:
    """The evaluator ended otherwise than 0, or is gone: it is made anew alone, and the attempt goes on."""
    task = next((task for task in m.topology.tasks if task.role == "evaluator"), None)
    role = spec_of(s).roles.evaluator
    if task is None or role is None or task in m.finished or s.status.phase in ("Pending", "Suspended"):
        return None
    found = failure.evaluator_end(s, m, task, now)
    if found is None:
        return None
    limits, times = spec_of(s).recovery, s.status.starts.get(str(task), 0)
    own = recovery.matching(s, found, may_ignore=True)
    exhausted = found.kind not in ("Disruption", "Preempted") and times >= limits.max_restarts
    if own is not None and own.action == "Fail":
        return Plan(ends.failed(s, "FailedByRule", f"{found}: a rule says Fail", found.kind, now), reason=str(found))
    if (exhausted or not found.heals) and role.required:
        words = f"{found}: restarted {times} times, and the job requires it"
        return Plan(ends.failed(s, "EvaluatorFailed", words, found.kind, now), reason=words)
    if exhausted or not found.heals or (own is not None and own.action == "Ignore"):
        return Plan(ends.ended_alone(s, found, now), reason=f"{found}: it stays ended")
    wait = recovery.backoff(s.uid, times + 1, limits.backoff.initial_seconds, limits.backoff.max_seconds)
    status = ends.restarted_alone(s, m, found, now + wait if wait else None, now)
    return Plan(status, reason=f"{found}: restarted alone, the training goes on")


def deadline_passed(s: Situation, m: Members, now: Time) -> Plan | None:
    """What has taken too long, and who is to blame."""
    active = deadlines.active(s)
    if active is not None and active.due <= now:
        status = ends.failed(s, "DeadlineExceeded", active.blames, "DeadlineExceeded", now)
        return Plan(status, reason=active.blames)
    if s.status.chief_finished_at is not None:
        return None
    gang = deadlines.gang(s, m)
    if gang is not None and gang.due <= now:
        missed = s.status.gang.missed + 1
        words, due = f"{gang.blames}; all are taken back", next_try(s, missed, now)
        status = starts.taken_back(s, m, "Missed", words, now, not_before=due, missed=missed, refused=0)
        return Plan(status, reason=words)
    schedule = deadlines.schedule(s, m)
    late = failure.unstarted(s, m, schedule.blames) if schedule and schedule.due <= now else None
    if late is None:
        preflight = deadlines.preflight(s, m, now)
        late = failure.unregistered(s, m, preflight.blames) if preflight and preflight.due <= now else None
    return None if late is None else _ended_by(s, m, late, now)


def _ended_by(s: Situation, m: Members, found: Failure, now: Time) -> Plan:
    may_ignore = m.topology.strategy == "ParameterServer" and found.task.role == "worker"
    ruling = recovery.rule(s, found, len(m.topology.gang), now, may_ignore=may_ignore)
    words = f"{found}: {ruling}"
    if ruling.action == "Ignore":
        return Plan(ends.ended_alone(s, found, now), reason=words)
    if ruling.action == "Fail":
        return Plan(ends.failed_after(s, found, ruling, now), reason=words)
    return Plan(ends.restarting_after(s, m, found, ruling, now), reason=words)


def _is_under_way(s: Situation) -> bool:
    is_admitted = s.status.gang.admitted_at is not None and s.status.chief_finished_at is None
    return is_admitted and s.status.phase in ("Queued", "Starting", "Running")


def _tasks_that_succeeded(s: Situation, m: Members) -> tuple[Task, ...] | None:
    """The tasks by which the success policy holds; None while it does not."""
    if not _is_under_way(s):
        return None
    chief_alone = spec_of(s).success_policy == "Chief"
    decide = [m.topology.chief] if chief_alone else [t for t in m.topology.gang if t.role in ("chief", "worker")]
    done = {task for task, pod in m.gang.items() if pod.stage == "Succeeded"} | m.finished
    return tuple(decide) if all(task in done for task in decide) else None


def _pods_to_go(s: Situation, now: Time) -> list[PodView]:
    """What still runs, always; what else the policy says. Old pods go unless they are kept for their logs.

    A culprit whose logs are wanted ends by itself first: how it ended may be told before it has (`is_ending`).
    """
    policy = s.spec.clean_pod_policy if s.spec else "Running"
    if policy == "All":
        return list(s.pods)
    keeps = policy == "None" or s.spec is None or s.spec.keep_failed_pods > 0
    old = members(s, now).leftovers if s.spec is not None and policy == "Running" else ()
    return [pod for pod in s.pods if pod in old or not (holds_nothing(pod) or (keeps and is_ending(s, pod, now)))]
