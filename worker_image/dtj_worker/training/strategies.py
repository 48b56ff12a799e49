"""The job's strategy, built: one table of names and builders. Whether the program uses it is `audit.py`'s business."""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from dtj_worker.contract import Communication
from dtj_worker.training.context import context
from dtj_worker.training.inject import watch_strategies
from dtj_worker.training.report import reporter


@functools.cache
def strategy() -> Any:
    """The job's strategy, the same object at every call. The first call waits for all peers, if there are any."""
    spec = context().spec
    if spec.strategy not in BUILDERS:
        reporter().refused(
            f"strategy {spec.strategy}: this version of dtj-worker builds {', '.join(BUILDERS)}; set another, or let "
            "the program create its strategy itself"
        )
    watch_strategies()
    if tf.keras.__name__.startswith("tf_keras"):
        # By default tf_keras draws dropout masks from ops whose state nobody can save. With generators a resumed run
        # draws the masks that the uninterrupted one would have drawn.
        tf.keras.backend.experimental.enable_tf_random_generator()
    return BUILDERS[spec.strategy](spec.communication)


def is_multi_worker(of: Any) -> bool:
    """Whether the strategy spans several processes, which take each step together."""
    return _processes(of) > 1


def local_replicas(of: Any) -> int:
    """How many of the strategy's replicas run in this process."""
    return int(of.num_replicas_in_sync) // _processes(of)


def communication_options(asked: Communication) -> Any:
    """What `spec.communication` says about collectives between hosts."""
    return tf.distribute.experimental.CommunicationOptions(
        bytes_per_pack=asked.bytes_per_pack or 0,
        timeout_seconds=asked.timeout_seconds,
        implementation=IMPLEMENTATIONS[asked.implementation],
    )


def _default(_: Communication) -> Any:
    return tf.distribute.get_strategy()


def _one_device(_: Communication) -> Any:
    return tf.distribute.OneDeviceStrategy(_devices()[0])


def _mirrored(asked: Communication) -> Any:
    ops = asked.cross_device_ops
    return tf.distribute.MirroredStrategy(_devices(), cross_device_ops=CROSS_DEVICE_OPS[ops]() if ops else None)


def _multi_worker_mirrored(asked: Communication) -> Any:
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=communication_options(asked))


BUILDERS: dict[str, Callable[[Communication], Any]] = {
    "None": _default,
    "OneDevice": _one_device,
    "Mirrored": _mirrored,
    "MultiWorkerMirrored": _multi_worker_mirrored,
}

IMPLEMENTATIONS = {
    "Auto": tf.distribute.experimental.CommunicationImplementation.AUTO,
    "Ring": tf.distribute.experimental.CommunicationImplementation.RING,
    "NCCL": tf.distribute.experimental.CommunicationImplementation.NCCL,
}

CROSS_DEVICE_OPS = {
    "NcclAllReduce": tf.distribute.NcclAllReduce,
    "HierarchicalCopyAllReduce": tf.distribute.HierarchicalCopyAllReduce,
    "ReductionToOneDevice": tf.distribute.ReductionToOneDevice,
}


def _processes(of: Any) -> int:
    if not isinstance(of, tf.distribute.MultiWorkerMirroredStrategy):
        return 1
    cluster = of.cluster_resolver.cluster_spec()
    return max(1, sum(cluster.num_tasks(job) for job in cluster.jobs if job in ("chief", "worker")))


def _devices() -> list[str]:
    """All GPUs of this host, else its logical CPU devices, of which a program may have made several."""
    return [device.name for device in tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")]
