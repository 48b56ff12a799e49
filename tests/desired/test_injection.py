"""The words that start an injected supervisor, run by a real shell: in front of the command, or not in its way."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dtj_operator.desired.supervision import ZIPAPP, injected_command

SAYS = "import sys; print('supervised', *sys.argv[1:])"


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    zipapp = folder / "dtj-worker.pyz"
    with zipfile.ZipFile(zipapp, "w") as file:
        file.writestr("__main__.py", SAYS)
    words = [str(zipapp) if word == ZIPAPP else word for word in injected_command(command)]
    return subprocess.run(words, env={"PATH": str(folder)}, capture_output=True, text=True, check=False)


def test_the_supervisor_gets_the_command_word_by_word(tmp_path: Path) -> None:
    (tmp_path / "python3").symlink_to(sys.executable)
    assert (
        run(["python", "train it.py", "$HOME", "--", ""], tmp_path).stdout
        == "supervised -- python train it.py $HOME -- \n"
    )


@pytest.mark.parametrize(
    "python",
    [
        pytest.param(None, id="an image without Python"),
        pytest.param("#!/bin/sh\nexit 1\n", id="an image with an older one"),
    ],
)
def test_without_a_python_the_command_runs_unchanged(tmp_path: Path, python: str | None) -> None:
    if python is not None:
        (tmp_path / "python3").write_text(python)
        (tmp_path / "python3").chmod(0o755)
    ended = run(["/bin/sh", "-c", "echo alone $1; exit 7", "sh", "word"], tmp_path)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("alone word\n", "", 7)
