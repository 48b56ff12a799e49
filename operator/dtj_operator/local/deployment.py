"""Keeps the operator's process running, as its Deployment in a cluster would. It is started, never imported."""

import asyncio
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from dtj_operator.local.node.logs import last_lines
from dtj_operator.local.podenv import base
from dtj_operator.local.process import Command, Process, Runtime

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 10.0
QUIET_SECONDS = 30.0
"""After so long without an end the next start is at once again."""
READY_SECONDS = 60.0
LOOK_SECONDS = 0.05
SUPERVISOR_IMAGE = "dtj/supervisor"
"""Only a name: containers run without images here."""


class OperatorFailed(Exception):
    """The operator can't work; the message holds its last words."""


class Deployment:
    """`restarts` counts the operator's ends; `pid` is that of its process, None between two of them."""

    def __init__(self, runtime: Runtime, kubeconfig: Path, log: Path, port: int, say: Callable[[str], None]) -> None:
        self._runtime = runtime
        self._log = log
        self._port = port
        self._say = say
        self._process: Process | None = None
        self.restarts = 0
        options = ["--kubeconfig", str(kubeconfig), "--local", "--no-lease", "--port", str(port)]
        self._command = Command(
            # No Lease: there is only ever one, and after a kill the next one should not wait for it to expire.
            words=(sys.executable, "-P", "-m", "dtj_operator", *options, "--supervisor-image", SUPERVISOR_IMAGE),
            environment=base(Path(sys.executable), "dtj-operator") | {"PYTHONUNBUFFERED": "1"},
            folder="/",
            log=str(log),
        )

    async def run(self) -> None:
        """Until cancelled."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            began = time.monotonic()
            process = self._process = await self._runtime.run(self._command)
            try:
                code = await process.ended()
            except asyncio.CancelledError:
                await process.kill()
                raise
            finally:
                self._process = None
            self.restarts += 1
            self._say(f"the operator's process ended with {code} and is started again; its log is {self._log}")
            if time.monotonic() - began > QUIET_SECONDS:
                pause = FIRST_PAUSE_SECONDS
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    async def ready(self) -> None:
        """Wait until the operator says that it is. OperatorFailed where it ends instead, or takes too long."""
        what = f"was not ready within {READY_SECONDS:g} s"
        with suppress(TimeoutError):
            async with asyncio.timeout(READY_SECONDS):
                while not self.restarts:
                    if await self._is_ready():
                        return
                    await asyncio.sleep(LOOK_SECONDS)
                what = "ended at once"
        raise OperatorFailed(f"the operator {what}; its last words:\n{last_lines(self._log, 20, 4096)}")

    async def _is_ready(self) -> bool:
        try:
            connection = await self._runtime.connect(self._port)
        except OSError:
            return False
        reader, writer = await asyncio.open_connection(sock=connection)
        try:
            writer.write(b"GET /readyz HTTP/1.0\r\n\r\n")
            return b" 200 " in await reader.readline()
        except OSError:
            return False
        finally:
            writer.close()
