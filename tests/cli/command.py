"""The `dtj` command as a person runs it: a process, its two streams, its exit code; and manifests for it."""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import yaml

Json = dict[str, Any]

DTJ = Path(sys.executable).parent / "dtj"
PROGRAMS = Path(__file__).parents[1] / "programs"
PATIENCE_SECONDS = 90
CLAIM: Json = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "checkpoints"},
    "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
}


class Output(NamedTuple):
    code: int
    out: str
    err: str


def counting(*words: str, name: str = "count", **spec: Any) -> Json:
    """A job of two workers that run counter.py with these options."""
    trainer = {"name": "trainer", "image": "any", "args": ["counter.py", *words]}
    return {
        "apiVersion": "dtj.dev/v1alpha1",
        "kind": "DistributedTrainingJob",
        "metadata": {"name": name},
        "spec": {
            "roles": {"worker": {"replicas": 2}},
            "template": {"spec": {"containers": [trainer]}},
            "checkpoint": {"persistentVolumeClaim": "checkpoints"},
            **spec,
        },
    }


def write(folder: Path, *documents: Json) -> str:
    """The documents as a file beside the programs they run."""
    file = folder / "job.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    shutil.copy(PROGRAMS / "counter.py", folder)
    return str(file)


async def dtj(
    *arguments: str, folder: Path, stdin: str | None = None, within: float = PATIENCE_SECONDS, **environment: str
) -> Output:
    """Run it to its end, with these variables."""
    async with started(*arguments, folder=folder, stdin=stdin is not None, **environment) as process:
        async with asyncio.timeout(within):
            out, err = await process.communicate(stdin.encode() if stdin is not None else None)
        assert process.returncode is not None
        return Output(process.returncode, out.decode(), err.decode())


@asynccontextmanager
async def started(
    *arguments: str, folder: Path, stdin: bool = False, **environment: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """The running command; whatever it makes for itself lies in `folder`."""
    process = await asyncio.create_subprocess_exec(
        DTJ,
        *arguments,
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder), **environment},
        stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        # Also reads what is left, so that no pipe stays open.
        await process.communicate()


async def until_line(stream: asyncio.StreamReader | None, holds: str) -> str:
    """The first line of the stream that has this in it."""
    assert stream is not None
    seen = b""
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_SECONDS):
            while line := await stream.readline():
                seen += line
                if holds.encode() in line:
                    return line.decode()
    raise AssertionError(f"{holds!r} was never said; all that was: {seen.decode()}")


async def all_gone(folder: Path) -> None:
    """Wait until no process is left that has this folder in its command line or its environment."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while _processes(folder):  # noqa: ASYNC110 - processes of others tell nobody of their end
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"still there: {_processes(folder)}") from None


def folders(folder: Path) -> list[str]:
    """What is left of a cluster."""
    return [entry.name for entry in folder.iterdir() if entry.is_dir()]


def _processes(folder: Path) -> dict[str, str]:
    """Command lines by process."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command, environment = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in command + environment and int(process.name) != os.getpid():
            found[process.name] = command.replace(b"\0", b" ").decode(errors="replace")
    return found
