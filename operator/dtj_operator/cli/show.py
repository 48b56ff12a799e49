"""What is seen while a job runs: a table that lives where there is a terminal, and plain lines everywhere."""

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from dtj_operator.api.observed import PodView
from dtj_operator.api.status import JobStatus
from dtj_operator.cli import story

_STYLES = {"Succeeded": "bold green", "Failed": "bold red", "Running": "green", "Restarting": "yellow"}
_TASK_STYLES = ("cyan", "magenta", "blue", "yellow", "green")
NO_TERMINAL_COLUMNS = 4096
"""More than any line of a status has."""
_LINE_SECONDS = 5.0
"""Between two plain lines that say only how far it is."""


class Show:
    """Everything goes to one stream, in order. Use it as a context: the table is taken away at its end."""

    def __init__(self, stream: TextIO, title: str, *, logs: bool) -> None:
        self._console = plain_console(stream)
        self._title = title
        self._logs = logs
        self._live: Live | None = None
        self._told = ("", "")
        self._line_at = 0.0
        self._seen: tuple[JobStatus, Sequence[PodView]] = JobStatus(), ()
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(
                console=self._console,
                get_renderable=self._table,
                refresh_per_second=4,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, why: BaseException | None, at: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._began

    def say(self, sentence: str, style: str = "") -> None:
        self._console.print(Text(sentence, style), soft_wrap=True)

    def log(self, task: str, line: str) -> None:
        """One line of a program, with its task before it."""
        if self._logs:
            style = _TASK_STYLES[sum(task.encode()) % len(_TASK_STYLES)]
            self._console.print(Text.assemble((f"{task} | ", style), Text.from_ansi(line)), soft_wrap=True)

    def status(self, status: JobStatus, pods: Sequence[PodView]) -> None:
        """What the job is doing now."""
        now = time.monotonic()
        told = status.phase, status.reason or ""
        if told != self._told:
            self._told = told
            self._line_at = now
            self.say(f"{self.seconds:6.1f} s  {told[0]}" + (f": {told[1]}" if told[1] else ""), "bold")
        elif self._live is None and now - self._line_at >= _LINE_SECONDS and status.phase == "Running":
            self._line_at = now
            self.say(f"{self.seconds:6.1f} s  {story.where(status)}")
        self._seen = status, pods

    def _table(self) -> Group:
        """Drawn by a thread of its own, so that the seconds go on while nothing is heard."""
        status, pods = self._seen
        head = Text.assemble(
            (self._title, "bold"),
            "  ",
            (story.where(status), _STYLES.get(status.phase, "")),
            f", attempt {status.attempt}, restarts {status.restarts.total}, {self.seconds:.0f} s",
        )
        return Group(head, task_table(pods))


def plain_console(stream: TextIO | None = None) -> Console:
    """Lines are as long as they are; where they go to no terminal, those of a table too."""
    console = Console(file=stream, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = NO_TERMINAL_COLUMNS
    return console


def task_table(pods: Sequence[PodView]) -> Table:
    tasks = Table("TASK", "POD", "NODE", "STATE", box=None, pad_edge=False, header_style="dim")
    for pod in pods:
        tasks.add_row(str(pod.task), pod.name, pod.node or "", Text(_state(pod)))
    return tasks


def _state(pod: PodView) -> str:
    if pod.deleting_since is not None and not pod.is_over:
        return "Terminating"
    if pod.trainer is not None:
        return f"ended with {pod.trainer.exit_code}"
    if pod.stage == "Bound" and pod.waiting_reason:
        return f"{pod.waiting_reason} {pod.waiting_message}".strip()
    return pod.stage
