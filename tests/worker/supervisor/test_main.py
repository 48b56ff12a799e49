"""One supervisor and its program: what is refused before the start, what the program finds, what can't get away."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from dtj_worker.codec import decode
from dtj_worker.contract import CheckpointPlan, ConfigFault, Limits, TaskSpec
from dtj_worker.supervisor import choice, preflight
from tests.worker.supervisor.gang import COUNTER, Gang, Trainer, is_alive, until

MakeGang = Callable[..., Gang]


def python(job: Gang, code: str, environ: Mapping[str, str | None] | None = None) -> Trainer:
    return job.start("worker-0", "--", sys.executable, "-c", code, environ=environ)


@pytest.mark.parametrize(
    ("words", "environ", "message"),
    [
        pytest.param(["nothing.py"], {}, "program nothing.py: No such file or directory", id="no such program"),
        pytest.param(["train.py"], {"TF_CONFIG": "{"}, "TF_CONFIG is not JSON", id="a bad TF_CONFIG"),
        pytest.param(
            ["train.py"], {"DTJ_TASK": "{}"}, "DTJ_TASK: TaskSpec: missing namespace, job", id="a bad DTJ_TASK"
        ),
        pytest.param(["train.py"], {"DTJ_TOKEN": None}, "DTJ_TASK is set, but DTJ_TOKEN is not", id="no token"),
    ],
)
def test_what_can_not_heal_ends_at_once(
    gang: MakeGang, words: list[str], environ: dict[str, str | None], message: str
) -> None:
    trainer = gang("worker-0").start("worker-0", *words, environ=environ)

    assert trainer.end() == 64
    assert (trainer.verdict.kind, trainer.verdict.by, trainer.verdict.task) == ("Config", "supervisor", "worker-0")
    assert trainer.verdict.message.startswith(message)
    assert trainer.log.strip().splitlines()[-1] == f"dtj-worker: worker-0: {trainer.verdict.message}"


def test_a_program_that_is_killed_within_a_line(gang: MakeGang) -> None:
    code = "import os, signal; os.write(2, b'bad args'); os.kill(os.getpid(), signal.SIGKILL)"
    trainer = python(gang("worker-0"), code)

    assert trainer.end() == 128 + signal.SIGKILL
    assert trainer.log.splitlines()[-2:] == ["bad args", f"dtj-worker: worker-0: {trainer.verdict.message}"]


def test_a_program_without_its_interpreter(gang: MakeGang, tmp_path: Path) -> None:
    script = tmp_path / "train"
    script.write_text("#!/no/such/python\n")
    script.chmod(0o755)
    trainer = gang("worker-0").start("worker-0", "--", str(script))

    assert trainer.end() == 64
    assert trainer.verdict.message == f"program {script} can't be started: No such file or directory"


def test_a_checkpoint_folder_that_can_not_be_written(gang: MakeGang, tmp_path: Path) -> None:
    (tmp_path / "volume").write_text("")
    trainer = gang("worker-0", checkpoint=CheckpointPlan(str(tmp_path / "volume" / "ml"))).start("worker-0")

    assert trainer.end() == 64
    assert "can't be written: Not a directory" in trainer.verdict.message


def test_a_folder_of_another_user(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become someone else")
    os.seteuid(65534)
    try:
        with pytest.raises(ConfigFault) as found:
            choice.check(CheckpointPlan(str(tmp_path)), tmp_path / "checkpoints")
    finally:
        os.seteuid(0)

    assert "Permission denied; this is user 65534: does the volume belong to another one?" in str(found.value)


def test_a_port_that_another_process_keeps() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(preflight.PortTaken, match=f"port {port} is in use by another process, still after 0.3 s"):
            preflight.wait_for_port(port, 0.3)


def test_a_port_whose_last_user_has_gone_is_free() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    with socket.create_connection(("127.0.0.1", port)), server.accept()[0] as accepted:
        accepted.close()  # Whoever closes first keeps the port in TIME_WAIT.
        server.close()

    preflight.wait_for_port(port, 0)


def test_a_port_that_becomes_free_is_waited_for(gang: MakeGang) -> None:
    job = gang("worker-0")
    with socket.create_server(("127.0.0.1", job.ports["worker-0"])):
        trainer = job.start("worker-0", COUNTER, "--steps", "1")
        job.status_when(lambda s: s.tasks["worker-0"] == "Waiting")

    assert trainer.end() == 0


def test_nothing_is_left_of_a_notebook(gang: MakeGang, tmp_path: Path) -> None:
    notebook = tmp_path / "train.ipynb"
    notebook.write_text(json.dumps({"cells": [{"cell_type": "code", "source": ["print('trained')"]}]}))
    (tmp_path / "scratch").mkdir()
    trainer = gang("worker-0").start("worker-0", str(notebook), environ={"TMPDIR": str(tmp_path / "scratch")})

    assert trainer.end() == 0
    assert "trained" in trainer.log
    assert list((tmp_path / "scratch").iterdir()) == []


def test_what_the_program_finds(gang: MakeGang, tmp_path: Path) -> None:
    plan = CheckpointPlan(str(tmp_path / "checkpoints"))
    job = gang("worker-0", attempt=2, checkpoint=plan)
    shows = "import json, os; print('found', json.dumps(dict(os.environ)))"
    trainer = python(job, shows, {"HOME": "/", "OMP_NUM_THREADS": "7"})

    assert trainer.end() == 0
    line = next(line for line in trainer.log.splitlines() if line.startswith("found "))
    environ = json.loads(line.removeprefix("found "))
    assert decode(TaskSpec, environ["DTJ_TASK"]) == job.spec("worker-0")
    assert environ["DTJ_CHECKPOINT_FOLDER"] == f"{plan.directory}/{job.uid[:8]}/attempt-2"
    assert environ["DTJ_REPORT_PIPE"].isdecimal()
    assert "DTJ_TOKEN" not in environ
    assert "DTJ_TERMINATION_LOG" not in environ
    assert environ["PYTHONUNBUFFERED"] == environ["PYTHONFAULTHANDLER"] == "1"
    assert os.access(environ["HOME"], os.W_OK)
    assert environ["HOME"] != "/"
    assert environ["OMP_NUM_THREADS"] == "7"
    assert environ["PYTHONPATH"].split(":")[0].endswith("dtj_worker/training/site")


def test_the_working_directory_is_importable(gang: MakeGang) -> None:
    job = gang("worker-0")
    (job.folder("worker-0") / "scripts").mkdir()
    (job.folder("worker-0") / "scripts" / "train.py").write_text("import helper")
    (job.folder("worker-0") / "helper.py").write_text("print('helper of the working directory')")

    trainer = job.start("worker-0", "scripts/train.py")

    assert trainer.end() == 0
    assert "helper of the working directory" in trainer.log


def test_a_flood_of_words_holds_nothing_up(gang: MakeGang) -> None:
    flood = (
        "import sys, os\n"
        "for stream in (1, 2):\n"
        "    for _ in range(400): os.write(stream, b'x' * 65536)\n"
        "os.write(2, b'\\nValueError: at the end\\n'); sys.exit(3)"
    )
    trainer = python(gang("worker-0"), flood)

    assert trainer.end() == 3
    assert trainer.verdict.message == "exited 3; its last line on stderr: ValueError: at the end"
    assert (trainer.folder / "log").stat().st_size > 50_000_000


def test_garbage_on_the_report_pipe_is_dropped(gang: MakeGang) -> None:
    lines = [b"\xff\n", b"{}\n", b"[" * 5000 + b"\n", b"x" * 100_000, b'\n{"kind": "Step", "step": 7, "epoch": 0}\n']
    write = f"import os\nfor line in {lines!r}: os.write(int(os.environ['DTJ_REPORT_FD']), line)"
    trainer = python(gang("worker-0"), write)

    assert trainer.end() == 0
    assert trainer.verdict.step == 7


def test_nothing_that_a_program_starts_outlives_it(gang: MakeGang) -> None:
    leaving = (
        "import os, subprocess, sys, time\n"
        "for session in (True, False):\n"
        "    print('left', subprocess.Popen(['sleep', '600'], start_new_session=session).pid, flush=True)\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0: print('left', os.getpid(), flush=True); time.sleep(600)\n"
        "    os._exit(0)\n"
        "time.sleep(0.5)"
    )
    trainer = python(gang("worker-0"), leaving)

    assert trainer.end() == 0
    left = [int(line.split()[1]) for line in trainer.log.splitlines() if line.startswith("left ")]
    assert len(left) == 3
    assert [pid for pid in left if is_alive(pid)] == []


def test_all_of_a_killed_program_is_ended(gang: MakeGang) -> None:
    leaving = (
        "import subprocess; helper = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "print('left', helper.pid, flush=True); helper.wait()"
    )
    trainer = python(gang("worker-0"), leaving)
    until(lambda: "left" in trainer.log, "the helper runs")

    os.kill(trainer.child, signal.SIGKILL)

    assert trainer.end() == 137
    assert not is_alive(int(trainer.log.split()[1]))


def test_a_crash_is_named(gang: MakeGang) -> None:
    trainer = python(gang("worker-0", environ={"DTJ_INJECT": "0"}), "import ctypes; ctypes.string_at(0)")

    assert trainer.end() == 139
    assert trainer.verdict.message == "Fatal Python error: Segmentation fault"


def test_a_program_that_closes_all_it_has(gang: MakeGang) -> None:
    trainer = python(gang("worker-0"), "import os, time; os.closerange(0, 100); time.sleep(0.5); os._exit(5)")

    assert trainer.end() == 5
    assert trainer.verdict.message == "exited 5"


def test_a_request_to_stop_that_comes_before_anybody_listens(gang: MakeGang, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "slow.py")
    trainer = gang("worker-0").start("worker-0", str(tmp_path / "slow.py"))
    # Opening it for writing waits for the supervisor, which comes to read its program before it listens to anyone.
    with (tmp_path / "slow.py").open("w") as program:
        trainer.process.send_signal(signal.SIGTERM)
        program.write("import time; time.sleep(600)")

    assert trainer.end() == 143
    assert trainer.verdict.kind == "Stopped"


def test_an_unwritable_place_for_the_zipapp(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    command = [sys.executable, "-m", "dtj_worker.supervisor.main", "--install", str(tmp_path / "file" / "x.pyz")]

    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)

    assert done.returncode == 1
    assert done.stderr == f"dtj-worker: {tmp_path}/file/x.pyz can't be written: File exists\n"


def test_limits_of_a_waiting_check(gang: MakeGang) -> None:
    job = gang("worker-0", limits=Limits(registration_seconds=0.5))
    with socket.create_server(("127.0.0.1", job.ports["worker-0"])):
        trainer = job.start("worker-0", COUNTER)

        assert trainer.end() == 1
    assert trainer.verdict.kind == "Rendezvous"
    assert trainer.verdict.message == "the check of TensorFlow's port has not come back within 0.5 s"


def test_no_line_of_ours_becomes_two(gang: MakeGang) -> None:
    trainer = gang("worker-0").start("worker-0", "no\ntrain\udcff.py")

    assert trainer.end() == 64
    (line,) = trainer.log.splitlines()
    assert line.startswith("dtj-worker: worker-0: program no train .py: No such file or directory")
    assert trainer.verdict.message == line.removeprefix("dtj-worker: worker-0: ")


def test_a_log_that_takes_nothing_ends_nothing(gang: MakeGang) -> None:
    job = gang("worker-0")
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device
        trainer = job.start("worker-0", "--", "sh", "-c", "echo words >&2; exit 3", log=full)

        assert trainer.end() == 3
    assert trainer.verdict.message == "exited 3; its last line on stderr: words"
