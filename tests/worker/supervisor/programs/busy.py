"""One task downloads for longer than a rendezvous may take, and says so; the others wait for it in theirs."""

import os
import sys
import time

from dtj_worker.codec import decode
from dtj_worker.contract import ENV_TASK, TaskSpec
from dtj_worker.training.report import Reporter

spec = decode(TaskSpec, os.environ[ENV_TASK])
reporter = Reporter.from_environment()
if spec.task == "worker-1":
    reporter.busy("download")
    time.sleep(float(sys.argv[1]))
    reporter.busy("")
reporter.constructing("MultiWorkerMirroredStrategy")
if spec.task == "worker-0":
    time.sleep(float(sys.argv[1]))
reporter.built(replicas=2, global_batch=None)
