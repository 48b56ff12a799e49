"""The cgroups of one run: a folder in every hierarchy. They outlive the namespace, so they have to be removed."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

PREFIX = "dtj-e2e-"


class Cgroups:
    """`/sys/fs/cgroup/<hierarchy>/dtj-e2e-<process>`, cgroup v1."""

    def __init__(self, name: str) -> None:
        self.name = name

    def create(self, child: str = "") -> str:
        """A cgroup in every hierarchy; returns its path as runtimes say it."""
        path = f"{self.name}/{child}".rstrip("/")
        for hierarchy in hierarchies():
            place = hierarchy
            for part in path.split("/"):
                place /= part
                place.mkdir(exist_ok=True)
                for name in ("cpuset.cpus", "cpuset.mems"):  # empty in a new one, and then no process may enter
                    if (place / name).exists():
                        (place / name).write_text((place.parent / name).read_text())
        return f"/{path}"

    def entry(self, child: str) -> Path:
        """The file that takes a process in, for what is not put in a cgroup by the runtime."""
        return self.tree(child) / "cgroup.procs"

    def tree(self, child: str = "") -> Path:
        """One hierarchy stands for all where processes are counted: runtimes enter every one."""
        return next(path for path in hierarchies() if path.name == "pids") / self.name / child

    def processes(self, child: str = "", within: str = "") -> list[int]:
        """All that are in it or below, in those whose paths end so, as the reader's process namespace numbers them."""
        # Not by `rglob`, to which a cgroup that vanishes under way is an error.
        places = [place for place, _, _ in os.walk(self.tree(child)) if place.endswith(within)]
        return sorted({pid for place in places for pid in numbers(Path(place, "cgroup.procs"))})

    def remove(self, child: str = "", seconds: float = 30) -> list[Path]:
        """Remove it, deepest first. What still holds a process is tried again until the time is over, and returned."""
        deadline = time.monotonic() + seconds
        while left := [path for place in mounted() for path in removed(place / self.name / child)]:
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)  # cgroup v1 tells nobody that one has become empty
        return left


def removed(top: Path) -> Iterator[Path]:
    """What of a tree of cgroups could not be removed."""
    for path, _, _ in os.walk(top, topdown=False):
        try:
            Path(path).rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            yield Path(path)


def hierarchies() -> list[Path]:
    found = mounted("cgroup")
    if not any(path.name == "pids" for path in found):
        raise RuntimeError(
            "the cluster's nodes need cgroup v1 (or hybrid), as on a machine without systemd, and there is no "
            "hierarchy `pids` here; name another cluster by KUBECONFIG"
        )
    return found


def mounted(*kinds: str) -> list[Path]:
    """Runtimes make theirs in the unified hierarchy as well, so all kinds are looked at when they are removed."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [Path(mount[1]) for mount in mounts if mount[2] in (kinds or ("cgroup", "cgroup2"))]


def own() -> list[Path]:
    """Those that this process is in."""
    paths = {line.split(":", 2)[2].strip("/") for line in Path("/proc/self/cgroup").read_text().splitlines()}
    return [found for place in mounted() for path in paths if (found := place / path).is_dir()]


def of_runs() -> set[str]:
    """The names of all that are there."""
    return {path.name for place in mounted() for path in place.glob(f"{PREFIX}*")}


def numbers(file: Path) -> list[int]:
    try:
        return [int(line) for line in file.read_text().split()]
    except OSError:  # the cgroup went while it was read
        return []
