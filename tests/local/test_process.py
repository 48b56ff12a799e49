"""Commands under the runtime, without a kubelet: what of them is heard, whatever happens at the same time."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dtj_operator.local.process import Command, NotStarted, Runtime, runtime
from tests.local.embedded import lives


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[Runtime]:
    async with runtime(tmp_path / "runtime.log") as running:
        yield running


def script(folder: Path, text: str, log: str = "log") -> Command:
    environment = {"PATH": os.environ["PATH"]}
    return Command(words=("sh", "-c", text), environment=environment, folder=str(folder), log=str(folder / log))


async def test_a_signal_that_comes_too_late_does_not_hide_how_it_ended(run: Runtime, tmp_path: Path) -> None:
    process = await run.run(script(tmp_path, "sleep 0.2; exit 3"))
    shim = parent(process.pid)
    # Nothing is read meanwhile: its last word lies in the channel, whose other end is closed.
    while lives(shim):
        pass
    process.send(signal.SIGTERM)
    process.send(signal.SIGKILL)
    assert await process.ended() == 3


async def test_a_command_inherits_nothing_but_its_three_streams(run: Runtime, tmp_path: Path) -> None:
    process = await run.run(script(tmp_path, "for file in /proc/$$/fd/*; do readlink $file; done; exit 0"))
    assert await process.ended() == 0
    files = [line.partition(" F ")[2] for line in (tmp_path / "log").read_text().splitlines()]
    assert not [file for file in files if file.startswith("socket:")]


async def test_a_log_that_cannot_be_written_is_told(run: Runtime, tmp_path: Path) -> None:
    with pytest.raises(NotStarted, match="No such file or directory"):
        await run.run(script(tmp_path, "true", log="nowhere/log"))


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
