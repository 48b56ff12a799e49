"""Container logs: where they lie, and how `kubectl logs` reads them. They are written by `shim.py`."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from dtj_operator.local.logs import LogQuery

POLL_SECONDS = 0.1
_CHUNK = 256 * 1024


def log_file(pod: Path, container: str, restart: int) -> Path:
    """Of one run of a container; `pod` is the folder of all that is kept of it."""
    return pod / "logs" / container / f"{restart}.log"


async def read(file: Path, query: LogQuery, has_ended: Callable[[], bool]) -> AsyncIterator[bytes]:
    """The log as it was asked for, in chunks. Followed, it ends when the container has ended and all is read."""
    left = query.limit_bytes
    with file.open("rb") as log:
        log.seek(_start(log.read(), query.tail) if query.tail is not None else 0)
        rest = b""
        while True:
            # Asked before reading: what comes between the last read and the end must not be lost.
            is_over = not query.follow or has_ended()
            data = rest + log.read(_CHUNK)
            whole, newline, rest = data.rpartition(b"\n")
            if newline:
                told = b"".join(_shown(whole.split(b"\n"), query))
                if left is not None:
                    told, left = told[:left], left - len(told[:left])
                if told:
                    yield told
                if left == 0:
                    return
            elif is_over:
                return
            else:
                await asyncio.sleep(POLL_SECONDS)


def last_lines(file: Path, lines: int, size: int) -> str:
    """The end of a log, without times."""
    try:
        text = file.read_bytes()[-size * 4 - 64 * lines :]
    except OSError:
        return ""
    kept = [line.split(b" ", 2) for line in text.split(b"\n")[:-1]]
    told = b"".join(line[2] + (b"\n" if line[1] == b"F" else b"") for line in kept[-lines:] if len(line) == 3)
    return told[-size:].decode(errors="replace")


def _shown(lines: list[bytes], query: LogQuery) -> Iterator[bytes]:
    for line in lines:
        time, _, rest = line.partition(b" ")
        if query.since is not None and _seconds(time) < query.since:
            continue
        mark, _, text = rest.partition(b" ")
        head = time + b" " if query.timestamps else b""
        yield head + text + (b"\n" if mark == b"F" else b"")


def _start(log: bytes, lines: int) -> int:
    """Where the last so many whole lines begin."""
    at = len(log)
    for _ in range(lines + 1):
        at = log.rfind(b"\n", 0, at)
        if at < 0:
            return 0
    return at + 1


def _seconds(time: bytes) -> float:
    return datetime.strptime(time.decode(), "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC).timestamp()
