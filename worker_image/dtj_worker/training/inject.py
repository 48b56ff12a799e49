"""What watches a program that changes nothing for us: hooks in TensorFlow and both Kerases, set as each is imported.

`site/sitecustomize.py` calls `hook` for the modules in HOOKS. A class is patched in the module that defines it, right
after that has run: no program can hold an unpatched one. Nothing here imports TensorFlow by itself.
"""

import functools
import inspect
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from dtj_worker.training import audit
from dtj_worker.training.context import context
from dtj_worker.training.report import reporter


@dataclass
class Seen:
    """What this process has done so far."""

    made: set[str] = field(default_factory=set)
    """Names of the strategies that were constructed."""
    stepped: bool = False


@functools.cache
def seen() -> Seen:
    return Seen()


def hook(name: str, module: ModuleType) -> None:
    """Patch a module that has just been imported; a second call changes nothing.

    Nor does one in a process that the trainer has started: its helpers may train as they like, and write no checkpoint.
    """
    if os.environ.setdefault(ENV_TRAINER, str(os.getpid())) == str(os.getpid()) and not hasattr(module, "__dtj__"):
        module.__dtj__ = True  # type: ignore[attr-defined]
        HOOKS[name](module)


def watch_strategies() -> None:
    """Place the hooks that no job should be without, also where DTJ_INJECT=0 keeps `fit` as it is."""
    for name in (DISTRIBUTE_LIB, COLLECTIVE, BACKPROP):
        hook(name, sys.modules[name])


def _watch_constructors(module: Any) -> None:
    original = module.StrategyBase.__init__

    @functools.wraps(original)
    def construct(self: Any, extended: Any) -> None:
        original(self, extended)
        if not type(self).__name__.startswith("_Default"):
            _built(self)

    module.StrategyBase.__init__ = construct


def _built(strategy: Any) -> None:
    name = PUBLIC_NAMES.get(type(strategy).__name__, type(strategy).__name__)
    seen().made.add(name)
    if name != MULTI_WORKER:
        reporter().constructing(name)
    if threading.current_thread() is threading.main_thread():
        # TensorFlow's coordination service has set a handler that swallows SIGTERM: a worker asked to stop would go on
        # until it is killed. This puts back what the program, or the system, had.
        signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM) or signal.SIG_DFL)
    replicas = int(strategy.num_replicas_in_sync)
    batch = context().spec.batch
    problem = audit.of_replicas(context().spec, replicas)
    if problem and name == audit.CLASSES.get(context().spec.strategy):
        reporter().refused(problem)
    reporter().built(replicas, batch.global_size or (batch.per_replica and batch.per_replica * replicas))


def _watch_rendezvous(module: Any) -> None:
    original = module.CollectiveAllReduceExtended.__init__

    @functools.wraps(original)
    def construct(self: Any, container_strategy: Any, *args: Any, **kwargs: Any) -> None:
        spec = context().spec
        service = module.context.context()
        # TensorFlow fills in leader and jobs itself; only the time-out is ours. It has no public setting.
        service.configure_coordination_service = functools.partial(
            service.configure_coordination_service,
            heartbeat_timeout_in_ms=spec.communication.heartbeat_seconds * 1000,
        )
        if str(kwargs.get("communication_options")) == str(module.collective_util.Options()):
            from dtj_worker.training.strategies import communication_options  # noqa: PLC0415 - imports TensorFlow

            kwargs["communication_options"] = communication_options(spec.communication)
        reporter().constructing(MULTI_WORKER)
        original(self, container_strategy, *args, **kwargs)

    module.CollectiveAllReduceExtended.__init__ = construct


def _watch_gradients(module: Any) -> None:
    """Where every training step of every program passes, `fit` or not: the place to see what it trains with."""
    original = module.GradientTape.gradient

    @functools.wraps(original)
    def gradient(self: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        if not seen().stepped:
            seen().stepped = True
            _audit_step(sources)
        return original(self, target, sources, *args, **kwargs)

    module.GradientTape.gradient = gradient


def _audit_step(sources: Any) -> None:
    import tensorflow as tf  # noqa: PLC0415 - it is there by now

    from dtj_worker.training.checkpoint import calls  # noqa: PLC0415

    # Keras 3 has TensorFlow's variable within its own.
    trained = [v if isinstance(v, tf.Variable) else getattr(v, "value", None) for v in tf.nest.flatten(sources)]
    step = audit.Step(
        made=frozenset(seen().made),
        in_replica=tf.distribute.has_strategy() and not tf.distribute.in_cross_replica_context(),
        devices=len(tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")),
        unmirrored=tuple(
            v.name for v in trained if isinstance(v, tf.Variable) and not isinstance(v, tf.distribute.DistributedValues)
        ),
    )
    if problem := audit.of_step(context().spec, step):
        reporter().refused(problem)
    if not calls().depth and context().is_chief and context().spec.checkpoint:
        reporter().notice(audit.NOTHING_SAVED)


def _watch_fit(name: str, module: Any) -> None:
    trainer = getattr(module, name)
    original = trainer.fit
    signature = inspect.signature(original)

    @functools.wraps(original)
    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(self, *args, **kwargs)
        except TypeError:
            return original(self, *args, **kwargs)  # Which says what is wrong with the arguments.
        from dtj_worker.training.keras import watching  # noqa: PLC0415 - imports TensorFlow

        with watching(self, given.arguments):
            return original(*given.args, **given.kwargs)

    trainer.fit = fit


MULTI_WORKER = "MultiWorkerMirroredStrategy"
PUBLIC_NAMES = {"CollectiveAllReduceStrategy": MULTI_WORKER, "_CollectiveAllReduceStrategyExperimental": MULTI_WORKER}
"""What people call a class that TensorFlow exports under another name than its own."""

ENV_TRAINER = "DTJ_TRAINER"
"""The process that first imported TensorFlow, for its children to see."""

DISTRIBUTE_LIB = "tensorflow.python.distribute.distribute_lib"
COLLECTIVE = "tensorflow.python.distribute.collective_all_reduce_strategy"
BACKPROP = "tensorflow.python.eager.backprop"

HOOKS: dict[str, Callable[[Any], None]] = {
    DISTRIBUTE_LIB: _watch_constructors,
    COLLECTIVE: _watch_rendezvous,
    BACKPROP: _watch_gradients,
    "tf_keras.src.engine.training": functools.partial(_watch_fit, "Model"),
    "keras.src.backend.tensorflow.trainer": functools.partial(_watch_fit, "TensorFlowTrainer"),
}
