"""`make demo`: two TensorFlow workers, one killed; the last lines and the object tell the story."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.command import dtj

JOB = Path(__file__).parents[2] / "examples" / "digits" / "job.yaml"


@pytest.mark.tensorflow
async def test_the_digits_survive_a_kill(tmp_path: Path) -> None:
    ended = await dtj(
        "run", "-f", str(JOB), "--fail", "worker:1@step=60", "-o", "json", "--isolate", folder=tmp_path, within=240
    )
    assert ended.code == 0, ended.err
    status = json.loads(ended.out)["status"]
    assert status["phase"] == "Succeeded"
    assert (status["restarts"]["failures"], status["restarts"]["total"]) == (1, 1)
    failure = status["lastFailure"]
    assert (failure["role"], failure["index"], failure["signal"]) == ("worker", 1, "SIGKILL")
    assert (failure["class"], failure["attempt"]) == ("Application", 0)
    first, second = status["timeline"]
    assert (first["outcome"], second["outcome"]) == ("Application", "Succeeded")
    assert second["resumedFromEpoch"] >= 1
    assert 0 < second["resumedFromStep"] <= 60

    killed, resumed, accuracy, end = ended.err.rstrip().splitlines()[-4:]
    assert killed.startswith(f"attempt 0 failed at step {failure['step']} by SIGKILL of worker 1")
    assert resumed == f"attempt 1 resumed at epoch {second['resumedFromEpoch']} (step {second['resumedFromStep']})"
    assert end.startswith("Succeeded after ")
    found = re.fullmatch(r"worker-0: test accuracy (0\.\d+)", accuracy)
    assert found is not None, accuracy
    assert float(found[1]) >= 0.93
