"""Which gang backend a job gets, and why."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from dtj_operator.api.observed import Facts, Situation
from dtj_operator.api.spec import JobSpec
from dtj_operator.desired.overlay import mapping, role_template
from dtj_operator.desired.topology import Topology
from dtj_operator.gang.base import Gang, GangState
from dtj_operator.gang.gated import BuiltIn
from dtj_operator.gang.none import NoGang

KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
DEFAULT_SCHEDULERS = ("default-scheduler", "")

BACKENDS: Mapping[str, Gang] = MappingProxyType({"BuiltIn": BuiltIn(), "None": NoGang()})
TO_COME = ("Native", "Volcano", "Kueue", "Coscheduling", "KAI")
"""Backends that the API names and this version does not have: a job that needs one waits and says so."""

_OF_SCHEDULER: Mapping[str, str] = MappingProxyType({"volcano": "Volcano", "kai-scheduler": "KAI"})


def choose(spec: JobSpec, facts: Facts) -> tuple[Gang, str]:
    """The backend of a job and why it is that one. Whether it can work here, its `available` says."""
    if spec.gang.scheduler != "Auto":
        return _backend(spec.gang.scheduler), "spec.gang.scheduler names it"
    template = role_template(spec, "worker")
    queue = mapping(mapping(template.get("metadata")).get("labels")).get(KUEUE_QUEUE)
    if queue is not None:
        return _backend("Kueue"), f"the template's label {KUEUE_QUEUE} names the queue {queue}"
    scheduler = mapping(template.get("spec")).get("schedulerName") or ""
    if scheduler not in DEFAULT_SCHEDULERS:
        known = _OF_SCHEDULER.get(str(scheduler))
        if known is None:
            return BACKENDS["None"], f"the template's schedulerName is {scheduler}, which binds pods one by one"
        return _backend(known), f"the template's schedulerName is {scheduler}"
    missing = BACKENDS["BuiltIn"].available(facts)
    if missing is None:
        return BACKENDS["BuiltIn"], "the operator may look at nodes"
    return BACKENDS["None"], f"{missing}; pods are bound one by one"


class NotHere(Struct, frozen=True):
    """A backend that this version does not have; nothing of a job is ever created under it."""

    name: str
    replaces_single_pods: bool = False

    def available(self, facts: Facts) -> str | None:
        return f"this version has no backend for {self.name} yet; set spec.gang.scheduler to {' or '.join(BACKENDS)}"

    def group(self, s: Situation, topology: Topology) -> dict[str, Any] | None:
        return None

    def mark(self, s: Situation, topology: Topology, pod: dict[str, Any]) -> dict[str, Any]:
        return pod

    def state(self, s: Situation, topology: Topology) -> GangState:
        return GangState(bound=0, needed=len(topology.gang), is_admitted=False, waiting_for=self.available(s.facts))


def _backend(name: str) -> Gang:
    return NotHere(name) if name in TO_COME else BACKENDS[name]
