"""`dtj validate`: every fault of a manifest, known without a cluster."""

from collections.abc import Sequence

from dtj_operator.cli import manifest
from dtj_operator.cli.outcome import BAD_MANIFEST, SUCCEEDED, Ended


def validate(files: Sequence[str]) -> int:
    """Ended with a line for each fault; the jobs alone are looked at, since only their fields are known here."""
    documents = manifest.read(files)
    jobs = [document for document in documents if document.is_job]
    if not jobs:
        manifest.the_job(documents, files)
    if faults := [fault for job in jobs for fault in manifest.faults(job)]:
        raise Ended(BAD_MANIFEST, faults)
    for job in jobs:
        print(f"{job.place}: {job.name or 'the job'} has no fault")
    return SUCCEEDED
