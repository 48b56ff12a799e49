"""A program that comes to its steps and then makes none. `first`: not even one."""

import sys
import time

from dtj_worker.training.report import Reporter

reporter = Reporter.from_environment()
reporter.constructing("MultiWorkerMirroredStrategy")
reporter.built(replicas=2, global_batch=None)
reporter.reports()
if "first" not in sys.argv:
    reporter.step(1, 0)


def wait_for_a_batch_that_never_comes() -> None:
    time.sleep(600)


wait_for_a_batch_that_never_comes()
