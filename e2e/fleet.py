"""Nodes that only kwok says are there, and pods on them that are only said to run: room for gangs, at scale.

API server and scheduler are real; no program starts on such a node, so nothing there ever makes a step.
"""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from e2e import programs
from e2e.cluster import Cluster
from e2e.daemon import Daemon, wait
from e2e.node import GPU

Json = dict[str, Any]

PLAYED = "dtj.dev/played"
"""Label and taint of these nodes: nothing gets there that doesn't ask for it."""
PLACEMENT: Json = {
    "nodeSelector": {PLAYED: "true"},
    "tolerations": [{"key": PLAYED, "operator": "Exists", "effect": "NoSchedule"}],
}
"""What a pod says to get there."""
NOWHERE = "192.0.2.0/24"
"""Addresses of such pods: RFC 5737 keeps them for examples."""
READY_SECONDS = 60


@contextlib.contextmanager
def fleet(cluster: Cluster, nodes: int, gpus: int) -> Iterator[list[str]]:
    """The names of so many nodes with so many GPUs each, which are there while this lasts."""
    names = [f"played-{number}" for number in range(nodes)]
    stages = cluster.folder / "stages.json"
    stages.write_text("\n---\n".join(json.dumps(stage) for stage in (NODE_IS_READY, POD_RUNS, POD_GOES)))
    kwok = Daemon("kwok", command(cluster.kubeconfig, stages), cluster.folder / "log" / "kwok.log")
    made = {"apiVersion": "v1", "kind": "List", "items": [node(name, gpus) for name in names]}
    cluster.kubectl("create", "--filename=-", stdin=json.dumps(made))
    kwok.start()
    try:
        wait(f"{nodes} played nodes are ready", lambda: are_ready(cluster, names), READY_SECONDS, kwok)
        yield names
    finally:
        cluster.kubectl("delete", "nodes", f"--selector={PLAYED}")
        kwok.stop()


def command(kubeconfig: Path, stages: Path) -> list[str | Path]:
    return [
        *(programs.build("kwok") / "kwok", "--kubeconfig", kubeconfig, "--config", stages),
        *("--manage-nodes-with-label-selector", PLAYED, "--cidr", NOWHERE),
    ]


def are_ready(cluster: Cluster, names: list[str]) -> bool:
    found = json.loads(cluster.kubectl("get", "nodes", f"--selector={PLAYED}", "--output=json"))["items"]
    conditions = [{one["type"]: one["status"] for one in node["status"].get("conditions", [])} for node in found]
    # The controller-manager takes its own taints away a moment later.
    tainted = [taint for node in found for taint in node["spec"].get("taints", []) if taint["key"] != PLAYED]
    return len(found) == len(names) and not tainted and all(one.get("Ready") == "True" for one in conditions)


def node(name: str, gpus: int) -> Json:
    room = {"cpu": "96", "memory": "1Ti", "pods": "110", GPU: str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {PLAYED: "true", "kubernetes.io/hostname": name}},
        "spec": {"taints": [{"key": PLAYED, "value": "true", "effect": "NoSchedule"}]},
        "status": {"capacity": room, "allocatable": room},
    }


def stage(name: str, kind: str, when: list[Json], then: Json) -> Json:
    """One step of what kwok plays: of whom, from which state, and what becomes of it."""
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": when},
            "next": then,
        },
    }


NODE_IS_READY = stage(
    "node-is-ready",
    "Node",
    [{"key": '.status.conditions.[] | select(.type == "Ready") | .status', "operator": "NotIn", "values": ["True"]}],
    {
        "statusTemplate": """
conditions:
{{ range NodeConditions }}
- lastHeartbeatTime: {{ Now | Quote }}
  lastTransitionTime: {{ Now | Quote }}
  message: {{ .message | Quote }}
  reason: {{ .reason | Quote }}
  status: {{ .status | Quote }}
  type: {{ .type | Quote }}
{{ end }}
"""
    },
)
POD_RUNS = stage(
    "pod-runs",
    "Pod",
    [
        {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"},
        {"key": ".status.phase", "operator": "In", "values": ["Pending"]},
    ],
    {
        "statusTemplate": """
phase: Running
startTime: {{ Now | Quote }}
{{ range PodIPsWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace }}
podIP: {{ . | Quote }}
podIPs: [{ip: {{ . | Quote }}}]
{{ end }}
conditions:
- {type: Initialized, status: "True", lastTransitionTime: {{ Now | Quote }}}
- {type: ContainersReady, status: "True", lastTransitionTime: {{ Now | Quote }}}
- {type: Ready, status: "True", lastTransitionTime: {{ Now | Quote }}}
containerStatuses:
{{ range .spec.containers }}
- image: {{ .image | Quote }}
  imageID: ""
  name: {{ .name | Quote }}
  ready: true
  started: true
  restartCount: 0
  state: {running: {startedAt: {{ Now | Quote }}}}
{{ end }}
"""
    },
)
POD_GOES = stage(
    "pod-goes",
    "Pod",
    [
        {"key": ".metadata.deletionTimestamp", "operator": "Exists"},
        {"key": ".metadata.finalizers", "operator": "DoesNotExist"},
    ],
    {"delete": True},
)
