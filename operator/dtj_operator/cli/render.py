"""`dtj render`: every object that the operator would make of a job, TF_CONFIG included. No cluster is asked."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from dtj_operator.api import names
from dtj_operator.api.observed import Facts, JobKey, Situation
from dtj_operator.api.parse import salvage
from dtj_operator.api.status import JobStatus
from dtj_operator.cli import manifest
from dtj_operator.cli.manifest import Document
from dtj_operator.cli.printing import Format, printed
from dtj_operator.desired.objects import children
from dtj_operator.desired.pods import pod
from dtj_operator.desired.topology import topology
from dtj_operator.gang.choose import choose

Json = dict[str, Any]

NO_UID = "00000000-0000-0000-0000-000000000000"
"""Stands where the API server's own uid will be."""
SUPERVISOR_IMAGE = "dtj/supervisor"
"""Stands where the chart's will be."""
_SECRET = "made by the operator"


def render(files: Sequence[str], output: Format) -> str:
    """The objects of every job in the files. Ended with a line for each fault: what is wrong can't be shown."""
    objects = [_in_order(made) for job in manifest.jobs(files) for made in rendered(job)]
    if output == "json":
        return printed({"apiVersion": "v1", "kind": "List", "items": objects}, "json")
    return "---\n".join(printed(made, "yaml") for made in objects)


def rendered(job: Document) -> list[Json]:
    """Children in the order in which they are created, then the pods of the first attempt, the chief's first."""
    s = _situation(job)
    t = topology(s)
    gang, _ = choose(s.spec, s.facts) if s.spec is not None else (None, "")
    assert gang is not None, "a job without a fault has a spec"
    group = gang.group(s, t)
    made = [_without_token(child) for child in children(s, t)] + ([group] if group else [])
    for task in t.tasks:
        manifest_ = {"apiVersion": "v1", "kind": "Pod", **pod(s, t, task, round_=0, attempt=0)}
        # The evaluator is outside of the gang, and waits for nobody.
        made.append(gang.mark(s, t, manifest_) if task in t.gang else manifest_)
    return made


def _situation(job: Document) -> Situation:
    """As on the first look at the job, by an operator that may look at nodes."""
    spec, _ = salvage(job.body)
    metadata = job.body.get("metadata") or {}
    return Situation(
        key=JobKey(job.namespace, job.name),
        uid=str(metadata.get("uid") or NO_UID),
        resource_version="1",
        generation=1,
        created_at=datetime(2000, 1, 1, tzinfo=UTC),
        spec=spec,
        status=JobStatus(),
        annotations={name: str(value) for name, value in (metadata.get("annotations") or {}).items()},
        facts=Facts(has_node_rights=True, supervisor_image=SUPERVISOR_IMAGE),
    )


def _in_order(made: Json) -> Json:
    """With the fields first by which a reader knows what it is."""
    return {**{field: made[field] for field in ("apiVersion", "kind", "metadata")}, **made}


def _without_token(child: Json) -> Json:
    """Only the operator has the key that tokens are made of."""
    if child["kind"] != "Secret" or names.LABEL_JOB not in child["metadata"]["labels"]:
        return child
    hidden = dict.fromkeys(child["data"], _SECRET)
    return {**{field: value for field, value in child.items() if field != "data"}, "stringData": hidden}
