"""A training program without TensorFlow: counts steps, reports them, writes checkpoints, goes on where it stopped.

Every task counts for itself; only the chief writes. Its faults are those of the contract (`fault` in DTJ_TASK), so that
tests and demos hurt it in the same way as a real program.
"""

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

from dtj_worker import folders
from dtj_worker.codec import decode
from dtj_worker.contract import ENV_CHECKPOINT_FOLDER, ENV_RESTORE, ENV_TASK, TaskSpec
from dtj_worker.reports import Restore
from dtj_worker.training.report import Reporter

MEBIBYTE, MOST_MEBIBYTES = 2**20, 1024


def main() -> None:
    """Count from the restored step to the last one, then exit with the code that was asked for."""
    options = _options()
    signal.signal(signal.SIGUSR1, _exhaust_memory)
    spec = decode(TaskSpec, os.environ[ENV_TASK])
    reporter = Reporter.from_environment()
    reporter.constructing(f"{spec.strategy}Strategy")
    reporter.built(replicas=len(spec.peers), global_batch=spec.batch.global_size)
    reporter.reports()
    done = _restore(reporter)
    for step in range(done + 1, options.steps + 1):
        time.sleep(options.step_seconds)
        epoch, last = divmod(step - 1, options.epoch_steps)
        reporter.step(step, epoch, epochs=-(-options.steps // options.epoch_steps), loss=1 / step)
        if step % options.checkpoint_every == 0:
            _save(reporter, spec, step, epoch + (last + 1) // options.epoch_steps)
    reporter.flush()
    print(f"{spec.task}: counted to {options.steps}", flush=True)
    sys.exit(options.exit_code)


def _exhaust_memory(*_: object) -> None:
    """Take memory until the kernel ends this process for it; a machine without a limit is left alone in time."""
    hoard = [b"\1" * MEBIBYTE for _ in range(MOST_MEBIBYTES)]
    sys.exit(f"{len(hoard)} MiB were given: there is no limit of memory here")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--epoch-steps", type=int, default=10, help="steps of one epoch")
    parser.add_argument("--checkpoint-every", type=int, default=10, help="steps between two checkpoints")
    parser.add_argument("--step-seconds", type=float, default=0.02, help="what a step takes")
    parser.add_argument("--exit-code", type=int, default=0, help="what to end with after the last step")
    return parser.parse_args()


def _restore(reporter: Reporter) -> int:
    """The step that counting goes on after. Only the chief has a file to read; it must say the same."""
    text = os.environ.get(ENV_RESTORE)
    if not text:
        return 0
    restore = decode(Restore, text)
    if restore.path and json.loads(Path(f"{restore.path}.data").read_text())["step"] != restore.step:
        reporter.refused(f"{restore.path} is not of step {restore.step}")
    reporter.restored(restore.step, restore.epoch)
    print(f"resumed after step {restore.step}", flush=True)
    return restore.step


def _save(reporter: Reporter, spec: TaskSpec, step: int, epoch: int) -> None:
    folder = os.environ.get(ENV_CHECKPOINT_FOLDER)
    if not folder or not spec.checkpoint or spec.task != spec.chief:
        return
    prefix = Path(folder, f"ckpt-{step}")
    is_first = not folders.copies(Path(folder))
    Path(f"{prefix}.data").write_text(json.dumps({"step": step}))
    folders.write_manifest(prefix, step, epoch, keras="none")
    for copy in folders.copies(Path(folder))[spec.checkpoint.keep :]:
        copy.prefix.with_name(copy.prefix.name + folders.MANIFEST).unlink()
        Path(f"{copy.prefix}.data").unlink()
    reporter.saved(step, epoch)
    if is_first:
        folders.sweep(Path(folder))


if __name__ == "__main__":
    main()
