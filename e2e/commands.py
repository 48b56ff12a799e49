"""Commands that are waited for, and signals meanwhile. What runs on beside is `daemon.py`'s business."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

PATH = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"
"""Where the machine's own tools are, whoever runs this."""
LONGEST_SECONDS = 30 * 60
"""Several times what the longest one takes, a Kubernetes that is built on two cores."""


Handler = Callable[..., Any] | signal.Handlers


def run(
    *command: str,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    seconds: float = LONGEST_SECONDS,
) -> str:
    """What it prints; what it says when it fails is the error. It ends with whoever waits for it."""
    told = shlex.join(command)
    try:
        done = subprocess.run(
            [*bound(), *command],
            cwd=folder,
            env=environment,
            text=True,
            capture_output=True,
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"{told} has not ended after {seconds:.0f} s, and was killed") from None
    if done.returncode:
        said = (done.stdout + done.stderr).strip()[-4000:]
        raise RuntimeError(f"{told} ended with {done.returncode}: {said}")
    return done.stdout


@contextlib.contextmanager
def beside(
    command: Sequence[str], *, is_calm: bool = False, is_heard: bool = True
) -> Iterator[subprocess.Popen[bytes]]:
    """A command that goes on meanwhile, and ends with the context at the latest, with all that it has started.

    A calm one takes the processors' time that others leave; one that is not heard prints nothing.
    """
    output = None if is_heard else subprocess.DEVNULL
    words = [*bound(), *command]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
    if is_calm:
        # Of a session of its own, it is weighed against the others by its group where the kernel groups sessions.
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, 19)
            Path(f"/proc/{process.pid}/autogroup").write_text("19")
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def bound() -> tuple[str, ...]:
    """Before the words of a command: that it ends with whoever starts it, even if that one is killed."""
    # No part of Linux but util-linux knows how; where that is not, it may outlive who is killed.
    return ("setpriv", "--pdeathsig", "KILL", "--") if shutil.which("setpriv") else ()


def foreground(command: Sequence[str], folder: Path | None = None, environment: Mapping[str, str] | None = None) -> int:
    """Its exit code, or 130 after Ctrl-C: the terminal tells the command itself, which may take its time to end."""
    interrupts: list[int] = []
    with handling({signal.SIGINT: lambda number, _: interrupts.append(number)}):
        code = subprocess.Popen(command, cwd=folder, env=environment).wait()
    return 130 if interrupts else code


@contextlib.contextmanager
def handling(handlers: Mapping[signal.Signals, Handler]) -> Iterator[None]:
    """Signals are handled so, and afterwards as before; what is ignored, as under nohup, stays so."""
    before = {number: signal.getsignal(number) for number in handlers}
    heard = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in heard:
        signal.signal(number, handlers[number])
    try:
        yield
    finally:
        for number in heard:
            signal.signal(number, before[number])
