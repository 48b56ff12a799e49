"""Where checkpoints are kept: the volume, who mounts it, what supervisors are told. The claim is in `objects.py`."""

from collections.abc import Mapping
from typing import Any, Literal

from dtj_operator.api import names
from dtj_operator.api.observed import Situation
from dtj_operator.api.spec import Checkpoint
from dtj_operator.desired.overlay import mapping
from dtj_operator.desired.supervision import supervision
from dtj_operator.desired.topology import Topology, spec_of
from dtj_worker.contract import CheckpointPlan, Task

VOLUME = "dtj-checkpoints"
_ONE_NODE = {"ReadWriteOnce", "ReadWriteOncePod"}


def volume(s: Situation, t: Topology, task: Task) -> dict[str, Any] | None:
    """The volume of a task's pod; None where there is none, or this task does not mount it."""
    place = spec_of(s).checkpoint
    if place is None or (access(s, t) == "Chief" and not _writes(t, task)):
        return None
    if place.volume is not None:
        return {**place.volume, "name": VOLUME}
    claim = place.persistent_volume_claim
    if place.volume_claim_template is not None:
        claim = names.checkpoint_claim(t.job)
    return None if claim is None else {"name": VOLUME, "persistentVolumeClaim": {"claimName": claim}}


def plan(s: Situation, t: Topology) -> CheckpointPlan | None:
    """What every supervisor of the job is told about checkpoints; None where it keeps none."""
    place = spec_of(s).checkpoint
    if place is None:
        return None
    root = place.directory if place.uri is None else place.uri.rstrip("/")
    return CheckpointPlan(
        directory=f"{root}/{t.namespace}/{t.job}",
        every=place.every,
        keep=place.keep,
        on_existing=place.on_existing,
        resume_from=place.resume_from,
        access=access(s, t),
        allow_restart_from_zero=spec_of(s).recovery.allow_restart_from_zero,
        progressed=s.status.checkpoint is not None,
    )


def missing_claim(s: Situation) -> str | None:
    """The existing claim that the job names, if it was not there when it was last looked for.

    Where the chief alone mounts it, its peers would find their nodes without it, and hold them for nothing.
    """
    named = _named_claim(s)
    return named if s.claim is not None and (s.claim.name, s.claim.access_modes) == (named, None) else None


def access(s: Situation, t: Topology) -> Literal["Chief", "Shared"]:
    """Who mounts the volume. `Auto` is Chief for claims that one node at a time can mount, else Shared.

    A template says its access modes. Those of an existing claim are known only where the operator could read it. Where
    it could not, it depends on who needs the volume: a supervised chief alone can do with every claim; an evaluator has
    to read what it saves, and workers without supervisor keep TensorFlow's own backups, which all of them must reach.
    """
    place = spec_of(s).checkpoint
    if place is None or place.uri is not None:
        return "Shared"
    if place.access != "Auto":
        return place.access
    modes = _modes(place, s)
    if modes is None:
        needs_more = len(t.tasks) > len(t.gang) or not supervision(s, t.chief.role).is_supervised
        return "Shared" if needs_more else "Chief"
    return "Chief" if modes and modes <= _ONE_NODE else "Shared"


def _writes(t: Topology, task: Task) -> bool:
    # Parameter servers write their own shards of a checkpoint (measured); everything else comes from the chief.
    return task == t.chief or (t.strategy == "ParameterServer" and task.role == "ps")


def _modes(place: Checkpoint, s: Situation) -> set[str] | None:
    """Access modes of the claim, empty for a volume that is no claim; None where they are not known."""
    if place.volume_claim_template is not None:
        return _strings(mapping(place.volume_claim_template.get("spec")))
    if place.persistent_volume_claim is not None:
        read = s.claim if s.claim is not None and s.claim.name == place.persistent_volume_claim else None
        return None if read is None or read.access_modes is None else set(read.access_modes)
    return None if place.volume is not None and "persistentVolumeClaim" in place.volume else set()


def _named_claim(s: Situation) -> str | None:
    return s.spec.checkpoint.persistent_volume_claim if s.spec is not None and s.spec.checkpoint is not None else None


def _strings(claim: Mapping[str, Any]) -> set[str]:
    modes = claim.get("accessModes")
    return {str(mode) for mode in modes} if isinstance(modes, list) else set()
