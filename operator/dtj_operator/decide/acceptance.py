"""Whether a job may start at all: its manifest, its names, its pods as the API server sees them. Nothing runs here."""

import re

from msgspec.structs import replace

from dtj_operator.api import names
from dtj_operator.api.observed import ForeignChild, ProbeResult, Situation
from dtj_operator.api.reasons import Reason
from dtj_operator.api.status import Time
from dtj_operator.decide import starts
from dtj_operator.decide.actions import Action, Plan, Probe
from dtj_operator.decide.children import isolated
from dtj_operator.decide.deadlines import refused_template
from dtj_operator.decide.members import Members
from dtj_operator.decide.report import edited
from dtj_operator.decide.stopping import deletes
from dtj_operator.decide.words import is_quota
from dtj_operator.desired.overlay import templates_with
from dtj_operator.desired.pods import pod
from dtj_operator.desired.probes import probe_of, template_hash
from dtj_operator.desired.topology import spec_of, topology_faults
from dtj_operator.gang.choose import choose
from dtj_worker.contract import Role

MOST_NAMED = 3
_UNKNOWN = re.compile(r'unknown field "([^"]+)"')
"""What the API server says of a field, after a preamble about decoding, by its path in the pod."""


def unreadable(s: Situation, now: Time) -> Plan | None:
    """The object does not parse: an attempt under way is left alone, and nothing new begins."""
    if s.spec is not None:
        return None
    words = "; ".join(s.faults) or "spec: it can't be read"
    if is_open(s):
        return Plan(edited(s, now), reason=f"left alone: {words}")
    return _refuse(s, "Invalid", words, now)


def not_acceptable(s: Situation, m: Members, now: Time) -> Plan | None:
    """Only while no attempt is open: an edit never takes anything from a running one."""
    if is_open(s):
        return None
    faults = (*s.faults, *topology_faults(s, m.topology))
    if faults:
        return _refuse(s, "Invalid", "; ".join(faults), now)
    if s.foreign_names or s.predecessors:
        return _names_taken(s, now)
    answers = {task.role: probe_of(s, task.role) for task in m.topology.tasks}
    refused = {role: answer for role, answer in answers.items() if answer is not None and _is_refusal(answer)}
    if refused:
        told = dict.fromkeys(_refusal(s, role, answer.message) for role, answer in refused.items())
        words = "; ".join(told)
        dues = {role: refused_template(answer) for role, answer in refused.items()}
        again = [probe(s, m, role) for role, due in dues.items() if due is not None and due.due <= now]
        return _refuse(s, "TemplateRefused", words, now, *again)
    unasked = tuple(probe(s, m, role) for role, answer in answers.items() if answer is None)
    if unasked and s.unanswered is None:
        return Plan(None, unasked, reason="asks the API server whether it takes the pods")
    if unasked:
        words = f"the API server could not say whether it takes the pods ({s.unanswered}); it is asked again"
        # The phase stays, and so do the conditions: nothing is known that would speak against the job.
        is_told = s.status.reason == words
        return Plan(None, unasked, reason=words) if is_told else Plan(replace(s.status, reason=words), reason=words)
    if s.status.phase != "Pending":
        return None
    backend, why = choose(spec_of(s), s.facts)
    words = f"accepted as {m.topology.strategy}: {m.topology.reason}; gang scheduler {backend.name}: {why}"
    status = starts.queued(s, m.topology, backend.name, words, now)
    return Plan(isolated(s, m, status, now), reason=words)


def is_open(s: Situation) -> bool:
    """Whether an attempt is released or under way, or one that has ended may still write."""
    if s.status.gang.admitted_at is not None:
        return True
    return any(not pod.is_over and pod.task.role != "evaluator" for pod in s.pods)


def probe(s: Situation, m: Members, role: Role) -> Probe:
    """The question whether the API server takes a pod of that role. Its name is one that no pod ever has."""
    task = next(task for task in m.topology.tasks if task.role == role)
    made = pod(s, m.topology, task, 0, s.status.attempt)
    made = {**made, "metadata": {**made["metadata"], "name": f"{names.hostname(s.key.name, task)}-probe"}}
    return Probe(role, template_hash(spec_of(s), role), made)


def _refuse(s: Situation, reason: Reason, words: str, now: Time, *actions: Action) -> Plan:
    status = starts.refused(s, reason, words, now)
    return Plan(None, actions, reason=words) if status == s.status else Plan(status, reason=words)


def _names_taken(s: Situation, now: Time) -> Plan:
    """Waits until the names are free: they are looked at again before each plan, and the next one is soon."""
    taken = [child for child in s.foreign_names if not child.terminating and not child.is_left]
    if taken:
        words = "; ".join(f"{c.kind} {c.name} {f'belongs to {c.owner}' if c.owner else 'has no owner'}" for c in taken)
        words += ": rename this job, or remove what has the name"
        return _refuse(s, "NameTaken", words, now)
    # Its pods may be of other rounds, and so have other names; but their addresses are those of this job's tasks.
    named = {child.name for child in s.foreign_names}
    pods = [ForeignChild("Pod", p.name, terminating=True) for p in s.predecessors if p.name not in named]
    shown, more = pods[:MOST_NAMED], len(pods) - MOST_NAMED
    words = "; ".join(map(_left_behind, (*s.foreign_names, *shown))) + (f"; and {more} more pods" * (more > 0))
    # Nobody else ends a pod whose node no longer answers; its trainer writes into its own job's folder alone.
    overdue = deletes(s, [pod for pod in s.predecessors if pod.deleting_since is not None], now)
    return _refuse(s, "WaitingForPredecessor", words, now, *overdue)


def _left_behind(child: ForeignChild) -> str:
    if child.terminating:
        return f"waits for {child.kind} {child.name} of an earlier job to be gone"
    return f"{child.kind} {child.name} belongs to no job that lives; it is waited for, remove it if it stays"


def _refusal(s: Situation, role: Role, message: str) -> str:
    """Why the API server takes no pod of the role, and in which of the manifest's templates that lies."""
    unknown = _UNKNOWN.findall(message)
    if not unknown:
        return f"spec.roles.{role}.template: {message}"
    where = templates_with(spec_of(s), role, [path.rpartition(".")[2].partition("[")[0] for path in unknown])
    fields = ", ".join(f'unknown field "{path}"' for path in unknown)
    return f"{where}: {fields}"


def _is_refusal(answer: ProbeResult) -> bool:
    """Whether the API server will not take such a pod, for want of something else than quota."""
    return 400 <= answer.code < 500 and not is_quota(answer.message)
