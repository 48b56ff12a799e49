"""What the container may use and has suffered: cgroup limits, throttling, out-of-memory kills; None or 0 elsewhere.

Both cgroup versions; inside a container its own group is mounted at the root, on a bare machine it lies below.
"""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Throttling:
    """How often the kernel made this container wait for its CPU limit."""

    periods: int
    throttled_periods: int
    throttled_seconds: float


def cpu_limit(root: Path = ROOT) -> float | None:
    """Cores that the cgroup allows; None without a limit."""
    for folder in _folders(root, "cpu"):
        if quota := _read(folder / "cpu.max"):
            return _quotient(*quota.split())
        if quota := _read(folder / "cpu.cfs_quota_us"):
            return _quotient(quota, _read(folder / "cpu.cfs_period_us") or "")
    return None


def threads(root: Path = ROOT) -> int | None:
    """How many threads can run at once under the limit; None where there is none below the machine's own count."""
    limit = cpu_limit(root)
    return None if limit is None or limit >= (os.cpu_count() or 1) else max(1, math.ceil(limit))


def throttling(root: Path = ROOT) -> Throttling | None:
    for folder in _folders(root, "cpu"):
        if fields := _fields(folder / "cpu.stat"):
            waited = fields.get("throttled_usec", 0) / 1e6 + fields.get("throttled_time", 0) / 1e9
            return Throttling(fields.get("nr_periods", 0), fields.get("nr_throttled", 0), waited)
    return None


def oom_kills(root: Path = ROOT) -> int:
    """How many processes of this cgroup the kernel has killed for want of memory so far."""
    for folder in _folders(root, "memory"):
        for name in ("memory.events", "memory.oom_control"):
            if fields := _fields(folder / name):
                return fields.get("oom_kill", 0)
    return 0


def shared_memory_bytes() -> int | None:
    """The size of /dev/shm; None where there is none."""
    try:
        found = os.statvfs("/dev/shm")
    except OSError:
        return None
    return found.f_blocks * found.f_frsize


def has_gpu() -> bool:
    return Path("/dev/nvidiactl").exists()


def _folders(root: Path, controller: str) -> Iterator[Path]:
    own = ""
    for line in (_read(Path("/proc/self/cgroup")) or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            yield root / controller / path.lstrip("/")
            yield root / controller
        elif not controllers:
            own = path.lstrip("/")
    yield root / own
    yield root


def _quotient(quota: str, period: str = "", *_: str) -> float | None:
    """None for `max`, `-1` and whatever else is no quota."""
    return int(quota) / int(period) if quota.isdecimal() and period.isdecimal() and int(period) else None


def _fields(path: Path) -> dict[str, int]:
    pairs = (line.split() for line in (_read(path) or "").splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
