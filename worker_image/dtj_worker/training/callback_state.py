"""What a `fit`'s other callbacks remember, taken out as plain values and arrays, and put back; for both Kerases."""

from collections.abc import Iterable
from typing import Any

import numpy as np

REMEMBERED = {
    "EarlyStopping": ("wait", "best", "best_epoch", "stopped_epoch", "best_weights"),
    "ReduceLROnPlateau": ("wait", "best", "cooldown_counter"),
    "ModelCheckpoint": ("best", "epochs_since_last_save", "_batches_seen_since_last_saving", "_last_batch_seen"),
}
"""Attributes by class, its subclasses included. Their on_train_begin would forget them."""


def take(callbacks: Iterable[Any]) -> tuple[list[dict[str, Any]], dict[str, np.ndarray]]:
    """The memories of the callbacks that are known, in their order; arrays apart."""
    memories: list[dict[str, Any]] = []
    arrays: dict[str, np.ndarray] = {}
    for callback, kind in _known(callbacks):
        values = {name: getattr(callback, name) for name in REMEMBERED[kind] if hasattr(callback, name)}
        weights = values.pop("best_weights", None)
        if weights is not None:
            arrays |= {f"{len(memories)}/best_weights/{i:06d}": np.asarray(w) for i, w in enumerate(weights)}
        memories.append({"kind": kind} | {name: _plain(value) for name, value in values.items()})
    return memories, arrays


def put_back(callbacks: Iterable[Any], memories: list[dict[str, Any]], arrays: dict[str, np.ndarray]) -> None:
    """Give each callback what the one of its kind at its place remembered; a changed list keeps what still fits."""
    for place, ((callback, kind), memory) in enumerate(zip(_known(callbacks), memories, strict=False)):
        if memory["kind"] != kind:
            continue
        for name, value in memory.items():
            if name != "kind":
                setattr(callback, name, value)
        weights = [arrays[key] for key in sorted(arrays) if key.startswith(f"{place}/best_weights/")]
        if weights:
            callback.best_weights = weights


def history(of: Any, epoch: int | None = None, logs: dict[str, Any] | None = None) -> dict[str, Any]:
    """The History callback's record, with an epoch it hasn't heard of yet: it comes after ours in the list."""
    epochs = list(of.epoch)
    record = {name: [_plain(v) for v in values] for name, values in of.history.items()}
    if epoch is not None and epoch not in epochs:
        epochs.append(epoch)
        for name, value in (logs or {}).items():
            record.setdefault(name, []).append(_plain(value))
    return {"epoch": epochs, "history": record}


def put_back_history(of: Any, record: dict[str, Any]) -> None:
    of.epoch = list(record["epoch"])
    of.history = {name: list(values) for name, values in record["history"].items()}


def _known(callbacks: Iterable[Any]) -> list[tuple[Any, str]]:
    found = []
    for callback in callbacks:
        kind = next((c.__name__ for c in type(callback).__mro__ if c.__name__ in REMEMBERED), None)
        if kind:
            found.append((callback, kind))
    return found


def _plain(value: Any) -> Any:
    """A scalar of NumPy or TensorFlow as Python's; larger ones as lists."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return np.asarray(value).tolist()
