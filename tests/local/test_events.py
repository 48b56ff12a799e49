"""Events about pods as they are posted: their names put them in order."""

import time

import pytest

from dtj_operator.local.api import Api
from dtj_operator.local.events import Recorder
from dtj_operator.local.objects import Objects
from tests.local.calls import pod


def test_the_names_of_events_are_in_the_order_of_their_posting(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = Objects(Api(), "test")
    metadata = objects.create("pods", {**pod(), "metadata": {"name": "a", "namespace": "default"}})["metadata"]
    recorder = Recorder(objects, "kubelet")
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now)
    reasons = [f"R{number}" for number in range(20)]
    for reason in reasons:
        recorder.post(metadata, "Normal", reason, "said")
    events = sorted(objects.all("events"), key=lambda event: event["metadata"]["name"])
    assert [event["reason"] for event in events] == reasons
    assert events[0]["metadata"]["name"] == f"a.{now:016x}"
