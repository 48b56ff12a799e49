"""What a program is told about its job."""

from dataclasses import replace

import pytest

from dtj_worker.codec import encode
from dtj_worker.contract import Batch, CheckpointPlan, TaskSpec
from dtj_worker.reports import Restore
from dtj_worker.training.context import Context, read_context

SPEC = TaskSpec(
    namespace="ml",
    job="digits",
    uid="3b3f9a52-0000-4000-8000-000000000000",
    task="worker-1",
    attempt=2,
    strategy="MultiWorkerMirrored",
    chief="worker-0",
    chief_status="a:2280",
    status="b:2280",
    peers={"worker-0": "a:2222", "worker-1": "b:2222", "worker-2": "c:2222"},
    checkpoint=CheckpointPlan("/checkpoints/ml/digits"),
)
FOLDER = "/checkpoints/ml/digits/3b3f9a52/attempt-2"


def environ(spec: TaskSpec, **variables: str) -> dict[str, str]:
    return {"DTJ_TASK": encode(spec), "DTJ_CHECKPOINT_FOLDER": FOLDER, **variables}


def test_a_worker() -> None:
    restore = Restore(40, 5)
    context = read_context(environ(SPEC, DTJ_RESTORE=encode(restore)))
    assert (context.job, context.strategy, str(context.task)) == ("digits", "MultiWorkerMirrored", "worker-1")
    assert (context.is_chief, context.attempt, context.workers) == (False, 2, 3)
    assert context.restore == restore
    assert (context.checkpoint_folder, context.log_folder) == (FOLDER, "/checkpoints/ml/digits/3b3f9a52/logs")


@pytest.mark.parametrize(("task", "folder"), [("worker-0", FOLDER), ("worker-1", None)])
def test_where_only_the_chief_mounts_the_volume_the_others_have_no_folder(task: str, folder: str | None) -> None:
    plan = CheckpointPlan("/checkpoints/ml/digits", access="Chief")
    context = read_context(environ(replace(SPEC, task=task, checkpoint=plan)))
    assert context.checkpoint_folder == folder
    assert (context.log_folder is None) == (folder is None)


@pytest.mark.parametrize(
    ("strategy", "tasks", "workers"),
    [
        ("MultiWorkerMirrored", ["chief-0", "worker-0", "worker-1"], 3),
        ("ParameterServer", ["chief-0", "worker-0", "worker-1", "ps-0"], 2),
        ("Mirrored", ["worker-0"], 1),
    ],
)
def test_who_computes_gradients(strategy: str, tasks: list[str], workers: int) -> None:
    peers = dict.fromkeys(tasks, "a:1")
    assert Context(replace(SPEC, strategy=strategy, peers=peers)).workers == workers  # type: ignore[arg-type]


def test_outside_of_a_job_there_is_one_worker() -> None:
    context = read_context({})
    assert (context.strategy, context.workers, context.is_chief, context.attempt) == ("None", 1, True, 0)
    assert (context.checkpoint_folder, context.log_folder, context.restore) == (None, None, None)
    assert (context.batch_per_replica, context.batch_per_worker, context.global_batch) == (None, None, None)


@pytest.mark.parametrize(("rule", "rate"), [("linear", 0.4), ("sqrt", 0.2)])
def test_a_learning_rate_follows_the_global_batch(rule: str, rate: float) -> None:
    context = Context(replace(SPEC, batch=Batch(global_size=512)))
    assert context.scale_learning_rate(0.1, 128, rule) == pytest.approx(rate)  # type: ignore[arg-type]


def test_without_a_batch_there_is_no_rate_to_scale() -> None:
    with pytest.raises(ValueError, match=r"set spec\.batch"):
        Context(SPEC).scale_learning_rate(0.1, 128)
