"""`make demo`: two TensorFlow workers, one killed; the last lines and the object tell the story."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.command import dtj

JOB = Path(__file__).parents[2] / "examples" / "digits" / "job.yaml"


@pytest.mark.tensorflow(supervised=True)
async def test_the_digits_survive_a_kill(tmp_path: Path) -> None:
    ended = await dtj(
        "run", "-f", str(JOB), "--fail", "worker:1@step=60", "-o", "json", "--isolate", folder=tmp_path, within=500
    )
    assert ended.code == 0, ended.err
    status = json.loads(ended.out)["status"]
    assert status["phase"] == "Succeeded"
    assert (status["restarts"]["failures"], status["restarts"]["total"]) == (1, 1)
    failure = status["lastFailure"]
    assert (failure["role"], failure["index"], failure["signal"]) == ("worker", 1, "SIGKILL")
    assert (failure["class"], failure["attempt"], failure["step"]) == ("Application", 0, 60)
    first, second = status["timeline"]
    assert (first["outcome"], second["outcome"]) == ("Application", "Succeeded")
    assert (second["resumedFromEpoch"], second["resumedFromStep"]) == (5, 55)
    assert (status["checkpoint"]["epoch"], status["checkpoint"]["step"]) == (20, 220)

    assert all("worker-0" in line for line in ended.err.splitlines() if "test accuracy" in line)
    killed, resumed, accuracy, end = ended.err.rstrip().splitlines()[-4:]
    assert killed.startswith("attempt 0 failed at step 60 by SIGKILL of worker 1")
    assert resumed == "attempt 1 resumed at epoch 5 (step 55)"
    assert end.startswith("Succeeded after ")
    found = re.fullmatch(r"worker-0: test accuracy (0\.\d+)", accuracy)
    assert found is not None, accuracy
    assert float(found[1]) >= 0.93
