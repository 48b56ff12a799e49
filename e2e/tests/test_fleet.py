"""Gangs of a size that this machine could never run, on nodes that are played."""

import json

import pytest

from e2e.chart import Helm
from e2e.cluster import Cluster
from e2e.daemon import wait
from e2e.fleet import PLACEMENT, fleet
from e2e.tests.installs import job_of, submit
from tests.worlds.world import on

WORKERS, NODES, GPUS = 32, 40, 8
pytestmark = [pytest.mark.machine, pytest.mark.thorough]


def nodes_of(cluster: Cluster, name: str) -> list[str]:
    """Where a job's pods are; empty for one that is nowhere yet."""
    found = json.loads(cluster.kubectl("get", "pods", f"--selector=dtj.dev/job-name={name}", "--output=json"))
    return [pod["spec"].get("nodeName", "") for pod in found["items"]]


def test_a_gang_of_32_whole_nodes_is_bound_and_the_next_holds_none(cluster: Cluster, helm: Helm) -> None:
    helm.install()
    with fleet(cluster, NODES, GPUS) as names:
        try:
            submit(cluster, "first", workers=WORKERS, trainer=on(GPUS), pod=PLACEMENT)
            cluster.kubectl("wait", "--for=condition=GangScheduled", "dtj/first", "--timeout=120s")
            bound = nodes_of(cluster, "first")
            assert len({*bound} & {*names}) == len(bound) == WORKERS

            submit(cluster, "second", workers=WORKERS, trainer=on(GPUS), pod=PLACEMENT)
            wait("it waits for room", lambda: "nvidia.com/gpu" in waiting_for(cluster, "second"), 60)
            assert nodes_of(cluster, "second") == [], f"{NODES - WORKERS} nodes are free, and none is held"

            cluster.kubectl("delete", "dtj", "first", "--timeout=60s")
            cluster.kubectl("wait", "--for=condition=GangScheduled", "dtj/second", "--timeout=120s")
            assert len({*nodes_of(cluster, "second")} & {*names}) == WORKERS
        finally:
            cluster.kubectl("delete", "dtj", "--all", "--timeout=60s")
            wait("their pods are gone", lambda: not (nodes_of(cluster, "first") + nodes_of(cluster, "second")), 60)


def waiting_for(cluster: Cluster, name: str) -> str:
    return str(job_of(cluster, name).get("gang", {}).get("waitingFor", ""))
