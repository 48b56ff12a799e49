"""Which objects the chart renders, and install.yaml; no cluster is asked. What values do is test_chart_values.py's."""

import difflib
import json
import re
import tomllib
from typing import Any

import pytest
import yaml

from dtj_operator.local.shapes.decoding import Decoder
from dtj_operator.local.shapes.shape import built_in_shape
from dtj_operator.manager.telemetry import Metrics
from e2e.chart import CHART, INSTALL, Helm, install_yaml, render
from e2e.machine import ROOT

Json = dict[str, Any]
Names = set[tuple[str, str]]

CRD = ("CustomResourceDefinition", "distributedtrainingjobs.dtj.dev")
NODES = {("ClusterRole", "dtj-operator-dtj-system-nodes"), ("ClusterRoleBinding", "dtj-operator-dtj-system-nodes")}
JOBS = {("ClusterRole", "dtj-operator-dtj-system"), ("ClusterRoleBinding", "dtj-operator-dtj-system")}
JOBS_OF = {("Role", "dtj-operator-dtj-system"), ("RoleBinding", "dtj-operator-dtj-system")}
OWN = {("Role", "dtj-operator"), ("RoleBinding", "dtj-operator")}
USERS = {("ClusterRole", "dtj-view"), ("ClusterRole", "dtj-edit")}
ACCOUNT = ("ServiceAccount", "dtj-operator")
POLICY = ("NetworkPolicy", "dtj-operator")
BUDGET = ("PodDisruptionBudget", "dtj-operator")
ALWAYS = {("Deployment", "dtj-operator"), ("Service", "dtj-operator"), ("Pod", "dtj-operator-test")}
DEFAULT = {CRD, ACCOUNT, POLICY, BUDGET, *NODES, *JOBS, *OWN, *USERS, *ALWAYS}

CRDS_OF_OTHERS = ("ServiceMonitor", "PrometheusRule")
EVERYTHING: Json = {
    "imagePullSecrets": [{"name": "registry"}],
    "statusReaders": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
    "autoscaler": True,
    "priorityClassName": "important",
    "nodeSelector": {"pool": "system"},
    "tolerations": [{"key": "system", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "podLabels": {"team": "platform"},
    "podAnnotations": {"why": "because"},
    "logs": {"verbose": True},
    "extraArgs": ["--no-lease"],
    "extraEnv": [{"name": "TZ", "value": "UTC"}],
    "serviceAccount": {"annotations": {"role": "arn"}},
    "networkPolicy": {"metricsFrom": [{"podSelector": {}}]},
    "metrics": {"serviceMonitor": {"enabled": True}, "rules": {"enabled": True}, "dashboard": {"enabled": True}},
}


def names(objects: list[Json]) -> Names:
    return {(made["kind"], made["metadata"]["name"]) for made in objects}


def one(objects: list[Json], kind: str, name: str = "dtj-operator") -> Json:
    return next(made for made in objects if (made["kind"], made["metadata"]["name"]) == (kind, name))


@pytest.mark.parametrize(
    ("values", "gone", "new"),
    [
        pytest.param({}, set(), set(), id="defaults"),
        pytest.param({"crds": {"enabled": False}}, {CRD, *USERS}, set(), id="beside an install that has the CRD"),
        pytest.param({"userRoles": {"enabled": False}}, USERS, set(), id="no roles for users"),
        pytest.param({"nodeAccess": False}, NODES, set(), id="no look at nodes"),
        pytest.param({"namespaces": ["ml"]}, JOBS, JOBS_OF, id="one namespace"),
        pytest.param({"namespaces": ["ml"], "nodeAccess": False}, {*JOBS, *NODES}, JOBS_OF, id="nothing cluster-wide"),
        pytest.param({"rbac": {"create": False}}, {*JOBS, *NODES, *OWN}, set(), id="roles made elsewhere"),
        pytest.param({"serviceAccount": {"create": False}}, {ACCOUNT}, set(), id="an account made elsewhere"),
        pytest.param({"networkPolicy": {"enabled": False}}, {POLICY}, set(), id="no network policy"),
        pytest.param({"podDisruptionBudget": {"enabled": False}}, {BUDGET}, set(), id="no budget"),
        pytest.param({"replicas": 1}, {BUDGET}, set(), id="one replica may be evicted"),
        pytest.param(
            {"metrics": {"serviceMonitor": {"enabled": True}}},
            set(),
            {("ServiceMonitor", "dtj-operator")},
            id="monitored",
        ),
        pytest.param(
            {"metrics": {"rules": {"enabled": True}}}, set(), {("PrometheusRule", "dtj-operator")}, id="alerts"
        ),
        pytest.param(
            {"metrics": {"dashboard": {"enabled": True}}},
            set(),
            {("ConfigMap", "dtj-operator-dashboard")},
            id="dashboard",
        ),
    ],
)
def test_which_objects_an_install_has(values: Json, gone: Names, new: Names) -> None:
    assert names(render(values)) == (DEFAULT - gone) | new


@pytest.mark.parametrize("values", [{}, EVERYTHING, EVERYTHING | {"namespaces": ["ml"]}], ids=["", "all", "in one"])
def test_no_object_has_a_field_that_its_kind_has_not(values: Json) -> None:
    for made in render(values):
        if made["kind"] not in CRDS_OF_OTHERS:
            reader = Decoder()
            reader.read(built_in_shape(f"V1{made['kind']}"), made)
            assert reader.unknown == [], made["kind"]


def test_all_pods_are_what_pod_security_calls_restricted() -> None:
    objects = render(EVERYTHING)
    for pod in (
        one(objects, "Deployment")["spec"]["template"]["spec"],
        one(objects, "Pod", "dtj-operator-test")["spec"],
    ):
        assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_two_installs_share_no_name() -> None:
    """Beside the objects of their own namespaces: the same one in a namespace that both look after would be one too."""
    one_, other = (
        {
            (made["kind"], made["metadata"].get("namespace", ""), made["metadata"]["name"])
            for made in render({"crds": {"enabled": first}, "namespaces": ["ml"]}, namespace=where)
        }
        for where, first in (("dtj-system", True), ("team-a", False))
    )
    assert not one_ & other


def test_in_its_own_namespace_it_may_make_secrets_once() -> None:
    def makes(values: Json) -> int:
        roles = [made for made in render(values) if made["kind"] in ("Role", "ClusterRole")]
        return sum(
            rule["resources"] == ["secrets"] and rule["verbs"] == ["create"] for r in roles for rule in r["rules"]
        )

    assert makes({}) == 1, "by the ClusterRole"
    assert makes({"namespaces": ["ml"]}) == 2, "for jobs there, for its key here"
    assert makes({"namespaces": ["dtj-system"]}) == 1, "for both here"


def test_rules_and_dashboard_name_metrics_that_exist() -> None:
    there = {family.name for family in Metrics(lambda: 0.0).registry.collect()} | {"dtj_jobs", "dtj_queue_depth"}
    objects = render(EVERYTHING)
    dashboard = json.loads(one(objects, "ConfigMap", "dtj-operator-dashboard")["data"]["dtj.json"])
    said = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    said += [rule["expr"] for group in one(objects, "PrometheusRule")["spec"]["groups"] for rule in group["rules"]]
    named = {re.sub("_(total|count|sum|bucket)$", "", name) for text in said for name in re.findall(r"\bdtj_\w+", text)}
    assert named == there, "each is shown somewhere, and no other"


def test_install_yaml_is_what_the_chart_renders() -> None:
    made = install_yaml()
    difference = difflib.unified_diff(INSTALL.read_text().splitlines(), made.splitlines(), lineterm="", n=1)
    assert INSTALL.read_text() == made, "`make chart` writes it\n" + "\n".join(difference)
    assert "helm" not in made.lower().removeprefix("#").split("\n", 1)[1]


def test_the_chart_has_the_version_of_the_operator() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (version, version)


def test_lint_has_nothing_to_say() -> None:
    assert "0 chart(s) failed" in Helm()("lint", "--strict", str(CHART))


def test_a_namespace_whose_name_reads_as_a_number_is_a_name() -> None:
    made = render({"namespaces": ["1e3", "2024"]}, namespace="007")
    named = [one["metadata"]["namespace"] for one in made if "namespace" in one["metadata"]]
    accounts = [subject["namespace"] for one in made for subject in one.get("subjects", ())]
    assert {*named} == {"007", "1e3", "2024"}
    assert {*accounts} == {"007"}
    (test,) = [one for one in made if one["kind"] == "Pod"]
    assert test["spec"]["containers"][0]["args"][1:3] == ["007", "1e3"]
