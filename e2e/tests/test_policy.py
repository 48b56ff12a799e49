"""Who reaches what of a job's pods, with NetworkPolicies enforced: TensorFlow's ports ask for no password."""

import json
import subprocess
from collections.abc import Iterator

import pytest

from e2e.chart import NAMESPACE, Helm
from e2e.cluster import Cluster
from e2e.daemon import wait
from e2e.tests.installs import await_phase, submit

TENSORFLOW, STATUS, ANY = 2222, 2280, 45123
"""The last stands for the ephemeral ones that NCCL takes."""
PORTS = (TENSORFLOW, STATUS, ANY)
LISTEN = """
import contextlib, selectors, socket, sys
waiting = selectors.DefaultSelector()
for port in map(int, sys.argv[1:]):
    with contextlib.suppress(OSError):  # somebody listens there already
        waiting.register(socket.create_server(("", port)), selectors.EVENT_READ)
print("listening", flush=True)
while True:
    for key, _ in waiting.select():
        key.fileobj.accept()[0].close()
"""
CONNECT = """
import socket, sys
for port in map(int, sys.argv[2:]):
    try:
        socket.create_connection((sys.argv[1], port), timeout=3).close()
        print(port)
    except OSError:
        pass
"""
pytestmark = pytest.mark.machine


@pytest.fixture(scope="module")
def address(cluster: Cluster) -> Iterator[str]:
    """Of worker 1 of a job that runs, which listens on every port that is tried."""
    Helm(cluster.kubeconfig).install()
    submit(cluster, "closed")
    await_phase(cluster, "closed", "Running")
    listen = ("exec", worker(cluster, 1), "--", "python3", "-c", LISTEN, *map(str, PORTS))
    with subprocess.Popen(cluster.kubectl.command(*listen), stdout=subprocess.PIPE, text=True) as listener:
        assert listener.stdout is not None
        assert listener.stdout.readline() == "listening\n"
        yield cluster.kubectl("get", "pod", worker(cluster, 1), "--output=jsonpath={.status.podIP}")
        listener.kill()
    cluster.kubectl("delete", "dtj", "closed")
    cluster.kubectl("delete", "pods", "--selector=foreign", "--now")


def worker(cluster: Cluster, index: int) -> str:
    selector = f"--selector=dtj.dev/job-name=closed,dtj.dev/index={index}"
    return cluster.kubectl("get", "pods", selector, "--output=jsonpath={.items[0].metadata.name}")


def reached(cluster: Cluster, pod: str, address: str, namespace: str = "default") -> list[int]:
    """The ports to which a program in the pod can connect."""
    connect = ("python3", "-c", CONNECT, address, *map(str, PORTS))
    return [int(port) for port in cluster.kubectl("exec", f"--namespace={namespace}", pod, "--", *connect).split()]


def foreign(cluster: Cluster, name: str, node: str, labels: dict[str, str] | None = None) -> str:
    """A pod that is nobody's, on that node; it listens, too."""
    command = ["python3", "-c", LISTEN, *map(str, PORTS)]
    container = {"name": "main", "image": "dtj/worker:latest", "command": command}
    metadata = {"name": name, "labels": {"foreign": "", **(labels or {})}}
    spec = {"containers": [container], "nodeName": node, "terminationGracePeriodSeconds": 0}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    cluster.kubectl("create", "-f", "-", stdin=json.dumps(manifest))
    cluster.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")
    return name


def test_what_no_policy_closes_is_open(cluster: Cluster, address: str) -> None:
    """So it is the policy, and not the network, that keeps others out below."""
    foreign(cluster, "open", "n2")
    found = cluster.kubectl("get", "pod", "open", "--output=jsonpath={.status.podIP}")
    assert found != address
    for node in ("n1", "n2"):
        pod = foreign(cluster, f"visitor-{node}", node)
        wait("the visitor is let in", lambda pod=pod: reached(cluster, pod, found) == list(PORTS), 60)  # type: ignore[misc]


def test_a_peer_reaches_every_port(cluster: Cluster, address: str) -> None:
    assert reached(cluster, worker(cluster, 0), address) == list(PORTS)


@pytest.mark.parametrize("node", ["n1", "n2", "n3"])
def test_a_foreign_pod_reaches_none(cluster: Cluster, address: str, node: str) -> None:
    """From other nodes and from the same one, where a packet only crosses a bridge."""
    pod = foreign(cluster, f"foreign-{node}", node)
    wait("the firewall knows the pod", lambda: not reached(cluster, pod, address), 60)


def test_a_pod_that_says_it_is_the_operator_reaches_none(cluster: Cluster, address: str) -> None:
    """Its labels are the operator's, its namespace is not."""
    labels = {"app.kubernetes.io/name": "dtj-operator", "app.kubernetes.io/component": "operator"}
    pod = foreign(cluster, "pretender", "n1", labels)
    wait("the firewall knows the pod", lambda: not reached(cluster, pod, address), 60)


def test_the_operator_reaches_the_status_port_alone(cluster: Cluster, address: str) -> None:
    assert reached(cluster, "deployment/dtj-operator", address, NAMESPACE) == [STATUS]
