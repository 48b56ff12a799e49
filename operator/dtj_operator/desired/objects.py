"""A job's children beside its pods: Service, token Secret, NetworkPolicy, checkpoint claim, PodDisruptionBudget."""

import base64
import hashlib
import hmac
from typing import Any

import msgspec

from dtj_operator.api import names
from dtj_operator.api.observed import Situation
from dtj_operator.api.spec import Checkpoint
from dtj_operator.desired import trainer
from dtj_operator.desired.overlay import overlay, without_nulls
from dtj_operator.desired.topology import Topology, spec_of


def children(s: Situation, t: Topology) -> tuple[dict[str, Any], ...]:
    """All children but pods and the gang's group, in the order to create them."""
    spec = spec_of(s)
    made = [peers_service(s, t), token_secret(s, t)]
    if spec.network.policy == "Isolated":
        made.append(network_policy(s, t))
    if spec.checkpoint is not None and spec.checkpoint.volume_claim_template is not None:
        made.append(claim(s, t, spec.checkpoint, spec.checkpoint.volume_claim_template))
    if spec.disruption.budget:
        made.append(disruption_budget(s, t))
    return tuple(made)


def signed(child: dict[str, Any]) -> dict[str, Any]:
    """The child with a digest of all that it is made as: of a live one, full of defaults, that can't be told."""
    digest = hashlib.sha256(msgspec.json.encode(child, order="sorted")).hexdigest()[:16]
    metadata = child["metadata"]
    annotations = metadata.get("annotations", {}) | {names.ANNOTATION_MADE_OF: digest}
    return {**child, "metadata": {**metadata, "annotations": annotations}}


def token(key: bytes, uid: str) -> str:
    """What the status ports of a job's supervisors ask for; whoever holds the key can derive it again."""
    return hmac.new(key, uid.encode(), hashlib.sha256).hexdigest()


def owner_reference(s: Situation) -> dict[str, Any]:
    """Marks a child for garbage collection; it does not block the job's deletion, which would take a finalizer."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "name": s.key.name,
        "uid": s.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def peers_service(s: Situation, t: Topology) -> dict[str, Any]:
    """Gives every task its address, also before it is ready, since a rendezvous needs the names first."""
    ports = trainer.ports(spec_of(s).network, t)
    return {
        **_child(s, t, "v1", "Service", names.peers_service(t.job)),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": _own_pods(t),
            "ports": [{"name": n, "port": p, "targetPort": p, "protocol": "TCP"} for n, p in ports],
        },
    }


def token_secret(s: Situation, t: Topology) -> dict[str, Any]:
    """The token for the trainers. Its name holds the job's uid, so one that exists already is ours."""
    encoded = base64.b64encode(token(s.facts.token_key, s.uid).encode()).decode()
    return {
        **_child(s, t, "v1", "Secret", names.token_secret(t.job, s.uid)),
        "type": "Opaque",
        "immutable": True,
        "data": {trainer.TOKEN_KEY: encoded},
    }


def network_policy(s: Situation, t: Topology) -> dict[str, Any]:
    """Closes the job's pods, whose TensorFlow ports ask for no password, to everyone but each other.

    Between them all ports and protocols are open, since NCCL takes ephemeral ones. What goes out is untouched.
    """
    network = spec_of(s).network
    ingress: list[dict[str, Any]] = [{"from": [{"podSelector": {"matchLabels": _own_pods(t)}}]}]
    readers = list(s.facts.monitoring)
    if s.facts.labels_of_operator:
        # Without labels the selector would be empty, and open the port to the whole namespace.
        readers.append(
            {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": s.facts.namespace}},
                "podSelector": {"matchLabels": s.facts.labels_of_operator},
            }
        )
    if readers:
        ingress.append({"from": readers, "ports": [{"port": network.status_port, "protocol": "TCP"}]})
    if network.expose:
        ingress.append({"ports": [{"port": port, "protocol": "TCP"} for port in network.expose]})
    return {
        **_child(s, t, "networking.k8s.io/v1", "NetworkPolicy", names.network_policy(t.job)),
        "spec": {"podSelector": {"matchLabels": _own_pods(t)}, "policyTypes": ["Ingress"], "ingress": ingress},
    }


def claim(s: Situation, t: Topology, place: Checkpoint, template: dict[str, Any]) -> dict[str, Any]:
    """The claim made from the job's template. It outlives the job, so nothing owns it, but for `reclaim: Delete`."""
    ours = _child(s, t, "v1", "PersistentVolumeClaim", names.checkpoint_claim(t.job))
    if place.reclaim == "Retain":
        ours["metadata"] = {k: v for k, v in ours["metadata"].items() if k != "ownerReferences"}
    made: dict[str, Any] = without_nulls(overlay(template, ours))
    return made


def disruption_budget(s: Situation, t: Topology) -> dict[str, Any]:
    """Keeps every eviction off while the whole gang runs; one pod less would end the attempt.

    A number, since pods without a scalable controller take nothing else. Pods that aren't ready may always be evicted,
    or a broken gang would hold up a drain for nothing.
    """
    gang = {"key": names.LABEL_ROLE, "operator": "In", "values": sorted({task.role for task in t.gang})}
    return {
        **_child(s, t, "policy/v1", "PodDisruptionBudget", names.disruption_budget(t.job)),
        "spec": {
            "minAvailable": len(t.gang),
            "selector": {"matchLabels": _own_pods(t), "matchExpressions": [gang]},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def _child(s: Situation, t: Topology, api_version: str, kind: str, name: str) -> dict[str, Any]:
    metadata = {
        "name": name,
        "namespace": t.namespace,
        "labels": _own_pods(t),
        "ownerReferences": [owner_reference(s)],
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _own_pods(t: Topology) -> dict[str, str]:
    return {names.LABEL_JOB: t.job}
