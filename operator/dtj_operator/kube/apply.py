"""Carries out a plan: the status first, then the actions in their order. What is to be done was decided elsewhere."""

import asyncio
import itertools
import logging
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Literal

import msgspec

from dtj_operator.api import names
from dtj_operator.api.observed import ProbeResult, Situation
from dtj_operator.api.status import JobStatus, Time
from dtj_operator.decide.actions import Action, Create, Delete, DeleteJob, Emit, Plan, Probe, Ungate
from dtj_operator.kube.client import (
    EVENT,
    FIELD_MANAGER,
    JOB,
    POD,
    SECRET,
    ApiError,
    Client,
    Json,
    Kind,
    kind_named,
    kind_of,
)
from dtj_operator.kube.lease import Leader
from dtj_operator.kube.lookups import Lookups
from dtj_operator.kube.store import Store

log = logging.getLogger(__name__)

AT_A_TIME = 32
"""Writes under way in the whole process."""
REFUSALS_KEPT = 16
REFUSALS = (HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.UNPROCESSABLE_ENTITY)

Outcome = Literal["Nothing", "Done", "Dropped", "Refused", "Unsettled"]
"""Nothing: there was nothing to do. Dropped: the job had changed, so the plan was not for it. Refused: the API did not
allow something; the store knows what. Unsettled: a forced delete or a release waits for an older leader's end.
"""


class Applier:
    """Everything the operator writes for jobs goes through here, and past the Leader's check."""

    def __init__(self, client: Client, store: Store, leader: Leader, clock: Callable[[], Time]) -> None:
        self._client = client
        self._store = store
        self._leader = leader
        self._clock = clock
        self._lookups = Lookups(client, store, clock)
        self._room = asyncio.Semaphore(AT_A_TIME)

    async def apply(self, s: Situation, plan: Plan) -> Outcome:
        """Write the status and, if that was accepted, act. ApiError when something is to be tried again later."""
        # Status first: were pods deleted before the failure is counted, a crash between the two would leave missing
        # pods, which read as "deleted by someone" and cost nothing.
        if plan.status is not None and not await self._write_status(s, plan.status):
            return "Dropped"
        outcome: Outcome = "Nothing" if plan.status is None and not plan.actions else "Done"
        for _, stage in itertools.groupby(plan.actions, key=_stage):
            outcomes = await self._together(s, tuple(stage))
            if any(one != "Done" for one in outcomes):
                return next(one for one in outcomes if one != "Done")
        return outcome

    async def _together(self, s: Situation, actions: Sequence[Action]) -> list[Outcome]:
        async def one(action: Action) -> Outcome:
            async with self._room:
                # Asked for each write, not for each plan: waiting for room may take longer than a Lease lasts.
                self._leader.check()
                return await self._act(s, action)

        results = await asyncio.gather(*(one(action) for action in actions), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return [result for result in results if not isinstance(result, BaseException)]

    async def _write_status(self, s: Situation, status: JobStatus) -> bool:
        """Whether the status stands. The job's version is a precondition, so nobody's change is written over."""
        changes = difference(s.status, status)
        if not changes:
            return True
        patch = {"metadata": {"resourceVersion": s.resource_version}, "status": changes}
        self._leader.check()
        try:
            live = await self._client.patch(JOB, s.key.namespace, s.key.name, patch, subresource="status")
        except ApiError as error:
            if error.code not in (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND):
                raise
            await self._read_anew(s)
            return False
        self._store.put(JOB, live)
        self._store.notes(s.key).refusals.clear()
        return True

    async def _read_anew(self, s: Situation) -> None:
        """Whatever the watch still has to tell, the next plan is made for the job as it is now."""
        try:
            self._store.put(JOB, await self._client.get(JOB, s.key.namespace, s.key.name))
        except ApiError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
            self._store.forget(s.key, JOB, s.key.name, s.uid)

    async def _act(self, s: Situation, action: Action) -> Outcome:
        match action:
            case Create():
                return await self._create(s, action.manifest)
            case Delete():
                return await self._delete(s, action)
            case Ungate():
                return await self._ungate(s, action)
            case DeleteJob():
                await self._delete_object(s, JOB, action.name, action.uid)
            case Probe():
                await self._probe(s, action)
            case Emit():
                await self._emit(s, action)
        return "Done"

    async def _create(self, s: Situation, manifest: Json) -> Outcome:
        kind, name, notes = kind_of(manifest), manifest["metadata"]["name"], self._store.notes(s.key)
        if (kind.kind, name) in notes.foreign:
            # Who has the name is looked up before each plan; to be told so by a 409 once more is a call for nothing.
            return "Refused"
        try:
            made = await self._client.create(manifest)
        except ApiError as error:
            if error.code in REFUSALS:
                notes.refusals = [*notes.refusals, error.message][-REFUSALS_KEPT:]
                return "Refused"
            if error.reason != "AlreadyExists":
                raise
            if kind == SECRET:
                # We may not read secrets. This name carries the job's UID, so nobody else uses it by accident.
                unread = {**manifest["metadata"], "uid": name, "resourceVersion": "0"}
                self._store.put(kind, {**manifest, "metadata": unread})
                return "Done"
            return "Done" if await self._lookups.look(s, kind, name) else "Refused"
        self._store.put(kind, made)
        return "Done"

    async def _delete(self, s: Situation, action: Delete) -> Outcome:
        if action.force and not self._leader.is_settled:
            return "Unsettled"
        kind = kind_named(action.kind)
        is_gone = await self._delete_object(s, kind, action.name, action.uid, force=action.force)
        if kind == POD and not is_gone:
            self._store.deletion_asked(s.key, action.name, action.uid, self._clock())
        else:
            self._store.forget(s.key, kind, action.name, action.uid)
        return "Done"

    async def _delete_object(self, s: Situation, kind: Kind, name: str, uid: str, *, force: bool = False) -> bool:
        """Whether the incarnation was gone already."""
        try:
            await self._client.delete(kind, s.key.namespace, name, uid=uid, force=force)
        except ApiError as error:
            if error.code not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                raise
            return True
        return False

    async def _ungate(self, s: Situation, action: Ungate) -> Outcome:
        if not self._leader.is_settled:
            return "Unsettled"
        pod = next((pod for pod in s.pods if pod.uid == action.uid), None)
        if pod is None or names.GATE not in pod.gates:
            return "Done"
        gate = f"/spec/schedulingGates/{pod.gates.index(names.GATE)}"
        patch: list[Json] = [
            {"op": "test", "path": "/metadata/uid", "value": action.uid},
            {"op": "test", "path": f"{gate}/name", "value": names.GATE},
            {"op": "remove", "path": gate},
        ]
        try:
            live = await self._client.patch(POD, s.key.namespace, action.name, patch, type="json")
        except ApiError as error:
            if error.code not in (HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY):
                raise
            # Gone, or somebody took a gate away meanwhile and ours stands elsewhere in the list.
            await self._lookups.look(s, POD, action.name)
            return "Refused"
        self._store.put(POD, live)
        return "Done"

    async def _probe(self, s: Situation, action: Probe) -> None:
        try:
            pod = await self._client.create(action.manifest, dry_run=True, strict=True)
        except ApiError as error:
            # What says nothing about the template changes nothing.
            if error.is_transient:
                self._store.notes(s.key).unanswered = f"{error.code} {error.reason}" if error.code else "no answer"
                raise
            result = ProbeResult(error.code, error.message, heard_at=self._clock())
        else:
            made = {"metadata": pod["metadata"], "spec": pod["spec"]}
            result = ProbeResult(HTTPStatus.CREATED, pod=made, heard_at=self._clock())
        self._store.note_probe(s.key, action.template_hash, result)

    async def _emit(self, s: Situation, action: Emit) -> None:
        now = self._clock().isoformat(timespec="seconds").replace("+00:00", "Z")
        job = {"apiVersion": JOB.api_version, "kind": JOB.kind, "namespace": s.key.namespace, "name": s.key.name}
        event = {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            "metadata": {"namespace": s.key.namespace, "generateName": f"{s.key.name}-"},
            "involvedObject": {**job, "uid": s.uid, "resourceVersion": s.resource_version},
            "type": action.type,
            "reason": action.reason,
            "message": action.message,
            "source": {"component": FIELD_MANAGER},
            "reportingComponent": FIELD_MANAGER,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        try:
            await self._client.create(event)
        except ApiError as error:
            # An Event is a courtesy; its transition stands in the status and in the log.
            log.debug("%s: Event %s was not posted: %s", s.key, action.reason, error)


def difference(before: JobStatus, after: JobStatus) -> Json:
    """The merge patch that turns one status into the other; fields that a newer operator knows stay as they are."""
    # Of a job that nobody has looked at yet, what reads as a default isn't there, and `kubectl` looks for it.
    is_first = before.observed_generation == 0 and before != after
    return _difference(msgspec.to_builtins(before), msgspec.to_builtins(after), is_first=is_first)


def _difference(before: Json, after: Json, *, is_first: bool) -> Json:
    patch: Json = dict.fromkeys(before.keys() - after.keys())
    for name, value in after.items():
        old = before.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            if inner := _difference(old, value, is_first=is_first):
                patch[name] = inner
        elif is_first or value != old or name not in before:
            patch[name] = value
    return patch


def _stage(action: Action) -> str:
    """Neighbours in a plan with the same stage go together; pods only when all they need is there."""
    if isinstance(action, Create):
        return "Create pod" if kind_of(action.manifest) == POD else "Create"
    return type(action).__name__
