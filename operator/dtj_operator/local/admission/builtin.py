"""The rules of each built-in kind, put together from defaults and checks."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from dtj_operator.local.admission import metadata, names, network, objects, podchecks, poddefaults, podupdates
from dtj_operator.local.admission.admit import set_tolerations
from dtj_operator.local.custom import definitionchecks, definitions
from dtj_operator.local.failures import FieldFault
from dtj_operator.local.shapes.shape import Shape, built_in_shape

Json = dict[str, Any]

# A status write may set these too; everything else of metadata stays.
_STATUS_METADATA = ("labels", "annotations", "managedFields")


def _nothing(body: Json) -> None:
    """The kind has no defaults of its own."""


def _as_given(body: Json, old: Json) -> None:
    """An update takes over nothing from the stored object but its status."""


def _no_faults(body: Json, old: Json | None) -> list[FieldFault]:
    return []


class BuiltInRules(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table below: functions for what differs, flags for the rest."""

    model: str
    defaults: Callable[[Json], None] = _nothing
    fresh: Callable[[Json], None] = _nothing
    update: Callable[[Json, Json], None] = _as_given
    checks: Callable[[Json, Json | None], list[FieldFault]] = _no_faults
    name_rule: Callable[[str], list[str]] = names.subdomain_faults
    has_status: bool = False
    born_with_status: bool = False
    counts_generation: bool = False

    @property
    def shape(self) -> Shape:
        return built_in_shape(self.model)

    def default(self, body: Json, old: Json | None) -> None:
        self.defaults(body)

    def on_create(self, body: Json) -> None:
        if self.has_status and not self.born_with_status:
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
        if subresource != "status":
            self.update(body, old)
        if self.model == "V1Pod":
            _keep_of_pods(body, old, subresource)
        if self.counts_generation:
            changed = body.get("spec") != old.get("spec")
            body["metadata"]["generation"] = old["metadata"].get("generation", 1) + (1 if changed else 0)

    def faults(self, body: Json, old: Json | None, subresource: str) -> list[FieldFault]:
        found = metadata.faults(body["metadata"], self.name_rule, old["metadata"] if old is not None else None)
        if subresource != "status":
            found += self.checks(body, old)
        return found


def _keep_of_pods(body: Json, old: Json, subresource: str) -> None:
    if subresource != "status":
        set_tolerations(body["spec"])
    elif quality := (old.get("status") or {}).get("qosClass"):
        body.setdefault("status", {}).setdefault("qosClass", quality)


def _restore(body: Json, old: Json, keep: tuple[str, ...]) -> None:
    for key in {*body, *old} - set(keep):
        _carry(body, old, key)


def _carry(body: Json, old: Json, key: str) -> None:
    if key in old:
        body[key] = old[key]
    else:
        body.pop(key, None)


def _pod_faults(body: Json, old: Json | None) -> list[FieldFault]:
    return podchecks.faults(body) if old is None else podupdates.faults(body, old)


RULES: Mapping[str, BuiltInRules] = {
    "configmaps": BuiltInRules(model="V1ConfigMap", defaults=objects.default_config_map, checks=objects.data_faults),
    "customresourcedefinitions.apiextensions.k8s.io": BuiltInRules(
        model="V1CustomResourceDefinition", defaults=definitions.default, fresh=definitions.fresh,
        checks=definitionchecks.faults, has_status=True, counts_generation=True,
    ),
    "endpointslices.discovery.k8s.io": BuiltInRules(model="V1EndpointSlice"),
    "events": BuiltInRules(model="CoreV1Event", checks=objects.event_faults),
    "events.events.k8s.io": BuiltInRules(model="EventsV1Event", checks=objects.event_faults),
    "leases.coordination.k8s.io": BuiltInRules(model="V1Lease", checks=objects.lease_faults),
    "limitranges": BuiltInRules(model="V1LimitRange", defaults=objects.default_limit_range),
    "namespaces": BuiltInRules(
        model="V1Namespace", fresh=objects.fresh_namespace, name_rule=names.label_faults, has_status=True,
    ),
    "networkpolicies.networking.k8s.io": BuiltInRules(
        model="V1NetworkPolicy", defaults=network.default_policy, checks=network.policy_faults,
        counts_generation=True,
    ),
    "nodes": BuiltInRules(model="V1Node", has_status=True, born_with_status=True),
    "persistentvolumeclaims": BuiltInRules(
        model="V1PersistentVolumeClaim", defaults=objects.default_claim, fresh=objects.fresh_claim,
        checks=objects.claim_faults, has_status=True,
    ),
    "persistentvolumes": BuiltInRules(
        model="V1PersistentVolume", defaults=objects.default_volume, fresh=objects.fresh_volume, has_status=True,
    ),
    "poddisruptionbudgets.policy": BuiltInRules(
        model="V1PodDisruptionBudget", defaults=objects.default_budget, fresh=objects.fresh_budget,
        checks=objects.budget_faults, has_status=True, counts_generation=True,
    ),
    "pods": BuiltInRules(
        model="V1Pod", defaults=poddefaults.default, fresh=poddefaults.fresh_status, checks=_pod_faults,
        has_status=True, counts_generation=True,
    ),
    "priorityclasses.scheduling.k8s.io": BuiltInRules(
        model="V1PriorityClass", defaults=objects.default_priority_class, checks=objects.priority_class_faults,
        counts_generation=True,
    ),
    "resourcequotas": BuiltInRules(model="V1ResourceQuota", has_status=True),
    "secrets": BuiltInRules(model="V1Secret", defaults=objects.default_secret, checks=objects.secret_faults),
    "selfsubjectaccessreviews.authorization.k8s.io": BuiltInRules(model="V1SelfSubjectAccessReview"),
    "selfsubjectrulesreviews.authorization.k8s.io": BuiltInRules(model="V1SelfSubjectRulesReview"),
    "selfsubjectreviews.authentication.k8s.io": BuiltInRules(model="V1SelfSubjectReview"),
    "serviceaccounts": BuiltInRules(model="V1ServiceAccount"),
    "services": BuiltInRules(
        model="V1Service", defaults=network.default_service, fresh=network.fresh_service,
        update=network.update_service, checks=network.service_faults, name_rule=names.label_faults, has_status=True,
    ),
}  # fmt: skip
