"""The child's reports: what reaches the pipe, in which order, and what a fault does."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from dtj_worker.codec import decode, encode
from dtj_worker.contract import Fault, TaskSpec
from dtj_worker.reports import Report
from dtj_worker.training import report
from dtj_worker.training.report import Reporter, first_line


class Pipe:
    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()

    def close(self) -> None:
        os.close(self.reading)
        os.close(self.writing)

    def reports(self) -> list[Report]:
        os.set_blocking(self.reading, False)
        try:
            lines = os.read(self.reading, 1 << 20).decode().splitlines()
        except BlockingIOError:
            return []
        return [decode(Report, line) for line in lines]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.close()


def task(fault: Fault | None = None, attempt: int = 0) -> TaskSpec:
    return TaskSpec(
        namespace="default",
        job="digits",
        uid="3b3f9a52-0000-4000-8000-000000000000",
        task="worker-0",
        attempt=attempt,
        strategy="None",
        chief="worker-0",
        chief_status="127.0.0.1:2280",
        status="127.0.0.1:2280",
        peers={"worker-0": "127.0.0.1:2222"},
        fault=fault,
    )


def test_the_first_step_is_written_at_once_and_the_newest_before_anything_else(pipe: Pipe) -> None:
    reporter = Reporter(pipe.writing)
    for step in range(1, 1000):
        reporter.step(step, epoch=0)
    reporter.saved(999, epoch=1)
    steps = [r.step for r in pipe.reports() if r.kind == "Step"]
    assert steps[0] == 1
    assert steps[-1] == 999
    assert len(steps) < 100


def test_a_step_comes_before_the_save_that_follows_it(pipe: Pipe) -> None:
    reporter = Reporter(pipe.writing)
    reporter.step(1, epoch=0)
    reporter.step(2, epoch=0, epochs=3, loss=0.5, examples_per_s=100.0)
    reporter.saved(2, epoch=0)
    assert pipe.reports() == [
        Report("Step", step=1, epoch=0),
        Report("Step", step=2, epoch=0, epochs=3, loss=0.5, examples_per_s=100.0),
        Report("Saved", step=2, epoch=0),
    ]


def test_a_loss_is_only_computed_when_it_is_written(pipe: Pipe) -> None:
    class Loss:
        reads = 0

        def __float__(self) -> float:
            Loss.reads += 1
            return 0.25

    reporter = Reporter(pipe.writing)
    for step in range(1, 101):
        reporter.step(step, epoch=0, loss=Loss())
    assert Loss.reads == len(pipe.reports())


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_loss_that_json_cannot_hold_is_left_out(pipe: Pipe, loss: float) -> None:
    Reporter(pipe.writing).step(1, epoch=0, loss=loss)
    assert pipe.reports() == [Report("Step", step=1, epoch=0)]


def test_a_phase_is_told_when_it_changes(pipe: Pipe) -> None:
    reporter = Reporter(pipe.writing)
    for name in ("Training", "Training", "Evaluating", "Training"):
        reporter.phase(name)
    assert [r.message for r in pipe.reports()] == ["Training", "Evaluating", "Training"]


def test_after_the_last_call_no_step_is_to_be_expected(pipe: Pipe) -> None:
    reporter = Reporter(pipe.writing)
    for _ in range(2):
        reporter.reports()
        reporter.step(1, 0)
        reporter.phase("")
        before = reporter.phase("Exporting")
        reporter.phase(before)
    phases = [r.message for r in pipe.reports() if r.kind == "Phase"]
    assert phases == ["", "Exporting", "", "", "Exporting", ""]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "{{function_node __wrapped__SaveV2_device_/job:localhost}} /a/b; No space left on device [Op:SaveV2]",
            "/a/b; No space left on device",
        ),
        ("not an sstable (bad magic number)\nand more", "not an sstable (bad magic number)"),
        ("", "RuntimeError"),
    ],
    ids=["of an op", "lines", "nothing"],
)
def test_an_error_is_said_without_what_tensorflow_puts_around_it(text: str, line: str) -> None:
    assert first_line(RuntimeError(text)) == line


@pytest.mark.parametrize("is_ours", [True, False])
def test_another_pipe_under_the_same_number_is_left_alone(pipe: Pipe, is_ours: bool) -> None:
    inode = os.fstat(pipe.writing).st_ino + (0 if is_ours else 1)
    environ = {"DTJ_REPORT_FD": str(pipe.writing), "DTJ_REPORT_PIPE": str(inode)}
    Reporter.from_environment(environ).problem("ValueError: no")
    assert [r.message for r in pipe.reports()] == (["ValueError: no"] if is_ours else [])


def test_nothing_saved_holds_until_the_first_save(pipe: Pipe) -> None:
    reporter = Reporter(pipe.writing)
    reporter.notice("NothingSaved: the first save comes at step 2")
    reporter.saved(2, epoch=0)
    reporter.saved(4, epoch=0)
    assert [r.message for r in pipe.reports() if r.kind == "Notice"] == [
        "NothingSaved: the first save comes at step 2",
        "",
    ]


def test_a_message_is_one_line_that_fits(pipe: Pipe) -> None:
    Reporter(pipe.writing).problem("ValueError: \x1b[31mshapes\n\n  differ\x00 " + "😀" * 2000)
    line = os.read(pipe.reading, 1 << 20)
    message = json.loads(line)["message"]
    assert message.startswith("ValueError: [31mshapes differ 😀")
    assert len(line) < 4096


def test_without_a_supervisor_nothing_happens() -> None:
    reporter = Reporter.from_environment({})
    reporter.step(1, epoch=0)
    reporter.saved(1, epoch=0)


@pytest.mark.parametrize("number", ["", "x", "987654"])
def test_a_descriptor_that_is_no_pipe_is_left_alone(number: str) -> None:
    Reporter.from_environment({"DTJ_REPORT_FD": number}).saved(1, epoch=0)


def test_a_file_that_happens_to_have_the_number_is_not_written_to(tmp_path: Any) -> None:
    path = tmp_path / "data"
    with path.open("wb") as file:
        Reporter.from_environment({"DTJ_REPORT_FD": str(file.fileno())}).saved(1, epoch=0)
    assert path.read_bytes() == b""


def test_a_supervisor_that_is_gone_does_not_end_the_program() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    reporter = Reporter(writing)
    reporter.saved(1, epoch=0)
    reporter.saved(2, epoch=0)
    os.close(writing)


def test_steps_are_dropped_when_the_supervisor_does_not_read(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "STEP_SECONDS", 0)
    monkeypatch.setattr(report, "PATIENCE_SECONDS", 60)
    reporter = Reporter(pipe.writing)
    for step in range(1, 5000):
        reporter.step(step, epoch=0)
    assert 100 < len(pipe.reports()) < 4999


def test_a_fork_is_silent(pipe: Pipe) -> None:
    reporter = Reporter(pipe.writing)
    pid = os.fork()
    if pid == 0:
        reporter.saved(1, epoch=0)
        os._exit(0)
    os.waitpid(pid, 0)
    assert pipe.reports() == []


PROGRAM = """
from dtj_worker.training.report import Reporter
reporter = Reporter.from_environment()
{before}
for step in range({first}, 9):
    reporter.step(step, epoch=0)
"""

SUPERVISOR = """
import os, signal, subprocess, sys
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
code = subprocess.call([sys.executable, "-c", sys.argv[1]], pass_fds=[int(os.environ["DTJ_REPORT_FD"])])
sys.exit(f"child {code}, asked {len(asked)}")
"""


def run(spec: TaskSpec, first: int = 1, before: str = "") -> tuple[str, list[int | None]]:
    """How a program of steps first..8 under a stand-in supervisor ends, and the steps that it reported."""
    reading, writing = os.pipe()
    ended = subprocess.run(
        [sys.executable, "-c", SUPERVISOR, PROGRAM.format(first=first, before=before)],
        env={**os.environ, "DTJ_TASK": encode(spec), "DTJ_REPORT_FD": str(writing)},
        pass_fds=[writing],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    with os.fdopen(reading) as lines:
        reports = [decode(Report, line) for line in lines]
    return ended.stderr.splitlines()[-1], [r.step for r in reports if r.kind == "Step"]


def test_a_program_that_ends_reports_its_last_step() -> None:
    assert run(task()) == ("child 0, asked 0", [1, 8])


@pytest.mark.parametrize(
    ("fault", "end", "last"),
    [
        pytest.param(Fault(5, signal="SIGKILL"), f"child {-signal.SIGKILL}, asked 0", 5, id="the trainer is killed"),
        pytest.param(Fault(5, exit_code=3), "child 3, asked 0", 5, id="the trainer exits 3"),
        pytest.param(Fault(5, signal="SIGTERM"), "child 0, asked 1", 8, id="the supervisor is asked to stop"),
    ],
)
def test_a_fault_fires_at_its_step_and_the_step_is_reported_before(fault: Fault, end: str, last: int) -> None:
    ended, steps = run(task(fault))
    assert ended == end
    assert 5 in steps
    assert steps[-1] == last


def test_a_fault_fires_in_attempt_0_alone() -> None:
    assert run(task(Fault(5, exit_code=3), attempt=1)) == ("child 0, asked 0", [1, 8])


def test_a_fault_that_lies_before_the_restored_step_never_fires() -> None:
    ended, _ = run(task(Fault(5, exit_code=3)), first=6, before="reporter.restored(5, 0)")
    assert ended == "child 0, asked 0"


def test_a_refusal_exits_64_with_its_line_on_stderr(pipe: Pipe) -> None:
    program = 'from dtj_worker.training.report import reporter; reporter().refused("no strategy was created")'
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "DTJ_REPORT_FD": str(pipe.writing)},
        pass_fds=[pipe.writing],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert ended.returncode == 64
    assert ended.stderr == "dtj: no strategy was created\n"
    assert pipe.reports() == [Report("Refused", message="no strategy was created")]
