"""Which node a pod gets, and what it is told while there is none."""

from pathlib import Path
from typing import Any

import pytest

from tests.local.embedded import Embedded, condition, embedded, pod

Json = dict[str, Any]


def with_gpus(name: str, count: int, **spec: Any) -> Json:
    return pod(name, "sleep", "1000", resources={"limits": {"nvidia.com/gpu": str(count)}}, spec=spec or None)


async def test_pods_fill_the_nodes_and_then_wait(tmp_path: Path) -> None:
    async with embedded(tmp_path, nodes=2, gpus=2) as nodes:
        for index in range(5):
            nodes.create(with_gpus(f"p{index}", 1))
        placed = [(await nodes.runs(f"p{index}"))["spec"]["nodeName"] for index in range(4)]
        assert sorted(placed) == ["local-0", "local-0", "local-1", "local-1"]
        waiting = await nodes.until("p4", lambda pod: bool(condition(pod, "PodScheduled")))
        told = condition(waiting, "PodScheduled")
        assert (told["status"], told["reason"]) == ("False", "Unschedulable")
        assert told["message"].startswith("0/2 nodes are available: waiting for 1 × nvidia.com/gpu on one node")
        nodes.objects.delete("pods", nodes.pod("p0")["metadata"], grace_seconds=1)
        await nodes.runs("p4")


async def test_a_gated_pod_waits_for_its_gate(nodes: Embedded) -> None:
    nodes.create(pod("gated", "true", spec={"schedulingGates": [{"name": "dtj.dev/gang"}]}))
    nodes.create(pod("free", "true"))
    await nodes.ended("free")
    gated = nodes.pod("gated")
    assert condition(gated, "PodScheduled")["reason"] == "SchedulingGated"
    nodes.objects.patch("pods", gated["metadata"], {"spec": {"schedulingGates": None}})
    await nodes.ended("gated")


async def test_a_cordoned_node_takes_no_pod(tmp_path: Path) -> None:
    async with embedded(tmp_path) as nodes:
        await nodes.kubectl("cordon", "local-0")
        nodes.create(pod("waits", "true"))
        told = await nodes.until_event("waits", "FailedScheduling")
        assert told == "0/1 nodes are available: waiting for a node for these pods: 1 node is cordoned."
        await nodes.kubectl("uncordon", "local-0")
        await nodes.ended("waits")


@pytest.mark.parametrize("scheduler", ["volcano"])
async def test_pods_of_another_scheduler_are_left_to_it(nodes: Embedded, scheduler: str) -> None:
    nodes.create(pod("theirs", "true", spec={"schedulerName": scheduler}))
    nodes.create(pod("ours", "true"))
    await nodes.ended("ours")
    assert "nodeName" not in nodes.pod("theirs")["spec"]
