"""Signals to a container's processes where nothing of the machine is in reach: by a command run in the container."""

import asyncio
import signal

SUPERVISOR, PROGRAM = 0, 1
"""The container's first process, and its child."""
SCRIPT = """
import os, pathlib, sys
process, number = map(int, sys.argv[1:])
children = pathlib.Path("/proc/1/task/1/children").read_text().split()
os.kill(int(children[0]) if process else 1, number)
"""


async def signal_by_exec(pod: str, namespace: str, container: str, process: int, number: signal.Signals) -> None:
    """The kernel keeps SIGKILL off a container's first process when it comes from inside; no other signal."""
    words = ("python3", "-c", SCRIPT, str(process), str(int(number)))
    command = ("kubectl", "exec", f"--namespace={namespace}", pod, f"--container={container}", "--", *words)
    running = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    _, told = await running.communicate()
    assert running.returncode == 0, f"{' '.join(command[:6])}: {told.decode()}"
