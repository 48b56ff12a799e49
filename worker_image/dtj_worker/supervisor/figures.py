"""What the status port tells: the attempt as a whole, for the operator, and this task's metrics."""

from dtj_worker.contract import TaskSpec, TrainingStatus
from dtj_worker.supervisor import machine
from dtj_worker.supervisor.peers import Gang
from dtj_worker.supervisor.progress import Progress


def training(spec: TaskSpec, progress: Progress, gang: Gang, now: float) -> TrainingStatus:
    """The attempt as the chief's supervisor sees it; steps and losses are those of the chief's own program."""
    saved, resumed = progress.checkpoint or (None, None), progress.resumed or (None, None)
    return TrainingStatus(
        attempt=spec.attempt,
        stage="Dead" if gang.first_death else "Waiting" if gang.missing else progress.stage,
        reports=progress.reports,
        step=progress.step,
        epoch=progress.epoch,
        epochs=progress.epochs,
        loss=progress.loss,
        examples_per_s=progress.examples_per_s,
        checkpoint_step=saved[0],
        checkpoint_epoch=saved[1],
        resumed_from_step=resumed[0],
        resumed_from_epoch=resumed[1],
        replicas=progress.replicas,
        global_batch=progress.global_batch,
        strategy=progress.strategy,
        seconds_since_step=progress.seconds_since_step(now),
        tasks={task: member.stage for task, member in gang.members.items()},
        first_death=gang.first_death,
        notice=progress.notice,
    )


def metrics(spec: TaskSpec, progress: Progress, now: float) -> str:
    """The text of /metrics in Prometheus' format; what isn't known is left out."""
    throttling = machine.throttling()
    loads = [
        ("dtj_trainer_attempt", "gauge", "Attempt of the job that this trainer belongs to.", spec.attempt),
        ("dtj_trainer_step", "gauge", "Last step that the program reported.", progress.step),
        ("dtj_trainer_epoch", "gauge", "Epoch of that step, from 0.", progress.epoch),
        ("dtj_trainer_loss", "gauge", "Loss of that step.", progress.loss),
        ("dtj_trainer_examples_per_second", "gauge", "Examples a second.", progress.examples_per_s),
        ("dtj_trainer_step_seconds", "gauge", "Time a step took lately.", progress.step_seconds),
        ("dtj_trainer_seconds_since_step", "gauge", "Age of the last step.", progress.seconds_since_step(now)),
        ("dtj_trainer_checkpoint_step", "gauge", "Step of the last checkpoint.", (progress.checkpoint or [None])[0]),
        ("dtj_trainer_restored_step", "gauge", "Step this attempt started from.", (progress.resumed or [None])[0]),
    ]
    if throttling:
        loads += [
            ("dtj_trainer_cpu_periods_total", "counter", "Scheduling periods of the CPU limit.", throttling.periods),
            ("dtj_trainer_cpu_throttled_periods_total", "counter", "Those that hit it.", throttling.throttled_periods),
            ("dtj_trainer_cpu_throttled_seconds_total", "counter", "Time lost to it.", throttling.throttled_seconds),
        ]
    loads.append(
        ("dtj_trainer_oom_kills_total", "counter", "Processes killed for want of memory.", machine.oom_kills())
    )
    labels = f'{{namespace="{spec.namespace}",job="{spec.job}",task="{spec.task}"}}'
    lines = []
    for name, kind, about, value in loads:
        if value is not None:
            lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}", f"{name}{labels} {value:.12g}"]
    return "\n".join(lines) + "\n"
