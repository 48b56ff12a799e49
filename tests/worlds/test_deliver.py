"""A signal reaches the process that is meant, once it can be taken."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE

import pytest

from tests.worlds import inside

LATE = """
import signal, sys
print("starts", flush=True)
sys.stdin.readline()
signal.signal(signal.SIGUSR1, lambda *_: sys.exit("taken"))
signal.pause()
"""
PARENT = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', {LATE!r}]).returncode)"


@pytest.mark.parametrize("generation", [inside.SUPERVISOR, inside.PROGRAM])
async def test_a_request_waits_for_a_process_that_is_only_starting(generation: int) -> None:
    program = PARENT if generation else LATE
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    await process.stdout.readline()
    sent = asyncio.create_task(inside.signal_from_here(process.pid, generation, signal.SIGUSR1))
    done, _ = await asyncio.wait([sent], timeout=0.5)
    assert not done
    process.stdin.write(b"\n")
    _, told = await process.communicate()
    await sent
    assert (told.decode().strip(), process.returncode) == ("taken", 1)
