"""Jobs for the tables here: a spec in YAML becomes the Situation of a job that was just seen."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import yaml

from dtj_operator.api.observed import Facts, JobKey, Situation
from dtj_operator.api.spec import JobSpec
from dtj_operator.api.status import JobStatus

CREATED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
UID = "0f8fad5b-d9cb-469f-a165-70867728950e"
FACTS = Facts(
    namespace="dtj-system",
    has_node_rights=True,
    supervisor_image="dtj/supervisor:1",
    labels_of_operator={"app.kubernetes.io/name": "dtj-operator"},
    token_key=b"key",
)

SMALLEST = """
roles: {worker: {replicas: 4}}
template:
  spec:
    containers:
    - name: trainer
      image: dtj/worker:latest
      args: [train.py]
      resources: {limits: {nvidia.com/gpu: 1}}
checkpoint: {persistentVolumeClaim: mnist-checkpoints}
"""
"""The example of the documentation."""


def job(spec: str | dict[str, Any], **changes: Any) -> Situation:
    """The job ml/mnist with this spec; `changes` are fields of the Situation."""
    document = yaml.safe_load(spec) if isinstance(spec, str) else spec
    given: dict[str, Any] = {
        "key": JobKey("ml", "mnist"),
        "uid": UID,
        "resource_version": "1",
        "generation": 1,
        "created_at": CREATED,
        "spec": msgspec.convert(document, JobSpec),
        "status": JobStatus(),
        "facts": FACTS,
    }
    return Situation(**given | changes)


def trained_by(**container: Any) -> dict[str, Any]:
    """A pod template with one trainer container."""
    return {"spec": {"containers": [{"name": "trainer", "image": "dtj/worker", **container}]}}
