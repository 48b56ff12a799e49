"""`dtj restart`, `suspend`, `resume`: one patch of the spec each; the operator does the rest."""

import uuid

from dtj_operator.cli.remote import Access, Remote


def restart(access: Access, name: str) -> str:
    """Stop the job where it is and begin an attempt that costs nothing. What will happen is returned, as a sentence."""
    Remote(access).patch(name, {"spec": {"restartRequest": str(uuid.uuid4())}})
    return f"{name} begins a new attempt at its newest checkpoint; no budget is used up"


def suspend(access: Access, name: str) -> str:
    """Take all pods of the job away until `resume`."""
    Remote(access).patch(name, {"spec": {"suspend": True}})
    return f"{name} is being stopped; dtj resume {name} takes it up again"


def resume(access: Access, name: str) -> str:
    Remote(access).patch(name, {"spec": {"suspend": False}})
    return f"{name} is queued again and goes on at its newest checkpoint"
