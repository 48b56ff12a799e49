"""The rules of each built-in kind, put together from defaults and checks."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from dtj_operator.local.admission import metadata, names
from dtj_operator.local.failures import FieldFault
from dtj_operator.local.types.shape import Shape, built_in_shape

Json = dict[str, Any]

# A status write may set these too; everything else of metadata stays.
_STATUS_METADATA = ("labels", "annotations", "managedFields")


def _nothing(body: Json) -> None:
    """The kind has no defaults of its own."""


def _no_faults(body: Json, old: Json | None) -> list[FieldFault]:
    return []


class BuiltInRules(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table below: functions for what differs, flags for the rest."""

    model: str
    defaults: Callable[[Json], None] = _nothing
    fresh: Callable[[Json], None] = _nothing
    checks: Callable[[Json, Json | None], list[FieldFault]] = _no_faults
    name_rule: Callable[[str], list[str]] = names.subdomain_faults
    has_status: bool = False
    counts_generation: bool = False

    @property
    def shape(self) -> Shape:
        return built_in_shape(self.model)

    def default(self, body: Json) -> None:
        self.defaults(body)

    def on_create(self, body: Json) -> None:
        if self.has_status:
            body.pop("status", None)
        if self.counts_generation:
            body["metadata"]["generation"] = 1
        self.fresh(body)

    def on_update(self, body: Json, old: Json, subresource: str) -> None:
        if subresource == "status":
            _restore(body, old, keep=("metadata", "status"))
            body["metadata"] = old["metadata"] | {
                key: body["metadata"][key] for key in _STATUS_METADATA if key in body["metadata"]
            }
        elif self.has_status:
            _carry(body, old, "status")
        if self.counts_generation:
            changed = body.get("spec") != old.get("spec")
            body["metadata"]["generation"] = old["metadata"].get("generation", 1) + (1 if changed else 0)

    def faults(self, body: Json, old: Json | None, subresource: str) -> list[FieldFault]:
        found = metadata.faults(body["metadata"], self.name_rule)
        if old is not None:
            found += metadata.update_faults(body["metadata"], old["metadata"])
        if subresource != "status":
            found += self.checks(body, old)
        return found


def _restore(body: Json, old: Json, keep: tuple[str, ...]) -> None:
    for key in {*body, *old} - set(keep):
        _carry(body, old, key)


def _carry(body: Json, old: Json, key: str) -> None:
    if key in old:
        body[key] = old[key]
    else:
        body.pop(key, None)


RULES: Mapping[str, BuiltInRules] = {
    "configmaps": BuiltInRules(model="V1ConfigMap"),
    "customresourcedefinitions.apiextensions.k8s.io": BuiltInRules(
        model="V1CustomResourceDefinition", counts_generation=True
    ),
    "endpointslices.discovery.k8s.io": BuiltInRules(model="V1EndpointSlice"),
    "events": BuiltInRules(model="CoreV1Event"),
    "events.events.k8s.io": BuiltInRules(model="EventsV1Event"),
    "leases.coordination.k8s.io": BuiltInRules(model="V1Lease"),
    "limitranges": BuiltInRules(model="V1LimitRange"),
    "namespaces": BuiltInRules(model="V1Namespace", has_status=True, name_rule=names.label_faults),
    "networkpolicies.networking.k8s.io": BuiltInRules(model="V1NetworkPolicy", counts_generation=True),
    "nodes": BuiltInRules(model="V1Node"),
    "persistentvolumeclaims": BuiltInRules(model="V1PersistentVolumeClaim", has_status=True),
    "persistentvolumes": BuiltInRules(model="V1PersistentVolume", has_status=True),
    "poddisruptionbudgets.policy": BuiltInRules(model="V1PodDisruptionBudget", has_status=True, counts_generation=True),
    "pods": BuiltInRules(model="V1Pod", has_status=True, counts_generation=True),
    "priorityclasses.scheduling.k8s.io": BuiltInRules(model="V1PriorityClass", counts_generation=True),
    "resourcequotas": BuiltInRules(model="V1ResourceQuota", has_status=True),
    "secrets": BuiltInRules(model="V1Secret"),
    "serviceaccounts": BuiltInRules(model="V1ServiceAccount"),
    "services": BuiltInRules(model="V1Service", has_status=True, name_rule=names.service_name_faults),
}
