"""The embedded cluster as a whole: API server, controllers, kubelet, the operator's process. All of it ends as one."""

import asyncio
import fcntl
import json
import logging
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from dtj_operator.api.crd import crd
from dtj_operator.local.api import Api
from dtj_operator.local.apiserver import ApiServer
from dtj_operator.local.claims import Claims
from dtj_operator.local.deployment import Deployment
from dtj_operator.local.kubelet import Kubelet
from dtj_operator.local.node.addresses import Addresses
from dtj_operator.local.node.container import Machine
from dtj_operator.local.node.machine import node, node_names
from dtj_operator.local.node.paths import unquoted
from dtj_operator.local.node.podrun import USUAL, Pace
from dtj_operator.local.node.ports import HIGHEST, LOWEST, Ports
from dtj_operator.local.objects import Objects
from dtj_operator.local.process import Runtime, runtime
from dtj_operator.local.scheduler import Scheduler
from dtj_worker.contract import INSTALL_OPTION

log = logging.getLogger(__name__)

OPERATOR_NAMESPACE = "dtj-system"
WORKER = "dtj-worker"
STATE_PREFIX = "dtj-cluster-"
LOCK = "lock"


class ClusterFailed(Exception):
    """The cluster can't be had here, or can't go on; the message says why and what to do."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What kind of cluster. `folder` is where programs are looked for: that of the manifest."""

    folder: Path
    python: Path = Path(sys.executable)
    """Stands for the trainers' image: its environment has what they import."""
    nodes: int = 1
    gpus: int = 0
    """Of each node; they are counted, and nothing else."""
    mapped: dict[str, Path] = {}
    """Folders of this machine in the place of container paths."""
    isolate: bool = False
    """Trainers and operator get a network of their own, which nothing outside of this process reaches."""
    port: int = 0
    """Of the API server; 0: a free one."""
    state: Path | None = None
    """Where logs, claims and the kubeconfig are kept. It stays; without one they go with the cluster."""
    operator: bool = True
    pace: Pace = USUAL
    """Of restarts of containers in place."""


class Cluster(msgspec.Struct, frozen=True):
    """What runs. `lines` are for the person at the terminal, before anything else is said."""

    api: Api
    url: str
    token: str
    kubeconfig: Path
    state: Path
    kubelet: Kubelet
    """Also the source of logs: `kubelet.logs(LogQuery(...))`."""
    operator: Deployment | None
    lines: tuple[str, ...]


@asynccontextmanager
async def cluster(options: Options, say: Callable[[str], None]) -> AsyncIterator[Cluster]:
    """A cluster for the time of the context, its operator ready. No process or file of it is left afterwards.

    `say` takes sentences about what happens here and in no real cluster. NoIsolation where that was asked for and can't
    be had, OperatorFailed where the operator can't work; ClusterFailed, at any time, for all else in the way.
    """
    async with AsyncExitStack() as stack:
        _sweep()
        state = _state(options, stack)
        run = await stack.enter_async_context(runtime(state / "runtime.log", isolated=options.isolate))
        api = Api()
        objects = Objects(api, "dtj-local")
        ports = Ports(is_private=options.isolate)
        # Its symbolic links stay as they are: by them a Python knows its environment.
        python = options.python.absolute()
        addresses = Addresses(objects, ports)
        stack.callback(addresses.close)
        machine = Machine(
            runtime=run,
            objects=objects,
            addresses=addresses,
            python=python,
            entry_point=_entry_point(python, state),
            folder=options.folder.absolute(),
            state=state,
            mapped={inside.rstrip("/"): str(unquoted(here, stack)) for inside, here in options.mapped.items()},
            say=_once(say),
        )
        names = node_names(options.nodes)
        _populate(objects, names, options.gpus)
        kubelet = Kubelet(machine, names, options.pace)
        token = secrets.token_urlsafe(24)
        server = ApiServer(api, token=token, logs=kubelet)
        await _serve(server, run, options.port)
        stack.push_async_callback(server.stop)
        kubeconfig = _write_kubeconfig(state / "kubeconfig", server)
        operator = None
        if options.operator:
            slot = ports.slot()
            stack.callback(ports.release, slot)
            operator = Deployment(run, kubeconfig, state / "operator.log", slot.base + 1, machine.say)
        controllers = {
            "the claims' folders": Claims(objects, state / "claims").run(),
            "the scheduler": Scheduler(objects).run(),
            "the kubelet": kubelet.run(),
        }
        if operator is not None:
            controllers["the operator's Deployment"] = operator.run()
        await stack.enter_async_context(_running(controllers))
        if operator is not None:
            await operator.ready()
        yield Cluster(
            api=api,
            url=server.url,
            token=token,
            kubeconfig=kubeconfig,
            state=state,
            kubelet=kubelet,
            operator=operator,
            lines=_lines(server, run),
        )


def _state(options: Options, stack: AsyncExitStack) -> Path:
    """The folder of everything; for its owner alone, since secrets of pods lie in it."""
    if options.state is not None:
        options.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = stack.enter_context((options.state / LOCK).open("w"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            told = f"{options.state} is in use by another cluster; name another folder, or wait for that one's end"
            raise ClusterFailed(told) from None
        return unquoted(options.state, stack)
    state = Path(tempfile.mkdtemp(prefix=STATE_PREFIX)).resolve()
    stack.callback(shutil.rmtree, state, ignore_errors=True)
    # Held for as long as we live: what nobody holds is left over. It has its name only once it is held.
    beside = state / f"{LOCK}.new"
    fcntl.flock(stack.enter_context(beside.open("w")), fcntl.LOCK_EX)
    beside.rename(state / LOCK)
    return state


def _sweep() -> None:
    """Take away what clusters have left behind that were killed."""
    for left in Path(tempfile.gettempdir()).glob(f"{STATE_PREFIX}*"):
        # The folder is everyone's: whatever another user has put there is let alone.
        with suppress(OSError):
            if left.lstat().st_uid == os.geteuid():
                with (left / LOCK).open("rb") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(left)


def _entry_point(python: Path, state: Path) -> tuple[str, ...]:
    """`dtj-worker` of the trainers' environment; where that has none, ours as one file under its Python."""
    installed = python.parent / WORKER
    if installed.exists():
        return (str(installed),)
    archive = state / f"{WORKER}.pyz"
    command = [sys.executable, "-P", "-m", "dtj_worker.supervisor.main", INSTALL_OPTION, str(archive)]
    made = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if made.returncode:
        raise ClusterFailed(f"{WORKER} can't be packed into {archive}: {made.stderr.strip()}")
    return str(python), str(archive)


def _populate(objects: Objects, names: tuple[str, ...], gpus: int) -> None:
    objects.create("customresourcedefinitions.apiextensions.k8s.io", crd())
    objects.create("namespaces", {"metadata": {"name": OPERATOR_NAMESPACE}})
    for name in names:
        objects.create("nodes", node(name, gpus, objects.timestamp()))


async def _serve(server: ApiServer, run: Runtime, port: int) -> None:
    try:
        await server.start(port)
    except OSError as why:
        # asyncio says it in a sentence of its own, with the address as Python writes it.
        told = os.strerror(why.errno) if why.errno else str(why)
        raise ClusterFailed(f"port {port} can't be listened on: {told}; name another one, or none") from None
    if run.is_isolated:
        # The operator finds the same address in its own network.
        await server.listen(await run.listen(server.port))


def _write_kubeconfig(path: Path, server: ApiServer) -> Path:
    path.touch(mode=0o600)
    path.write_text(json.dumps(server.kubeconfig(), indent=2))
    return path


@asynccontextmanager
async def _running(controllers: dict[str, Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Controllers by their name, at work for the time of the context, which is left at once when one of them fails."""
    owner = asyncio.current_task()
    assert owner is not None
    failed: list[asyncio.Task[None]] = []

    def fail(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and not failed:
            failed.append(task)
            owner.cancel()

    tasks = [asyncio.create_task(controller, name=name) for name, controller in controllers.items()]
    for task in tasks:
        task.add_done_callback(fail)
    try:
        yield
    except asyncio.CancelledError:
        if not failed:
            raise
        owner.uncancel()
        why = failed[0].exception()
        log.critical("%s failed", failed[0].get_name(), exc_info=why)
        raise ClusterFailed(f"{failed[0].get_name()} failed: {why!r}") from why
    finally:
        for task in tasks:
            task.remove_done_callback(fail)
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _once(say: Callable[[str], None]) -> Callable[[str], None]:
    said: set[str] = set()

    def say_once(sentence: str) -> None:
        if sentence not in said:
            said.add(sentence)
            say(sentence)

    return say_once


def _lines(server: ApiServer, run: Runtime) -> tuple[str, ...]:
    ours = f"port {server.port}: the Kubernetes API, for this machine, and only with the token"
    theirs = (
        "the programs' ports are in a network of their own, which nothing else reaches"
        if run.is_isolated
        else f"ports between {LOWEST} and {HIGHEST - 1}: TensorFlow's servers while a job runs, without a password for "
        "whoever reaches this machine (--isolate closes them off)"
    )
    return (
        f"{ours}; {theirs}",
        "containers are plain processes here: no images, no limits of CPU and memory, no probes or lifecycle hooks; "
        "GPUs are counted, not handed out",
    )
