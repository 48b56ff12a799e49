"""How lists of the built-in types merge, in strategic merge patch and server-side apply (Kubernetes' `types.go`)."""

import msgspec


class ListRule(msgspec.Struct, frozen=True):
    """`merge_key` and `retain_keys` serve strategic merge, `keys` server-side apply.

    A list without a rule is atomic in both, and one may merge in one of them alone.
    """

    keys: tuple[str, ...] = ()
    merge_key: str = ""
    is_set: bool = False
    retain_keys: bool = False

    @property
    def merges(self) -> bool:
        return bool(self.merge_key) or self.is_set


def _by(*keys: str, merge_key: str = "", retain_keys: bool = False) -> ListRule:
    return ListRule(keys=keys, merge_key=merge_key or keys[0], retain_keys=retain_keys)


SET = ListRule(is_set=True)

RULES: dict[str, ListRule] = {
    "V1ObjectMeta.ownerReferences": _by("uid"),
    "V1ObjectMeta.finalizers": SET,
    "V1PodSpec.containers": _by("name"),
    "V1PodSpec.initContainers": _by("name"),
    "V1PodSpec.ephemeralContainers": _by("name"),
    "V1PodSpec.volumes": _by("name", retain_keys=True),
    "V1PodSpec.imagePullSecrets": _by("name"),
    "V1PodSpec.hostAliases": _by("ip"),
    "V1PodSpec.schedulingGates": _by("name"),
    "V1PodSpec.resourceClaims": _by("name", retain_keys=True),
    "V1PodSpec.topologySpreadConstraints": _by("topologyKey", "whenUnsatisfiable"),
    "V1Container.env": _by("name"),
    "V1Container.ports": _by("containerPort", "protocol"),
    "V1Container.volumeMounts": _by("mountPath"),
    "V1Container.volumeDevices": _by("devicePath"),
    "V1EphemeralContainer.env": _by("name"),
    "V1EphemeralContainer.ports": _by("containerPort", "protocol"),
    "V1EphemeralContainer.volumeMounts": _by("mountPath"),
    "V1EphemeralContainer.volumeDevices": _by("devicePath"),
    "V1PodSpec.evictionResponders": _by("name"),
    "V1PodStatus.conditions": _by("type"),
    "V1PodStatus.podIPs": _by("ip"),
    "V1PodStatus.hostIPs": ListRule(merge_key="ip"),
    "V1PodStatus.nodeAllocatableResourceClaimStatuses": _by("resourceClaimName"),
    "V1PodStatus.resourceClaimStatuses": _by("name", retain_keys=True),
    "V1PodStatus.volumeHealth": ListRule(keys=("name",)),
    "V1ContainerStatus.allocatedResourcesStatus": _by("name"),
    "V1ContainerStatus.volumeMounts": _by("mountPath"),
    "V1NodeAllocatableResourceClaimStatus.mapping": _by("name"),
    "V1NodeAllocatableResourceClaimStatus.overhead": _by("name"),
    "V1PodVolumeHealth.healthConditions": _by("status", "reason"),
    "V1VolumeHealthStatus.healthConditions": _by("status", "reason"),
    "V1ServiceSpec.ports": _by("port", "protocol"),
    "V1ServiceStatus.conditions": _by("type"),
    "V1ServiceAccount.secrets": _by("name"),
    "V1PersistentVolumeClaimStatus.conditions": _by("type"),
    "V1NodeSpec.podCIDRs": SET,
    "V1NodeStatus.addresses": _by("type"),
    "V1NodeStatus.conditions": _by("type"),
    "V1NamespaceStatus.conditions": _by("type"),
    "V1PodDisruptionBudgetStatus.conditions": _by("type"),
    "V1ResourceRequirements.claims": ListRule(keys=("name",)),
    "V1CustomResourceDefinitionStatus.conditions": _by("type"),
}

# Objects that server-side apply treats as one value.
ATOMIC_OBJECTS = frozenset({
    "V1LabelSelector", "V1NodeSelector", "V1NodeSelectorTerm", "V1ObjectFieldSelector", "V1ResourceFieldSelector",
    "V1ConfigMapKeySelector", "V1SecretKeySelector", "V1ObjectReference", "V1LocalObjectReference",
    "V1TypedLocalObjectReference", "V1OwnerReference", "V1NodeSelectorRequirement",
})  # fmt: skip
ATOMIC_FIELDS = frozenset({"V1ServiceSpec.selector", "V1PodSpec.nodeSelector"})
# Objects that a strategic merge patch puts in the place of what was there.
REPLACED_FIELDS = frozenset({"V1PodDisruptionBudgetSpec.selector"})
