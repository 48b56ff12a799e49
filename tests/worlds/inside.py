"""Signals to a container's processes: from this machine where its nodes are, else by a command inside."""

import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

SUPERVISOR, PROGRAM = 0, 1
"""The container's first process, and its child."""
LONGEST_SECONDS = 120
"""More than `deliver.py` waits."""
DELIVER = Path(__file__).with_name("deliver.py").read_text()


async def signal_from_here(first: int, process: int, number: signal.Signals) -> None:
    """`first`: the container's first process, as this machine numbers it."""
    await _run((sys.executable, "-c", DELIVER, str(first), str(process), str(int(number))))


async def signal_by_exec(enter: Sequence[str], process: int, number: signal.Signals) -> None:
    """`enter`: `kubectl exec` and all that goes before the container's own command.

    The kernel keeps SIGKILL off a container's first process when it comes from inside; no other signal.
    """
    await _run((*enter, "python3", "-c", DELIVER, "1", str(process), str(int(number))))


async def _run(command: Sequence[str]) -> None:
    running = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    try:
        async with asyncio.timeout(LONGEST_SECONDS):
            _, told = await running.communicate()
    finally:
        if running.returncode is None:
            running.kill()
    assert running.returncode == 0, f"{' '.join(word for word in command if word != DELIVER)}: {told.decode()}"
