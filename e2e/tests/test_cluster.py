"""The cluster itself: what a test or a person is promised of it, tried with pods that do nothing."""

import contextlib
import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.cluster import Cluster, attached
from e2e.daemon import wait
from e2e.node import ip
from e2e.runtime import PAUSE, pause

Json = dict[str, Any]
KUBELET_PORT = 10250
pytestmark = pytest.mark.machine


@pytest.fixture(autouse=True)
def no_pods(cluster: Cluster) -> Iterator[None]:
    yield
    cluster.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")


def pod(name: str, *, node: str = "", image: str = PAUSE, gpus: int = 0, policy: str = "IfNotPresent") -> str:
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    container = {"name": "main", "image": image, "imagePullPolicy": policy, "resources": {"limits": limits}}
    selector = {"kubernetes.io/hostname": node} if node else {}
    spec = {"containers": [container], "nodeSelector": selector, "restartPolicy": "Never"}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


def hungry(gpus: int) -> str:
    """A pod for these, and another where that one fails."""
    one = json.loads(pod("hungry", gpus=gpus))["spec"] | {"restartPolicy": "Always"}
    template = {"metadata": {"labels": {"app": "hungry"}}, "spec": one}
    spec = {"selector": {"matchLabels": {"app": "hungry"}}, "template": template}
    return json.dumps({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "hungry"}, "spec": spec})


def run(cluster: Cluster, manifest: str) -> Json:
    """Create a pod; the object as soon as it is ready."""
    name = json.loads(manifest)["metadata"]["name"]
    cluster.kubectl("create", "-f", "-", stdin=manifest)
    cluster.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")
    return got(cluster, f"pod/{name}")


def got(cluster: Cluster, name: str) -> Json:
    found: Json = json.loads(cluster.kubectl("get", name, "--output=json"))
    return found


def why_it_waits(pod: Json) -> str:
    states = [status["state"] for status in pod["status"].get("containerStatuses", [])]
    return " ".join(state["waiting"].get("message", "") for state in states if "waiting" in state)


def processes(cluster: Cluster, pod: Json) -> list[int]:
    container = pod["status"]["containerStatuses"][0]["containerID"]
    return cluster.nodes[pod["spec"]["nodeName"]].processes(pod["metadata"]["uid"], container)


def answers(address: str, port: int = KUBELET_PORT) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=2):
        return True
    return False


def test_all_nodes_are_ready_and_offer_gpus(cluster: Cluster) -> None:
    nodes = json.loads(cluster.kubectl("get", "nodes", "--output=json"))["items"]
    assert [node["metadata"]["name"] for node in nodes] == ["n1", "n2", "n3"]
    assert {node["status"]["allocatable"]["nvidia.com/gpu"] for node in nodes} == {"4"}
    assert {node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes} == {f"v{cluster.version}"}
    assert (
        json.loads(cluster.kubectl("version", "--output=json"))["serverVersion"]["gitVersion"] == f"v{cluster.version}"
    )


def test_more_gpus_let_a_pod_in(cluster: Cluster) -> None:
    """One that comes again: a kubelet that has not heard of its own node's GPUs yet refuses the first pod for them."""
    replicas, pods = "replicaset/hungry", ("pods", "--selector=app=hungry")
    cluster.kubectl("create", "-f", "-", stdin=hungry(gpus=6))
    try:
        cluster.kubectl("wait", "--for=jsonpath={.status.replicas}=1", replicas, "--timeout=60s")
        cluster.kubectl("wait", "--for=condition=PodScheduled=false", *pods, "--timeout=60s")
        cluster.nodes["n2"].set_gpus(8)
        cluster.kubectl("wait", "--for=jsonpath={.status.readyReplicas}=1", replicas, "--timeout=60s")
        found = json.loads(cluster.kubectl("get", *pods, "--output=json"))["items"]
        assert {pod["spec"]["nodeName"] for pod in found} == {"n2"}
    finally:
        cluster.kubectl("delete", replicas)
        cluster.nodes["n2"].set_gpus(4)


def test_pods_reach_the_api_server_by_its_name(cluster: Cluster) -> None:
    """From here as from a pod: the cluster's DNS, and a Service's address through a node's kube-proxy."""
    assert socket.gethostbyname("kubernetes.default.svc.cluster.local") == "10.96.0.1"
    assert answers("10.96.0.1", 443)


def test_who_attaches_disturbs_nothing(cluster: Cluster) -> None:
    """kube-proxy ends when its file is written, whatever is in it."""
    read = cluster.folder / "n1" / "kube-proxy.json"
    written_at = read.stat().st_mtime_ns
    names = ("get", "nodes", "--output=name")
    assert attached(cluster.folder).kubectl(*names) == cluster.kubectl(*names)
    assert read.stat().st_mtime_ns == written_at


def test_an_image_that_does_not_exist_is_told_so(cluster: Cluster) -> None:
    cluster.kubectl("create", "-f", "-", stdin=pod("none", image="example.org/no/such:1"))

    wait("it is not found", lambda: "no/such:1: not found" in why_it_waits(got(cluster, "pod/none")), 60)


def test_a_loaded_image_is_there_and_can_be_pulled(cluster: Cluster, tmp_path: Path) -> None:
    image = "example.org/team/other:2"
    cluster.load(pause(tmp_path / "other.tar", image), "n1")
    run(cluster, pod("loaded", node="n1", image=image, policy="Never"))
    run(cluster, pod("pulled", node="n3", image=image, policy="Always"))


def test_a_container_dies_with_its_first_process(cluster: Cluster) -> None:
    there = run(cluster, pod("mortal"))
    first, *others = processes(cluster, there)
    assert Path(f"/proc/{first}/exe").readlink().name == "pause"
    assert not others
    os.kill(first, signal.SIGKILL)
    cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Failed", "pod/mortal", "--timeout=60s")
    ended = got(cluster, "pod/mortal")["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ended["exitCode"] == 128 + signal.SIGKILL


def test_without_its_kubelet_a_node_runs_on_unheard(cluster: Cluster) -> None:
    node = cluster.nodes["n2"]
    there = run(cluster, pod("left", node="n2"))
    node.stop_kubelet()
    try:
        assert not answers(node.address)
        assert processes(cluster, there)
    finally:
        node.start_kubelet()
    assert answers(node.address)
    assert got(cluster, "node/n2")["status"]["allocatable"]["nvidia.com/gpu"] == "4"
    assert processes(cluster, got(cluster, "pod/left")) == processes(cluster, there)


def test_a_node_that_is_cut_off_is_not_reached(cluster: Cluster) -> None:
    node = cluster.nodes["n3"]
    node.cut()
    try:
        assert not answers(node.address)
        assert answers(cluster.nodes["n1"].address)
    finally:
        node.mend()
    wait("n3 answers again", lambda: answers(node.address), 30)


def test_a_killed_node_has_no_process_left_and_comes_back_as_new(cluster: Cluster) -> None:
    node = cluster.nodes["n3"]
    there = run(cluster, pod("lost", node="n3"))
    assert processes(cluster, there)
    node.kill()
    assert not processes(cluster, there)
    assert not [pid for pid in Path("/proc").glob("[0-9]*") if in_folder(pid, node.folder)]
    cluster.kubectl("delete", "pod", "lost", "--grace-period=0", "--force")
    node.restore()
    assert got(cluster, "node/n3")["status"]["allocatable"]["nvidia.com/gpu"] == "4"
    run(cluster, pod("again", node="n3"))


def test_a_node_is_restored_whatever_became_of_it(cluster: Cluster) -> None:
    """It runs unheard, and then somebody's attempt to restore it broke off half-way."""
    node = cluster.nodes["n3"]
    there = run(cluster, pod("unheard", node="n3"))
    node.stop_kubelet()
    ip("link", "delete", "v3")
    node.restore()
    assert not processes(cluster, there)
    assert got(cluster, "node/n3")["status"]["allocatable"]["nvidia.com/gpu"] == "4"


def in_folder(process: Path, folder: Path) -> bool:
    with contextlib.suppress(OSError):
        return f"{folder}/".encode() in (process / "cmdline").read_bytes()
    return False


def test_api_server_and_etcd_come_back_with_everything(cluster: Cluster) -> None:
    there = run(cluster, pod("kept"))
    cluster.restart_api_server()
    assert got(cluster, "pod/kept")["metadata"] == there["metadata"]
    cluster.restart_etcd()
    wait("etcd serves through the API server", lambda: bool(got(cluster, "pod/kept")), 30)
    assert got(cluster, "pod/kept")["metadata"]["uid"] == there["metadata"]["uid"]


def test_the_audit_log_says_who_did_what(cluster: Cluster) -> None:
    cluster.kubectl("create", "configmap", "audited")
    cluster.kubectl("delete", "configmap", "audited")
    lines = [json.loads(line) for line in cluster.audit_log.read_text().splitlines() if '"audited"' in line]
    assert [(line["user"]["username"], line["verb"], line["level"]) for line in lines if line["verb"] != "get"] == [
        ("admin", "create", "Metadata"),
        ("admin", "delete", "Metadata"),
    ]
