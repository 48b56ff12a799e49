"""What of a machine a cluster could leave changed, looked at before and after."""

import dataclasses
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from e2e.cgroups import PREFIX

MOVING = re.compile(
    r"^(fs\.(dentry-state|file-nr|inode-nr|inode-state|quota\..*|aio-nr)|kernel\.(random\..*|ns_last_pid|pty\.nr"
    r"|sched_domain\..*|perf_event_max_sample_rate)|net\.netfilter\.nf_conntrack_count|vm\.stat_refresh)$"
)
"""Sysctls that are not settings but change by themselves."""

OTHERS = (PREFIX, "buildah-")


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
            mounts=frozenset(" ".join(mount[3:6]) for mount in mounts),
            addresses=frozenset(said("ip", "-brief", "address") + said("ip", "route") + said("ip", "netns")),
            firewall=frozenset(said("nft", "list", "ruleset") + said("ipset", "list", "-name")),
            sysctls=frozenset(sysctls()),
            cgroups=frozenset(
                # Those of runs and of images that are built are their own business: others may be going on.
                str(path)
                for path in Path("/sys/fs/cgroup").glob("*/*/")
                if not path.name.startswith(OTHERS)
            ),
        )

    def differences(self, after: "Survey", run: str) -> Iterator[str]:
        """What is there now and was not, or the other way round; and processes that still run for the run."""
        for field in dataclasses.fields(self):
            old, new = getattr(self, field.name), getattr(after, field.name)
            yield from (f"{field.name}: {line} is new" for line in sorted(new - old))
            yield from (f"{field.name}: {line} is gone" for line in sorted(old - new))
        yield from (f"process {process} still runs" for process in processes_of(run))


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
    done = subprocess.run(command, text=True, capture_output=True, check=False, env={**os.environ, "PATH": PATH})
    return done.stdout.splitlines()


PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
