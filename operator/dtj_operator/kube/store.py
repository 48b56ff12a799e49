"""What this process knows of each job, in slim records: what watches, lists and answers told. Nothing is decided here.

Three writers reach it in any order: watches, lists and the answers to our own calls. An object's resourceVersion says
which of two states is the newer one, so an old event never covers a newer answer.
"""

from collections.abc import Iterator

import msgspec
from msgspec import Struct, field

from dtj_operator.api import names
from dtj_operator.api.observed import (
    Admission,
    ClaimView,
    Facts,
    ForeignChild,
    JobKey,
    PodView,
    ProbeResult,
    Situation,
    TrainingView,
)
from dtj_operator.api.status import Time
from dtj_operator.kube.client import CLAIM, JOB, POD, Json, Kind
from dtj_operator.kube.fleet import Fleet
from dtj_operator.kube.records import JobView, Record, job_spec, job_status, record

PROBES = 8
"""How many answers to probes are kept for one job: those of its roles, and of the manifest before an edit."""
GONE = 8192
"""How many deleted objects are remembered; what they are remembered for happens within seconds of the deletion."""
GONE_PODS = 1024
"""How many names of deleted pods are remembered for one job: those of its present round are what matters."""


class Notes(Struct):
    """What this process found out about one job and no list of the API tells; lost with the process."""

    uid: str
    probes: dict[str, ProbeResult] = field(default_factory=dict)
    unanswered: str | None = None
    refusals: list[str] = field(default_factory=list)
    foreign: dict[tuple[str, str], ForeignChild] = field(default_factory=dict)
    gone: dict[str, None] = field(default_factory=dict)
    """Names of its pods that were deleted, oldest first."""
    admission: Admission | None = None
    training: TrainingView | None = None
    claim: ClaimView | None = None
    looked_at: Time | None = None
    own_claims_at: Time | None = None
    """When the claims that were made for it were last looked for."""


class Store:
    """One for the process. Everything hangs on the job it belongs to; `put` and `remove` say which one they change."""

    def __init__(self, facts: Facts, fleet: Fleet) -> None:
        self.facts = facts
        self.fleet = fleet
        self._records: dict[JobKey, dict[tuple[str, str], Record]] = {}
        self._notes: dict[JobKey, Notes] = {}
        # By UID, oldest first: an answer or event that comes late must not bring back what was deleted.
        self._gone: dict[str, None] = {}

    def situation(self, key: JobKey) -> Situation | None:
        """All that is known of a job; None when there is no such job."""
        records = self._records.get(key, {})
        job = records.get((names.KIND, key.name))
        if job is None or not isinstance(job.view, JobView):
            return None
        notes = self.notes(key)
        own = [(name, record) for name, record in records.items() if _is_child(name[0], record, job.uid)]
        return Situation(
            key=key,
            uid=job.uid,
            resource_version=str(job.version),
            generation=job.view.generation,
            created_at=job.view.created_at,
            spec=job_spec(job.view),
            status=job_status(job.view),
            faults=job.view.faults,
            annotations=job.view.annotations,
            deleting=job.view.deleting,
            pods=_pods(record for _, record in own),
            gone=frozenset(notes.gone),
            nodes=self.fleet.nodes(),
            training=notes.training,
            admission=notes.admission,
            probes=dict(notes.probes),
            unanswered=notes.unanswered,
            children=frozenset((*name, record.uid, record.made_of) for name, record in own if record.view is None),
            foreign_names=tuple(notes.foreign.values()),
            predecessors=_pods(r for r in records.values() if _is_earlier(r, job.uid)),
            claim=notes.claim,
            refusals=tuple(notes.refusals),
            facts=self.facts,
        )

    def keys(self) -> tuple[JobKey, ...]:
        """All jobs, and those that are gone and left something behind."""
        return tuple(self._records)

    def has_job(self, key: JobKey, uid: str | None = None) -> bool:
        """Whether the job exists, in this incarnation if a UID is named."""
        job = self._records.get(key, {}).get((names.KIND, key.name))
        return job is not None and uid in (None, job.uid)

    def notes(self, key: JobKey) -> Notes:
        """The notes on the job's present incarnation, to be read and written; without such a job a sheet nobody keeps.

        So an answer that comes when the job is already gone is written into the air.
        """
        job = self._records.get(key, {}).get((names.KIND, key.name))
        if job is None:
            return Notes(uid="")
        notes = self._notes.get(key)
        if notes is None or notes.uid != job.uid:
            notes = self._notes[key] = Notes(uid=job.uid)
        return notes

    def note_probe(self, key: JobKey, template_hash: str, result: ProbeResult) -> None:
        """Keep the answer to a probe, and of a job's answers the newest."""
        self.notes(key).unanswered = None
        probes = self.notes(key).probes
        probes.pop(template_hash, None)
        probes[template_hash] = result
        for oldest in list(probes)[:-PROBES]:
            del probes[oldest]

    def put(self, kind: Kind, manifest: Json) -> JobKey | None:
        """Take in an object's state. The key of the job for which it matters; None for old news, or none at all."""
        metadata = manifest["metadata"]
        key = _key(kind, metadata)
        if key is None or metadata["uid"] in self._gone:
            return None
        records = self._records.setdefault(key, {})
        name = (kind.kind, metadata["name"])
        known = records.get(name)
        if known is not None and known.version >= int(metadata["resourceVersion"]):
            return None
        made = record(kind, manifest)
        if made is None:
            return None
        records[name] = made
        is_news = known is None or (known.uid, known.view) != (made.uid, made.view)
        return key if is_news else None

    def remove(self, kind: Kind, manifest: Json) -> JobKey | None:
        """Take in an object's deletion. The key of the job for which it matters."""
        metadata = manifest["metadata"]
        key = _key(kind, metadata)
        return key if key and self.forget(key, kind, metadata["name"], metadata["uid"]) else None

    def forget(self, key: JobKey, kind: Kind, name: str, uid: str) -> bool:
        """Drop an incarnation of an object that is surely gone. Whether it was known."""
        self._gone[uid] = None
        if len(self._gone) > GONE:
            del self._gone[next(iter(self._gone))]
        records = self._records.get(key, {})
        known = records.get((kind.kind, name))
        if known is None or known.uid != uid:
            return False
        del records[kind.kind, name]
        if kind == JOB:
            self._notes.pop(key, None)
            # Garbage collection takes what it owned. Of secrets nothing else would ever tell that they are gone.
            for child in [child for child, record in records.items() if record.owner_uid == uid and not record.view]:
                del records[child]
        elif kind == POD and known.owner_uid == self.notes(key).uid:
            gone = self.notes(key).gone
            gone[name] = None
            for oldest in list(gone)[:-GONE_PODS]:
                del gone[oldest]
        if not records:
            del self._records[key]
        return True

    def retain(self, kind: Kind, namespace: str | None, uids: set[str], version: str) -> set[JobKey]:
        """Drop the objects that a complete list of that version no longer shows. The keys of the jobs they belong to.

        An object that is newer than the list is none of its business.
        """
        lost = [
            (key, name, record)
            for key, records in self._records.items()
            if namespace in (None, key.namespace)
            for (held_kind, name), record in records.items()
            if held_kind == kind.kind and record.uid not in uids and record.version <= int(version)
        ]
        return {key for key, name, record in lost if self.forget(key, kind, name, record.uid)}

    def deletion_asked(self, key: JobKey, pod: str, uid: str, now: Time) -> None:
        """Remember that we had a pod deleted, until an event says so: nobody asks twice."""
        records = self._records.get(key, {})
        known = records.get((POD.kind, pod))
        if known and known.uid == uid and isinstance(known.view, PodView) and known.view.deleting_since is None:
            view = msgspec.structs.replace(known.view, deleting_since=now)
            records[POD.kind, pod] = msgspec.structs.replace(known, view=view)


def _key(kind: Kind, metadata: Json) -> JobKey | None:
    """The job that an object is or belongs to."""
    name = metadata["name"] if kind == JOB else (metadata.get("labels") or {}).get(names.LABEL_JOB)
    return JobKey(metadata["namespace"], name) if name else None


def _is_child(kind: str, record: Record, job_uid: str) -> bool:
    """Whether it is a child of that incarnation of the job: its own, or a claim that outlives jobs of its name.

    Nothing else without an owner, whatever its labels: what counts as a child is deleted in the end.
    """
    return record.owner_uid == job_uid or (record.owner_uid is None and kind == CLAIM.kind)


def _is_earlier(record: Record, job_uid: str) -> bool:
    """Whether it is a pod that an earlier job of the name made, and its trainer has not ended."""
    has_other_owner = record.owner_uid not in (None, job_uid)
    return has_other_owner and isinstance(record.view, PodView) and not record.view.is_over


def _pods(records: Iterator[Record]) -> tuple[PodView, ...]:
    """In the order of tasks and rounds."""
    pods = (record.view for record in records if isinstance(record.view, PodView))
    return tuple(sorted(pods, key=lambda pod: (pod.task, pod.round)))
