"""What the records of a pod's containers add up to: phase and conditions, as a kubelet has them."""

from typing import Literal

import pytest

from dtj_operator.local.node.status import Record, Running, State, Terminated, Waiting, phase, status
from tests.local.embedded import condition

NOW = "2026-01-01T00:00:00Z"
WAITS, RUNS = Waiting("ContainerCreating"), Running(NOW)
DONE = Terminated(exit_code=0, reason="Completed", finished_at=NOW, container_id="dtj://1")
FAILED = Terminated(exit_code=1, reason="Error", finished_at=NOW, container_id="dtj://1")
HELD = Waiting("CrashLoopBackOff")
Kind = Literal["init", "sidecar", "main"]


def records(*those: tuple[Kind, State] | tuple[Kind, State, Terminated]) -> list[Record]:
    return [Record(f"c{n}", "image", one[0], one[1], *one[2:]) for n, one in enumerate(those)]


@pytest.mark.parametrize(("containers", "policy", "expected"), [
    pytest.param(records(("main", WAITS)), "Never", "Pending", id="not started"),
    pytest.param(records(("main", RUNS), ("main", WAITS)), "Never", "Pending", id="one of two not started"),
    pytest.param(records(("main", RUNS)), "Never", "Running", id="runs"),
    pytest.param(records(("main", RUNS), ("main", FAILED)), "Never", "Running", id="one runs on"),
    pytest.param(records(("main", DONE), ("main", DONE)), "Never", "Succeeded", id="all done"),
    pytest.param(records(("main", DONE), ("main", FAILED)), "Never", "Failed", id="one failed"),
    pytest.param(records(("main", DONE)), "Always", "Running", id="done, and comes again"),
    pytest.param(records(("main", HELD, FAILED)), "OnFailure", "Running", id="held back before it comes again"),
    pytest.param(records(("main", DONE)), "OnFailure", "Succeeded", id="done, and does not come again"),
    pytest.param(records(("init", RUNS), ("main", WAITS)), "Never", "Pending", id="init container runs"),
    pytest.param(records(("init", FAILED), ("main", WAITS)), "Never", "Failed", id="init container failed"),
    pytest.param(records(("init", FAILED), ("main", WAITS)), "OnFailure", "Pending", id="init container comes again"),
    pytest.param(records(("sidecar", WAITS), ("main", WAITS)), "Never", "Pending", id="sidecar not started"),
    pytest.param(records(("sidecar", RUNS), ("main", RUNS)), "Never", "Running", id="sidecar and main run"),
    pytest.param(records(("sidecar", RUNS), ("main", DONE)), "Never", "Running", id="sidecar still to be stopped"),
    pytest.param(records(("sidecar", FAILED), ("main", DONE)), "Never", "Succeeded", id="a sidecar's end is none"),
])  # fmt: skip
def test_phase(containers: list[Record], policy: str, expected: str) -> None:
    assert phase(containers, policy) == expected


def test_what_others_wrote_into_a_status_stays() -> None:
    disrupted = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": NOW}
    old = {"qosClass": "Burstable", "conditions": [disrupted]}
    new = status(old, records(("main", RUNS)), "Never", NOW, NOW)
    assert new["qosClass"] == "Burstable"
    assert condition({"status": new}, "DisruptionTarget") == disrupted


def test_a_condition_keeps_the_time_of_its_last_change() -> None:
    later = "2026-01-01T00:00:09Z"
    first = status({}, records(("main", RUNS), ("main", WAITS)), "Never", NOW, NOW)
    second = status(first, records(("main", RUNS), ("main", RUNS)), "Never", NOW, later)
    times = {one["type"]: one["lastTransitionTime"] for one in second["conditions"]}
    assert times == {
        "PodReadyToStartContainers": NOW,
        "Initialized": NOW,
        "Ready": later,
        "ContainersReady": later,
    }


def test_what_never_started_is_no_longer_waited_for_in_the_end() -> None:
    over = status({}, records(("main", WAITS), ("main", HELD, FAILED)), "Always", NOW, NOW, is_over=True)
    assert over["phase"] == "Failed"
    states = [one["state"]["terminated"] for one in over["containerStatuses"]]
    assert [(one["exitCode"], one["reason"]) for one in states] == [(137, "ContainerStatusUnknown"), (1, "Error")]
