"""One container of a pod: prepared, started, ended, and what its end says. When it starts again is not decided here."""

import asyncio
import errno
import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from dtj_operator.local import podenv
from dtj_operator.local.node import volumes
from dtj_operator.local.node.addresses import Addresses
from dtj_operator.local.node.logs import last_lines, log_file
from dtj_operator.local.node.paths import Paths
from dtj_operator.local.node.status import Record, Running, Terminated, Waiting
from dtj_operator.local.objects import Objects
from dtj_operator.local.podenv import Place
from dtj_operator.local.process import Command, NotStarted, Process, Runtime
from dtj_worker.contract import ENV_TERMINATION_LOG, TERMINATION_BYTES

Json = dict[str, Any]
Kind = Literal["init", "sidecar", "main"]

START_ERROR = 128
"""The exit code that containerd gives a container whose command could not be started."""
NAME_LENGTH = 150
"""So much of a pod's name goes into the name of its folder."""
LAST_LINES, LAST_BYTES = 80, 2048
"""What FallbackToLogsOnError takes of a log."""


class Machine(msgspec.Struct, frozen=True):
    """What all containers of the cluster have in common; `python`, `entry_point` and `folder` stand for the images."""

    runtime: Runtime
    objects: Objects
    addresses: Addresses
    python: Path
    entry_point: tuple[str, ...]
    """What a container without a command runs."""
    folder: Path
    """The working directory, where no mount holds it."""
    state: Path
    """Everything about pods is kept below it."""
    mapped: dict[str, str]
    """Folders that the user has put in the place of container paths."""
    say: Callable[[str], None]
    """Takes a sentence for the person at the terminal; the same one again is not said again."""


class NoCommand(Exception):
    """There is no image here whose entry point a container without a command could run."""


class Container:
    """`spec` is its part of the pod, `record` what the pod's status says of it."""

    def __init__(self, machine: Machine, pod: Json, spec: Json, kind: Kind) -> None:
        self._machine = machine
        self._pod = pod
        self._home = home(machine.state, pod)
        self._command: Command | None = None
        self._message_file = self._home / "messages" / spec["name"]
        self.process: Process | None = None
        self.started = asyncio.Event()
        """Set once its first start was tried."""
        self.spec = spec
        section = "spec.containers" if kind == "main" else "spec.initContainers"
        self.path = f"{section}{{{spec['name']}}}"
        self.record = Record(spec["name"], spec.get("image", ""), kind, Waiting("ContainerCreating"))

    async def start(self, mounts: dict[str, str], place: Place) -> None:
        """Run it, once more. ConfigError or NoCommand: it can't be made; NotStarted: its command can't be run."""
        self._command = self._prepared(mounts, place)
        self.record.container_id = f"dtj://{secrets.token_hex(32)}"
        starting = asyncio.create_task(self._machine.runtime.run(self._command))
        try:
            self.process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            # It may run by now, and has to be ended like any other before its pod is over.
            with suppress(NotStarted):
                self.process = await starting
                self.record.state = Running(self._machine.objects.timestamp())
            raise
        self.record.state = Running(self._machine.objects.timestamp())

    def refused(self, why: NotStarted) -> str:
        """Note that the command could not be started, and say it as a container runtime does."""
        assert self._command is not None
        told = refusal(self._command, why)
        self.record.state = Terminated(
            exit_code=START_ERROR,
            reason="StartError",
            message=told,
            finished_at=self._machine.objects.timestamp(),
            container_id=self.record.container_id,
        )
        return told

    async def ended(self) -> None:
        """Wait for its end, and note it. May be cancelled and called again."""
        assert self.process is not None
        code = await self.process.ended()
        state = self.record.state
        if isinstance(state, Running):
            self.record.state = Terminated(
                exit_code=code,
                reason="Completed" if code == 0 else "Error",
                message=self._message(code),
                started_at=state.started_at,
                finished_at=self._machine.objects.timestamp(),
                container_id=self.record.container_id,
            )

    @property
    def runs(self) -> bool:
        return isinstance(self.record.state, Running)

    def log(self, restart: int) -> Path:
        return log_file(self._home, self.record.name, restart)

    def _prepared(self, mounts: dict[str, str], place: Place) -> Command:
        """The command with all that a kubelet would have put into the container."""
        machine, pod, spec = self._machine, self._pod, self.spec
        metadata = pod["metadata"]
        variables = podenv.environment(pod, spec, place, machine.objects)
        if not spec.get("command") and not spec.get("args") and not _is_trainer(pod, spec):
            raise NoCommand(f"container {self.record.name} names no command, and there are no images here to ask")
        for file in (self._message_file, self.log(self.record.restarts)):
            file.parent.mkdir(parents=True, exist_ok=True)
        self._message_file.write_bytes(b"")
        mounted = volumes.paths(spec, mounts, machine.mapped, variables, str(machine.folder))
        inside = mounted.with_file(spec.get("terminationMessagePath") or "", str(self._message_file))

        def here(text: str) -> str:
            return machine.addresses.rewritten(inside.rewritten(text), metadata["namespace"], metadata["uid"])

        hostname = pod["spec"].get("hostname") or metadata["name"]
        own = {name: here(value) for name, value in variables.items()}
        own[ENV_TERMINATION_LOG] = str(self._message_file)
        command = Command(
            words=(
                *(() if spec.get("command") else machine.entry_point),
                *(here(word) for word in podenv.words(spec, variables)),
            ),
            environment=podenv.base(machine.python, hostname) | own,
            folder=inside.here(spec.get("workingDir") or "") or str(machine.folder),
            log=str(self.log(self.record.restarts)),
        )
        self._warn(mounted, command)
        return command

    def _warn(self, mounted: Paths, command: Command) -> None:
        """Where a program's own text names a mount: that path leads nowhere here."""
        for word in command.words:
            program = Path(command.folder, word)
            for line, path in mounted.written_in(program) if _is_program(program) else ():
                self._machine.say(
                    f"{word}:{line} has {path} written in it; in a cluster that is a volume's mount, here it is "
                    f"{mounted.here(path)}: pass the path as an argument or by the environment, which are adapted"
                )

    def _message(self, code: int) -> str:
        """The termination message, by the container's policy."""
        try:
            written = self._message_file.read_bytes()
        except OSError:
            # The program has put something else in its place.
            written = b""
        told: str = written[-TERMINATION_BYTES:].decode(errors="replace")
        if told or code == 0 or self.spec.get("terminationMessagePolicy") != "FallbackToLogsOnError":
            return told
        return last_lines(self.log(self.record.restarts), LAST_LINES, LAST_BYTES)


def home(state: Path, pod: Json) -> Path:
    """Where all that concerns a pod is kept, named as kubelets do, since people look for its logs there."""
    metadata = pod["metadata"]
    # A name may be as long as that of a file, without what goes around it.
    return state / "pods" / f"{metadata['namespace']}_{metadata['name'][:NAME_LENGTH]}_{metadata['uid']}"


def refusal(command: Command, why: NotStarted) -> str:
    """Why a command could not be started, in the words of containerd and runc."""
    head = (
        "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
        "unable to start container process: error during container init"
    )
    reason = os.strerror(why.errno).lower()
    if why.stage == "machine":
        return f"failed to create containerd task: failed to start shim: {reason}"
    if why.stage == "folder":
        return f'{head}: chdir to cwd ("{command.folder}") set in config.json failed: {reason}'
    name = command.words[0]
    if why.errno != errno.ENOENT:
        return f'{head}: exec: "{name}": {reason}'
    missing = f"stat {name}: {reason}" if "/" in name else "executable file not found in $PATH"
    return f'{head}: exec: "{name}": {missing}'


def containers(machine: Machine, pod: Json) -> Sequence[Container]:
    """All of a pod, init containers first, in their order."""
    inits = pod["spec"].get("initContainers") or ()
    found = [
        Container(machine, pod, spec, "sidecar" if spec.get("restartPolicy") == "Always" else "init") for spec in inits
    ]
    return [*found, *(Container(machine, pod, spec, "main") for spec in pod["spec"]["containers"])]


def _is_program(word: Path) -> bool:
    try:
        return word.suffix == ".py" and word.is_file()
    except OSError:
        # A whole script may end like the name of a program, and be too long for one.
        return False


def _is_trainer(pod: Json, spec: Json) -> bool:
    """Whether the image of the container may be taken to be the worker's."""
    is_told = any(variable["name"] == "TF_CONFIG" for variable in spec.get("env") or ())
    return is_told or len(pod["spec"]["containers"]) == 1
