"""Fields and types in pod templates, volumes and claims: tables of templates and the lines they get."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from dtj_operator.cli.podfields import pod_field_faults
from tests.cli.command import counting

ROOT = Path(__file__).parents[2]
TRAINER = "spec.template.spec.containers[0]"


def with_trainer(**fields: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "trainer", **fields}]}}}}


@pytest.mark.parametrize(
    ("manifest", "lines"),
    [
        pytest.param(counting(), [], id="as it should be"),
        pytest.param(with_trainer(arg=[]), [f"{TRAINER}.arg: unknown field; did you mean args?"], id="a typo"),
        pytest.param(with_trainer(wibble=1), [f"{TRAINER}.wibble: unknown field"], id="nothing near"),
        pytest.param(
            {"spec": {"roles": {"ps": {"template": {"spec": {"nodeselector": {}}}}}}},
            ["spec.roles.ps.template.spec.nodeselector: unknown field; did you mean nodeSelector?"],
            id="a role's template",
        ),
        pytest.param(with_trainer(args="fit.py"), [f"{TRAINER}.args: expected a list, got 'fit.py'"], id="no list"),
        pytest.param(
            with_trainer(args=["--steps", 3]), [f"{TRAINER}.args[1]: expected a text, got 3; put it in quotes"], id="3"
        ),
        pytest.param(
            with_trainer(env=[{"name": "A", "value": True}]),
            [f"{TRAINER}.env[0].value: expected a text, got true; put it in quotes"],
            id="yes",
        ),
        pytest.param(
            with_trainer(resources={"limits": {"nvidia.com/gpu": 1, "memory": "2 GB"}}),
            [f"{TRAINER}.resources.limits.memory: expected an amount such as 500m or 2Gi, got '2 GB'"],
            id="an amount",
        ),
        pytest.param(
            with_trainer(ports=[{"containerPort": True}]),
            [f"{TRAINER}.ports[0].containerPort: expected an integer, got true"],
            id="true is no number",
        ),
        pytest.param(with_trainer(command=None, env=[None]), [], id="nulls take away"),
        pytest.param(
            {"spec": {"template": {"metadata": {"labels": {"a/b.c": 1}}}}},
            ["spec.template.metadata.labels[a/b.c]: expected a text, got 1; put it in quotes"],
            id="a label",
        ),
        pytest.param(
            {"spec": {"checkpoint": {"volume": {"nfs": {"server": "a", "pth": "/b"}}}}},
            ["spec.checkpoint.volume.nfs.pth: unknown field; did you mean path?"],
            id="a volume",
        ),
        pytest.param(
            {"spec": {"checkpoint": {"volumeClaimTemplate": {"spec": {"accessMode": []}}}}},
            ["spec.checkpoint.volumeClaimTemplate.spec.accessMode: unknown field; did you mean accessModes?"],
            id="a claim",
        ),
        pytest.param(
            with_trainer(**{"a\x1b[31m": 1}), [f"{TRAINER}.a\\x1b[31m: unknown field"], id="colours of a terminal"
        ),
        pytest.param({"spec": {"roles": [1], "checkpoint": 2, "template": {"spec": None}}}, [], id="others tell"),
        pytest.param({}, [], id="nothing"),
    ],
)
def test_faults(manifest: dict[str, Any], lines: list[str]) -> None:
    assert list(pod_field_faults(manifest)) == lines


@pytest.mark.parametrize("file", sorted((ROOT / "examples").rglob("*.yaml")), ids=lambda file: file.name)
def test_the_examples_have_none(file: Path) -> None:
    for document in yaml.safe_load_all(file.read_text()):
        if document["kind"] == "DistributedTrainingJob":
            assert list(pod_field_faults(document)) == []
