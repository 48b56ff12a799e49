"""The checkpoints of one call of `fit` or `dtj.loop`: what they hold, the restore a call begins with, its saves.

A program may make several such calls. Each has its number, in the order of the program, and a folder of that name; the
checkpoint that a restart begins with tells in which of them the program was. Which checkpoint that is, the chief's
supervisor has decided; the layout on disk is `folders`' business.
"""

import contextlib
import functools
import json
import math
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from dtj_worker import folders
from dtj_worker.contract import CheckpointPlan
from dtj_worker.reports import Restore
from dtj_worker.training import models, together
from dtj_worker.training.context import context
from dtj_worker.training.report import first_line, reporter

RAM = "ram://dtj/save"
"""Where workers other than the chief save to: a file system of TensorFlow's in their memory."""

PAST = b"past "
"""Before the position of a call that the program had left behind when it was stopped."""


POSITION = "position/.ATTRIBUTES/py_state"
"""What TensorFlow calls the position within a checkpoint."""


class CheckpointUnreadable(RuntimeError):
    """The chosen checkpoint can't be read after all. The next attempt takes another, or this one again if it may."""


@dataclass
class Calls:
    """How far the program is in its calls."""

    entered: int = 0
    depth: int = 0
    """How many are running: one within another is none of its own."""
    steps: int = 0
    """Steps of those that have ended: a job's steps count on through all of them."""

    def enter(self) -> int:
        self.entered += 1
        return self.entered - 1


@functools.cache
def calls() -> Calls:
    """The calls of this process."""
    return Calls()


class Position(tf.train.experimental.PythonState):
    """Where a call is: plain values and arrays, stored in the checkpoint with the weights, both or neither."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, Any] = {}
        self.arrays: dict[str, np.ndarray] = {}

    def serialize(self) -> bytes:
        layout = {name: [a.dtype.name, list(a.shape)] for name, a in self.arrays.items()}
        head = json.dumps({"values": self.values, "arrays": layout}).encode()
        return b"\n".join([head, b"".join(a.tobytes() for a in self.arrays.values())])

    def deserialize(self, string_value: bytes) -> None:
        head, _, data = string_value.partition(b"\n")
        document = json.loads(head)
        self.values, self.arrays, offset = document["values"], {}, 0
        for name, (kind, shape) in document["arrays"].items():
            self.arrays[name] = np.frombuffer(data, np.dtype(kind), math.prod(shape), offset).reshape(shape)
            offset += self.arrays[name].nbytes


class Checkpoints:
    """All workers of the strategy call the same methods at the same time; only the chief touches a disk."""

    def __init__(self, strategy: Any, model: Any, optimizer: Any, tracked: Mapping[str, Any] | None = None) -> None:
        self.number = calls().enter()
        self.position = Position()
        self.is_past = False
        """After a restore: whether the program had already left this call behind."""
        self._context = context()
        self._strategy, self._model, self._optimizer = strategy, model, optimizer
        self._tracked = dict(tracked or {})
        self._count = len(self._variables(self._root()))
        self._kept: list[str] = []
        self._is_first = True
        self._has_failed = False

    def restore(self) -> bool:
        """Put back what this call had reached; False if it begins anew. `position` tells the rest.

        Refused, in one line, where program and checkpoint don't fit; CheckpointUnreadable for a damaged one.
        """
        if self._context.restore is None:
            return False
        is_chief = self._context.is_chief
        path, state = self._choose(self._context.restore) if is_chief else ("", b"")
        state = together.from_chief(self._strategy, is_chief, state)
        if not state:
            return False
        self.is_past, state = state.startswith(PAST), state.removeprefix(PAST)
        self.position.deserialize(state)
        self._check_origin()
        root = self._root()
        if is_chief:
            self._read(root, path)
        together.spread(self._strategy, is_chief, self._variables(root))
        return True

    def save(self, step: int, epoch: int) -> None:
        """Store position and variables. `step` counts through the whole job, `epoch` is where this call would go on."""
        before = reporter().phase("Saving")
        self.position.values |= self._origin() | {"call": self.number}
        root = self._root()
        variables = self._variables(root)
        plan, folder = self._context.spec.checkpoint, self._context.checkpoint_folder
        if self._context.is_chief and plan is not None and folder is not None:
            self._write(root, plan, folder, step, epoch)
        elif any(v.synchronization == tf.VariableSynchronization.ON_READ for v in variables):
            # Reading such a variable is a collective, so all must read, in the order in which a save does.
            root.write(RAM)
            tf.io.gfile.rmtree(RAM.rpartition("/")[0])
        if self._is_first and len(variables) > self._count:
            reporter().notice(
                f"{len(variables) - self._count} variables were created after training had begun; a restart can't "
                "restore them: call the model, and build every optimizer, before fit or dtj.loop"
            )
        self._is_first = False
        reporter().phase(before)

    def _write(self, root: Any, plan: CheckpointPlan, folder: str, step: int, epoch: int) -> None:
        prefix = f"{folder}/call-{self.number}/ckpt-{step}"
        if prefix in self._kept:
            # The step is the same, what has happened since isn't. Overwritten in place, a crash would leave neither.
            prefix += "-end"
        try:
            root.write(prefix)
            folders.write_manifest(Path(prefix), step, epoch, _library(self.position.values), fit=self.number)
        except (OSError, tf.errors.OpError) as error:
            # The run is worth more than one of its checkpoints; the next save may work again.
            reporter().notice(f"the checkpoint of step {step} could not be written: {first_line(error)}")
            self._has_failed = True
            _remove(Path(prefix))
            return
        # Only now, with a finished newer one, may an older one go.
        is_first = not self._kept
        self._kept.append(prefix)
        while len(self._kept) > plan.keep:
            _remove(Path(self._kept.pop(0)))
        reporter().saved(step, epoch)
        if self._has_failed:
            self._has_failed = False
            reporter().notice("")
        if is_first:
            with contextlib.suppress(OSError):  # The next attempt sweeps, too.
                folders.sweep(Path(folder))

    def _choose(self, restore: Restore) -> tuple[str, bytes]:
        """The path that this call reads, with its position; nothing if the call begins anew."""
        if restore.path is None:
            raise CheckpointUnreadable("the chief's supervisor named no path to restore from")
        state = self._stored_position(restore.path)
        reached = json.loads(state.partition(b"\n")[0])["values"]["call"]
        if self.number >= reached:
            return (restore.path, state) if self.number == reached else ("", b"")
        # The program goes on with the weights that this call ended with: they are in this run's folder, or in that of
        # the run which it continues.
        runs = {
            Path(folder).parent for folder in (self._context.checkpoint_folder, Path(restore.path).parents[1]) if folder
        }
        for copy in [copy for run in sorted(runs) for copy in folders.copies(run)]:
            if copy.manifest.fit == self.number and folders.damage(copy) is None:
                return str(copy.prefix), PAST + self._stored_position(str(copy.prefix))
        return "", b""

    def _read(self, root: Any, path: str) -> None:
        try:
            status = root.read(path)
            # Both are needed: the one passes while variables don't exist yet, the other when the program has more.
            status.assert_existing_objects_matched()
            status.assert_consumed()
        except (AssertionError, ValueError) as error:
            if not models.is_built(self._model):
                reporter().refused(
                    "the model has no variables yet when training begins, so that a checkpoint can't be put back: give "
                    "it an input shape, or call it once, before fit or dtj.loop"
                )
            reporter().refused(
                f"{path} holds another model than the program builds: {first_line(error)[:300]}; run the "
                "program that wrote it, or set checkpoint.onExisting: StartFresh"
            )
        except (tf.errors.OpError, IndexError) as error:
            raise self._unreadable(path, error) from error

    def _stored_position(self, path: str) -> bytes:
        try:
            reader = tf.train.load_checkpoint(path)
            state: bytes = reader.get_tensor(POSITION) if reader.has_tensor(POSITION) else b""
        except (tf.errors.OpError, ValueError, IndexError) as error:
            raise self._unreadable(path, error) from error
        if not state:
            reporter().refused(f"{path} was not written by dtj: checkpoint.resumeFrom can only name a job's checkpoint")
        return state

    def _unreadable(self, path: str, error: Exception) -> Exception:
        """What to raise; the copy is set aside first if its bytes are still there, or each attempt would choose it."""
        why, plan = f"{path} can't be read: {first_line(error)}", self._context.spec.checkpoint
        if isinstance(error, tf.errors.ResourceExhaustedError) or plan is None:
            return error
        prefix, directory = Path(path), Path(plan.directory)
        if directory not in prefix.parents:
            reporter().refused(f"checkpoint.resumeFrom: {why}")
        run = directory / prefix.relative_to(directory).parts[0]
        with contextlib.suppress(OSError):  # A disk that fails now may well work again.
            for copy in folders.copies(run):
                if copy.prefix == prefix and folders.damage(copy) is None:
                    folders.set_aside(run, copy)
                    why += f"; it was set aside in {run / folders.UNREADABLE}, the next attempt takes an older one"
        return CheckpointUnreadable(why)

    def _check_origin(self) -> None:
        stored, own = self.position.values, self._origin()
        if _library(stored) != _library(own):
            reporter().refused(
                f"the checkpoint was written with {_library(stored)}, the program runs with {_library(own)}; use the "
                "same (spec.keras and the image decide), or set checkpoint.onExisting: StartFresh"
            )
        before, now = stored["global_batch"], own["global_batch"]
        if before and now and before != now and not self._context.spec.batch.allow_change:
            reporter().refused(
                f"the run began with a global batch of {before} and would go on with {now}; if that is meant, set "
                "spec.batch.allowChange: true"
            )

    def _origin(self) -> dict[str, Any]:
        flavour = models.flavour_of(self._model)
        declared = self._context.spec.batch
        batch = declared.global_size or (declared.per_replica or 0) * self._strategy.num_replicas_in_sync
        return {"flavour": flavour, "version": models.version_of(flavour), "global_batch": batch or None}

    def _root(self) -> Any:
        """What is stored, looked up anew each time: a model may have got variables since."""
        state = models.state(self._model, self._optimizer)
        return tf.train.Checkpoint(position=self.position, tracked=self._tracked, **state)

    def _variables(self, root: Any) -> list[Any]:
        return models.variables(root, self._optimizer)


def _remove(prefix: Path) -> None:
    """A copy, or what a save that failed has left. What a disk keeps all the same is swept by a later attempt."""
    with contextlib.suppress(OSError):
        # The manifest first: what has none is no copy, so that a crash in here can't leave half a one.
        prefix.with_name(prefix.name + folders.MANIFEST).unlink(missing_ok=True)
        for path in prefix.parent.glob(f"{prefix.name}.*"):
            path.unlink(missing_ok=True)
        for half in prefix.parent.glob(f"{prefix.name}_temp*"):  # Shards that TensorFlow has not merged yet.
            shutil.rmtree(half)


def _library(origin: Mapping[str, Any]) -> str:
    name = {"Legacy": "tf_keras", "Keras3": "keras"}.get(origin["flavour"], "no Keras model")
    return f"{name} {origin['version']}".strip()
