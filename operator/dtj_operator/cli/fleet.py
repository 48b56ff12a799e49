"""A job that none of the nodes `dtj run` plays could ever hold: how that is known, and what to do about it. Pure."""

import math
import re

from dtj_operator.api.status import JobStatus
from dtj_operator.local.node.machine import GPU

_PER_POD = re.compile(rf"([0-9.]+) × {re.escape(GPU)} per pod")


def never_fits(status: JobStatus) -> str | None:
    """The operator's words, once waiting is no use; None while the job has a place or may get one."""
    found = next((c for c in status.conditions if c.type == "GangScheduled" and c.reason == "CannotFit"), None)
    return None if found is None or found.status == "True" else found.message or found.reason


def remedy(words: str, *, nodes: int, gpus: int) -> str:
    """What to change, for a fleet of so many nodes with so many GPUs each."""
    if per_pod := _PER_POD.search(words):
        return f"the nodes are played: --gpus {math.ceil(float(per_pod[1]))} gives each as many"
    if "all nodes together hold" in words or "avoided after failures" in words:
        larger = f", --gpus (now {gpus}) more GPUs on each" if GPU in words else ""
        return f"the nodes are played: --nodes (now {nodes}) gives more of them{larger}"
    return "the nodes are played, and --nodes and --gpus change only how many there are: change what the job asks for"
