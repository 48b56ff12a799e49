"""What the chart's values do to the operator's Deployment, and which are refused; no cluster is asked."""

import json
import re
from typing import Any

import pytest
import yaml

from dtj_operator.manager.options import parse
from e2e.chart import CHART, HelmError, render

Json = dict[str, Any]

CONTAINER = "spec.template.spec.containers.0"


def deployment(values: Json) -> Json:
    return next(made for made in render(values) if made["kind"] == "Deployment")


def at(value: Any, path: str) -> Any:
    """The value at `spec.containers.0.image`; None where there is none."""
    for step in path.split("."):
        value = value[int(step)] if isinstance(value, list) else (value or {}).get(step)
    return value


@pytest.mark.parametrize(
    ("values", "path", "expected"),
    [
        ({}, f"{CONTAINER}.image", "dtj/operator:0.1.0"),
        ({"image": {"tag": "x"}}, f"{CONTAINER}.image", "dtj/operator:x"),
        (
            {"image": {"tag": "x", "digest": f"sha256:{'0' * 64}"}},
            f"{CONTAINER}.image",
            f"dtj/operator@sha256:{'0' * 64}",
        ),
        ({"image": {"pullPolicy": "Never"}}, f"{CONTAINER}.imagePullPolicy", "Never"),
        ({"replicas": 3}, "spec.replicas", 3),
        ({"priorityClassName": "important"}, "spec.template.spec.priorityClassName", "important"),
        ({"imagePullSecrets": [{"name": "s"}]}, "spec.template.spec.imagePullSecrets", [{"name": "s"}]),
        ({"nodeSelector": {"a": "b"}}, "spec.template.spec.nodeSelector", {"a": "b"}),
        ({"tolerations": [{"key": "t"}]}, "spec.template.spec.tolerations", [{"key": "t"}]),
        ({"affinity": {"nodeAffinity": {}}}, "spec.template.spec.affinity", {"nodeAffinity": {}}),
        ({"podLabels": {"a": "b"}}, "spec.template.metadata.labels.a", "b"),
        ({"podAnnotations": {"a": "b"}}, "spec.template.metadata.annotations.a", "b"),
        ({"topologySpreadConstraints": []}, "spec.template.spec.topologySpreadConstraints", None),
        ({}, "spec.template.spec.topologySpreadConstraints.0.topologyKey", "kubernetes.io/hostname"),
        ({"serviceAccount": {"name": "sa"}}, "spec.template.spec.serviceAccountName", "sa"),
        ({"extraEnv": [{"name": "TZ", "value": "UTC"}]}, f"{CONTAINER}.env.1", {"name": "TZ", "value": "UTC"}),
        ({"resources": {"limits": {"memory": "2Gi"}}}, f"{CONTAINER}.resources.limits.memory", "2Gi"),
        ({"resources": {"limits": {"memory": "2Gi"}}}, f"{CONTAINER}.resources.requests.cpu", "100m"),
        ({"metrics": {"port": 9000}}, f"{CONTAINER}.ports.0.containerPort", 9000),
    ],
)
def test_what_the_deployment_says(values: Json, path: str, expected: Any) -> None:
    assert at(deployment(values), path) == expected


@pytest.mark.parametrize(
    ("values", "field", "expected"),
    [
        ({}, "operator_namespace", "dtj-system"),
        ({}, "namespaces", (None,)),
        ({"namespaces": ["a", "b"]}, "namespaces", ("a", "b")),
        ({}, "supervisor_image", "dtj/supervisor:0.1.0"),
        ({"supervisorImage": ""}, "supervisor_image", None),
        ({"supervisorImage": "x:1"}, "supervisor_image", "x:1"),
        ({}, "autoscaler", False),
        ({"autoscaler": True}, "autoscaler", True),
        ({}, "lease", True),
        ({"replicas": 1}, "lease", True),
        ({"extraArgs": ["--no-lease"]}, "lease", False),
        ({"statusReaders": [{"podSelector": {}}]}, "monitoring", ({"podSelector": {}},)),
        ({}, "json_logs", True),
        ({"logs": {"json": False, "verbose": True}}, "json_logs", False),
        ({"logs": {"json": False, "verbose": True}}, "verbose", True),
        ({"metrics": {"port": 9000}}, "port", 9000),
    ],
)
def test_the_operator_reads_what_was_set(values: Json, field: str, expected: Any) -> None:
    arguments = at(deployment(values), f"{CONTAINER}.args")
    assert getattr(parse(arguments, {}), field) == expected


def test_jobs_let_in_the_operators_own_pods() -> None:
    made = deployment({})
    told = parse(at(made, f"{CONTAINER}.args"), {}).operator_labels
    assert told == at(made, "spec.selector.matchLabels")
    assert told.items() <= at(made, "spec.template.metadata.labels").items()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"replica": 3}, "at '': additional properties 'replica' not allowed"),
        ({"image": {"tags": "x"}}, "at '/image': additional properties 'tags' not allowed"),
        ({"image": {"pullPolicy": "Sometimes"}}, "at '/image/pullPolicy': value must be one of 'Always'"),
        ({"image": {"digest": "0123"}}, "at '/image/digest': '0123' does not match pattern"),
        ({"replicas": "two"}, "at '/replicas': got string, want integer"),
        ({"replicas": -1}, "at '/replicas': minimum: got -1, want 0"),
        ({"namespaces": "ml"}, "at '/namespaces': got string, want array"),
        ({"namespaces": ["Team_A"]}, "at '/namespaces/0': 'Team_A' does not match pattern"),
        ({"namespaces": ["a", "a"]}, "at '/namespaces': items at 0 and 1 are equal"),
        ({"crds": {"install": True}}, "at '/crds': additional properties 'install' not allowed"),
        ({"nodeAccess": "yes"}, "at '/nodeAccess': got string, want boolean"),
        ({"statusReaders": [{"namespace": "x"}]}, "at '/statusReaders/0': additional properties 'namespace'"),
        ({"networkPolicy": {"apiServer": {"cidrs": ["10.0.0.1"]}}}, "at '/networkPolicy/apiServer/cidrs/0'"),
        ({"networkPolicy": {"apiServer": {"ports": [70000]}}}, "at '/networkPolicy/apiServer/ports/0': maximum"),
        ({"metrics": {"port": 0}}, "at '/metrics/port': minimum: got 0, want 1"),
        ({"metrics": {"serviceMonitor": {"interval": "often"}}}, "at '/metrics/serviceMonitor/interval'"),
        ({"extraArgs": ["autoscaler"]}, "at '/extraArgs/0': 'autoscaler' does not match pattern"),
        ({"extraEnv": [{"value": "x"}]}, "at '/extraEnv/0': missing property 'name'"),
        ({"imagePullSecrets": ["s"]}, "at '/imagePullSecrets/0': got string, want object"),
        ({"resources": {"memory": "1Gi"}}, "at '/resources': additional properties 'memory' not allowed"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(values: Json, message: str) -> None:
    with pytest.raises(HelmError, match=re.escape(message)):
        render(values)


def test_the_schema_knows_every_value_and_no_other() -> None:
    def keys(schema: Json, value: Any) -> None:
        if isinstance(value, dict) and "properties" in schema:
            assert schema["additionalProperties"] is False
            assert schema["properties"].keys() - {"global", "claims"} == value.keys()
            for name, inner in value.items():
                keys(schema["properties"][name], inner)

    keys(json.loads((CHART / "values.schema.json").read_text()), yaml.safe_load((CHART / "values.yaml").read_text()))
