"""The annotation that injects a failure."""

import pytest

from dtj_operator.api.fault import parse_fault
from dtj_worker.contract import Fault, Task


@pytest.mark.parametrize(
    ("text", "task", "fault"),
    [
        ("worker:1@step=60", Task("worker", 1), Fault(step=60, signal="SIGKILL")),
        ("worker:1@step=60:SIGKILL", Task("worker", 1), Fault(step=60, signal="SIGKILL")),
        (" chief:0@step=1:SIGTERM\n", Task("chief", 0), Fault(step=1, signal="SIGTERM")),
        ("ps:12@step=600:exit=3", Task("ps", 12), Fault(step=600, exit_code=3)),
        ("evaluator:0@step=2:exit=0", Task("evaluator", 0), Fault(step=2, exit_code=0)),
    ],
)
def test_faults(text: str, task: Task, fault: Fault) -> None:
    assert parse_fault(text) == (task, fault)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "worker:1",
        "worker-1@step=60",
        "master:0@step=1",
        "worker:1@step=0",
        "worker:1@step=x",
        "worker:1@step=60:SIGHUP",
        "worker:1@step=60:exit=256",
        "worker:1@step=60:exit=-1",
        "worker:1@step=60,worker:2@step=1",
        "worker:\N{ARABIC-INDIC DIGIT ONE}@step=1",
    ],
)
def test_what_is_no_fault(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no fault; expected role:index@step=N|an exit code is at most 255"):
        parse_fault(text)
