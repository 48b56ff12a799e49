"""What runs before every Python of a program hides nothing, reports the fatal exception, finds what to watch."""

import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import dtj_worker
from dtj_worker.codec import decode
from dtj_worker.reports import STACKS_SIGNAL, Report
from dtj_worker.training import inject
from tests.worker.training.test_context import SPEC, environ

SITE = Path(dtj_worker.__file__).parent / "training" / "site"


def python(program: str, *path: Path, **variables: str) -> tuple["subprocess.CompletedProcess[str]", list[Report]]:
    """A Python as the supervisor starts it, and what it reported."""
    reading, writing = os.pipe()
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={
            **os.environ,
            **environ(SPEC),
            "PYTHONPATH": os.pathsep.join(map(str, [SITE, *path])),
            "DTJ_REPORT_FD": str(writing),
            **variables,
        },
        pass_fds=[writing],
        capture_output=True,
        text=True,
        check=False,
    )
    os.close(writing)
    with os.fdopen(reading) as lines:
        return ended, [decode(Report, line) for line in lines]


def test_the_exception_that_ends_the_program_is_reported() -> None:
    ended, reports = python("raise ValueError('shapes\\ndiffer')")
    assert ended.returncode == 1
    assert ended.stderr.endswith("ValueError: shapes\ndiffer\n")
    assert [(r.kind, r.message) for r in reports] == [("Problem", "ValueError: shapes differ")]
    assert reports[0].process


def test_a_programs_own_hook_still_runs() -> None:
    program = "import sys\nsys.excepthook = lambda *_: print('mine')\nraise ValueError"
    assert python(program)[0].stdout == "mine\n"


@pytest.mark.parametrize("program", ["import sys; sys.exit(3)", "raise KeyboardInterrupt", "print('done')"])
def test_an_end_without_an_exception_is_no_problem(program: str) -> None:
    assert python(program)[1] == []


def test_an_exception_in_a_helper_process_is_not_the_programs() -> None:
    program = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'raise ValueError'])"
    ended, reports = python(program)
    assert "ValueError" in ended.stderr
    assert reports == []


def test_the_images_own_sitecustomize_runs(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os\nos.environ['FROM_THE_IMAGE'] = 'yes'\n")
    ended, _ = python("import os; print(os.environ['FROM_THE_IMAGE'])", tmp_path)
    assert ended.stdout == "yes\n"


def test_a_broken_one_of_the_image_is_told_and_no_more(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("raise OSError('no such disk')\n")
    ended, _ = python("print('runs')", tmp_path)
    assert ended.stdout == "runs\n"
    assert ended.stderr == f"dtj: {tmp_path}/sitecustomize.py: OSError: no such disk\n"


def test_the_signal_of_the_supervisor_dumps_stacks() -> None:
    number = int(signal.Signals[STACKS_SIGNAL])
    program = f"import os\ndef waits_here():\n    os.kill(os.getpid(), {number})\nwaits_here()\nprint('goes on')"
    ended, _ = python(program)
    assert ended.stdout == "goes on\n"
    assert "in waits_here" in ended.stderr


def test_opting_out_leaves_the_program_alone() -> None:
    _, reports = python("raise ValueError", DTJ_INJECT="0")
    assert reports == []


def test_without_a_job_nothing_happens() -> None:
    program = (
        "import sys; print(sys.excepthook is sys.__excepthook__, [f for f in sys.meta_path if 'sitecust' in str(f)])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(SITE)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout == "True []\n"


def test_what_is_watched_is_hooked() -> None:
    assert sorted(runpy.run_path(str(SITE / "sitecustomize.py"))["WATCHED"]) == sorted(inject.HOOKS)


def test_an_import_that_is_watched_keeps_its_loader_and_its_source(tmp_path: Path) -> None:
    """A module of a watched name that isn't what the hook expects: its import may not fail for that."""
    package = tmp_path / "tf_keras" / "src" / "engine"
    package.mkdir(parents=True)
    for folder in (package, *package.parents[:2]):
        (folder / "__init__.py").touch()
    (package / "training.py").write_text("VALUE = 1\n")
    program = (
        "import inspect, tf_keras.src.engine.training as t\n"
        "print(t.VALUE, type(t.__loader__).__name__, inspect.getsource(t), end='')"
    )
    ended, _ = python(program, tmp_path)
    assert ended.stdout == "1 SourceFileLoader VALUE = 1\n"
    assert ended.stderr.startswith("dtj: tf_keras.src.engine.training is not watched: AttributeError: ")
