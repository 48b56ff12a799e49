"""`dtj run` from the outside: what it prints where, its exit code, and what is left of it."""

import asyncio
import json
import os
import pty
import signal
from pathlib import Path

import pytest
import yaml

from tests.cli.command import CLAIM, DTJ, PATIENCE_SECONDS, all_gone, counting, dtj, folders, started, until_line, write

STEPS = ("--steps", "100", "--step-seconds", "0.02")


@pytest.mark.parametrize(
    ("fault", "restarts", "failure", "story"),
    [
        pytest.param(
            "worker:1@step=60",
            {"failures": 1, "total": 1},
            {"class": "Application", "role": "worker", "index": 1, "signal": "SIGKILL"},
            "attempt 0 failed at step 60 by SIGKILL of worker 1 (Application)",
            id="a program is killed",
        ),
        pytest.param(
            "worker:0@step=60:exit=3",
            {"failures": 1, "total": 1},
            {"class": "Application", "role": "worker", "index": 0, "exitCode": 3},
            "attempt 0 failed at step 60 by exit code 3 of worker 0 (Application)",
            id="a program exits",
        ),
        pytest.param(
            "worker:1@step=60:SIGTERM",
            {"disruptions": 1, "total": 1},
            {"class": "Preempted", "role": "worker", "index": 1},
            "attempt 0 failed",
            id="a supervisor is asked to stop",
        ),
    ],
)
async def test_a_fault_costs_one_restart(
    tmp_path: Path, fault: str, restarts: dict[str, int], failure: dict[str, object], story: str
) -> None:
    file = write(tmp_path, CLAIM, counting(*STEPS))
    ended = await dtj("run", "-f", file, "--fail", fault, "-o", "json", folder=tmp_path)

    assert ended.code == 0, ended.err
    # The whole of the standard output is the object.
    job = json.loads(ended.out)
    assert (job["apiVersion"], job["kind"]) == ("dtj.dev/v1alpha1", "DistributedTrainingJob")
    status = job["status"]
    assert status["phase"] == "Succeeded"
    assert "cleanup" not in status
    assert status["restarts"] == {"failures": 0, "disruptions": 0, "stalls": 0, **restarts}
    assert {field: status["lastFailure"].get(field) for field in failure} == failure
    assert status["lastFailure"]["attempt"] == 0
    first, second = status["timeline"]
    assert (first["attempt"], first["outcome"]) == (0, failure["class"])
    assert (second["attempt"], second["outcome"]) == (1, "Succeeded")
    assert 10 <= second["resumedFromStep"] <= 60
    assert second["resumedFromEpoch"] == second["resumedFromStep"] // 10

    told = ended.err.rstrip().splitlines()
    assert told[-4].startswith(story)
    assert told[-3] == f"attempt 1 resumed at epoch {second['resumedFromEpoch']} (step {second['resumedFromStep']})"
    assert told[-2] == "worker-0: worker-0: counted to 100"
    assert told[-1].startswith("Succeeded after ")
    assert "worker-1 | worker-1: counted to 100" in told
    assert folders(tmp_path) == []


async def test_a_fault_behind_the_last_step(tmp_path: Path) -> None:
    """Whoever proves recovery by it has proved nothing."""
    ended = await dtj(
        "run", "-f", write(tmp_path, CLAIM, counting("--steps", "20")), "--fail", "worker:1@step=1000", folder=tmp_path
    )
    assert ended.code == 4, ended.err
    *_, outcome, last = ended.out.splitlines()
    assert outcome.startswith("Succeeded after ")
    assert last.startswith("--fail worker:1@step=1000 never came: the job ended, and ")


async def test_a_job_that_fails(tmp_path: Path) -> None:
    job = counting("--steps", "5", "--exit-code", "7", recovery={"maxRestarts": 0})
    file = write(tmp_path, job)
    ended = await dtj("run", "-f", file, "-o", "yaml", "--keep", "kept", "--make-claims", folder=tmp_path)
    assert ended.code == 1
    assert yaml.safe_load(ended.out)["status"]["lastFailure"]["exitCode"] == 7
    assert "Failed after " in ended.err.splitlines()[-2]
    assert ended.err.splitlines()[-1] == "logs and checkpoints are kept in kept"
    assert (tmp_path / "kept" / "operator.log").is_file()
    logs = (tmp_path / "kept" / "pods").glob("default_count-worker-*_*-*/logs/trainer/0.log")
    assert any("counted to 5" in log.read_text() for log in logs)


async def test_a_job_that_is_not_over_in_time(tmp_path: Path) -> None:
    """From the standard input. Without -o everything goes to the standard output."""
    write(tmp_path)
    text = yaml.safe_dump_all([CLAIM, counting("--steps", "100000")])
    ended = await dtj("run", "-f", "-", "--timeout", "12.5", "--quiet", "--keep", "kept", folder=tmp_path, stdin=text)
    assert ended.code == 124
    assert "default/count: not over after 12.5 s (--timeout)" in ended.out
    assert ended.out.endswith("\nlogs and checkpoints are kept in kept\n")
    assert ended.err == ""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_interrupted(tmp_path: Path, number: int, code: int) -> None:
    file = write(tmp_path, CLAIM, counting("--steps", "100000"))
    async with started("run", "-f", file, "--keep", "kept", folder=tmp_path) as process:
        await until_line(process.stdout, "Running")
        process.send_signal(number)
        await until_line(process.stdout, "logs and checkpoints are kept in kept")
        await process.wait()
        assert process.returncode == code
    await all_gone(tmp_path)
    assert folders(tmp_path) == ["kept"]


async def test_a_terminal_gets_a_table(tmp_path: Path) -> None:
    file = write(tmp_path, CLAIM, counting("--steps", "20"))
    ours, theirs = pty.openpty()
    seen = asyncio.create_task(asyncio.to_thread(read_terminal, ours))
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "TMPDIR": str(tmp_path)}
    process = await asyncio.create_subprocess_exec(
        DTJ, "run", "-f", file, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()  # else the thread would read for ever
        shown = await seen
    assert process.returncode == 0, shown.decode()
    assert b"TASK" in shown
    assert b"attempt 0, restarts 0, " in shown
    assert b"ended with 0" in shown
    assert b"worker-1: counted to 20" in shown


def read_terminal(ours: int) -> bytes:
    """Everything that is written to it, until nobody has it open any more."""
    shown = b""
    try:
        while data := os.read(ours, 4096):
            shown += data
    except OSError:
        pass  # Linux tells the end of a terminal as an error.
    finally:
        os.close(ours)
    return shown


async def test_killed(tmp_path: Path) -> None:
    file = write(tmp_path, CLAIM, counting("--steps", "100000"))
    async with started("run", "-f", file, folder=tmp_path) as process:
        await until_line(process.stdout, "Running")
        process.kill()
    await all_gone(tmp_path)
