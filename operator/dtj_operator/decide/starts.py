"""The next status on the way to a running attempt: one verb a move. Whether it moves is decided in the steps.

The way out of an attempt, and of the job, is in `ends.py`.
"""

from msgspec.structs import replace

from dtj_operator.api.bounds import cut
from dtj_operator.api.observed import Situation
from dtj_operator.api.reasons import Reason
from dtj_operator.api.status import Attempt, JobStatus, Time
from dtj_operator.decide import cordons
from dtj_operator.decide.conditions import with_condition
from dtj_operator.decide.members import Members, finished_outside, raised, rounds_of
from dtj_operator.decide.words import all_pods
from dtj_operator.desired.topology import Topology

TIMELINE = 20


def refused(s: Situation, reason: Reason, message: str, now: Time) -> JobStatus:
    """Pending: something has to change before the job can start."""
    status = replace(s.status, phase="Pending", reason=cut(message), gang=replace(s.status.gang, queued_at=None))
    return with_condition(status, "Accepted", "False", reason, message, now=now)


def delayed(s: Situation, cordoned: list[str], now: Time) -> JobStatus:
    """Restarting still: nodes of the last attempt are being drained, maybe one after the other."""
    recovery = cordons.waited_for(s, cordoned, now)
    who = f"{', '.join(cordoned[:3])}{' and more' if len(cordoned) > 3 else ''}"
    words = f"{who} {'is' if len(cordoned) == 1 else 'are'} cordoned: attempt {s.status.attempt} lets the drain go on"
    words += f" until {recovery.not_before:%H:%M:%S} UTC" if recovery.not_before else ""
    return replace(s.status, recovery=recovery, reason=cut(words))


def queued(s: Situation, t: Topology, scheduler: str, reason: str, now: Time) -> JobStatus:
    """Accepted, or due again: from now on the gang waits for its places."""
    batch = s.spec.batch if s.spec else None
    replicas = t.replicas or 0
    per_replica = batch.per_replica if batch else None
    rounds = rounds_of(s.status, t.gang)
    formed = s.status.gang.formed
    # The roles may have grown while the job was suspended: a new task's round must be above what was formed, or its pod
    # would count as lost before it was made.
    grown = formed is not None and min(rounds.values()) <= formed
    status = replace(
        s.status,
        phase="Queued",
        reason=cut(reason),
        rounds=raised(s.status, t.tasks, t.gang) if grown else s.status.rounds,
        strategy=t.strategy,
        strategy_reason=t.reason,
        replicas_in_sync=t.replicas,
        global_batch_size=(batch.global_size if batch else None) or (per_replica or 0) * replicas or None,
        gang=replace(s.status.gang, scheduler=scheduler, queued_at=now, waiting_for=None, refused=0),
        recovery=replace(s.status.recovery, not_before=None, left_nodes=[], cordoned=[]),
    )
    in_place = s.spec is not None and s.spec.recovery.mode == "InPlace"
    words = "recovery.mode InPlace is to come: until then a restart recreates the pods" if in_place else ""
    status = with_condition(status, "Accepted", "True", "Accepted", words, now=now)
    return with_condition(status, "GangScheduled", "False", "Waiting", "", now=now)


def waiting(s: Situation, reason: Reason, words: str, now: Time, *, not_before: Time | None, refused: int) -> JobStatus:
    """Queued still, and why: room or quota is missing."""
    gang = replace(s.status.gang, waiting_for=cut(words), not_before=not_before, refused=refused)
    status = replace(s.status, gang=gang, reason=cut(words))
    return with_condition(status, "GangScheduled", "False", reason, words, now=now)


def admitted(s: Situation, frozen: str, now: Time) -> JobStatus:
    """Released: pods follow from this."""
    gang = replace(s.status.gang, admitted_at=now, not_before=None, waiting_for=None, refused=0)
    status = replace(s.status, gang=gang, frozen=frozen, reason="the gang is released")
    return with_condition(status, "GangScheduled", "False", "Admitted", "", now=now)


def taken_back(
    s: Situation,
    m: Members,
    reason: Reason,
    words: str,
    now: Time,
    *,
    not_before: Time | None,
    missed: int,
    refused: int,
) -> JobStatus:
    """The whole gang is given up before it was formed, uncounted, and queued again behind the others."""
    gang = replace(
        s.status.gang,
        admitted_at=None,
        queued_at=now,
        missed=missed,
        refused=refused,
        not_before=not_before,
        waiting_for=cut(words),
    )
    rounds = raised(s.status, m.topology.tasks, m.topology.gang)
    finished = finished_outside(s.status, m.topology.gang)
    status = replace(s.status, phase="Queued", rounds=rounds, finished=finished, gang=gang, reason=cut(words))
    return with_condition(status, "GangScheduled", "False", reason, words, now=now)


def formed(s: Situation, m: Members, now: Time) -> JobStatus:
    """Every pod of the gang has a node: the attempt begins."""
    gang = s.status.gang
    waited = (now - gang.queued_at).total_seconds() if gang.queued_at else None
    formed = max(m.rounds[task] for task in m.topology.gang)
    status = replace(
        s.status,
        phase="Starting",
        reason=f"a node for {all_pods(len(m.topology.gang))}",
        start_time=s.status.start_time or now,
        timeline=[*s.status.timeline, Attempt(attempt=s.status.attempt, start=now)][-TIMELINE:],
        gang=replace(gang, formed=formed, missed=0, waiting_for=None, wait_seconds=waited),
        # Up to here it told how far the last attempt had come; what this one makes of that, it has to say itself.
        progress=None,
    )
    status = with_condition(status, "GangScheduled", "True", "Bound", "", now=now)
    return with_condition(status, "Training", "False", "Starting", "", now=now)


def running(s: Situation, reason: Reason, words: str, now: Time) -> JobStatus:
    """Steps are made, or must be believed to be, which the words then say."""
    status = replace(s.status, phase="Running", reason=cut(words) or None)
    return with_condition(status, "Training", "True", reason, words, now=now)
