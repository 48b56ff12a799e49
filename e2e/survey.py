"""What of a machine a cluster could leave changed, looked at before and after."""

import dataclasses
import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from e2e import commands
from e2e.cgroups import PREFIX, mounted, numbers, own

MOVING = re.compile(
    r"^(fs\.(dentry-state|file-nr|inode-nr|inode-state|quota\..*|aio-nr)|kernel\.(random\..*|ns_last_pid|pty\.nr"
    r"|sched_domain\..*|perf_event_max_sample_rate)|net\.netfilter\.nf_conntrack_count|vm\.stat_refresh)$"
)
"""Sysctls that are not settings but change by themselves."""

OTHERS = re.compile(rf"^({PREFIX}.*|.*\.(slice|scope|service)|docker)$")
"""Cgroups of other runs, of systemd, of Docker: others work on this machine, and people log in."""
OTHERS_MOUNTS = ("/run/user/", "/run/docker/", "/var/lib/docker/")
OTHERS_LINKS = re.compile(r"\b(veth\w+|docker\d+|br-[0-9a-f]{12})\b")
BUILDS = "buildah-"
"""How the cgroups of image builds begin; one with a process in it belongs to a build that goes on."""


@dataclasses.dataclass(frozen=True)
class Survey:
    """Each a set of lines, as the machine's own tools say them."""

    mounts: frozenset[str]
    addresses: frozenset[str]
    firewall: frozenset[str]
    sysctls: frozenset[str]
    cgroups: frozenset[str]

    @staticmethod
    def now() -> "Survey":
        mounts = (line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines())
        return Survey(
            mounts=frozenset(" ".join(mount[3:6]) for mount in mounts if not mount[4].startswith(OTHERS_MOUNTS)),
            addresses=frozenset(addresses()),
            firewall=frozenset(said("nft", "--stateless", "list", "ruleset") + said("ipset", "list", "-name")),
            sysctls=frozenset(sysctls()),
            cgroups=frozenset(cgroups()),
        )

    def differences(self, after: "Survey", run: str) -> Iterator[str]:
        """What is there now and was not, or the other way round; and processes that still run for the run."""
        for field in dataclasses.fields(self):
            old, new = getattr(self, field.name), getattr(after, field.name)
            if field.name == "sysctls":  # whole families come and go with modules of the kernel, and with links
                both = names(old) & names(new)
                old, new = ({line for line in lines if name_in(line) in both} for lines in (old, new))
            yield from (f"{field.name}: {line} is new" for line in sorted(new - old))
            yield from (f"{field.name}: {line} is gone" for line in sorted(old - new))
        yield from (f"process {process} still runs" for process in processes_of(run))


def addresses() -> list[str]:
    lines = said("ip", "-brief", "address") + said("ip", "route") + said("ip", "netns")
    return [line for line in lines if not OTHERS_LINKS.search(line)]


def cgroups() -> Iterator[str]:
    """At the top, and in those of this process, where builds make theirs; deeper ones are others' business."""
    for path in (path for place in {*mounted(), *own()} for path in place.glob("*/")):
        is_of_build = path.name.startswith(BUILDS) and numbers(path / "cgroup.procs")
        if not (OTHERS.match(path.name) or is_of_build):
            yield str(path)


def sysctls() -> Iterator[str]:
    top = Path("/proc/sys")
    for folder, _, names in os.walk(top):
        for path in (Path(folder, name) for name in names):
            name = ".".join(path.relative_to(top).parts)
            if MOVING.match(name):
                continue
            try:
                yield f"{name} = {path.read_text().strip()}"
            except (OSError, UnicodeDecodeError):  # some are for writing alone
                continue


def names(lines: Iterable[str]) -> set[str]:
    return {name_in(line) for line in lines}


def name_in(line: str) -> str:
    return line.partition(" = ")[0]


def processes_of(run: str) -> Iterator[str]:
    """By the folder of the run, which is in the environment or on the command line of everything it starts."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes() + (path / "environ").read_bytes()
        except OSError:
            continue
        if int(path.name) != os.getpid() and re.search(rf"/{run}\b".encode(), words):
            yield f"{path.name} ({words[:80].replace(bytes(1), b' ').decode(errors='replace')})"


def said(*command: str) -> list[str]:
    environment = {**os.environ, "PATH": commands.PATH}
    done = subprocess.run(command, text=True, capture_output=True, check=False, env=environment, timeout=60)
    return done.stdout.splitlines()
