"""Custom loops on one host: what the digits don't show. Epochs of unknown length, `break`, generators, two loops."""

from pathlib import Path

import pytest

from dtj_worker.contract import Fault
from tests.worker.training.gang import Job, Trainer

pytestmark = pytest.mark.tensorflow


def steps(attempt: list[Trainer]) -> list[str]:
    return [line for line in attempt[0].lines if line.startswith(("first ", "second "))]


def test_two_loops_killed_in_each_of_them(tmp_path: Path) -> None:
    whole = Job(tmp_path / "whole", "loops.py", workers=1, strategy="None").run()
    job = Job(tmp_path / "killed", "loops.py", workers=1, strategy="None")
    attempts = [
        job.run(faults={0: Fault(8, signal="SIGKILL")}),
        job.run(kill_at=lambda report: report.kind == "Saved" and (report.step or 0) >= 22),
        job.run(),
    ]
    assert [attempt[0].code for attempt in attempts] == [-9, -9, 0]
    made = [line for attempt in attempts for line in steps(attempt)]
    assert set(made) <= set(steps(whole))
    assert steps(attempts[1])[0] == steps(whole)[5]
    assert not any(line.startswith("first ") for line in steps(attempts[2]))
    for name in ("after first", "after second"):
        assert attempts[2][0].value(name) == whole[0].value(name)
    assert [r.step for r in whole[0].told("Saved")] == [5, 10, 12, 17, 22, 27]
