"""How a command ends: its exit codes, and the exception that carries one with what the person is to be told."""

from collections.abc import Iterable

SUCCEEDED = 0
FAILED = 1
BAD_MANIFEST = 2
"""Also a wrong command line."""
NO_CLUSTER = 3
UNHURT = 4
TIMED_OUT = 124
HUNG_UP = 129
INTERRUPTED = 130
UNREAD = 141
TERMINATED = 143

MEANINGS = {
    SUCCEEDED: "the job succeeded; the manifest is right; the command did what it was asked to",
    FAILED: "the job failed, was deleted, or is not there",
    BAD_MANIFEST: "the manifest, or the command line, is wrong",
    NO_CLUSTER: "the cluster can't be reached, or the embedded one can't be started",
    UNHURT: "the job succeeded, and the failure that --fail asks for never came",
    TIMED_OUT: "--timeout was over first",
    HUNG_UP: "its terminal was closed",
    INTERRUPTED: "interrupted by Ctrl-C",
    UNREAD: "what read its output, as `head` does, has ended",
    TERMINATED: "ended by SIGTERM",
}


def ended_by(signal: int) -> int:
    """The exit code that a shell gives a program that a signal ended."""
    return 128 + signal


class Ended(Exception):
    """The command is over; these lines say why, each one a sentence."""

    def __init__(self, code: int, lines: Iterable[str] = ()) -> None:
        self.code = code
        self.lines = tuple(lines)
        super().__init__("; ".join(self.lines))
