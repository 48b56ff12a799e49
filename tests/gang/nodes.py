"""Nodes and pods for the tables here, written as short as they are read."""

from typing import Any

from dtj_operator.api.observed import NodeView
from dtj_operator.gang.demand import Demand, Load, demand

GPU = "nvidia.com/gpu"


def node(name: str, gpus: float = 0, cpu: float = 8, memory: float = 32 * 2**30, **fields: Any) -> NodeView:
    """A node of 8 cores, 32 GiB and 110 places."""
    given = {"cpu": cpu, "memory": memory, "pods": 110.0} | ({GPU: gpus} if gpus else {})
    known: dict[str, Any] = {"allocatable": given, "labels": {"kubernetes.io/hostname": name}}
    return NodeView(name=name, **known | fields)


def template(gpus: int = 0, **spec: Any) -> dict[str, Any]:
    """A pod with one container."""
    resources = {"limits": {GPU: gpus}} if gpus else {}
    return {"spec": {"containers": [{"name": "trainer", "resources": resources}], **spec}}


def needs(gpus: int = 0, **spec: Any) -> Demand:
    return demand(template(gpus, **spec))


def taken(name: str, gpus: float = 0, **requests: float) -> Load:
    """What something else takes from a node."""
    return Load(name, {"pods": 1.0, **({GPU: gpus} if gpus else {}), **requests})
