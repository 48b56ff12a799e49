"""Whether a program trains as its job says: one clear line if not. Pure; when to ask is `inject.py`'s business."""

from collections.abc import Collection
from dataclasses import dataclass

from dtj_worker.contract import Task, TaskSpec

CLASSES = {"MultiWorkerMirrored": "MultiWorkerMirroredStrategy", "Mirrored": "MirroredStrategy"}
"""Strategies that a program must use if the job names them; with the others it trains the same without."""

NOTHING_SAVED = (
    "NothingSaved: the program trains neither by fit nor by dtj.loop, so that nothing is saved or reported, and a "
    "failure starts again from zero"
)


@dataclass(frozen=True)
class Step:
    """What is known where a program computes its first gradients."""

    made: Collection[str]
    """Names of the strategies that were constructed so far."""
    in_replica: bool
    """Whether this happens within `strategy.run`, or `fit` of a model made under a strategy."""
    devices: int
    """GPUs of this host, else its logical CPU devices."""
    unmirrored: tuple[str, ...] = ()
    """Names of trained variables that are none of the strategy's: each replica would train its own."""


def of_step(spec: TaskSpec, step: Step) -> str | None:
    """A strategy that the job has and the program doesn't use: N workers would train N models."""
    wanted = CLASSES.get(spec.strategy)
    if wanted is None or Task.parse(spec.task).role == "evaluator" or not _matters(spec, step):
        return None
    alone = _alone(spec, step)
    if wanted not in step.made:
        other = ", ".join(sorted(step.made))
        created = f"the program created {other}, which spans one host alone" if other else "no strategy was created"
        if spec.strategy == "MultiWorkerMirrored":
            created = created if other else "no multi-worker strategy was created"
        return f"{alone}: {created}; begin with tf.distribute.{wanted}(), or with dtj.strategy()"
    if not step.in_replica:
        return f"{alone}: the step runs outside of {wanted}; build the model under its scope(), call the step by run()"
    if step.unmirrored:
        names = ", ".join(step.unmirrored[:3]) + (", …" if step.unmirrored[3:] else "")
        return f"{alone}: {names} were created outside of {wanted}; build model and optimizer under its scope()"
    return None


def of_replicas(spec: TaskSpec, replicas: int) -> str | None:
    """A global batch that the strategy's replicas don't divide."""
    batch = spec.batch.global_size
    return None if batch is None or batch % replicas == 0 else indivisible(batch, replicas)


def of_batch(spec: TaskSpec, replicas: int, seen: int) -> str | None:
    """A batch that isn't the declared one; `seen` is the global one that the program feeds."""
    batch = spec.batch
    declared = batch.global_size or (batch.per_replica or 0) * replicas
    if not declared or declared == seen:
        return None
    source = "spec.batch.global" if batch.global_size else f"spec.batch.perReplica × {replicas} replicas"
    return (
        f"the program trains with a global batch of {seen} ({seen / replicas:g} on each of {replicas} replicas); "
        f"{source} says {declared}; Dataset.batch and fit's batch_size take the global batch: change one of the two"
    )


def of_keras(strategy: str, version: str) -> str:
    """What to say of Keras 3's `fit` where it can't work (keras-team/keras#20585)."""
    return (
        f"fit of Keras {version} does not work under {strategy}; take tf_keras (keras: Auto or Legacy with tf.keras, "
        "or import tf_keras instead of keras), or a custom loop, which works with either"
    )


def indivisible(total: int, replicas: int) -> str:
    """What to say of a global batch that the replicas don't divide."""
    below = total - total % replicas
    near = f"{below} and {below + replicas} are" if below else f"{replicas} is"
    return f"a global batch of {total} examples is not divisible by {replicas} replicas; {near}"


def _matters(spec: TaskSpec, step: Step) -> bool:
    return len(spec.peers) > 1 if spec.strategy == "MultiWorkerMirrored" else step.devices > 1


def _alone(spec: TaskSpec, step: Step) -> str:
    if spec.strategy == "MultiWorkerMirrored":
        return f"each of {len(spec.peers)} workers is training alone"
    return f"one of {step.devices} devices is training alone"
