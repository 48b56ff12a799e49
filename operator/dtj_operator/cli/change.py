"""`dtj restart`, `suspend`, `resume`: one patch of the spec each; the operator does the rest."""

import uuid
from typing import Any

from dtj_operator.api.parse import parse_status
from dtj_operator.cli import story
from dtj_operator.cli.outcome import FAILED, Ended
from dtj_operator.cli.remote import Access, Remote


def restart(access: Access, name: str) -> str:
    """Stop the job where it is and begin an attempt that costs nothing. What will happen is returned, as a sentence."""
    _change(access, name, {"restartRequest": str(uuid.uuid4())})
    return f"{name} begins a new attempt at its newest checkpoint; no budget is used up"


def suspend(access: Access, name: str) -> str:
    """Take all pods of the job away until `resume`."""
    _change(access, name, {"suspend": True})
    return f"{name} is being stopped; dtj resume {name} takes it up again"


def resume(access: Access, name: str) -> str:
    _change(access, name, {"suspend": False})
    return f"{name} is queued again and goes on at its newest checkpoint"


def _change(access: Access, name: str, spec: dict[str, Any]) -> None:
    remote = Remote(access)
    status = parse_status(remote.job(name))
    if story.is_final(status):
        raise Ended(FAILED, [f"{name} is over ({status.phase}: {status.reason}); delete it and create it again"])
    remote.patch(name, {"spec": spec})
