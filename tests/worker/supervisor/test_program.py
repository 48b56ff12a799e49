"""What the words behind `dtj-worker` start, and the one line if there is no such program."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dtj_worker.contract import ConfigFault
from dtj_worker.supervisor.program import resolve


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a script, a package and a file that may not run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print('trains')")
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / "__init__.py").write_text("raise RuntimeError('imported by the supervisor')")
    (tmp_path / "mnist" / "train.py").write_text("")
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["train.py", "--epochs", "3"], [sys.executable, "train.py", "--epochs", "3"]),
        (["mnist.train", "a"], [sys.executable, "-m", "mnist.train", "a"]),
        (["json.tool"], [sys.executable, "-m", "json.tool"]),
        (["mnist.train:main", "a"], [sys.executable, "-m", "dtj_worker.training.run", "mnist.train:main", "a"]),
        (["--", "sh", "-c", "true"], ["sh", "-c", "true"]),
        (["--", "/bin/sh"], ["/bin/sh"]),
    ],
)
def test_what_is_started(words: list[str], command: list[str]) -> None:
    found = resolve(words)

    assert list(found.command) == command
    assert found.is_ours == (words[0] != "--")


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ([], "no program was named; usage: dtj-worker train.py"),
        (["--version"], "unknown option --version; usage: "),
        (["trian.py"], "program trian.py: No such file or directory (working directory "),
        (["mnist.py"], "program mnist.py: No such file"),
        (["mnist.eval"], "program mnist.eval: no module mnist.eval in "),
        (["minst.train"], "program minst.train: no module minst in "),
        (["./train"], "program ./train: no module "),
        (["mnist.train:1st"], "'1st' names no function"),
        (["--"], "no command behind --"),
        (["--", "pyton", "train.py"], "program pyton: no such file on PATH"),
        (["--", "./nothing"], "program ./nothing: no such file in "),
        (["--", "./tool"], "program tool may not be executed: chmod +x it"),
        (["mnist"], None),
    ],
)
def test_what_is_not_there(words: list[str], fault: str | None) -> None:
    if fault is None:
        resolve(words)
        return
    with pytest.raises(ConfigFault) as found:
        resolve(words)
    assert fault in str(found.value)
    assert "\n" not in str(found.value)


def test_the_digest_is_of_words_and_content(here: Path) -> None:
    before = resolve(["train.py"]).digest

    assert resolve(["train.py"]).digest == before
    assert resolve(["train.py", "x"]).digest != before
    (here / "train.py").write_text("print('trains otherwise')")
    assert resolve(["train.py"]).digest != before


def test_a_notebook_runs_as_a_script(here: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# no code"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "!pip install x\n", "import helper\n", "x = 20 % 7"]},
        {"cell_type": "code", "source": ["%%bash\n", "exit 3"]},
        {
            "cell_type": "code",
            "source": ["%%time\n", "for i in range(2):\n", "    %time x\n", "    x += helper.one\n", "print(x)"],
        },
    ]
    (here / "nb").mkdir()
    (here / "nb" / "train.ipynb").write_text(json.dumps({"nbformat": 4, "cells": cells}))
    (here / "nb" / "helper.py").write_text("one = 1")

    program = resolve(["nb/train.ipynb"])
    done = subprocess.run(program.command, capture_output=True, text=True, check=False, timeout=30)

    assert (done.stdout, done.returncode) == ("8\n", 0), done.stderr


def test_what_is_no_notebook(here: Path) -> None:
    (here / "x.ipynb").write_text("{}")

    with pytest.raises(ConfigFault, match="not a notebook of format 4"):
        resolve(["x.ipynb"])
