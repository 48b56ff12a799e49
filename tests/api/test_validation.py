"""What people read before a cluster does: schema, rules and faults of a manifest in one list."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from dtj_operator.api import names
from dtj_operator.api.faults import all_faults
from dtj_operator.api.validation import refusals
from tests.api.manifests import SMALLEST, Manifest, job, pod

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
OF_TFJOB = {"kind": "TFJob", "apiVersion": "kubeflow.org/v1"}

ROWS: dict[str, tuple[Any, list[str]]] = {
    "the smallest": (job(), []),
    "nothing": (None, ["a manifest is an object with apiVersion, kind, metadata and spec, not nothing"]),
    "no spec": (
        {k: v for k, v in SMALLEST.items() if k != "spec"},
        ["spec: required; it says which roles the job has and what they run"],
    ),
    "no workers": (job({"roles": {"worker": None}}), ["spec.roles.worker: required"]),
    "another kind": (
        SMALLEST | OF_TFJOB,
        [
            "apiVersion: expected dtj.dev/v1alpha1, got 'kubeflow.org/v1'",
            "kind: expected DistributedTrainingJob, got 'TFJob'",
        ],
    ),
    "no name": (SMALLEST | {"metadata": {}}, ["metadata.name: required"]),
    "labels that are no texts": (
        SMALLEST | {"metadata": {"name": "mnist", "labels": {"a": 1, "b": True, "c": "x"}, "annotations": []}},
        [
            "metadata.labels.a: expected a text, got 1; put it in quotes",
            "metadata.labels.b: expected a text, got true; put it in quotes",
            "metadata.annotations: expected an object, got a list",
        ],
    ),
    "a typo in metadata": (
        SMALLEST | {"metadata": {"name": "mnist", "label": {}}},
        ["metadata.label: unknown field; did you mean labels?"],
    ),
    "too few": (job({"roles": {"worker": {"replicas": 0}}}), ["spec.roles.worker.replicas: 0 is less than 1"]),
    "too many": (job({"roles": {"worker": {"replicas": 513}}}), ["spec.roles.worker.replicas: 513 is more than 512"]),
    "a text for a number": (
        job({"roles": {"worker": {"replicas": "4"}}}),
        ["spec.roles.worker.replicas: expected a whole number, got '4'"],
    ),
    "a list for an object": (job({"recovery": []}), ["spec.recovery: expected an object, got a list"]),
    "a list for a template": (job({"template": []}), ["spec.template: expected an object, got a list"]),
    "a whole number with a point": (
        job({"checkpoint": {"keep": 4.0}}),
        ["spec.checkpoint.keep: expected int, got float"],
    ),
    "a text for a boolean": (job({"suspend": "yes"}), ["spec.suspend: expected true or false, got 'yes'"]),
    "a list for a number or word": (
        job({"checkpoint": {"every": [1]}}),
        [
            "spec.checkpoint.every: expected a whole number or a text, got a list",
        ],
    ),
    "a typo in a value": (
        job({"gang": {"scheduler": "builtin"}}),
        [
            "spec.gang.scheduler: 'builtin' is none of Auto, BuiltIn, Coscheduling, KAI, Kueue, Native, None, Volcano; "
            "did you mean BuiltIn?"
        ],
    ),
    "empty": (job({"trainerContainer": ""}), ["spec.trainerContainer: must not be empty"]),
    "long": (
        job({"program": {"configMap": "x" * 254}}),
        ["spec.program.configMap: 254 characters of at most 253"],
    ),
    "many": (
        job({"network": {"expose": list(range(3000, 3033))}}),
        ["spec.network.expose: 33 entries of at most 32"],
    ),
    "in a list": (
        job({"recovery": {"rules": [{"action": "Fail", "exitCodes": [1, 256]}, {"roles": ["wrker"]}]}}),
        [
            "spec.recovery.rules[0].exitCodes[1]: 256 is more than 255",
            "spec.recovery.rules[1].roles[0]: 'wrker' is none of chief, evaluator, ps, worker; did you mean worker?",
            "spec.recovery.rules[1].action: required",
        ],
    ),
    "a typo in a field": (
        job({"checkpont": {}, "recovery": {"maxRestart": 3}}),
        [
            "spec.checkpont: unknown field; did you mean checkpoint?",
            "spec.recovery.maxRestart: unknown field; did you mean maxRestarts?",
        ],
    ),
    "a field in the wrong place": (
        job({"maxRestarts": 3, "containers": []}),
        [
            "spec.maxRestarts: unknown field; did you mean spec.recovery.maxRestarts?",
            "spec.containers: unknown field; did you mean spec.template.spec.containers?",
        ],
    ),
    "a field of nowhere": (job({"tfReplicaSpecs": {}}), ["spec.tfReplicaSpecs: unknown field"]),
    "nulls": (job() | {"spec": job()["spec"] | {"batch": None, "recovery": None, "restartRequest": None}}, []),
    "schema, rule and template at once": (
        job({"keras": "3", "checkpoint": {"uri": "s3://x", "every": 0}, "supervisor": "Inject"}, pod(hostname="a")),
        [
            "spec.keras: '3' is none of Auto, Keras3, Legacy",
            "spec.checkpoint: name exactly one place: persistentVolumeClaim, volumeClaimTemplate, volume or uri",
            "spec.checkpoint.uri: TensorFlow has no S3 file system; mount the bucket with a CSI driver, and name its "
            "claim in persistentVolumeClaim or its source in volume",
            "spec.checkpoint.every: write epoch, or a number of steps of 1 or more",
            "spec.template.spec.hostname: the operator gives every task its name; remove it",
            "spec.supervisor: Inject goes before the trainer's command, and spec.template.spec.containers[0] has none; "
            "set its command, or set Auto and start dtj-worker in the image",
        ],
    ),
}


@pytest.mark.parametrize("what", ROWS)
def test_all_faults(what: str) -> None:
    manifest, lines = ROWS[what]
    before = copy.deepcopy(manifest)
    assert sorted(all_faults(manifest)) == sorted(lines)
    assert manifest == before


def test_a_change_is_held_against_the_old_object() -> None:
    started: Manifest = job() | {"status": {"startTime": "2030-01-01T00:00:00Z", "phase": "Running"}}
    assert refusals(job({"recovery": {"maxRestarts": 3}}), started) == []
    (line,) = refusals(job({"strategy": "MultiWorkerMirrored"}), started)
    assert line.startswith("spec.strategy: can't change once the job has started")


def test_each_example_is_faultless() -> None:
    """Manifests of the README and the docs are tried where they stand; this is about those that people copy."""
    found = 0
    for path in sorted(EXAMPLES.rglob("*.yaml")):
        for manifest in yaml.safe_load_all(path.read_text()):
            if isinstance(manifest, dict) and manifest.get("kind") == names.KIND:
                found += 1
                assert all_faults(manifest) == (), path
    assert found or not any(EXAMPLES.rglob("*.yaml"))
