"""What the user asks of a job that exists: suspend, resume, restart. Its end and its failures are elsewhere."""

from msgspec.structs import replace

from dtj_operator.api.observed import Situation
from dtj_operator.api.status import Time
from dtj_operator.decide import ends
from dtj_operator.decide.actions import Plan
from dtj_operator.decide.conditions import says
from dtj_operator.decide.members import Members
from dtj_operator.decide.stopping import deletes, sentence
from dtj_operator.desired.topology import spec_of


def suspended(s: Situation, m: Members, now: Time) -> Plan | None:
    """From the wish to no running pod, and back. Resuming waits for the old pods even if the wish was taken back."""
    wanted = spec_of(s).suspend
    stops = deletes(s, m.leftovers, now)
    if s.status.phase == "Suspended":
        return Plan(None, stops, reason="suspended") if wanted else Plan(ends.resumed(s, now), reason="resumed")
    if says(s.status, "Suspended", "Suspending"):
        if m.living:
            return Plan(None, stops, reason=f"suspending: {sentence(m)}")
        return Plan(ends.suspended(s, now), reason="suspended: no pod of the job runs")
    # A job that has succeeded comes to its end within a bounded time, and nothing of it would run after a resume.
    if not wanted or s.status.chief_finished_at is not None:
        return None
    if s.status.gang.admitted_at is None and all(pod.is_over for pod in s.pods):
        return Plan(ends.suspended(s, now), reason="suspended before anything ran")
    return Plan(ends.suspending(s, m, now), reason="suspending: its pods are stopped")


def restart_requested(s: Situation, m: Members, now: Time) -> Plan | None:
    """A change of `restartRequest` restarts what runs, once; where nothing runs, the next start serves it."""
    wanted = spec_of(s).restart_request
    if wanted == s.status.restart_request:
        return None
    if s.status.gang.admitted_at is None or wanted is None:
        recovery = replace(s.status.recovery, not_before=None) if wanted else s.status.recovery
        status = replace(s.status, restart_request=wanted, recovery=recovery)
        return Plan(status, reason="the restart request is noted; nothing runs that it could restart")
    if s.faults or s.status.chief_finished_at is not None:
        return None
    return Plan(ends.requested(s, m, now), reason=f"restart requested: attempt {s.status.attempt + 1} now")
