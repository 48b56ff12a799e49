"""The Node objects of the embedded cluster: this machine, played as often as asked for."""

import os
import platform
from typing import Any

Json = dict[str, Any]

GENEROUS: dict[str, str] = {"cpu": "1000", "memory": "16Ti", "ephemeral-storage": "16Ti", "pods": "1000"}
"""What a node offers beside devices. Nothing is reserved or limited here, so no job should wait for any of it."""
GPU = "nvidia.com/gpu"
ADDRESS = "127.0.0.1"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def node_names(count: int) -> tuple[str, ...]:
    return tuple(f"local-{index}" for index in range(count))


def node(name: str, gpus: int, now: str) -> Json:
    """One node with so many GPUs, which are counted and nothing else."""
    offered = GENEROUS | ({GPU: str(gpus)} if gpus else {})
    return {
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": platform.system().lower(),
                "kubernetes.io/arch": _ARCHITECTURES.get(platform.machine(), platform.machine()),
                "node.kubernetes.io/instance-type": "local",
            },
        },
        "spec": {},
        "status": {
            "capacity": offered,
            "allocatable": offered,
            "addresses": [{"type": "InternalIP", "address": ADDRESS}, {"type": "Hostname", "address": name}],
            "conditions": [
                _condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "not looked at here", now),
                _condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "not looked at here", now),
                _condition("PIDPressure", "False", "KubeletHasSufficientPID", "not looked at here", now),
                _condition("Ready", "True", "KubeletReady", "kubelet is posting ready status", now),
            ],
            "nodeInfo": {
                "machineID": "",
                "systemUUID": "",
                "bootID": "",
                "kernelVersion": platform.release(),
                "osImage": f"{platform.system()}, {os.cpu_count()} cores in all",
                "containerRuntimeVersion": "dtj://processes",
                "kubeletVersion": "v1.37.2-dtj",
                "kubeProxyVersion": "",
                "operatingSystem": platform.system().lower(),
                "architecture": platform.machine(),
            },
        },
    }


def lost(body: Json, now: str) -> Json:
    """The node as its controller shows it when nothing is heard of it any more."""
    told = "Kubelet stopped posting node status."
    conditions = [
        one | {"status": "Unknown", "reason": "NodeStatusUnknown", "message": told, "lastTransitionTime": now}
        for one in body["status"]["conditions"]
    ]
    return {**body, "status": {**body["status"], "conditions": conditions}}


def _condition(type_: str, status: str, reason: str, message: str, now: str) -> Json:
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
