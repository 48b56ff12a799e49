"""What a command does when one of its standard streams is closed, full, or read by nobody any more."""

import io
import subprocess
from pathlib import Path

import pytest
from rich.table import Table

from dtj_operator.cli.show import plain_console
from tests.cli.command import CLAIM, DTJ, all_gone, counting, folders, started, until_line, write


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run by a shell that tells the exit code of the first command of a pipe."""
    return subprocess.run(
        ["bash", "-c", command.replace("dtj", str(DTJ), 1)], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("command", "code", "err"),
    [
        pytest.param("dtj render -f job.yaml | true; exit ${PIPESTATUS[0]}", 141, "", id="nobody reads"),
        pytest.param(
            "dtj render -f job.yaml >/dev/full", 1, "the output can't be written: No space left on device\n", id="full"
        ),
        pytest.param("dtj validate -f job.yaml >&-", 0, "", id="no output"),
        pytest.param("dtj validate -f nothing.yaml >&- 2>&-", 2, "", id="no streams"),
        pytest.param(
            "dtj validate -f - <&-",
            2,
            "standard input: it is empty; a DistributedTrainingJob is expected in it\n",
            id="no input",
        ),
    ],
)
def test_a_stream_that_is_not_there(tmp_path: Path, command: str, code: int, err: str) -> None:
    write(tmp_path, CLAIM, counting())
    done = shell(command, tmp_path)
    assert (done.returncode, done.stderr) == (code, err)


def test_a_letter_that_the_terminal_does_not_know(tmp_path: Path) -> None:
    Path(write(tmp_path, CLAIM, counting())).rename(tmp_path / "jöb.yaml")
    done = shell("PYTHONIOENCODING=ascii dtj validate -f jöb.yaml", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "j?b.yaml, document 2: count has no fault\n", "")


async def test_a_run_that_nobody_reads_ends_and_leaves_nothing(tmp_path: Path) -> None:
    file = write(tmp_path, CLAIM, counting("--steps", "100000"))
    async with started("run", "-f", file, folder=tmp_path) as process:
        await until_line(process.stdout, "Queued")
        assert process.stdout is not None
        process.stdout._transport.close()  # type: ignore[attr-defined]  # asyncio has no other way to close it
        await process.wait()
        assert process.returncode == 141
        assert process.stderr is not None
        assert await process.stderr.read() == b""
    await all_gone(tmp_path)
    assert folders(tmp_path) == []


def test_a_table_is_not_folded_where_it_goes_to_no_terminal() -> None:
    reason = "waiting for 8 × nvidia.com/gpu on one node: the freest has 4 (n3); " * 3
    table = Table("NAME", "REASON", box=None)
    table.add_row("mnist", reason)
    stream = io.StringIO()
    plain_console(stream).print(table)
    assert reason in stream.getvalue()
