"""What must hold between the fields of a job: CEL rules for the API server, each with its message to people.

Rules of one field stand beside it in `spec.py`. Core syntax and macros only, so that the same text runs in `schema.py`
and in a kube-apiserver. Optional fields are guarded by `has`; fields with a default always have a value there.
"""

from msgspec import Meta, Struct

from dtj_operator.api import names
from dtj_worker import contract


class Rule(Struct, frozen=True):
    """One CEL expression that must be true.

    `message` is what people read when it is not; `says` makes it at run time (CEL again) where it names values. `at` is
    the field that is to blame, seen from the place of the rule.
    """

    rule: str
    message: str = ""
    says: str = ""
    at: str = ""


def rules(*those: Rule) -> Meta:
    """The rules of a field, for its annotation."""
    return Meta(extra_json_schema={"x-kubernetes-validations": [_validation(r) for r in those]})


def _validation(r: Rule) -> dict[str, str]:
    parts = {"rule": r.rule, "message": r.message, "messageExpression": r.says, "fieldPath": r.at}
    return {key: text for key, text in parts.items() if text}


# The longest derived name is a pod's, `<job>-<role>-<index>-<round>`: the evaluator's, or the last worker's.
_LONGEST_SUFFIX = (
    f"(has(self.spec.roles.evaluator) ? {len('-evaluator-0-') + names.ROUND_DIGITS}"
    f" : self.spec.roles.worker.replicas > 100 ? {len('-worker-100-') + names.ROUND_DIGITS}"
    f" : self.spec.roles.worker.replicas > 10 ? {len('-worker-10-') + names.ROUND_DIGITS}"
    f" : {len('-worker-0-') + names.ROUND_DIGITS})"
)

# May change before the first start and while nothing runs. A suspend that was only asked for is not enough: the old
# attempt may still live.
_OPEN = (
    "!has(oldSelf.status) || !has(oldSelf.status.startTime)"
    " || (has(oldSelf.status.phase) && oldSelf.status.phase == 'Suspended')"
)
_CLOSED_SAYS = (
    "can't change once the job has started; set spec.suspend: true, wait for the phase Suspended, then edit and resume"
)


def _same(parent: str, *fields: str) -> str:
    """CEL: optional fields of `parent` are there in both or in none, and equal."""
    new, old = f"self.{parent}", f"oldSelf.{parent}"
    return " && ".join(f"(has({new}.{f}) ? has({old}.{f}) && {new}.{f} == {old}.{f} : !has({old}.{f}))" for f in fields)


def _both(parent: str, *fields: str) -> str:
    """CEL: optional fields of `parent` are there in both or in none, whatever they hold; CEL sees no templates."""
    return " && ".join(f"has(self.{parent}.{f}) == has(oldSelf.{parent}.{f})" for f in fields)


JOB = (
    Rule(
        "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        "it becomes part of DNS names: begin with a letter, then use lower-case letters, digits and hyphens only",
        at=".metadata.name",
    ),
    Rule(
        f"size(self.metadata.name) + {_LONGEST_SUFFIX} <= {names.DNS_LABEL_LENGTH}",
        says=f"'it has ' + string(size(self.metadata.name)) + ' characters; take ' + string({names.DNS_LABEL_LENGTH}"
        f" - {_LONGEST_SUFFIX}) + ' at most: a pod adds ' + string{_LONGEST_SUFFIX} + ' for role, index and round to'"
        f" + ' make its own name, which may have {names.DNS_LABEL_LENGTH}'",
        at=".metadata.name",
    ),
    Rule(f"{_OPEN} || self.spec.strategy == oldSelf.spec.strategy", _CLOSED_SAYS, at=".spec.strategy"),
    Rule(
        f"{_OPEN} || (self.spec.roles.worker.replicas == oldSelf.spec.roles.worker.replicas"
        f" && {_both('spec.roles', 'chief', 'ps', 'evaluator')}"
        " && (!has(self.spec.roles.ps) || self.spec.roles.ps.replicas == oldSelf.spec.roles.ps.replicas))",
        f"roles and their replicas {_CLOSED_SAYS}",
        at=".spec.roles",
    ),
    Rule(
        f"{_OPEN} || (has(self.spec.checkpoint) == has(oldSelf.spec.checkpoint) && (!has(self.spec.checkpoint)"
        f" || ({_same('spec.checkpoint', 'persistentVolumeClaim', 'uri')}"
        f" && {_both('spec.checkpoint', 'volumeClaimTemplate', 'volume')}"
        " && self.spec.checkpoint.directory == oldSelf.spec.checkpoint.directory"
        " && self.spec.checkpoint.access == oldSelf.spec.checkpoint.access)))",
        f"the checkpoint's place {_CLOSED_SAYS}",
        at=".spec.checkpoint",
    ),
    Rule(
        f"{_OPEN} || (self.spec.network.port == oldSelf.spec.network.port"
        " && self.spec.network.statusPort == oldSelf.spec.network.statusPort"
        " && self.spec.network.clusterDomain == oldSelf.spec.network.clusterDomain)",
        f"ports and addresses {_CLOSED_SAYS}",
        at=".spec.network",
    ),
)
"""Rules of the whole object: it alone sees the name and the status."""

_IS_PARAMETER_SERVER = "(self.strategy == 'ParameterServer' || (self.strategy == 'Auto' && has(self.roles.ps)))"
_IS_SINGLE_HOST = "self.strategy in ['None', 'OneDevice', 'Mirrored', 'CentralStorage', 'TPU']"

SPEC = (
    Rule(
        f"!({_IS_SINGLE_HOST}) || self.roles.worker.replicas == 1",
        says="'strategy ' + self.strategy + ' runs on one host and takes exactly one worker, not '"
        " + string(self.roles.worker.replicas) + '; set 1, or strategy: MultiWorkerMirrored'",
        at=".roles.worker.replicas",
    ),
    Rule(
        f"!({_IS_SINGLE_HOST}) || !has(self.roles.chief)",
        says="'strategy ' + self.strategy + ' runs on one host, where the worker is the chief; remove the role'",
        at=".roles.chief",
    ),
    Rule(
        "!has(self.roles.ps) || self.strategy in ['Auto', 'ParameterServer']",
        says="'strategy ' + self.strategy + ' takes no parameter servers;"
        " remove the role, or set strategy: ParameterServer'",
        at=".roles.ps",
    ),
    Rule(
        "self.strategy != 'ParameterServer' || has(self.roles.ps)",
        "strategy ParameterServer needs parameter servers; add the role ps with replicas of 1 or more",
        at=".roles.ps",
    ),
    Rule(
        f"!{_IS_PARAMETER_SERVER} || has(self.roles.chief)",
        "strategy ParameterServer needs a chief, which runs the coordinator; add the role: chief: {}",
        at=".roles.chief",
    ),
    Rule(
        "has(self.template) || (has(self.roles.worker.template)"
        " && (!has(self.roles.chief) || has(self.roles.chief.template))"
        " && (!has(self.roles.ps) || has(self.roles.ps.template))"
        " && (!has(self.roles.evaluator) || has(self.roles.evaluator.template)))",
        "required unless every role has a template of its own; add the pod that the roles share",
        at=".template",
    ),
    Rule(
        "!(self.recovery.mode == 'InPlace' && self.supervisor == 'None')",
        "InPlace needs supervisors, and supervisor is None; set Recreate, or supervisor: Auto",
        at=".recovery.mode",
    ),
    Rule(
        "!has(self.recovery.rules) || self.recovery.rules.all(r, r.action != 'Ignore'"
        " || (has(r.roles) && size(r.roles) > 0"
        f" && r.roles.all(x, x == 'evaluator' || (x == 'worker' && {_IS_PARAMETER_SERVER}))))",
        "only the evaluator and the workers of strategy ParameterServer may be ignored; name one of them in the rule's"
        " roles, or take another action",
        at=".recovery.rules",
    ),
    Rule(
        "!has(self.communication.crossDeviceOps) || self.strategy in ['Auto', 'Mirrored', 'CentralStorage']",
        says="'strategy ' + self.strategy + ' does not use it; remove it, or set strategy: Mirrored'",
        at=".communication.crossDeviceOps",
    ),
    Rule(
        "self.communication.implementation == 'Auto' || self.strategy in ['Auto', 'MultiWorkerMirrored']",
        says="'strategy ' + self.strategy + ' has no collectives between hosts; remove it, or set Auto'",
        at=".communication.implementation",
    ),
)

CHECKPOINT = (
    Rule(
        "[has(self.persistentVolumeClaim), has(self.volumeClaimTemplate), has(self.volume), has(self.uri)]"
        ".exists_one(x, x)",
        "name exactly one place: persistentVolumeClaim, volumeClaimTemplate, volume or uri",
    ),
    Rule(
        "self.reclaim == 'Retain' || has(self.volumeClaimTemplate)",
        "Delete is for a claim made from volumeClaimTemplate; other volumes are never deleted",
        at=".reclaim",
    ),
)

BATCH = (Rule("has(self.perReplica) != has(self.global)", "set perReplica or global, one of the two"),)

_LAST_PORT = f"self.port + {contract.PORTS_PER_TASK - 1}"

NETWORK = (
    Rule(
        f"self.statusPort < self.port || self.statusPort > {_LAST_PORT}",
        says="string(self.statusPort) + ' is one of the TensorFlow ports ' + string(self.port)"
        f" + ' to ' + string({_LAST_PORT}) + '; take another'",
        at=".statusPort",
    ),
    Rule(
        f"!has(self.expose) || self.expose.all(p, p < self.port || p > {_LAST_PORT})",
        says=f"'TensorFlow listens unauthenticated on ' + string(self.port) + ' to ' + string({_LAST_PORT})"
        " + '; expose other ports, or set policy: None to open all'",
        at=".expose",
    ),
)

BACKOFF = (
    Rule("self.initialSeconds <= self.maxSeconds", "initialSeconds is more than maxSeconds; make it the smaller one"),
)
