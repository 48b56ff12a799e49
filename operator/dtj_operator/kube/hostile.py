"""What comes from pods, cut to what the operator can carry: no control characters, no endless text, no wild number."""

import dataclasses
import math
from typing import TypeVar

from dtj_worker.codec import ContractError
from dtj_worker.contract import MESSAGE_BYTES

Record = TypeVar("Record")
LARGEST_INTEGER = 2**53
"""What every JSON reader keeps exactly, kubectl's included."""
MOST_ENTRIES = 2048
"""Twice the tasks a job may have."""


def text(value: str, limit: int = MESSAGE_BYTES) -> str:
    """The text without control characters (a terminal would obey them), at most `limit` bytes long."""
    printable = "".join(c if c.isprintable() or c == "\n" else " " for c in value[:limit])
    return printable.encode()[:limit].decode(errors="ignore").strip()


def record(value: Record) -> Record:
    """A decoded record of the contract with its texts cleaned; ContractError for what no worker of ours sends."""
    names = [field.name for field in dataclasses.fields(value)]  # type: ignore[arg-type]  # it is a dataclass
    return dataclasses.replace(value, **{name: _clean(getattr(value, name), name) for name in names})  # type: ignore[type-var]


def _clean(value: object, name: str) -> object:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, float):
        # A loss may well be NaN; JSON and so the status have no way to say it.
        return value if math.isfinite(value) else None
    if isinstance(value, int):
        if abs(value) > LARGEST_INTEGER:
            raise ContractError(f"{name}: a number beyond 2^53")
        return value
    if isinstance(value, dict):
        if len(value) > MOST_ENTRIES:
            raise ContractError(f"{name}: {len(value)} entries")
        return {text(k, 64): _clean(v, name) for k, v in value.items()}
    return record(value) if dataclasses.is_dataclass(value) else value
