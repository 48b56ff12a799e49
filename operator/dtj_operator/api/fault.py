"""The annotation that injects a failure for a demo or a test, `worker:1@step=60:SIGTERM`: text to Task and Fault."""

import re

from dtj_worker.contract import Fault, Task

FORM = "role:index@step=N, then :SIGKILL (the default), :SIGTERM or :exit=N, as in worker:1@step=60:exit=3"
_FORM = re.compile(
    r"(?P<role>chief|worker|ps|evaluator):(?P<index>[0-9]{1,3})@step=(?P<step>[1-9][0-9]{0,8})"
    r"(?::(?:(?P<signal>SIGKILL|SIGTERM)|exit=(?P<exit>[0-9]{1,3})))?",
    re.ASCII,
)


def parse_fault(text: str) -> tuple[Task, Fault]:
    """Whom to hurt, and how; ValueError, in one line without a field path, for anything of another form."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r:.80} is no fault; expected {FORM}")
    task = Task.parse(f"{found['role']}-{found['index']}")
    if found["exit"] is None:
        return task, Fault(step=int(found["step"]), signal=found["signal"] or "SIGKILL")
    if int(found["exit"]) > 255:
        raise ValueError(f"{text!r:.80}: an exit code is at most 255")
    return task, Fault(step=int(found["step"]), exit_code=int(found["exit"]))
