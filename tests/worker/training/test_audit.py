"""Does a program train as its job says? The sentences, and real programs that don't."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dtj_worker.contract import Batch, TaskSpec
from dtj_worker.training import audit
from dtj_worker.training.audit import Step
from tests.worker.training.gang import Job

SPEC = TaskSpec(
    namespace="ml",
    job="digits",
    uid="3b3f9a52-0000-4000-8000-000000000000",
    task="worker-1",
    attempt=0,
    strategy="MultiWorkerMirrored",
    chief="worker-0",
    chief_status="",
    status="",
    peers={f"worker-{index}": "a:1" for index in range(4)},
)
GOOD = Step(made={"MultiWorkerMirroredStrategy"}, in_replica=True, devices=1)
ONE_HOST = {"strategy": "Mirrored", "peers": {"worker-0": "a:1"}, "task": "worker-0"}


@pytest.mark.parametrize(
    ("spec", "step", "problem"),
    [
        pytest.param({}, {}, None, id="as it should be"),
        pytest.param(
            {},
            {"made": set(), "in_replica": False},
            "each of 4 workers is training alone: no multi-worker strategy was created; begin with "
            "tf.distribute.MultiWorkerMirroredStrategy(), or with dtj.strategy()",
            id="no strategy",
        ),
        pytest.param(
            {},
            {"made": {"MirroredStrategy"}},
            "each of 4 workers is training alone: the program created MirroredStrategy, which spans one host alone; "
            "begin with tf.distribute.MultiWorkerMirroredStrategy(), or with dtj.strategy()",
            id="a strategy of one host on each worker",
        ),
        pytest.param(
            {},
            {"in_replica": False},
            "each of 4 workers is training alone: the step runs outside of MultiWorkerMirroredStrategy; build the "
            "model under its scope(), call the step by run()",
            id="the strategy is there and not used",
        ),
        pytest.param(
            {},
            {"unmirrored": ("a", "b", "c", "d")},
            "each of 4 workers is training alone: a, b, c, … were created outside of MultiWorkerMirroredStrategy; "
            "build model and optimizer under its scope()",
            id="the variables are no strategy's",
        ),
        pytest.param({"peers": {"worker-0": "a:1"}}, {"made": set()}, None, id="one worker needs no strategy"),
        pytest.param({"task": "evaluator-0"}, {"made": set()}, None, id="an evaluator trains nothing"),
        pytest.param({"strategy": "None", "peers": {"worker-0": "a:1"}}, {"made": set()}, None, id="a job without one"),
        pytest.param(ONE_HOST, {"made": set(), "devices": 1}, None, id="one device needs no Mirrored"),
        pytest.param(
            ONE_HOST,
            {"made": set(), "devices": 4},
            "one of 4 devices is training alone: no strategy was created; begin with tf.distribute.MirroredStrategy(), "
            "or with dtj.strategy()",
            id="three of four devices idle",
        ),
        pytest.param(ONE_HOST, {"made": {"MirroredStrategy"}, "devices": 4}, None, id="all devices of one host"),
    ],
)
def test_the_first_step(spec: dict[str, Any], step: dict[str, Any], problem: str | None) -> None:
    assert audit.of_step(replace(SPEC, **spec), replace(GOOD, **step)) == problem


@pytest.mark.parametrize(
    ("batch", "replicas", "problem"),
    [
        (Batch(), 3, None),
        (Batch(per_replica=32), 3, None),
        (Batch(global_size=96), 3, None),
        (Batch(global_size=100), 3, "a global batch of 100 examples is not divisible by 3 replicas; 99 and 102 are"),
        (Batch(global_size=2), 3, "a global batch of 2 examples is not divisible by 3 replicas; 3 is"),
    ],
)
def test_replicas(batch: Batch, replicas: int, problem: str | None) -> None:
    assert audit.of_replicas(replace(SPEC, batch=batch), replicas) == problem


@pytest.mark.parametrize(
    ("batch", "seen", "problem"),
    [
        (Batch(), 100, None),
        (Batch(global_size=128), 128, None),
        (Batch(per_replica=64), 128, None),
        (
            Batch(global_size=128),
            64,
            "the program trains with a global batch of 64 (32 on each of 2 replicas); spec.batch.global says 128; "
            "Dataset.batch and fit's batch_size take the global batch: change one of the two",
        ),
        (
            Batch(per_replica=64),
            64,
            "the program trains with a global batch of 64 (32 on each of 2 replicas); spec.batch.perReplica × 2 "
            "replicas says 128; Dataset.batch and fit's batch_size take the global batch: change one of the two",
        ),
    ],
)
def test_a_batch(batch: Batch, seen: int, problem: str | None) -> None:
    assert audit.of_batch(replace(SPEC, batch=batch), 2, seen) == problem


def no_strategy(folder: Path) -> Job:
    return Job(folder, "single.py", workers=2, started=1)


def a_strategy_of_one_host(folder: Path) -> Job:
    return Job(folder, "single.py", workers=2, started=1)


def half_the_batch(folder: Path) -> Job:
    return Job(folder, "single.py", workers=1, strategy="None", batch=Batch(global_size=64))


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("job", "arguments", "problem"),
    [
        (no_strategy, (), "each of 2 workers is training alone: no multi-worker strategy was created"),
        (a_strategy_of_one_host, ("--mirrored",), "each of 2 workers is training alone: the program created Mirrored"),
        (half_the_batch, (), "the program trains with a global batch of 32 (32 on each of 1 replicas)"),
    ],
)
def test_a_real_program(tmp_path: Path, job: Callable[[Path], Job], arguments: tuple[str, ...], problem: str) -> None:
    ended = job(tmp_path).run(*arguments)[0]
    assert ended.code == 64
    assert ended.told("Step") == []
    (refused,) = ended.told("Refused")
    assert refused.message
    assert refused.message.startswith(problem)
    assert f"dtj: {refused.message}" in ended.lines


@pytest.mark.tensorflow
def test_fit_of_keras_3_on_two_workers(tmp_path: Path) -> None:
    ended = Job(tmp_path, "fit.py", legacy=False).run()
    (refused, *_) = [trainer for trainer in ended if trainer.code == 64]
    assert refused.problem.startswith("fit of Keras 3.")
    assert "does not work under MultiWorkerMirrored; take tf_keras" in refused.problem
