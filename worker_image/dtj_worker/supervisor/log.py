"""The supervisor's lines for people, among those of the program on standard error."""

import contextlib
import sys

from dtj_worker.contract import one_line

LINE_BYTES = 4096


def say(task: str, line: str) -> None:
    """What, where, why; one line. Where nobody takes it, as on a full disk, it is lost, and nothing else is."""
    with contextlib.suppress(OSError, ValueError):
        print(f"dtj-worker: {task}: {one_line(line, LINE_BYTES)}", file=sys.stderr, flush=True)
