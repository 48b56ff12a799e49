"""A job that none of the nodes `dtj run` plays could ever hold: how that is known, and what to do about it. Pure."""

import math
import re

from dtj_operator.api.status import JobStatus
from dtj_operator.local.node.machine import GPU

_PER_POD = re.compile(rf"([0-9.]+) × {re.escape(GPU)} per pod")
_ALL_TOGETHER = re.compile(
    rf"([0-9]+) pods?(?: with ([0-9.]+) × {re.escape(GPU)} each)?.*, and all nodes together hold"
)


def never_fits(status: JobStatus) -> str | None:
    """The operator's words, once waiting is no use; None while the job has a place or may get one."""
    found = next((c for c in status.conditions if c.type == "GangScheduled" and c.reason == "CannotFit"), None)
    return None if found is None or found.status == "True" else found.message or found.reason


def remedy(words: str, *, pods: int, nodes: int) -> str:
    """What to change, for a job of so many pods and a fleet of so many nodes. It is enough, not the least there is."""
    if per_pod := _PER_POD.search(words):
        more = f" --nodes {pods}" if pods > nodes else ""
        return f"the nodes are played: --gpus {math.ceil(float(per_pod[1]))}{more} gives each pod its own"
    if together := _ALL_TOGETHER.search(words):
        larger = f", or --gpus {math.ceil(int(together[1]) * float(together[2]))}" if together[2] else ""
        return f"the nodes are played: --nodes {together[1]}{larger} makes room for all"
    if "avoided after failures" in words:
        return f"the nodes are played: --nodes {nodes + 1} gives it one more"
    return "the nodes are played, and --nodes and --gpus change only how many there are: change what the job asks for"
