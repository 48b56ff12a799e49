"""The default pod under the Pod Security Standard `restricted`, and how far a template may lead away from it."""

from collections.abc import Iterator
from typing import Any

import pytest

from dtj_operator.desired.pods import pod
from dtj_operator.desired.topology import topology
from tests.desired.jobs import job, trained_by

VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}


def violations(manifest: dict[str, Any]) -> Iterator[str]:
    """What `restricted` refuses in a pod (kubernetes.io, Pod Security Standards)."""
    spec = manifest["spec"]
    context = spec.get("securityContext", {})
    yield from (field for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field))
    yield from (f"volume {v['name']}" for v in spec.get("volumes", []) if not (v.keys() - {"name"}) <= VOLUMES)
    for container in [*spec["containers"], *spec.get("initContainers", [])]:
        own = container.get("securityContext", {})
        capabilities = own.get("capabilities", {})
        checks = {
            "privileged": own.get("privileged") is True,
            "allowPrivilegeEscalation": own.get("allowPrivilegeEscalation") is not False,
            "runAsNonRoot": own.get("runAsNonRoot", context.get("runAsNonRoot")) is not True,
            "runAsUser": own.get("runAsUser", context.get("runAsUser")) == 0,
            "seccompProfile": (own.get("seccompProfile") or context.get("seccompProfile") or {}).get("type")
            not in ("RuntimeDefault", "Localhost"),
            "capabilities.drop": "ALL" not in capabilities.get("drop", []),
            "capabilities.add": bool(set(capabilities.get("add", [])) - {"NET_BIND_SERVICE"}),
            "hostPort": any(port.get("hostPort") for port in container.get("ports", [])),
        }
        yield from (f"{container['name']}: {name}" for name, is_wrong in checks.items() if is_wrong)


def pods_of(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    s = job(spec)
    t = topology(s)
    yield from (pod(s, t, task, 0, 0) for task in t.tasks)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"template": trained_by(args=["train.py"])}, id="the entry point"),
        pytest.param({"template": trained_by(command=["python", "train.py"])}, id="with the supervisor injected"),
        pytest.param({"template": trained_by(command=["python"]), "supervisor": "None"}, id="without a supervisor"),
        pytest.param(
            {
                "template": {
                    "spec": {
                        "containers": [{"name": "trainer", "image": "x"}, {"name": "proxy", "image": "y"}],
                        "initContainers": [{"name": "wait", "image": "z"}],
                    }
                }
            },
            id="with sidecars and init containers",
        ),
        pytest.param(
            {
                "template": trained_by(args=["train.py"]),
                "program": {"configMap": "code"},
                "checkpoint": {"persistentVolumeClaim": "claim"},
            },
            id="with everything mounted",
        ),
    ],
)
def test_the_defaults_are_restricted(spec: dict[str, Any]) -> None:
    roles = {"chief": {}, "worker": {"replicas": 2}, "ps": {}, "evaluator": {}}
    assert [fault for manifest in pods_of({"roles": roles, **spec}) for fault in violations(manifest)] == []


def test_without_defaults_nothing_is_added() -> None:
    (manifest,) = pods_of({"roles": {"worker": {"replicas": 1}}, "template": trained_by(), "securityDefaults": "None"})
    assert "securityContext" not in manifest["spec"]
    assert "securityContext" not in manifest["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("pod_context", "own", "pod_found", "found"),
    [
        pytest.param(
            {"runAsUser": 1001, "fsGroup": 2000},
            {"capabilities": {"add": ["NET_BIND_SERVICE"]}},
            {"runAsUser": 1001, "fsGroup": 2000, "runAsNonRoot": True},
            {"allowPrivilegeEscalation": False, "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}},
            id="what the template sets stays",
        ),
        pytest.param(
            {"runAsUser": 0},
            {},
            {"runAsUser": 0, "runAsNonRoot": None},
            {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            id="a pod that says it is root may start",
        ),
        pytest.param(
            {},
            {"runAsUser": 0},
            {"runAsNonRoot": True},
            {
                "runAsUser": 0,
                "runAsNonRoot": False,
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            },
            id="a container that says it is root may start",
        ),
        pytest.param({}, {"privileged": True}, {}, {"privileged": True}, id="privileged and no escalation contradict"),
        pytest.param(
            {},
            {"capabilities": {"add": ["SYS_ADMIN"]}},
            {},
            {"capabilities": {"add": ["SYS_ADMIN"], "drop": ["ALL"]}},
            id="so do SYS_ADMIN and no escalation",
        ),
    ],
)
def test_what_the_template_says_of_security(
    pod_context: dict[str, Any], own: dict[str, Any], pod_found: dict[str, Any], found: dict[str, Any]
) -> None:
    template = trained_by(securityContext=own)
    template["spec"]["securityContext"] = pod_context
    (manifest,) = pods_of({"roles": {"worker": {"replicas": 1}}, "template": template})
    context = manifest["spec"]["securityContext"]
    assert {name: context.get(name) for name in pod_found} == pod_found
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert context["fsGroupChangePolicy"] == "OnRootMismatch"
    assert manifest["spec"]["containers"][0]["securityContext"] == found
