"""How many examples a program feeds, as far as it can be told without reading any: a read would disturb its order."""

from typing import Any

import tensorflow as tf

KEEPS_BATCHES = (
    "AssertCardinality",
    "Cache",
    "Map",
    "Options",
    "ParallelMap",
    "Prefetch",
    "Repeat",
    "Shuffle",
    "Skip",
    "Take",
)
"""Datasets, by the beginning of their class's name, that hand on the batches of their input."""


def global_batch(x: Any, batch_size: Any) -> int | None:
    """The global batch of a `fit` over `x`; None where only the data would tell."""
    if isinstance(x, tf.data.Dataset):
        return _of_dataset(x)
    leaves = tf.nest.flatten(x)
    if hasattr(x, "element_spec") or not all(hasattr(leaf, "shape") and len(leaf.shape) for leaf in leaves):
        return None
    return min([int(batch_size or 32), *(int(leaf.shape[0]) for leaf in leaves)])


def _of_dataset(dataset: Any) -> int | None:
    shapes = [spec.shape for spec in tf.nest.flatten(dataset.element_spec) if hasattr(spec, "shape")]
    if shapes and shapes[0].rank and shapes[0][0] is not None:
        return int(shapes[0][0])
    while (size := getattr(dataset, "_batch_size", None)) is None:
        dataset = getattr(dataset, "_input_dataset", None)
        if dataset is None or not _hands_on(dataset):
            return None
    value = tf.get_static_value(size)
    return None if value is None else int(value)


def _hands_on(dataset: Any) -> bool:
    name = type(dataset).__name__.lstrip("_")
    return name.startswith(KEEPS_BATCHES) or hasattr(dataset, "_batch_size")
