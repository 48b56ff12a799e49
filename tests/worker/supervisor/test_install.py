"""The supervisor as one file, under a Python that has nothing of ours."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dtj_worker.codec import encode
from dtj_worker.contract import parse_verdict
from dtj_worker.supervisor.install import install
from tests.worker.supervisor.gang import free_ports
from tests.worker.supervisor.test_tfconfig import SPEC

BARE = getattr(sys, "_base_executable", sys.executable)
"""The interpreter that the virtual environment was made from."""


@pytest.fixture(scope="module")
def zipapp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("supervisor") / "new" / "dtj-worker.pyz"
    install(target)
    return target


def run(*command: str | Path, **environ: str) -> "subprocess.CompletedProcess[str]":
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("DTJ_", "TF_", "PYTHON"))}
    return subprocess.run(command, env=bare | environ, capture_output=True, text=True, check=False, timeout=60)


def test_every_user_may_read_and_run_it(zipapp: Path) -> None:
    assert zipapp.stat().st_mode & 0o777 == 0o755
    assert list(zipapp.parent.iterdir()) == [zipapp]


def test_it_copies_itself(zipapp: Path, tmp_path: Path) -> None:
    done = run(BARE, zipapp, "--install", tmp_path / "copy.pyz")

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "copy.pyz").read_bytes() == zipapp.read_bytes()


def test_it_watches_a_program_of_another_image(zipapp: Path, tmp_path: Path) -> None:
    spec = dataclasses.replace(SPEC, task="evaluator-0", status=f"127.0.0.1:{free_ports(1)}")
    told = {
        "DTJ_TASK": encode(spec),
        "DTJ_TOKEN": "x",
        "DTJ_TERMINATION_LOG": str(tmp_path / "log"),
        "TF_CONFIG": json.dumps(
            {
                "cluster": {"worker": list(spec.peers.values()), "evaluator": ["e:2222"]},
                "task": {"type": "evaluator", "index": 0},
            }
        ),
    }

    done = run(BARE, zipapp, "--", BARE, "-c", "import dtj_worker.contract; raise ValueError('no')", **told)

    verdict = parse_verdict((tmp_path / "log").read_text())
    assert verdict is not None
    assert (done.returncode, verdict.kind, verdict.message) == (1, "Program", "ValueError: no"), done.stderr
