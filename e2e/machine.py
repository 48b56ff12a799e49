"""Where a cluster lives: one private mount, network and process namespace, which takes everything with it when it ends.

The outer process makes the namespace, waits, and holds that the machine is afterwards as it was; inside, process 1
furnishes the namespace and starts the one command for which it was made.
"""

import contextlib
import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from e2e import commands
from e2e.cgroups import PREFIX, Cgroups, of_runs
from e2e.door import door, loopback, to
from e2e.programs import alone, cache
from e2e.survey import Survey

FOLDER = "DTJ_E2E_FOLDER"
"""Set inside the namespace: the folder of this run."""
PORT = "DTJ_E2E_PORT"
"""Likewise: the port of the machine's loopback that leads to the socket file `DOOR` of that folder."""
DOOR = "api.sock"
OUTER = "outer.pid"
"""In that folder: the number, outside, of the parent of process 1."""
LOCK = "lock"
"""Likewise: held as long as the run goes on."""
ROOT = Path(__file__).resolve().parent.parent
ADDRESS = "10.89.0.1"
"""Of the control plane, and of whoever runs in the namespace without being a node."""
BRIDGE = "br0"
LONGEST = 60
"""A socket's path has at most 107 bytes, and the kubelet's lie deep."""
SYSCTLS = (
    "kernel/panic",
    "kernel/panic_on_oops",
    "vm/overcommit_memory",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
"""The kubelet writes these, and they are the whole machine's."""


def folder() -> Path:
    """The run's folder, for who is inside."""
    if FOLDER not in os.environ:
        raise RuntimeError(
            "a cluster lives in a namespace of its own: start this by `python -m e2e cluster` or `… test`"
        )
    return Path(os.environ[FOLDER])


def cgroups() -> Cgroups:
    return Cgroups(folder().name)


def run(command: Sequence[str], say: Callable[[str], None], before: Survey) -> int:
    """Run a command inside; its exit code, or 1 where the machine is afterwards not as it was before."""
    place = place_of_run()
    return watched(place, lambda: enter(command, place), say, before)


def place_of_run() -> Path:
    """The folder of the run that this process would be; RuntimeError where none can be."""
    if os.geteuid() != 0:
        raise RuntimeError("nodes are made of cgroups, mounts and containers: run this as root, or set KUBECONFIG")
    place = cache() / "run" / f"{PREFIX}{os.getpid()}"
    if len(str(place)) > LONGEST:
        raise RuntimeError(f"{place} is too long for the sockets below it: set XDG_CACHE_HOME to a shorter path")
    return place


def watched(place: Path, work: Callable[[], int], say: Callable[[str], None], before: Survey) -> int:
    """Tidy up after the work, however it ends, and look at the machine."""
    # A SystemExit runs the finally clause; Ctrl-C on a terminal reaches the command inside by itself.
    ending = {number: lambda number, _: sys.exit(128 + number) for number in (signal.SIGTERM, signal.SIGHUP)}
    with occupied(place), commands.handling(ending):
        try:
            code = work()
        finally:
            with commands.handling(dict.fromkeys((*ending, signal.SIGINT), signal.SIG_IGN)):
                left = Cgroups(place.name).remove()
                keep_logs(place)
    missed = [*(f"cgroup {path} is left" for path in left), *before.differences(Survey.now(), place.name)]
    for line in missed:
        say(f"the machine is not as it was: {line}")
    return code or bool(missed)


@contextlib.contextmanager
def occupied(place: Path) -> Iterator[None]:
    """The run's folder, which others can tell from one that was left; what was left is removed."""
    with alone(place.parent):
        for name in stale():
            Cgroups(name).remove(seconds=0)
            keep_logs(cache() / "run" / name)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        lock = (place / LOCK).open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
    with lock:
        yield


def stale() -> list[str]:
    """Runs that were killed before they could tidy up."""
    names = of_runs() | {path.name for path in (cache() / "run").glob(f"{PREFIX}*")}
    # One of another cache is over by its number alone, which may be one of another process namespace.
    return [name for name in sorted(names) if is_over(name) and not Cgroups(name).processes()]


def is_over(name: str) -> bool:
    """By the lock of its folder, for numbers are given again; before there is one, by its number."""
    try:
        with (cache() / "run" / name / LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except FileNotFoundError:
        number = re.search(r"\d+$", name)
        return number is not None and not Path("/proc", number[0]).exists()
    return True


def enter(command: Sequence[str], place: Path) -> int:
    listener = loopback()
    environment = {
        **os.environ,
        "PATH": commands.PATH,
        FOLDER: str(place),
        PORT: str(listener.getsockname()[1]),
    }
    environment.pop("KUBECONFIG", None)  # what happens inside is about the cluster that is there
    inside = (
        # Whatever happens to this process, the namespace ends with it.
        *("setpriv", "--pdeathsig", "KILL", "--"),
        *("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"),
        *(sys.executable, "-m", "e2e.machine", *command),
    )
    with commands.handling({signal.SIGINT: lambda *_: None}):
        process = subprocess.Popen(inside, cwd=ROOT, env=environment)
        try:
            (place / OUTER).write_text(str(process.pid))
            with door(listener, to(socket.AF_UNIX, str(place / DOOR))):
                return process.wait()
        finally:
            process.kill()  # the kernel ends process 1, and with it the namespace
            process.wait()


def join(command: Sequence[str]) -> int:
    """Run a command in the namespace of the cluster that KUBECONFIG names, or of the one that came up last."""
    runs = [run for run in cache().glob(f"run/*/{OUTER}") if not is_over(run.parent.name)]
    runs.sort(key=lambda path: path.stat().st_mtime)
    named = Path(os.environ.get("KUBECONFIG", "")).parent
    runs = [run for run in runs if run.parent == named] or runs
    if not runs:
        raise RuntimeError("no cluster is up; `make cluster` brings one up")
    outer, place = runs[-1].read_text(), runs[-1].parent
    children = Path(f"/proc/{outer}/task/{outer}/children").read_text().split()
    if not children:
        raise RuntimeError(f"the cluster in {place} is only coming up, or is about to go")
    environment = {
        **os.environ,
        "PATH": commands.PATH,
        FOLDER: str(place),
        "KUBECONFIG": str(place / "admin.kubeconfig"),
    }
    inside = ["nsenter", "--target", children[0], "--mount", "--net", "--pid", "--wd", "--", *command]
    return commands.foreground(inside, environment=environment)


def keep_logs(place: Path) -> None:
    """The run's folder goes; of its logs the last five runs' stay."""
    if (place / "log").exists():
        logs = cache() / "log"
        logs.mkdir(parents=True, exist_ok=True)
        (place / "log").rename(tempfile.mkdtemp(prefix=time.strftime("%m%d-%H%M%S-"), dir=logs))
        for old in sorted(logs.iterdir())[:-5]:
            shutil.rmtree(old, ignore_errors=True)
    shutil.rmtree(place, ignore_errors=True)


def process_one(command: Sequence[str]) -> int:
    """Furnish the namespace, run the command, and reap what is left to process 1 until it ends."""
    furnish(folder())
    child = subprocess.Popen(command)
    signal.signal(signal.SIGINT, lambda *_: None)  # the command is told by the terminal itself
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    while True:
        pid, status = os.wait()
        if pid == child.pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return child.returncode if child.returncode >= 0 else 128 - child.returncode


def furnish(place: Path) -> None:
    """Everything that the cluster's programs write outside their own folders is the namespace's own."""
    mount("--make-rshared", "/")  # kubelet needs shared propagation; the peers are in this namespace alone
    own = place / "own"
    own.mkdir()
    mount("-t", "tmpfs", "tmpfs", str(own))
    for name in ("run", "log", "lib", "work", "sysctl"):
        (own / name).mkdir(parents=True)
    mount("--bind", str(own / "run"), "/run")
    mount("--bind", str(own / "log"), "/var/log")
    mount("-t", "overlay", "overlay", "-o", f"lowerdir=/var/lib,upperdir={own}/lib,workdir={own}/work", "/var/lib")
    Path("/run/netns").mkdir()
    for name in SYSCTLS:
        written = own / "sysctl" / Path(name).name
        written.write_text(Path("/proc/sys", name).read_text())
        mount("--bind", str(written), f"/proc/sys/{name}")
    (own / "resolv.conf").write_text(f"nameserver {ADDRESS}\n")
    mount("--bind", str(own / "resolv.conf"), "/etc/resolv.conf")
    for words in (
        "link set lo up",
        f"link add {BRIDGE} type bridge",
        f"address add {ADDRESS}/24 dev {BRIDGE}",
        f"link set {BRIDGE} up",
    ):
        commands.run("ip", *words.split())
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def mount(*arguments: str) -> None:
    commands.run("mount", *arguments)


if __name__ == "__main__":
    sys.exit(process_one(sys.argv[1:]))
