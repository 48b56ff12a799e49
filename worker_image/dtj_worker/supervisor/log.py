"""The supervisor's lines for people, among those of the program on standard error."""

import sys


def say(task: str, line: str) -> None:
    """What, where, why; one line."""
    print(f"dtj-worker: {task}: {line}", file=sys.stderr, flush=True)
