"""From the end of one attempt to the next gang: old pods go, the gang waits for its places, is released, and forms."""

from msgspec.structs import replace

from dtj_operator.api import names
from dtj_operator.api.frozen import frozen_hash
from dtj_operator.api.observed import Admit, Situation, Wait
from dtj_operator.api.reasons import Reason
from dtj_operator.api.status import Time
from dtj_operator.decide import cordons, starts
from dtj_operator.decide.acceptance import probe
from dtj_operator.decide.actions import Create, Plan, Ungate
from dtj_operator.decide.children import isolated, renewed
from dtj_operator.decide.members import Members
from dtj_operator.decide.recovery import backoff
from dtj_operator.decide.stopping import deletes, sentence
from dtj_operator.decide.words import all_pods, is_quota
from dtj_operator.desired.checkpoints import missing_claim
from dtj_operator.desired.pods import pod
from dtj_operator.desired.probes import probe_of
from dtj_operator.desired.topology import spec_of
from dtj_operator.gang.choose import choose
from dtj_worker.contract import Role

FIRST_WAIT_SECONDS = 10.0
LONGEST_WAIT_SECONDS = 300.0


def restarting(s: Situation, m: Members, now: Time) -> Plan | None:
    """Nothing of the old attempt may write any more, and its back-off and the drain of its nodes must be over."""
    if s.status.phase != "Restarting":
        return None
    stops = deletes(s, m.leftovers, now)
    cordoned = cordons.new(s, now)
    if cordoned:
        status = starts.delayed(s, cordoned, now)
        return Plan(status, stops, reason=status.reason or "")
    if m.living:
        return Plan(None, stops, reason=sentence(m))
    due = s.status.recovery.not_before
    if due is not None and due > now:
        return Plan(None, stops, reason=f"attempt {s.status.attempt} begins at {due:%H:%M:%S} UTC")
    unseen = cordons.unseen(s, now)
    if unseen is not None and unseen.due > now:
        return Plan(None, stops, reason="looks whether the nodes of the last attempt are being drained")
    backend, _ = choose(spec_of(s), s.facts)
    words = f"attempt {s.status.attempt} waits for its places"
    return Plan(starts.queued(s, m.topology, backend.name, words, now), reason=words)


def queued(s: Situation, m: Members, now: Time) -> Plan | None:
    """The gang waits: for old pods to be gone, for the quota, for room. It has no pods."""
    if s.status.phase != "Queued" or s.status.gang.admitted_at is not None:
        return None
    stops = deletes(s, m.leftovers, now)
    if m.living:
        return Plan(None, stops, reason=sentence(m))
    if s.refusals:
        return _refused(s, s.refusals[-1], now)
    claim = missing_claim(s)
    if claim is not None:
        words = f"there is no PersistentVolumeClaim {claim} in namespace {s.key.namespace}"
        waits = _wait(s, "ClaimMissing", f"spec.checkpoint.persistentVolumeClaim: {words}", now)
        return waits if waits.status is not None else replace(waits, actions=stops)
    due = s.status.gang.not_before
    if due is not None and due > now:
        return Plan(None, stops, reason=s.status.gang.waiting_for or "waits for its next try")
    full = _refused_by_quota(s, m)
    if any(due is None or heard_at is None or heard_at >= due for _, heard_at in full.values()):
        return _refused(s, next(words for words, _ in full.values()), now)
    if full:
        again = [probe(s, m, role) for role in full]
        return Plan(None, (*stops, *again), reason="asks again whether the quota has room")
    objects = renewed(s, m)
    if objects:
        return Plan(None, (*stops, *objects), reason="makes the job's objects")
    return _admission(s, m, now)


def released(s: Situation, m: Members, now: Time) -> Plan | None:
    """The gang has its places: pods are made, let go, bound. Whatever goes wrong here takes all of them back."""
    if s.status.phase != "Queued" or s.status.gang.admitted_at is None:
        return None
    stops = deletes(s, m.leftovers, now)
    if m.living:
        return Plan(None, stops, reason=sentence(m))
    if s.refusals:
        return _refused(s, s.refusals[-1], now, m)
    obstacle = _obstacle(s, m)
    if obstacle is not None:
        gang = s.status.gang
        back = starts.taken_back(s, m, "Waiting", obstacle, now, not_before=None, missed=gang.missed, refused=0)
        return Plan(back, reason=f"taken back: {obstacle}")
    backend, _ = choose(spec_of(s), s.facts)
    state, missing = backend.state(s, m.topology), m.missing()
    if state.is_bound and not missing:
        return Plan(starts.formed(s, m, now), reason=f"a node for {all_pods(len(m.topology.gang))}")
    made = [pod(s, m.topology, task, m.rounds[task], s.status.attempt) for task in missing]
    creates = [Create(backend.mark(s, m.topology, manifest)) for manifest in made]
    # A pod that is let go before its peers exist would hold a node for a gang that may never be whole.
    gated = [] if missing else [member for member in m.gang.values() if names.GATE in member.gates]
    ungates = [Ungate(member.name, member.uid) for member in gated]
    return Plan(None, (*stops, *creates, *ungates), reason=state.waiting_for or "the gang is being bound")


def next_try(s: Situation, count: int, now: Time) -> Time:
    """When a gang that was refused or taken back that many times in a row is tried again."""
    return now + backoff(s.uid, count + 1, FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS)


def _admission(s: Situation, m: Members, now: Time) -> Plan:
    """Whether the gang may go: its backend's word, or that of the built-in scheduler's last pass."""
    backend, _ = choose(spec_of(s), s.facts)
    cannot = backend.available(s.facts)
    if cannot is not None:
        return _wait(s, "SchedulerUnavailable", cannot, now)
    state = backend.state(s, m.topology)
    if state.is_admitted or isinstance(s.admission, Admit):
        status = isolated(s, m, starts.admitted(s, frozen_hash(spec_of(s)), now), now)
        return Plan(status, reason=f"released by {backend.name}")
    never = isinstance(s.admission, Wait) and s.admission.can_never_fit
    return _wait(s, "CannotFit" if never else "Waiting", state.waiting_for or "waits for its turn", now)


def _wait(s: Situation, reason: Reason, words: str, now: Time) -> Plan:
    status = starts.waiting(s, reason, words, now, not_before=None, refused=s.status.gang.refused)
    return Plan(None if status == s.status else status, reason=words)


def _refused(s: Situation, words: str, now: Time, released: Members | None = None) -> Plan:
    """What the API server did not take is tried again later; a gang that was released comes back as a whole."""
    reason: Reason = "QuotaExceeded" if is_quota(words) else "Forbidden"
    gang = s.status.gang
    due = next_try(s, gang.refused + 1, now)
    if released is None:
        status = starts.waiting(s, reason, words, now, not_before=due, refused=gang.refused + 1)
    else:
        status = starts.taken_back(
            s, released, reason, words, now, not_before=due, missed=gang.missed, refused=gang.refused + 1
        )
    return Plan(status, reason=words)


def _refused_by_quota(s: Situation, m: Members) -> dict[Role, tuple[str, Time | None]]:
    """Roles whose pod has no room in the quota: the API server's words, and when it said so."""
    answers = {task.role: probe_of(s, task.role) for task in m.topology.gang}
    return {
        role: (answer.message, answer.heard_at)
        for role, answer in answers.items()
        if answer is not None and is_quota(answer.message)
    }


def _obstacle(s: Situation, m: Members) -> str | None:
    """Why a gang that was released and is not whole can't go on as it is."""
    if s.foreign_names:
        return f"{s.foreign_names[0].kind} {s.foreign_names[0].name} is not this job's"
    if s.faults:
        return f"the manifest has faults: {s.faults[0]}"
    if s.status.frozen != frozen_hash(spec_of(s)):
        return "the manifest was edited before the gang was formed"
    missing = m.missing()
    gone = [names.pod(s.key.name, task, m.rounds[task]) for task in missing]
    gone = [name for name in gone if name in s.gone]
    gone += [member.name for member in m.gang.values() if member.deleting_since is not None]
    if gone:
        return f"{gone[0]} was deleted before the gang was formed"
    if missing and _is_of_another_process(s):
        # What is missing may have been made and deleted since, and no name is used twice.
        return "the operator was restarted between the release and the last pod"
    if missing and not m.finished and not _may_go(s, m):
        return "not all of its pods were made, and its places are given away"
    return None


def _is_of_another_process(s: Situation) -> bool:
    began, admitted = s.facts.started_at, s.status.gang.admitted_at
    # An answer that is still in memory was this process's own, whatever the clock was set to since.
    return began is not None and admitted is not None and admitted < began and not isinstance(s.admission, Admit)


def _may_go(s: Situation, m: Members) -> bool:
    """Whether the gang would be released if it had not been yet: only then is it known where its pods go."""
    before = replace(s, status=replace(s.status, gang=replace(s.status.gang, admitted_at=None)))
    state = choose(spec_of(s), s.facts)[0].state(before, m.topology)
    return state.is_admitted or isinstance(s.admission, Admit)
