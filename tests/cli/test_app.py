"""The command line itself: its page agrees with it, it is quick to import, and mistakes end in a line."""

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from dtj_operator.cli import outcome
from dtj_operator.cli.app import app
from tests.cli.command import dtj

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
COMMANDS = typer.main.get_group(app).commands
CLUSTER_OPTIONS = {"--namespace", "-n", "--kubeconfig", "--context"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_on_the_page_and_no_other(name: str) -> None:
    section = next(text for text in PAGE.split("\n## ") if re.match(rf"dtj .*\b{name}\b", text))
    told = set(re.findall(r"`(--?[a-z-]+)[ `]", section))
    has = {option for one in COMMANDS[name].params for option in one.opts if option.startswith("-")}
    assert told - CLUSTER_OPTIONS == has - CLUSTER_OPTIONS


def test_every_exit_code_is_on_the_page() -> None:
    told = {int(code): means for code, means in re.findall(r"^\| (\d+) \| (.*) \|$", PAGE, re.MULTILINE)}
    assert told == outcome.MEANINGS


def test_nothing_slow_is_imported_before_a_command_is_known() -> None:
    program = "import sys, dtj_operator.cli.app; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"rich", "kubernetes", "msgspec", "yaml", "aiohttp", "kopf", "asyncio"} & set(done.stdout.split())


async def test_the_version(tmp_path: Path) -> None:
    ended = await dtj("--version", folder=tmp_path)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"dtj {importlib.metadata.version('dtj-operator')}, ")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        pytest.param(["run"], "Missing option '--filename' / '-f'", id="no file"),
        pytest.param(
            ["run", "plain.yaml", "--nodes", "2"],
            "dtj run takes manifests by an option; did you mean -f plain.yaml?\n",
            id="a file without its option",
        ),
        pytest.param(["run", "-f", "x", "-o", "xml"], "--output xml: json or yaml", id="another output"),
        pytest.param(
            ["run", "-f", "x", "--map", "data=."], "--map data=.: expected /path/in/the/pod=folder/here", id="map"
        ),
        pytest.param(["run", "-f", "x", "--map", "/data=nowhere"], "nowhere is no folder", id="no folder"),
        pytest.param(["run", "-f", "x", "--nodes", "0"], "greater than or equal to 1", id="no nodes"),
        pytest.param(["check"], "No such command 'check'", id="a command of a later version"),
        pytest.param(["logs", "x", "--task", "boss-1"], "--task: 'boss-1' is no task", id="no task"),
    ],
)
async def test_a_mistake_in_the_command_line(tmp_path: Path, arguments: list[str], line: str) -> None:
    ended = await dtj(*arguments, folder=tmp_path)
    assert (ended.code, ended.out) == (2, "")
    assert line in ended.err
