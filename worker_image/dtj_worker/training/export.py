"""`dtj.save`: the finished model, written once. Checkpoints, which a restart reads, are `checkpoint.py`'s business."""

import contextlib
import tempfile
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from dtj_worker.training import models
from dtj_worker.training.context import context
from dtj_worker.training.report import reporter


def save(model: Any, path: str) -> None:
    """Write a model for serving: a `.keras` or `.h5` file by that ending, else a SavedModel in a folder.

    All workers call it, since some variables can only be read by all together; the chief alone writes to `path`, the
    others to a folder of their own that is removed.
    """
    before = reporter().phase("Exporting")
    with _target(str(path)) as target:
        if models.flavour_of(model) == "None":
            tf.saved_model.save(model, target)
        elif target.endswith((".keras", ".h5")):
            model.save(target)
        elif models.flavour_of(model) == "Keras3":
            model.export(target, verbose=False)
        else:
            model.save(target, save_format="tf")
    reporter().phase(before)


@contextlib.contextmanager
def _target(path: str) -> Iterator[str]:
    if context().is_chief:
        yield path
    else:
        with tempfile.TemporaryDirectory(prefix="dtj-save-") as folder:
            yield f"{folder}/{path.rstrip('/').rpartition('/')[2]}"
