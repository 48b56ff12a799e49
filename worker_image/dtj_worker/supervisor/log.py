"""The supervisor's lines for people, among those of the program on standard error."""

import contextlib
import os
import sys

from dtj_worker.contract import one_line

LINE_BYTES = 4096


class Errors:
    """The standard error as the program and its supervisor share it. What comes by standard output is not seen here."""

    is_within_line = False
    """Whether the program's last words have no end of line yet: it may be killed within one."""

    def copy(self, data: bytes) -> None:
        """Pass on what the program has written. OSError where nobody takes it."""
        while data:
            written = os.write(sys.stderr.fileno(), data)
            # No lock with `say`: while the log's reader is slow, this would make the supervisor wait. What is lost if
            # both write at once is a line's beginning.
            self.is_within_line = data[written - 1 : written] != b"\n"
            data = data[written:]


errors = Errors()


def say(task: str, line: str) -> None:
    """What, where, why; one line. Where nobody takes it, as on a full disk, it is lost, and nothing else is."""
    begin = "\n" if errors.is_within_line else ""
    errors.is_within_line = False
    with contextlib.suppress(OSError, ValueError):
        print(f"{begin}dtj-worker: {task}: {one_line(line, LINE_BYTES)}", file=sys.stderr, flush=True)
