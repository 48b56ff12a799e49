"""The standard streams as a command needs them: open, and an output that nobody reads any more ends the command."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from dtj_operator.cli.outcome import FAILED, UNREAD


class Output(io.TextIOWrapper):
    """Text that can't be written ends the process as `sys.exit` does, in whatever task it happens, so it cleans up.

    What is written meanwhile is dropped.
    """

    is_lost = False

    def write(self, text: str) -> int:
        with self._ending():
            return super().write(text)
        return len(text)

    def flush(self) -> None:
        with self._ending():
            super().flush()

    @contextmanager
    def _ending(self) -> Iterator[None]:
        try:
            yield
        except OSError as why:
            if self.is_lost:
                return
            self.is_lost = True
            # What it holds back goes nowhere, and no other file gets the number.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            if isinstance(why, BrokenPipeError):
                sys.exit(UNREAD)
            print(f"the output can't be written: {why.strerror}", file=sys.stderr)
            sys.exit(FAILED)


def prepare() -> None:
    """Put the standard streams in order; what was closed (`>&-`) is open on nothing, so no file gets its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115, PTH123 - open for as long as the process is
    given = sys.stdout
    if isinstance(given, io.TextIOWrapper):
        # A letter that this terminal doesn't know is no reason to end a run.
        sys.stdout = Output(
            given.detach(), encoding=given.encoding, errors="replace", line_buffering=given.line_buffering
        )
