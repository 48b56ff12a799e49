"""What may not change once a job has started: a digest of it for `status.frozen`, and which parts differ.

CEL compares what it can see; templates it cannot. Here everything is compared, also against an edit that came and went
between two looks of the operator.
"""

import hashlib
from typing import Any

import msgspec

from dtj_operator.api.spec import JobSpec
from dtj_operator.api.status import JobStatus

_DIGITS = 10


def frozen_hash(spec: JobSpec) -> str:
    """One digest for each part, as in `spec.strategy=1c2d…,spec.template=a3b4…`; whatever the order of keys."""
    return ",".join(f"{path}={_digest(value)}" for path, value in _parts(spec).items())


def frozen_faults(spec: JobSpec, status: JobStatus) -> tuple[str, ...]:
    """The parts that differ from those the job started with; none before, and none from a suspend to the next start.

    Pending is no licence: a job whose attempt has ended waits there for its edit to be put back.
    """
    if status.frozen is None or status.start_time is None or status.phase == "Suspended":
        return ()
    before = dict(part.partition("=")[::2] for part in status.frozen.split(","))
    # Only parts that both know are compared: another version of this operator may know more, or fewer.
    changed = [path for path, value in _parts(spec).items() if (before.get(path) or _digest(value)) != _digest(value)]
    return tuple(
        f"{path}: can't change once the job has started; put it back, or set spec.suspend: true, wait for the phase "
        "Suspended, then edit and resume"
        for path in changed
    )


def _parts(spec: JobSpec) -> dict[str, Any]:
    roles = {
        name: role for name in ("worker", "chief", "ps", "evaluator") if (role := getattr(spec.roles, name)) is not None
    }
    place = spec.checkpoint
    return {
        "spec.strategy": spec.strategy,
        "spec.roles": {name: role.replicas for name, role in roles.items()},
        "spec.template": spec.template,
        **{
            f"spec.roles.{name}.template": role.template if (role := roles.get(name)) is not None else None
            for name in ("worker", "chief", "ps", "evaluator")
        },
        "spec.checkpoint": None
        if place is None
        else [
            place.persistent_volume_claim,
            place.volume_claim_template,
            place.volume,
            place.uri,
            place.directory,
            place.access,
        ],
        "spec.network": [spec.network.port, spec.network.status_port, spec.network.cluster_domain],
    }


def _digest(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()[:_DIGITS]
