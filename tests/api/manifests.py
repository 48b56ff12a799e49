"""Manifests for the tests of api: the smallest one, and changes of it."""

import copy
from typing import Any

Manifest = dict[str, Any]

SMALLEST: Manifest = {
    "apiVersion": "dtj.dev/v1alpha1",
    "kind": "DistributedTrainingJob",
    "metadata": {"name": "mnist"},
    "spec": {
        "roles": {"worker": {"replicas": 4}},
        "template": {
            "spec": {
                "containers": [
                    {
                        "name": "trainer",
                        "image": "dtj/worker:latest",
                        "args": ["train.py"],
                        "resources": {"limits": {"nvidia.com/gpu": 1}},
                    }
                ]
            }
        },
        "checkpoint": {"persistentVolumeClaim": "mnist-checkpoints"},
    },
}


def job(*changes: Manifest, name: str = "mnist") -> Manifest:
    """The smallest manifest with changes of its spec laid over it; None takes a field away."""
    made = copy.deepcopy(SMALLEST)
    made["metadata"]["name"] = name
    for change in changes:
        lay(made["spec"], copy.deepcopy(change))
    return made


def lay(under: Manifest, over: Manifest) -> None:
    for field, value in over.items():
        if value is None:
            under.pop(field, None)
        elif isinstance(value, dict) and isinstance(under.get(field), dict):
            lay(under[field], value)
        else:
            under[field] = value


def pod(**fields: Any) -> Manifest:
    """A change: fields of the shared template's pod."""
    return {"template": {"spec": fields}}


def trainer(**fields: Any) -> Manifest:
    """A change: the shared template's one container, with these fields."""
    return pod(containers=[{"name": "trainer", "image": "dtj/worker:latest", **fields}])
