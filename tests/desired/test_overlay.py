"""How a role's template is laid over the job's, and that no template breaks it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtj_operator.api.spec import JobSpec
from dtj_operator.desired.overlay import overlay, role_template, trainer, without_nulls
from dtj_operator.desired.pods import pod
from dtj_operator.desired.topology import topology
from dtj_worker.contract import Task
from tests.desired.jobs import job


@pytest.mark.parametrize(
    ("under", "over", "both"),
    [
        pytest.param(
            {"a": 1, "b": {"c": 2}}, {"b": {"d": 3}}, {"a": 1, "b": {"c": 2, "d": 3}}, id="mappings are merged"
        ),
        pytest.param({"a": 1}, {"a": None}, {}, id="null takes away"),
        pytest.param({"args": ["a", "b"]}, {"args": ["c"]}, {"args": ["c"]}, id="other lists are replaced"),
        pytest.param(
            {"containers": [{"name": "a", "image": "x"}, {"name": "b"}]},
            {"containers": [{"name": "b", "image": "y"}, {"name": "c"}]},
            {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}, {"name": "c"}]},
            id="containers by name",
        ),
        pytest.param(
            {"initContainers": [{"name": "a", "image": "x"}]},
            {"initContainers": [{"name": "a", "restartPolicy": "Always"}]},
            {"initContainers": [{"name": "a", "image": "x", "restartPolicy": "Always"}]},
            id="init containers by name",
        ),
        pytest.param(
            {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {}}}]},
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {}}}, {"name": "B", "value": "2"}]},
            id="a variable has one source",
        ),
        pytest.param(
            {"volumes": [{"name": "data", "emptyDir": {"medium": "Memory"}}, {"name": "home", "emptyDir": {}}]},
            {
                "volumes": [
                    {"name": "data", "persistentVolumeClaim": {"claimName": "c"}},
                    {"name": "home", "emptyDir": {"sizeLimit": "1Gi"}},
                ]
            },
            {
                "volumes": [
                    {"name": "data", "persistentVolumeClaim": {"claimName": "c"}},
                    {"name": "home", "emptyDir": {"sizeLimit": "1Gi"}},
                ]
            },
            id="a volume has one source",
        ),
        pytest.param(
            {"volumeMounts": [{"name": "a", "mountPath": "/data"}]},
            {"volumeMounts": [{"name": "b", "mountPath": "/data"}, {"name": "b", "mountPath": "/more"}]},
            {"volumeMounts": [{"name": "b", "mountPath": "/data"}, {"name": "b", "mountPath": "/more"}]},
            id="mounts by path",
        ),
        pytest.param(
            {"ports": [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53}]},
            {"ports": [{"containerPort": 53, "protocol": "TCP", "name": "dns"}]},
            {
                "ports": [
                    {"containerPort": 53, "protocol": "UDP"},
                    {"containerPort": 53, "protocol": "TCP", "name": "dns"},
                ]
            },
            id="ports by number and protocol, which is TCP by default",
        ),
        pytest.param(
            {"imagePullSecrets": [{"name": "a"}]},
            {"imagePullSecrets": [{"name": "b"}, {"name": "a"}]},
            {"imagePullSecrets": [{"name": "a"}, {"name": "b"}]},
            id="pull secrets by name",
        ),
        pytest.param(
            {"tolerations": [{"key": "gpu"}]},
            {"tolerations": [{"key": "spot"}, {"key": "gpu"}]},
            {"tolerations": [{"key": "gpu"}, {"key": "spot"}]},
            id="tolerations are added up",
        ),
        pytest.param(
            {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1}]},
            {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 2}, {"topologyKey": "host"}]},
            {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 2}, {"topologyKey": "host"}]},
            id="spread constraints by topology key",
        ),
        pytest.param(
            {"containers": [{"name": "a"}]},
            {"containers": [{"name": "a", "image": "x"}, {"name": "a", "image": "y"}]},
            {"containers": [{"name": "a", "image": "x"}, {"name": "a", "image": "y"}]},
            id="a name given twice stays for the API server to refuse",
        ),
        pytest.param(
            {"containers": [{"image": "x"}]},
            {"containers": ["y"]},
            {"containers": [{"image": "x"}, "y"]},
            id="no names",
        ),
        pytest.param(
            {"containers": "x"}, {"containers": [{"name": "a"}]}, {"containers": [{"name": "a"}]}, id="no list"
        ),
    ],
)
def test_overlay(under: dict[str, Any], over: dict[str, Any], both: dict[str, Any]) -> None:
    assert without_nulls(overlay(under, over)) == both


def test_null_in_a_role_takes_away_what_the_job_has_and_the_default_too() -> None:
    spec = {
        "roles": {"worker": {"replicas": 2}, "chief": {"template": {"spec": {"securityContext": {"fsGroup": None}}}}},
        "template": {"spec": {"securityContext": {"fsGroup": 7}, "containers": [{"name": "trainer", "image": "x"}]}},
    }
    s = job(spec)
    t = topology(s)
    assert pod(s, t, Task("worker", 0), 0, 0)["spec"]["securityContext"]["fsGroup"] == 7
    assert "fsGroup" not in pod(s, t, Task("chief", 0), 0, 0)["spec"]["securityContext"]


@pytest.mark.parametrize(
    ("asked", "containers", "found"),
    [
        pytest.param(None, ["proxy", "trainer"], "trainer", id="by its name"),
        pytest.param(None, ["main", "proxy"], "main", id="else the first"),
        pytest.param("proxy", ["trainer", "proxy"], "proxy", id="the spec names it"),
        pytest.param("gone", ["trainer"], None, id="the spec names one that is not there"),
        pytest.param(None, [], None, id="there is none"),
    ],
)
def test_trainer(asked: str | None, containers: list[str], found: str | None) -> None:
    template = {"spec": {"containers": [{"name": name} for name in containers]}}
    spec = job({"roles": {"worker": {"replicas": 1}}, "template": template, "trainerContainer": asked}).spec
    assert isinstance(spec, JobSpec)
    assert trainer(spec, role_template(spec, "worker")).get("name") == found


FIELDS = st.sampled_from(
    [
        "metadata",
        "spec",
        "name",
        "containers",
        "initContainers",
        "env",
        "ports",
        "volumes",
        "volumeMounts",
        "command",
        "securityContext",
        "affinity",
        "nodeAffinity",
        "labels",
        "tolerations",
        "resources",
        "limits",
        "workingDir",
        "dnsConfig",
        "options",
        "mountPath",
        "containerPort",
        "capabilities",
        "add",
        "hostNetwork",
        "nvidia.com/gpu",
        "x",
    ]
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-1, 3), st.sampled_from(["trainer", "a", "/data", "", "0"]))
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4), max_leaves=20
)
TEMPLATES = st.dictionaries(FIELDS, ANYTHING, max_size=4) | st.fixed_dictionaries(
    {
        "spec": st.fixed_dictionaries(
            {"containers": st.lists(st.dictionaries(FIELDS, ANYTHING, max_size=5), max_size=3)},
            optional={"affinity": ANYTHING, "securityContext": ANYTHING, "tolerations": ANYTHING, "volumes": ANYTHING},
        )
    }
)


@given(under=TEMPLATES, over=TEMPLATES)
def test_what_is_laid_over_is_in_the_result(under: dict[str, Any], over: dict[str, Any]) -> None:
    both = overlay(under, over)
    assert overlay(under, {}) == under
    assert overlay({}, over) == over
    assert overlay(both, {}) == both
    for name, value in over.items():
        assert name in both
        if value is None or not isinstance(value, dict | list):
            assert both[name] == value


@given(shared=TEMPLATES, own=TEMPLATES, supervisor=st.sampled_from(["Auto", "Inject", "None"]))
def test_any_template_becomes_a_pod_that_is_still_the_tasks(
    shared: dict[str, Any], own: dict[str, Any], supervisor: str
) -> None:
    spec = {
        "roles": {"worker": {"replicas": 2, "template": own}, "evaluator": {}},
        "template": shared,
        "supervisor": supervisor,
        "program": {"configMap": "code"},
        "checkpoint": {"persistentVolumeClaim": "claim"},
    }
    s = job(spec)
    t = topology(s)
    for task in t.tasks:
        made = pod(s, t, task, 3, 1)
        assert made["metadata"]["name"] == f"mnist-{task}-3"
        assert made["metadata"]["labels"]["dtj.dev/round"] == "3"
        assert made["metadata"]["ownerReferences"][0]["uid"] == s.uid
        assert made["spec"]["restartPolicy"] == "Never"
