"""What a program reports moves it from stage to stage; which deadline runs then, and what holds it."""

import math
from typing import Any

import pytest

from dtj_worker.contract import Limits
from dtj_worker.reports import Report
from dtj_worker.supervisor.progress import SILENT_SECONDS, Progress

LIMITS = Limits(program_seconds=100, rendezvous_seconds=50, first_step_seconds=200, stall_seconds=20)


def after(*reports: Report, has_peers: bool = True) -> Progress:
    """A program that was started at 0 and has reported all of this at 10."""
    made = Progress(LIMITS, has_peers=has_peers)
    made.started(0)
    made.look(10)
    for report in reports:
        made.hear(report, 10)
    return made


CONSTRUCTING, BUILT, REPORTS = (
    Report("Constructing", message="MyStrategy"),
    Report("Built", replicas=2),
    Report("Reports"),
)
STEP = Report("Step", step=1, epoch=0)


def phase(name: str) -> Report:
    return Report("Phase", message=name)


@pytest.mark.parametrize(
    ("reports", "stage", "due", "kind", "message"),
    [
        pytest.param([], "Program", 100, "Stall", "no strategy was created within 100 s", id="started"),
        pytest.param(
            [CONSTRUCTING], "Rendezvous", 60, "Rendezvous", "MyStrategy was not built within 50 s", id="rendezvous"
        ),
        pytest.param([CONSTRUCTING, BUILT], "Built", math.inf, None, "", id="built, and nobody says that steps follow"),
        pytest.param([BUILT, REPORTS], "Built", 210, "Stall", "no first step within 200 s", id="steps will follow"),
        pytest.param([REPORTS], "Built", 210, "Stall", "no first step within 200 s", id="fit without a strategy"),
        pytest.param([STEP], "Training", 30, "Stall", "no step for 20 s, after step 1", id="steps"),
        pytest.param(
            [STEP, phase("Evaluating")], "Evaluating", 90, "Stall", "evaluating took more than 80 s", id="evaluates"
        ),
        pytest.param([STEP, phase("Saving")], "Saving", 30, "Stall", "saving took more than 20 s", id="saves"),
        pytest.param([STEP, phase("Exporting")], "Saving", 50, "Stall", "exporting took more than 40 s", id="exports"),
        pytest.param([STEP, phase("Saving"), phase("Training")], "Training", 30, "Stall", "no step", id="trains again"),
        pytest.param([STEP, phase("")], "Training", math.inf, None, "", id="after its last fit"),
        pytest.param(
            [STEP, phase(""), REPORTS], "Training", 30, "Stall", "no step for 20 s, after step 1", id="another fit"
        ),
        pytest.param([REPORTS, phase("Training")], "Built", 210, "Stall", "no first step", id="no step yet"),
        pytest.param(
            [STEP, CONSTRUCTING, BUILT], "Training", 30, "Stall", "no step", id="a second strategy changes nothing"
        ),
    ],
)
def test_the_deadline_of_a_stage(reports: list[Report], stage: str, due: float, kind: str | None, message: str) -> None:
    p = after(*reports)

    assert p.stage == stage
    if kind is None:
        assert p.overdue(1e9) is None
        return
    assert p.overdue(due - 0.1) is None
    found = p.overdue(due)
    assert found is not None
    assert (found[0], message in found[1]) == (kind, True), found[1]


@pytest.mark.parametrize(
    ("reports", "due"),
    [
        pytest.param([Report("Busy", message="download")], 150, id="before the strategy"),
        pytest.param([REPORTS, Report("Busy", message="compile")], 260, id="before the first step"),
        pytest.param([STEP, Report("Busy", message="upload")], 80, id="between steps"),
    ],
)
def test_busy_pauses(reports: list[Report], due: float) -> None:
    p = after(*reports)
    for now in range(11, 61):
        p.look(now)
    p.hear(Report("Busy", message=""), 60)

    assert p.overdue(due - 0.1) is None
    assert p.overdue(due)


def test_busy_does_not_hold_a_rendezvous_but_a_busy_peer_does() -> None:
    p = after(Report("Busy", message="download"), CONSTRUCTING)
    p.look(40)
    assert p.overdue(60)

    p.held_by = "worker-1: download"
    p.look(60)
    assert p.overdue(79.9) is None
    assert p.overdue(80)


def test_a_single_host_program_that_says_nothing_counts_as_running() -> None:
    stages = []
    p = after(has_peers=False)
    for now in (SILENT_SECONDS, SILENT_SECONDS + 1):
        p.look(now)
        stages.append(p.stage)

    assert stages == ["Program", "Built"]
    assert p.overdue(1e9) is None


def test_a_program_without_reports_is_seen_by_its_port() -> None:
    p = after(Report("Notice", message="serving"))
    p.heard_port(11)

    assert p.stage == "Built"
    assert p.overdue(1e9) is None


def test_a_program_that_reports_is_believed_more_than_its_port() -> None:
    p = after(CONSTRUCTING)
    p.heard_port(11)

    assert p.stage == "Rendezvous"


def test_what_is_told_of_a_step() -> None:
    p = after(Report("Step", 10, 1, 5, 0.5, 100.0))
    p.hear(Report("Step", 20, 2, None, math.nan, None), 15)

    assert (p.step, p.epoch, p.epochs, p.loss, p.examples_per_s) == (20, 2, 5, 0.5, 100.0)
    assert p.step_seconds == 0.5
    assert p.seconds_since_step(18) == 3


@pytest.mark.parametrize(
    ("report", "field", "value"),
    [
        (Report("Restored", step=60, epoch=3), "resumed", (60, 3)),
        (Report("Restored", step=60, epoch=3), "step", 60),
        (Report("Saved", step=70, epoch=4), "checkpoint", (70, 4)),
        (Report("Built", replicas=4, global_batch=128), "global_batch", 128),
        (Report("Problem", message="ValueError: no"), "problem", "ValueError: no"),
        (Report("Refused", message="no batch"), "refused", "no batch"),
        (Report("Notice", message="NothingSaved: …"), "notice", "NothingSaved: …"),
    ],
)
def test_what_else_is_told(report: Report, field: str, value: Any) -> None:
    assert getattr(after(report), field) == value


def test_a_restored_position_is_no_step() -> None:
    p = after(REPORTS, Report("Restored", step=60, epoch=3))

    assert p.stage == "Built"
    assert p.seconds_since_step(20) is None


def test_a_program_that_its_exception_does_not_end() -> None:
    failed = Report("Problem", message="ValueError: no", process=77)

    assert after(failed).lingering(10 + LIMITS.grace_seconds) is None
    assert after(failed).lingering(10.1 + LIMITS.grace_seconds) == 77
    assert after(failed, CONSTRUCTING).lingering(1e9) is None
    assert after(failed, CONSTRUCTING).problem is None


def test_half_of_the_time_for_the_first_step() -> None:
    p = after(REPORTS)

    assert not p.is_slow_to_step(110)
    assert p.is_slow_to_step(111)
