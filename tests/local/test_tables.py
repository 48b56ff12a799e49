"""The cells that kubectl prints: pods in each of their states, ages, printer columns of custom kinds."""

import datetime
from typing import Any

import pytest

from dtj_operator.local.tables import cells, pods

NOW = datetime.datetime(2026, 11, 30, 12, 0, 0, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"), (-1, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (200, "3m20s"), (599, "9m59s"),
        (600, "10m"), (10799, "179m"), (10800, "3h"), (12000, "3h20m"), (28800, "8h"), (172799, "47h"),
        (172800, "2d"), (180000, "2d2h"), (691200, "8d"), (40000000, "462d"), (70000000, "2y80d"), (400000000, "12y"),
    ],
)  # fmt: skip
def test_an_age_has_one_or_two_units(seconds: int, text: str) -> None:
    assert cells.duration(seconds) == text


def running(ready: bool = True, **rest: Any) -> dict[str, Any]:
    return {"name": "trainer", "ready": ready, "restartCount": 0, "state": {"running": {}}} | rest


def waiting(reason: str) -> dict[str, Any]:
    return {"name": "trainer", "ready": False, "restartCount": 0, "state": {"waiting": {"reason": reason}}}


def ended(**terminated: Any) -> dict[str, Any]:
    return {"name": "trainer", "ready": False, "restartCount": 0, "state": {"terminated": terminated}}


RESTARTED = running(restartCount=2, lastState={"terminated": {"finishedAt": "2026-11-30T11:55:00Z"}})
READY = [{"type": "Ready", "status": "True"}]
INIT = [{"name": "get"}, {"name": "side", "restartPolicy": "Always"}]


@pytest.mark.parametrize(
    ("metadata", "spec", "status", "row"),
    [
        ({}, {}, {"phase": "Pending"}, ["0/1", "Pending", "0"]),
        ({}, {}, {"phase": "Running", "containerStatuses": [running()]}, ["1/1", "Running", "0"]),
        ({}, {}, {"phase": "Running", "containerStatuses": [RESTARTED]}, ["1/1", "Running", "2 (5m ago)"]),
        ({}, {}, {"phase": "Pending", "containerStatuses": [waiting("ImagePullBackOff")]},
         ["0/1", "ImagePullBackOff", "0"]),
        ({}, {}, {"phase": "Succeeded", "containerStatuses": [ended(exitCode=0, reason="Completed")]},
         ["0/1", "Completed", "0"]),
        ({}, {}, {"phase": "Failed", "containerStatuses": [ended(exitCode=3)]}, ["0/1", "ExitCode:3", "0"]),
        ({}, {}, {"phase": "Failed", "containerStatuses": [ended(exitCode=137, signal=9)]}, ["0/1", "Signal:9", "0"]),
        ({}, {}, {"phase": "Failed", "reason": "Evicted"}, ["0/1", "Evicted", "0"]),
        ({}, {}, {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
                                                      "reason": "SchedulingGated"}]}, ["0/1", "SchedulingGated", "0"]),
        ({"deletionTimestamp": "x"}, {}, {"phase": "Running", "containerStatuses": [running()]},
         ["1/1", "Terminating", "0"]),
        ({"deletionTimestamp": "x"}, {}, {"phase": "Succeeded", "containerStatuses": [ended(reason="Completed")]},
         ["0/1", "Completed", "0"]),
        ({}, {"initContainers": INIT}, {"phase": "Pending", "initContainerStatuses": [waiting("PodInitializing")]},
         ["0/2", "Init:0/2", "0"]),
        ({}, {"initContainers": INIT},
         {"phase": "Pending", "initContainerStatuses": [ended(exitCode=1, reason="Error")]},
         ["0/2", "Init:Error", "0"]),
        ({}, {"initContainers": INIT},
         {"phase": "Running", "initContainerStatuses": [ended(exitCode=0), running(name="side", started=True)],
          "containerStatuses": [running()], "conditions": READY}, ["2/2", "Running", "0"]),
    ],
)  # fmt: skip
def test_a_pods_row_tells_what_it_is_doing(metadata: Any, spec: Any, status: Any, row: list[str]) -> None:
    body = {
        "metadata": {"name": "a", "creationTimestamp": "2026-11-30T11:59:00Z", **metadata},
        "spec": {"containers": [{"name": "trainer"}], **spec},
        "status": status,
    }
    assert pods.row(body, NOW)[1:5] == [*row, "60s"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (".spec.a", 1),
        (".spec['a']", 1),
        (".spec.list[0].b", "x"),
        (".spec.list[-1].b", "y"),
        ('.spec.list[?(@.b=="y")].c', 2),
        (".spec.none", None),
        (".metadata.labels.dtj\\.dev/role", "chief"),
        (".spec.list[*].b", "x"),
        ("not a path", None),
    ],
)
def test_a_printer_column_finds_its_value(path: str, value: Any) -> None:
    body = {
        "metadata": {"labels": {"dtj.dev/role": "chief"}},
        "spec": {"a": 1, "list": [{"b": "x", "c": 1}, {"b": "y", "c": 2}]},
    }
    assert cells.at_path(body, path) == value


@pytest.mark.parametrize(
    ("column", "value", "cell"),
    [
        ("integer", 3, 3), ("integer", "x", None), ("number", 1, 1.0), ("boolean", True, True), ("string", "a", "a"),
        ("string", 3, "3"), ("string", ["a", 1], "[a 1]"), ("string", {"b": True}, "map[b:true]"),
        ("date", "2026-11-30T11:59:30Z", "30s"), ("date", "never", "<invalid>"), ("string", None, None),
    ],
)  # fmt: skip
def test_a_printer_column_writes_its_value_by_type(column: str, value: Any, cell: Any) -> None:
    assert cells.custom_cell({"type": column, "jsonPath": ".x"}, {"x": value}, NOW) == cell
