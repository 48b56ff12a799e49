"""What is made sure of before the program starts: the port is free, the folder takes files, a checkpoint is chosen."""

import errno
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from dtj_worker import folders
from dtj_worker.contract import Task, TaskSpec
from dtj_worker.reports import Restore
from dtj_worker.supervisor import choice, reach, tfconfig

PORT_SECONDS = 30.0
"""How long a straggler of an older attempt may still hold a port."""


class PortTaken(Exception):
    """Another process keeps one of this task's ports; it may have gone by the next attempt."""


@dataclass(frozen=True)
class Prepared:
    """What the child of this attempt is started with; `notes` are for people."""

    restore: Restore | None = None
    folder: Path | None = None
    notes: tuple[str, ...] = ()


def prepare(spec: TaskSpec, program: str) -> Prepared:
    """Check and choose for one attempt; `program` is the digest of what is run. Blocks: not for the loop's thread.

    PortTaken, ConfigFault, or OSError where the checkpoint volume fails.
    """
    port = tensorflow_port(spec)
    if port is not None:
        wait_for_port(port, PORT_SECONDS)
    plan = spec.checkpoint
    if plan is None:
        return Prepared()
    folder = folders.attempt_folder(plan, spec.uid, spec.attempt)
    if spec.task == spec.chief:
        choice.check(plan, folder)
        chosen = choice.begin(plan, spec.uid, program)
        return Prepared(chosen.restore, folder, chosen.notes)
    if Task.parse(spec.task).role == "ps":
        choice.check(plan, folder)  # TensorFlow lets each ps write its own shard.
    return Prepared(None, folder)


def meets_peers(spec: TaskSpec) -> bool:
    """Whether the program has to find others in a rendezvous."""
    return tensorflow_port(spec) is not None and len(spec.peers) > 1


def tensorflow_port(spec: TaskSpec) -> int | None:
    """Where this attempt's TensorFlow server will listen; None where the strategy starts none."""
    if spec.strategy in tfconfig.SINGLE_HOST or spec.task not in spec.peers:
        return None
    return reach.split(spec.peers[spec.task])[1] + tfconfig.port_shift(spec)


def wait_for_port(port: int, seconds: float) -> None:
    """Until the port can be listened on; PortTaken after `seconds`. What TIME_WAIT still holds counts as free."""
    end = time.monotonic() + seconds
    while True:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", port))
                probe.listen(1)  # Linux lets a second socket bind, but not listen.
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                return
        if time.monotonic() > end:
            raise PortTaken(f"port {port} is in use by another process, still after {seconds:g} s")
        time.sleep(0.2)
