"""What must hold between the fields of a job: CEL rules for the API server, each with its message to people.

Rules of one field stand beside it in `spec.py`. Core syntax and macros only, so that the same text runs in `schema.py`
and in a kube-apiserver. Optional fields are guarded by `has`; fields with a default always have a value there.
"""

from collections.abc import Mapping

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
    return Meta(extra_json_schema={"x-kubernetes-validations": validations(those)})


def validations(those: tuple[Rule, ...]) -> list[dict[str, str]]:
    """Rules as a schema holds them."""
    keys = {"rule": "rule", "message": "message", "messageExpression": "says", "fieldPath": "at"}
    return [{key: text for key, field in keys.items() if (text := getattr(rule, field))} for rule in those]


# The longest derived name is a pod's, `<job>-<role>-<index>-<round>`: the evaluator's, or the last worker's.
_SUFFIXES = {
    "has(self.spec.roles.evaluator)": "-evaluator-0-",
    "self.spec.roles.worker.replicas > 100": "-worker-100-",
    "self.spec.roles.worker.replicas > 10": "-worker-10-",
    "true": "-worker-0-",
}
_LIMITS = {condition: names.DNS_LABEL_LENGTH - len(s) - names.ROUND_DIGITS for condition, s in _SUFFIXES.items()}
_TOO_LONG = {
    condition: f"' is too long: {_LIMITS[condition]} characters leave room for pod names, <name>{suffix}<round>'"
    for condition, suffix in _SUFFIXES.items()
}


def _choice(options: Mapping[str, str]) -> str:
    """CEL: the first of some expressions whose condition is true; the last one's always is."""
    *conditions, last = options.items()
    return f"({''.join(f'{condition} ? {text} : ' for condition, text in conditions)}{last[1]})"


# May change before the first start and while nothing runs: suspended, or back from there and not accepted yet, when
# nothing is frozen. To have asked for a suspend is not enough, since the old attempt may still live.
_OPEN = (
    "!has(oldSelf.status) || !has(oldSelf.status.startTime)"
    " || !has(oldSelf.status.phase) || oldSelf.status.phase == 'Suspended'"
    " || (oldSelf.status.phase == 'Pending' && !has(oldSelf.status.frozen))"
)
_CLOSED_SAYS = (
    "can't change once the job has started; set spec.suspend: true, wait for the phase Suspended, then edit and resume"
    "; once it has ended, delete it and apply it anew"
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
        "it becomes part of DNS names: begin with a letter; the rest is lower-case letters, digits and hyphens",
        at=".metadata.name",
    ),
    Rule(
        f"size(self.metadata.name) <= {_choice({c: str(n) for c, n in _LIMITS.items()})}",
        # Numbers stand in the text as literals: Kubernetes' cost estimate takes string(int) for one of any length.
        f"it is too long for the names of pods that are made of it; {min(_LIMITS.values())} characters always fit",
        says=f"self.metadata.name + {_choice(_TOO_LONG)}",
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
_LAST_PORT = f"self.network.port + {contract.PORTS_PER_TASK - 1}"
_IS_SINGLE_HOST = "self.strategy in ['None', 'OneDevice', 'Mirrored', 'CentralStorage', 'TPU']"

SPEC = (
    Rule(
        f"!({_IS_SINGLE_HOST}) || self.roles.worker.replicas == 1",
        says="'strategy ' + self.strategy + ' runs on one host and takes exactly one worker;"
        " set 1, or strategy: MultiWorkerMirrored'",
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
    Rule(
        f"self.network.statusPort < self.network.port || self.network.statusPort > {_LAST_PORT}",
        f"it is one of the {contract.PORTS_PER_TASK} ports from network.port on, which are TensorFlow's; take another",
        at=".network.statusPort",
    ),
    Rule(
        f"!has(self.network.expose) || self.network.expose.all(p, p < self.network.port || p > {_LAST_PORT})",
        f"TensorFlow listens unauthenticated on the {contract.PORTS_PER_TASK} ports from network.port on;"
        " expose others, or set policy: None to open all",
        at=".network.expose",
    ),
    Rule(
        "self.recovery.backoff.initialSeconds <= self.recovery.backoff.maxSeconds",
        "initialSeconds is more than maxSeconds; make it the smaller one",
        at=".recovery.backoff",
    ),
)
"""Rules of the whole spec. Those of objects that have defaults are here too: a rule at such an object would be tried
on its bare default, an empty object, and refused by Kubernetes."""

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
