"""The kinds the server knows: names, versions, subresources, what they can be selected by.

Schemas are `shapes/`'s and `custom/`'s business.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

Json = dict[str, Any]

# Every verb of a kind that is stored; reviews can only be created.
STORED = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A resource in one version. `storage` is the same for all its versions."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = STORED
    custom: bool = False
    selectable: tuple[str, ...] = ()
    storage: str = ""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The name that messages use: `pods`, `distributedtrainingjobs.dtj.dev`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def served_as(self) -> str:
        """One version of the resource."""
        return f"{self.resource}/{self.version}"

    @property
    def header(self) -> Json:
        return {"apiVersion": self.api_version, "kind": self.kind}

    def fields_of(self, body: Json) -> dict[str, str]:
        """The values that a field selector can ask for."""
        found = {path: _value_at(body, path) for path in self.selectable}
        metadata = body["metadata"]
        found["metadata.name"] = metadata["name"]
        if self.namespaced:
            found["metadata.namespace"] = metadata.get("namespace", "")
        if self.storage == "events":
            for key in ("kind", "name", "namespace", "uid"):
                found[f"regarding.{key}"] = found[f"involvedObject.{key}"]
            found["reportingController"] = found["reportingComponent"]
        return found

    @property
    def selectable_fields(self) -> frozenset[str]:
        own = ("metadata.name", "metadata.namespace") if self.namespaced else ("metadata.name",)
        return frozenset((*self.selectable, *own))


def built_in(kind: str, plural: str, group: str = "", version: str = "v1", **rest: Any) -> Kind:
    storage = f"{plural}.{group}" if group else plural
    return Kind(
        **{
            "group": group,
            "version": version,
            "kind": kind,
            "plural": plural,
            "singular": kind.lower(),
            "storage": storage,
        }
        | rest
    )


POD_FIELDS = (
    "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
    "status.phase", "status.podIP", "status.nominatedNodeName",
)  # fmt: skip
EVENT_FIELDS = (
    "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
    "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
    "reportingComponent", "source", "type",
)  # fmt: skip
POD_SUBRESOURCES = ("binding", "eviction", "log", "status", "exec", "attach", "portforward")
STATUS = ("status",)

BUILT_IN = (
    built_in("ConfigMap", "configmaps", short_names=("cm",)),
    built_in("Event", "events", short_names=("ev",), selectable=EVENT_FIELDS),
    built_in("LimitRange", "limitranges", short_names=("limits",)),
    built_in("Namespace", "namespaces", namespaced=False, short_names=("ns",), subresources=("finalize", "status"),
             selectable=("status.phase",), verbs=tuple(verb for verb in STORED if verb != "deletecollection")),
    built_in("Node", "nodes", namespaced=False, short_names=("no",), subresources=STATUS,
             selectable=("spec.unschedulable",)),
    built_in("PersistentVolumeClaim", "persistentvolumeclaims", short_names=("pvc",), subresources=STATUS),
    built_in("PersistentVolume", "persistentvolumes", namespaced=False, short_names=("pv",), subresources=STATUS),
    built_in("Pod", "pods", short_names=("po",), categories=("all",), subresources=POD_SUBRESOURCES,
             selectable=POD_FIELDS),
    built_in("ResourceQuota", "resourcequotas", short_names=("quota",), subresources=STATUS),
    built_in("Secret", "secrets", selectable=("type",)),
    built_in("ServiceAccount", "serviceaccounts", short_names=("sa",)),
    built_in("Service", "services", short_names=("svc",), categories=("all",), subresources=STATUS,
             selectable=("spec.clusterIP", "spec.type")),
    built_in("Event", "events", "events.k8s.io", short_names=("ev",), storage="events",
             selectable=("metadata.name", "metadata.namespace", "reason", "regarding.kind", "regarding.name",
                         "regarding.namespace", "regarding.uid", "reportingController", "type")),
    built_in("Lease", "leases", "coordination.k8s.io"),
    built_in("NetworkPolicy", "networkpolicies", "networking.k8s.io", short_names=("netpol",)),
    built_in("PodDisruptionBudget", "poddisruptionbudgets", "policy", short_names=("pdb",), subresources=STATUS),
    built_in("PriorityClass", "priorityclasses", "scheduling.k8s.io", namespaced=False, short_names=("pc",)),
    built_in("EndpointSlice", "endpointslices", "discovery.k8s.io"),
    built_in("CustomResourceDefinition", "customresourcedefinitions", "apiextensions.k8s.io", namespaced=False,
             short_names=("crd", "crds"), categories=("api-extensions",), subresources=STATUS),
    built_in("SelfSubjectAccessReview", "selfsubjectaccessreviews", "authorization.k8s.io", namespaced=False,
             verbs=("create",)),
    built_in("SelfSubjectRulesReview", "selfsubjectrulesreviews", "authorization.k8s.io", namespaced=False,
             verbs=("create",)),
    built_in("SelfSubjectReview", "selfsubjectreviews", "authentication.k8s.io", namespaced=False, verbs=("create",)),
)  # fmt: skip


class Kinds:
    """All kinds served now: the built-in ones and those of the custom resource definitions."""

    def __init__(self) -> None:
        self._by_resource: dict[tuple[str, str, str], Kind] = {}
        self._by_name: dict[tuple[str, str], Kind] = {}
        for kind in BUILT_IN:
            self.add(kind)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._by_resource.values())

    def add(self, kind: Kind) -> None:
        self._by_resource[kind.group, kind.version, kind.plural] = kind
        self._by_name[kind.api_version, kind.kind] = kind

    def drop(self, kind: Kind) -> None:
        self._by_resource.pop((kind.group, kind.version, kind.plural), None)
        self._by_name.pop((kind.api_version, kind.kind), None)

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        return self._by_resource.get((group, version, plural))

    def named(self, api_version: str, name: str) -> Kind | None:
        """By `apiVersion` and `kind`, as owner references and manifests name it."""
        return self._by_name.get((api_version, name))

    def of_storage(self, storage: str) -> Kind:
        """Any version of what is stored there."""
        return next(kind for kind in self._by_resource.values() if kind.storage == storage)

    def groups(self) -> dict[str, list[str]]:
        """Versions by group, the preferred one first."""
        found: dict[str, list[str]] = {}
        for kind in self:
            versions = found.setdefault(kind.group, [])
            if kind.version not in versions:
                versions.append(kind.version)
        return found


def _value_at(body: Json, path: str) -> str:
    value: Any = body
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    if value is None:
        return "false" if path in ("spec.unschedulable", "spec.hostNetwork") else ""
    if isinstance(value, dict):
        # An Event's `source` is selected by the component in it.
        return str(value.get("component", ""))
    return str(value).lower() if isinstance(value, bool) else str(value)
