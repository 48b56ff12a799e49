"""The chart on a real cluster: installed, upgraded, rolled back, beside another, uninstalled; and install.yaml."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.chart import E2E, INSTALL, NAMESPACE, RELEASE, Helm, HelmError, merged
from e2e.cluster import Cluster
from e2e.daemon import wait
from e2e.images import VERSION
from e2e.tests.installs import (
    CRD,
    NEXT,
    await_phase,
    await_progress,
    definition_of,
    job_of,
    next_chart,
    pods_of,
    submit,
)

Json = dict[str, Any]
pytestmark = pytest.mark.machine

DEPLOYMENT = "deployment/dtj-operator"
OPERATORS = "--selector=app.kubernetes.io/component=operator"
JOBS = "distributedtrainingjobs.dtj.dev"
RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"


@pytest.fixture(autouse=True)
def nothing_left(cluster: Cluster, helm: Helm) -> Iterator[None]:
    """Each test begins without operator, definition and namespaces of its own, and leaves none."""
    yield
    if "dtj.dev" in cluster.kubectl("api-versions"):
        cluster.kubectl("delete", "dtj", "--all", "--all-namespaces")
    for namespace in (NAMESPACE, "beside"):
        helm.uninstall(namespace=namespace)
    cluster.kubectl("delete", CRD, "namespace/team", f"namespace/{NAMESPACE}", "namespace/beside", "--ignore-not-found")


def may(cluster: Cluster, who: str, verb: str, *what: str) -> bool:
    """By a RoleBinding of Kubernetes' own role in the namespace `team`."""
    try:
        cluster.kubectl("auth", "can-i", verb, *what, f"--as={who}", "--namespace=team")
    except RuntimeError:
        return False
    return True


def test_an_install_works_where_pods_must_be_restricted(cluster: Cluster, helm: Helm) -> None:
    cluster.kubectl("create", "namespace", NAMESPACE)
    cluster.kubectl("label", "namespace", NAMESPACE, RESTRICTED)
    helm.install({"replicas": 2})
    ready = cluster.kubectl("get", DEPLOYMENT, f"--namespace={NAMESPACE}", "--output=jsonpath={.status.readyReplicas}")
    assert ready == "2"
    said = helm("test", RELEASE, f"--namespace={NAMESPACE}", "--logs", "--timeout=120s")
    assert re.search(r"^dtj-operator-\S+ leads$", said, re.MULTILINE), said
    holder = cluster.kubectl(
        "get", "lease/dtj-operator", f"--namespace={NAMESPACE}", "--output=jsonpath={.spec.holderIdentity}"
    )
    pods = cluster.kubectl("get", "pods", f"--namespace={NAMESPACE}", OPERATORS, "--output=name")
    assert f"pod/{holder}" in pods.split(), "its identity is the pod's name"
    submit(cluster, "first", steps=10)
    await_phase(cluster, "first", "Succeeded")


def test_people_get_their_rights_with_kubernetes_own_roles(cluster: Cluster, helm: Helm) -> None:
    helm.install()
    cluster.kubectl("create", "namespace", "team")
    for role in ("view", "edit"):
        cluster.kubectl("create", "rolebinding", role, f"--clusterrole={role}", f"--user={role}er", "--namespace=team")
    # Aggregation is a controller's work.
    cluster.kubectl(
        "wait",
        "--for=jsonpath={.rules[?(@.apiGroups[0]=='dtj.dev')].resources[0]}=distributedtrainingjobs",
        "clusterrole/view",
        "--timeout=30s",
    )
    wait("the API server has heard of it", lambda: may(cluster, "viewer", "list", JOBS), 30)
    assert not may(cluster, "viewer", "create", JOBS)
    assert may(cluster, "editer", "create", JOBS)
    assert not may(cluster, "editer", "patch", JOBS, "--subresource=status"), "the status is the operator's alone"


def test_upgrade_and_rollback_touch_no_pod_of_a_running_job(cluster: Cluster, helm: Helm, tmp_path: Path) -> None:
    helm.install()
    submit(cluster, "lasting")
    await_phase(cluster, "lasting", "Running")
    before = pods_of(cluster, "lasting")
    assert len(before) == 2
    operators = cluster.kubectl("get", "pods", f"--namespace={NAMESPACE}", OPERATORS, "--output=name")

    helm.install(chart=next_chart(tmp_path))
    assert definition_of(cluster) == (NEXT, True)
    assert cluster.kubectl("get", "pods", f"--namespace={NAMESPACE}", OPERATORS, "--output=name") != operators
    await_progress(cluster, "lasting")
    assert pods_of(cluster, "lasting") == before

    helm("rollback", RELEASE, "1", f"--namespace={NAMESPACE}", "--wait", "--timeout=120s")
    assert definition_of(cluster) == (NEXT, True), "a rollback takes no field from any job"
    await_progress(cluster, "lasting")
    helm.install()
    assert definition_of(cluster) == (NEXT, True), "nor does an upgrade to an older chart"
    assert NEXT in helm("get", "notes", RELEASE, f"--namespace={NAMESPACE}")
    assert pods_of(cluster, "lasting") == before
    assert job_of(cluster, "lasting")["phase"] == "Running"
    assert job_of(cluster, "lasting").get("attempt", 0) == 0


def test_two_installs_run_the_jobs_of_different_namespaces(cluster: Cluster, helm: Helm) -> None:
    helm.install({"namespaces": ["default"]})
    cluster.kubectl("create", "namespace", "team")
    helm.install({"namespaces": ["team"], "crds": {"enabled": False}, "nodeAccess": False}, namespace="beside")
    for namespace in ("default", "team"):
        submit(cluster, "mine", namespace=namespace, steps=10)
    for namespace in ("default", "team"):
        await_phase(cluster, "mine", "Succeeded", namespace)
    for own, other in ((NAMESPACE, "team"), ("beside", "default")):
        log = cluster.kubectl("logs", DEPLOYMENT, f"--namespace={own}")
        assert f"{other}/mine" not in log, own


def test_a_namespace_holds_one_install(cluster: Cluster, helm: Helm) -> None:
    helm.install()
    with pytest.raises(HelmError, match=r"dtj-operator.* exists and cannot be imported into the current release"):
        helm(
            "install", "other", str(INSTALL.parent / "charts" / "dtj-operator"), f"--namespace={NAMESPACE}", values=E2E
        )


def test_an_uninstall_leaves_jobs_and_their_pods(cluster: Cluster, helm: Helm) -> None:
    helm.install()
    submit(cluster, "orphaned", steps=400)
    await_phase(cluster, "orphaned", "Running")
    before = pods_of(cluster, "orphaned")
    helm.uninstall()
    assert pods_of(cluster, "orphaned") == before
    assert job_of(cluster, "orphaned")["phase"] == "Running"
    assert definition_of(cluster)[0] == VERSION
    helm.install()
    await_phase(cluster, "orphaned", "Succeeded")
    assert job_of(cluster, "orphaned").get("attempt", 0) == 0


@pytest.fixture
def install_yaml(cluster: Cluster, helm: Helm) -> Iterator[str]:
    yield INSTALL.read_text()
    cluster.kubectl("delete", f"--filename={INSTALL}", "--ignore-not-found")


def test_install_yaml_is_an_install_without_helm(
    cluster: Cluster, install_yaml: str, record_testsuite_property: Any
) -> None:
    """And how long it takes from the Deployment's making until it is ready, with the image on the node."""
    cluster.kubectl("apply", "--filename=-", stdin=install_yaml)
    cluster.kubectl("rollout", "status", DEPLOYMENT, f"--namespace={NAMESPACE}", "--timeout=120s")
    submit(cluster, "plain", steps=10)
    await_phase(cluster, "plain", "Succeeded")
    before = operators_and_generation(cluster)
    cluster.kubectl("apply", "--filename=-", stdin=install_yaml)
    assert operators_and_generation(cluster) == before, "applied again, it changes nothing"

    only = next(part for part in install_yaml.split("---\n") if "kind: Deployment" in part)
    cluster.kubectl("delete", DEPLOYMENT, f"--namespace={NAMESPACE}", "--cascade=foreground")
    started = time.monotonic()
    cluster.kubectl("apply", "--filename=-", stdin=only)
    cluster.kubectl("wait", "--for=condition=Available", DEPLOYMENT, f"--namespace={NAMESPACE}", "--timeout=120s")
    seconds = time.monotonic() - started
    record_testsuite_property("operator: apply to available, seconds", f"{seconds:.1f}")
    print(f"apply of the Deployment to two available replicas: {seconds:.1f} s")


def operators_and_generation(cluster: Cluster) -> tuple[str, str]:
    names = cluster.kubectl("get", "pods", f"--namespace={NAMESPACE}", OPERATORS, "--output=name")
    generation = "--output=jsonpath={.metadata.generation}"
    return names, cluster.kubectl("get", DEPLOYMENT, f"--namespace={NAMESPACE}", generation)


def test_every_value_at_once_is_something_a_server_takes(cluster: Cluster, helm: Helm) -> None:
    everything = {
        "statusReaders": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}],
        "networkPolicy": {"metricsFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}]},
        "autoscaler": True,
        "podLabels": {"team": "platform"},
        "tolerations": [{"key": "system", "operator": "Exists"}],
        "priorityClassName": "system-cluster-critical",
        "extraEnv": [{"name": "TZ", "value": "UTC"}],
        "metrics": {"port": 9090, "dashboard": {"enabled": True}},
    }
    helm.install(merged(everything, {"replicas": 2}))
    assert "answers" in helm("test", RELEASE, f"--namespace={NAMESPACE}", "--logs", "--timeout=120s")
