"""What the child finds in its environment, by strategy, Keras, limits and user."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from dtj_worker.codec import decode
from dtj_worker.contract import ENV_RESTORE, Task
from dtj_worker.reports import Restore
from dtj_worker.supervisor import environment, machine
from dtj_worker.supervisor.preflight import Prepared
from dtj_worker.supervisor.program import Program
from dtj_worker.supervisor.tfconfig import Cluster
from tests.worker.supervisor.test_tfconfig import SPEC

SCRIPT = Program(("python", "train.py"), True, "digest")
COMMAND = Program(("python", "train.py"), False, "digest")


def made(environ: dict[str, str], **changes: Any) -> dict[str, str]:
    told: dict[str, Any] = {"spec": SPEC, "program": SCRIPT, "prepared": Prepared()} | changes
    cluster = Cluster(Task("worker", 0), {"worker": ("a:2222", "b:2222")})
    return environment.of_child(cluster=cluster, environ=environ, **told)


@pytest.mark.parametrize(
    ("strategy", "keras", "environ", "found"),
    [
        ("MultiWorkerMirrored", "Auto", {}, "1"),
        ("ParameterServer", "Auto", {}, "1"),
        ("Mirrored", "Auto", {}, None),
        ("None", "Auto", {}, None),
        ("MultiWorkerMirrored", "Auto", {"TF_USE_LEGACY_KERAS": "0"}, "0"),
        ("MultiWorkerMirrored", "Keras3", {"TF_USE_LEGACY_KERAS": "1"}, "0"),
        ("Mirrored", "Legacy", {}, "1"),
    ],
)
def test_which_keras(strategy: Any, keras: Any, environ: dict[str, str], found: str | None) -> None:
    spec = dataclasses.replace(SPEC, strategy=strategy, keras=keras)

    assert made(environ, spec=spec).get("TF_USE_LEGACY_KERAS") == found


def test_a_checkpoint_to_start_from() -> None:
    of_another = {ENV_RESTORE: "of another attempt"}
    found = made(of_another, prepared=Prepared(Restore(60, 3, "/ckpt/x"), Path("/ckpt/attempt-1")))

    assert decode(Restore, found[ENV_RESTORE]) == Restore(60, 3, "/ckpt/x")
    assert found["DTJ_CHECKPOINT_FOLDER"] == "/ckpt/attempt-1"
    assert ENV_RESTORE not in made(of_another)


def test_the_python_path() -> None:
    theirs = {"PYTHONPATH": "/theirs"}
    own, foreign = (made(theirs, program=program)["PYTHONPATH"].split(":") for program in (SCRIPT, COMMAND))

    assert own[1:] == ["/theirs", str(Path.cwd())]
    assert foreign == own[:2]
    assert made({"DTJ_INJECT": "0"})["PYTHONPATH"] == str(Path.cwd())


def test_threads_follow_the_limit_unless_they_are_set(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("50000 100000")

    limited, unlimited = made({"OMP_NUM_THREADS": "7"}, cgroups=tmp_path), made({}, cgroups=tmp_path / "none")

    assert [limited[name] for name in environment.THREAD_VARIABLES] == ["1", "1", "7"]
    assert not {*environment.THREAD_VARIABLES} & {*unlimited}


@pytest.mark.parametrize(
    ("files", "limit", "throttled", "kills"),
    [
        pytest.param({}, None, None, 0, id="no cgroups"),
        pytest.param(
            {
                "cpu.max": "150000 100000",
                "cpu.stat": "usage_usec 9\nnr_periods 10\nnr_throttled 4\nthrottled_usec 2500000",
                "memory.events": "oom 2\noom_kill 1\n",
            },
            1.5,
            machine.Throttling(10, 4, 2.5),
            1,
            id="version 2",
        ),
        pytest.param({"cpu.max": "max 100000"}, None, None, 0, id="version 2 without a limit"),
        pytest.param(
            {
                "cpu/cpu.cfs_quota_us": "50000",
                "cpu/cpu.cfs_period_us": "100000",
                "cpu/cpu.stat": "nr_periods 10\nnr_throttled 4\nthrottled_time 2500000000",
                "memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3",
            },
            0.5,
            machine.Throttling(10, 4, 2.5),
            3,
            id="version 1",
        ),
        pytest.param({"cpu/cpu.cfs_quota_us": "-1"}, None, None, 0, id="version 1 without a limit"),
        pytest.param({"cpu.max": "garbage", "memory.events": "oom_kill x"}, None, None, 0, id="something else"),
    ],
)
def test_what_the_cgroup_says(tmp_path: Path, files: dict[str, str], limit: Any, throttled: Any, kills: int) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    assert machine.cpu_limit(tmp_path) == limit
    assert machine.throttling(tmp_path) == throttled
    assert machine.oom_kills(tmp_path) == kills
