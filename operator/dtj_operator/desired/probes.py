"""What the API server says of a role's pods before any is made: where its answers lie. `decide` asks."""

import hashlib

import msgspec

from dtj_operator.api.observed import ProbeResult, Situation
from dtj_operator.api.spec import JobSpec
from dtj_worker.contract import Role


def template_hash(spec: JobSpec, role: Role) -> str:
    """What stays the same as long as a role's pods would be made the same way, whatever their attempt and round.

    It covers all of the spec but what no pod shows, so an edit of anything else asks again.
    """
    defaults = JobSpec(roles=spec.roles)
    shown = msgspec.structs.replace(
        spec,
        recovery=defaults.recovery,
        suspend=False,
        restart_request=None,
        active_deadline_seconds=None,
        ttl_seconds_after_finished=None,
        clean_pod_policy=defaults.clean_pod_policy,
        keep_failed_pods=defaults.keep_failed_pods,
    )
    digest = hashlib.sha256(msgspec.json.encode(shown, order="sorted")).hexdigest()
    return f"{role}-{digest[:16]}"


def probe_of(s: Situation, role: Role) -> ProbeResult | None:
    """The API server's answer for a role's pod as the spec has it now; None where it hasn't given one."""
    return None if s.spec is None else s.probes.get(template_hash(s.spec, role))
