"""`dtj validate`: every fault of a manifest, known without a cluster."""

from collections.abc import Sequence

from dtj_operator.cli import manifest
from dtj_operator.cli.outcome import SUCCEEDED


def validate(files: Sequence[str]) -> int:
    """Ended with a line for each fault; the jobs alone are looked at, since only their fields are known here."""
    for job in manifest.jobs(files):
        print(f"{job.place}: {job.name or 'the job'} has no fault")
    return SUCCEEDED
