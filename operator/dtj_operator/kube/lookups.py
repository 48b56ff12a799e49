"""Single objects that no watch tells about: who has a name we need, what a claim allows, and whether it is there."""

from collections.abc import Callable
from datetime import timedelta
from http import HTTPStatus

from dtj_operator.api import names
from dtj_operator.api.observed import ClaimView, ForeignChild, JobKey, Situation
from dtj_operator.api.status import FINAL, Time
from dtj_operator.kube import views
from dtj_operator.kube.client import CLAIM, POD, ApiError, Client, Json, Kind, kind_named
from dtj_operator.kube.store import Store

PAUSE = timedelta(seconds=4.5)
"""Between two looks at what stands in a job's way; whoever waits for a predecessor asks every 5 s."""
CLAIM_STANDS = timedelta(seconds=30)
"""How long a claim that was there is taken for being there: a job may wait in the queue for days."""


class Lookups:
    """Reads what a situation depends on, seldom and only while it matters."""

    def __init__(self, client: Client, store: Store, clock: Callable[[], Time]) -> None:
        self._client = client
        self._store = store
        self._clock = clock

    async def refresh(self, s: Situation) -> bool:
        """Look again at names that weren't ours, and at a claim before each start. Whether anything was looked at."""
        notes, now = self._store.notes(s.key), self._clock()
        foreign = s.foreign_names if notes.looked_at is None or now - notes.looked_at >= PAUSE else ()
        if foreign:
            notes.looked_at = now
        for child in foreign:
            await self.look(s, kind_named(child.kind), child.name)
        claim = _claim_to_read(s, now)
        if claim:
            live = await self._read(s.key, CLAIM, claim)
            modes = tuple(live["spec"].get("accessModes") or ()) if live else None
            notes.claim = ClaimView(claim, modes, seen_at=now)
        own = _own_claims(s) if notes.own_claims_at is None or now - notes.own_claims_at >= CLAIM_STANDS else {}
        for name, uid in own.items():
            live = await self._read(s.key, CLAIM, name)
            if live is None or live["metadata"]["uid"] != uid or not _is_ours(live, s):
                self._store.forget(s.key, CLAIM, name, uid)
        if own:
            notes.own_claims_at = now
        return bool(foreign or claim or own)

    async def look(self, s: Situation, kind: Kind, name: str) -> bool:
        """Find out what has this name: nothing any more, or somebody else's object, or (True) one of the job."""
        foreign = self._store.notes(s.key).foreign
        live = await self._read(s.key, kind, name)
        foreign.pop((kind.kind, name), None)
        if live is None:
            return False
        if _is_ours(live, s):
            self._store.put(kind, live)
            return True
        owner = views.controller(live)
        is_left = owner is not None and self._was_a_job(s.key.namespace, owner)
        foreign[kind.kind, name] = ForeignChild(
            kind=kind.kind,
            name=name,
            terminating="deletionTimestamp" in live["metadata"],
            owner=f"{owner['kind']} {owner['name']}" if owner and not is_left else None,
            is_left=is_left,
        )
        return False

    async def _read(self, key: JobKey, kind: Kind, name: str) -> Json | None:
        try:
            return await self._client.get(kind, key.namespace, name)
        except ApiError as error:
            if error.code == HTTPStatus.NOT_FOUND:
                return None
            raise

    def _was_a_job(self, namespace: str, owner: Json) -> bool:
        """Whether an owner is a job that is gone. Of owners that are no jobs it can't be told whether they live."""
        return owner["kind"] == names.KIND and not self._store.has_job(JobKey(namespace, owner["name"]), owner["uid"])


def _is_ours(live: Json, s: Situation) -> bool:
    """Whether the object belongs to this incarnation of the job, or is a claim that outlives jobs of its name.

    What is being deleted can't be used any more, but for pods, whose going we watch.
    """
    if "deletionTimestamp" in live["metadata"] and live["kind"] != POD.kind:
        return False
    owner = views.owner_uid(live)
    labels = live["metadata"].get("labels") or {}
    is_left_claim = live["kind"] == CLAIM.kind and owner is None and labels.get(names.LABEL_JOB) == s.key.name
    return owner == s.uid or is_left_claim


def _own_claims(s: Situation) -> dict[str, str]:
    """Names and UIDs of the claims that were made for the job, or an earlier one of its name, while it is yet to start.

    Of one that a person has deleted the regular list tells after minutes, while a gang would hold nodes for nothing.
    """
    is_to_start = s.status.phase in ("Pending", "Queued") and s.status.gang.admitted_at is None
    if s.spec is None or s.spec.managed_by != names.MANAGER or not is_to_start:
        return {}
    return {name: uid for kind, name, uid, _ in s.children if kind == CLAIM.kind}


def _claim_to_read(s: Situation, now: Time) -> str | None:
    """The existing claim that the spec names, while a start may depend on it and what was seen of it is old or absent.

    A gang that is released has been let go because of it; what its pods need then, they say.
    """
    if s.spec is None or s.spec.managed_by != names.MANAGER or s.status.phase in FINAL or s.spec.checkpoint is None:
        return None
    named, is_released = s.spec.checkpoint.persistent_volume_claim, s.status.gang.admitted_at is not None
    if named is None:
        return None
    if s.claim is None or s.claim.name != named or s.claim.seen_at is None:
        return None if is_released and s.status.start_time else named
    stands = PAUSE if s.claim.access_modes is None else CLAIM_STANDS
    return named if not is_released and now - s.claim.seen_at >= stands else None
