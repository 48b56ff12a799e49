"""Jobs and their children as the store keeps them: slim records of API objects. Pods and nodes are `views.py`'s."""

from datetime import datetime

import msgspec
from msgspec import Struct

from dtj_operator.api import names
from dtj_operator.api.faults import faults
from dtj_operator.api.observed import PodView
from dtj_operator.api.parse import parse, parse_status
from dtj_operator.api.spec import JobSpec
from dtj_operator.api.status import JobStatus, Time
from dtj_operator.kube import views
from dtj_operator.kube.client import JOB, POD, Json, Kind


class JobView(Struct, frozen=True):
    """A job as the API holds it. Spec and status stay JSON: ten thousand finished jobs are hardly ever looked at."""

    generation: int
    created_at: Time
    spec: bytes
    status: bytes
    faults: tuple[str, ...]
    annotations: dict[str, str]
    deleting: bool


class Record(Struct, frozen=True):
    """A job or one of its children. `view` is None for a child of which only its existence matters."""

    uid: str
    version: int
    owner_uid: str | None
    view: JobView | PodView | None
    made_of: str = ""
    """The digest that a child bears, of what it was made as."""


def record(kind: Kind, manifest: Json) -> Record | None:
    """What is kept of an object; None for a pod that is no task of any job."""
    view = views.pod(manifest) if kind == POD else _job(manifest) if kind == JOB else None
    if kind == POD and view is None:
        return None
    metadata = manifest["metadata"]
    made_of = (metadata.get("annotations") or {}).get(names.ANNOTATION_MADE_OF, "")
    return Record(metadata["uid"], int(metadata["resourceVersion"]), views.owner_uid(manifest), view, made_of)


def job_spec(job: JobView) -> JobSpec | None:
    """What the job asks for; None where it can't be parsed."""
    try:
        return msgspec.json.decode(job.spec, type=JobSpec)
    except msgspec.ValidationError:
        # Seldom, and slower: nulls, or a CRD that is older than this process.
        parsed = parse({"spec": msgspec.json.decode(job.spec)})
        return parsed if isinstance(parsed, JobSpec) else None


def job_status(job: JobView) -> JobStatus:
    """What its status says, as far as it can be read."""
    try:
        return msgspec.json.decode(job.status, type=JobStatus)
    except msgspec.ValidationError:
        return parse_status({"status": msgspec.json.decode(job.status)})


def _job(manifest: Json) -> JobView:
    metadata = manifest["metadata"]
    annotations: dict[str, str] = metadata.get("annotations") or {}
    return JobView(
        generation=metadata["generation"],
        created_at=datetime.fromisoformat(metadata["creationTimestamp"]),
        spec=msgspec.json.encode(manifest.get("spec") or {}),
        status=msgspec.json.encode(manifest.get("status") or {}),
        faults=faults(manifest),
        annotations={k: v for k, v in annotations.items() if k.startswith(f"{names.GROUP}/")},
        deleting="deletionTimestamp" in metadata,
    )
