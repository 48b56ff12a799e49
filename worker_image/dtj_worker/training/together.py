"""Values that all workers share: sent from the chief bit for bit, and proved equal. What is sent, others decide.

All by one collective, a SUM of int32 words to which only the chief adds anything but zeros: exact for every type, where
a float's sum would lose the sign of a zero. Every worker of the strategy must call these at the same time.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from dtj_worker.training.strategies import is_multi_worker, local_replicas

CHUNK_BYTES = 16 * 1024**2
"""A message's size; 4 and 64 MiB took longer per byte."""


class WorkersDiffer(RuntimeError):
    """Workers that should hold the same don't; going on would train different models without a word."""


def from_chief(strategy: Any, is_chief: bool, message: bytes) -> bytes:
    """The chief's message, on every worker."""
    if not is_multi_worker(strategy):
        return message
    size = int(_sum(strategy, np.array([len(message) if is_chief else 0], np.int64))[0])
    return _broadcast(strategy, message if is_chief else None, size)


def spread(strategy: Any, is_chief: bool, variables: list[Any]) -> None:
    """Give every variable, on every replica, the value that it has on the chief; WorkersDiffer if that can't be."""
    if not is_multi_worker(strategy):
        return
    layout = ((v.dtype.name, v.shape.as_list()) for v in variables)
    if not _equal(strategy, [repr(list(layout)).encode()]):
        raise WorkersDiffer("the workers built different models: their variables differ in number, type or shape")
    for group in _groups(variables):
        locals_ = [strategy.experimental_local_results(v) for v in group]
        sizes = [v.dtype.size * v.shape.num_elements() for v in group]
        data = b"".join(v[0].numpy().tobytes() for v in locals_) if is_chief else None
        received = _broadcast(strategy, data, sum(sizes))
        offsets = np.cumsum([0, *sizes[:-1]])
        for copies, offset in zip(locals_, offsets, strict=True):
            kind, shape = copies[0].dtype.as_numpy_dtype, copies[0].shape
            value = np.frombuffer(received, kind, shape.num_elements(), offset).reshape(shape.as_list())
            for copy in copies:
                copy.assign(value)
    if not _equal(
        strategy, (v.numpy().tobytes() for u in variables for v in strategy.experimental_local_results(u)[:1])
    ):
        raise WorkersDiffer("after the restore the workers don't hold the same values")


def _groups(variables: list[Any]) -> Iterator[list[Any]]:
    """Neighbours that share messages: one message for each of many small variables would take longer."""
    group: list[Any] = []
    size = 0
    for variable in variables:
        group.append(variable)
        size += variable.dtype.size * variable.shape.num_elements()
        if size >= CHUNK_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _equal(strategy: Any, parts: Iterable[bytes]) -> bool:
    """Whether all workers hold the same bytes. On a difference at least one of them learns of it."""
    digest = hashlib.sha1(usedforsecurity=False)
    for part in parts:
        digest.update(part)
    mine = int.from_bytes(digest.digest()[:5])
    total = int(_sum(strategy, np.array([mine], np.int64))[0])
    return total == mine * (strategy.num_replicas_in_sync // local_replicas(strategy))


def _broadcast(strategy: Any, data: bytes | None, size: int) -> bytes:
    """`size` bytes of the one worker that has data."""
    received = []
    for start in range(0, size, CHUNK_BYTES):
        length = min(CHUNK_BYTES, size - start)
        padded = -(-length // 4) * 4
        words = np.zeros(padded // 4, np.int32)
        if data is not None:
            words.view(np.uint8)[:length] = np.frombuffer(data, np.uint8, length, start)
        received.append(_sum(strategy, words).tobytes()[:length])
    return b"".join(received)


def _sum(strategy: Any, words: np.ndarray) -> np.ndarray:
    """The sum of all workers' words, however many replicas each has."""
    local = local_replicas(strategy)

    def of_replica(replica: Any) -> Any:
        return tf.constant(words if replica.replica_id_in_sync_group % local == 0 else np.zeros_like(words))

    values = strategy.experimental_distribute_values_from_function(of_replica)
    return strategy.reduce(tf.distribute.ReduceOp.SUM, values, axis=None).numpy()
