"""Sends a signal to a container's first process or to its child: `python deliver.py FIRST 0|1 NUMBER`.

Needs nothing but Python, for it is run in containers, too, where FIRST is 1. It waits until the one that is meant is
there and catches the signal: the first step of an attempt is one worker's, and another's program may only be starting
then, so that what is to be a request to it would be its end.
"""

import os
import signal
import sys
import time
from pathlib import Path

PATIENCE_SECONDS = 60.0


def main() -> None:
    first, generation, number = map(int, sys.argv[1:])
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (pid := _ready(first, generation, number)) is None:
        if time.monotonic() > deadline:
            sys.exit(f"after {PATIENCE_SECONDS:.0f} s nothing of generation {generation} under {first} takes {number}")
        time.sleep(0.02)
    os.kill(pid, number)


def _ready(first: int, generation: int, number: int) -> int | None:
    processes = [first]
    if generation:
        processes = [int(pid) for pid in Path(f"/proc/{first}/task/{first}/children").read_text().split()]
    return next((pid for pid in processes[:1] if number == signal.SIGKILL or _catches(pid, number)), None)


def _catches(pid: int, number: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


if __name__ == "__main__":
    main()
