"""What a pod gets where its template is silent: security, name resolution, tolerations, no API token."""

from collections.abc import Mapping
from typing import Any

from dtj_operator.api.spec import JobSpec
from dtj_operator.desired.overlay import containers, mapping

FILE_GROUP = 1000
"""Group of mounted volumes, so that any non-root user of the pod can write checkpoints."""

SUPERVISED_TOLERATION_SECONDS = 3600
PROTECTION = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "karpenter.sh/do-not-disrupt": "true"}


def defaults(spec: JobSpec, template: Mapping[str, Any], *, supervised: bool) -> dict[str, Any]:
    """A pod to lay the template over."""
    own = mapping(template.get("spec"))
    pod: dict[str, Any] = {
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        # Peers' addresses are complete; with Kubernetes' five dots each would be tried in every search domain first.
        "dnsConfig": {"options": [{"name": "ndots", "value": "1"}]},
        "tolerations": _tolerations(spec, own, supervised=supervised),
    }
    if own.get("hostNetwork") is True:
        # Otherwise such a pod asks the node's resolver, which knows no peer.
        pod["dnsPolicy"] = "ClusterFirstWithHostNet"
    if spec.gang.priority_class_name is not None:
        pod["priorityClassName"] = spec.gang.priority_class_name
    if spec.security_defaults == "Restricted":
        pod |= _security(template)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"annotations": dict(PROTECTION) if spec.disruption.protect else {}},
        "spec": pod,
    }


def container_security(container: Mapping[str, Any]) -> dict[str, Any]:
    """What the Pod Security Standard `restricted` asks of a container, as far as the container's own words allow."""
    own = mapping(container.get("securityContext"))
    ours: dict[str, Any] = {}
    if own.get("runAsUser") == 0:
        # The container says that it needs root; the pod's runAsNonRoot would keep it from starting.
        ours["runAsNonRoot"] = False
    if own.get("privileged") is True:
        return ours
    if not {"SYS_ADMIN", "CAP_SYS_ADMIN"} & {str(c) for c in _list(mapping(own.get("capabilities")).get("add"))}:
        # The API server refuses the two together.
        ours["allowPrivilegeEscalation"] = False
    return {**ours, "capabilities": {"drop": ["ALL"]}}


def _security(template: Mapping[str, Any]) -> dict[str, Any]:
    own = mapping(mapping(template.get("spec")).get("securityContext"))
    context: dict[str, Any] = {
        "seccompProfile": {"type": "RuntimeDefault"},
        "fsGroup": FILE_GROUP,
        # Else each start walks through every file of the volume.
        "fsGroupChangePolicy": "OnRootMismatch",
    }
    if own.get("runAsUser") != 0:
        context["runAsNonRoot"] = True
    return {
        "securityContext": context,
        **{
            field: [{"name": c["name"], "securityContext": container_security(c)} for c in found]
            for field in ("containers", "initContainers")
            if (found := [c for c in containers(template, field) if isinstance(c.get("name"), str)])
        },
    }


def _tolerations(spec: JobSpec, own: Mapping[str, Any], *, supervised: bool) -> list[dict[str, Any]]:
    # NotReady says nothing about a pod whose supervisor answers; the operator deletes those that are silent.
    seconds = SUPERVISED_TOLERATION_SECONDS if supervised else spec.recovery.lost_node_seconds
    keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    theirs = [t for t in _list(own.get("tolerations")) if isinstance(t, dict)]
    return [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
        for key in keys
        if not any(t.get("key") in (key, None, "") and t.get("effect") in ("NoExecute", None, "") for t in theirs)
    ]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
