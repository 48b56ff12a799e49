"""Plans carried out against a real API server: what is written in which order, and what each refusal leads to."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from dtj_operator.api.observed import Facts, ForeignChild, JobKey, Situation
from dtj_operator.api.status import Condition, GangStatus, JobStatus, Restarts
from dtj_operator.decide.actions import Action, Create, Delete, DeleteJob, Emit, Plan, Probe, Ungate
from dtj_operator.decide.plan import plan as planned
from dtj_operator.desired.objects import signed
from dtj_operator.kube.apply import Applier, difference
from dtj_operator.kube.client import EVENT, JOB, POD, ApiError, Json, kind_named
from dtj_operator.kube.fleet import Fleet
from dtj_operator.kube.http import HttpClient
from dtj_operator.kube.lease import LeaseLost, Sole
from dtj_operator.kube.lookups import Lookups
from dtj_operator.kube.store import Store
from dtj_operator.local.patch import merge_patched
from tests.kube.conftest import Script, says

KEY = JobKey("default", "mnist")
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SERVICE = kind_named("Service")
CLAIM = kind_named("PersistentVolumeClaim")


class Bench:
    """A job on an API server, the store that knows it, and the Applier under test."""

    def __init__(self, client: HttpClient, leader: Any = None) -> None:
        self.client = client
        self.store = Store(Facts(), Fleet())
        self.now = NOW
        self.applier = Applier(client, self.store, leader or Sole(), lambda: self.now)
        self.lookups = Lookups(client, self.store, lambda: self.now)

    async def submit(self, **spec: Any) -> None:
        template = {"spec": {"containers": [{"name": "trainer", "image": "a"}]}}
        job = {"roles": {"worker": {"replicas": 2}}, "template": template, **spec}
        metadata = {"name": KEY.name, "namespace": KEY.namespace}
        self.store.put(
            JOB,
            await self.client.create(
                {"apiVersion": "dtj.dev/v1alpha1", "kind": JOB.kind, "metadata": metadata, "spec": job}
            ),
        )

    @property
    def situation(self) -> Situation:
        s = self.store.situation(KEY)
        assert s is not None
        return s

    def claim_seen(self) -> tuple[str, ...] | None:
        """The access modes of the claim when it was last looked for; None: it was not there."""
        claim = self.situation.claim
        assert claim is not None
        return claim.access_modes

    async def act(self, *actions: Action, status: JobStatus | None = None) -> str:
        return await self.applier.apply(self.situation, Plan(status, actions))

    def service(self, name: str = "mnist-peers") -> Json:
        return {**self._child("v1", "Service", name), "spec": {"clusterIP": "None"}}

    def secret(self) -> Json:
        return self._child("v1", "Secret", "mnist-token")

    def pod(self, index: int, *gates: str, image: str = "a") -> Json:
        made = self._child("v1", "Pod", f"mnist-worker-{index}-1")
        made["metadata"]["labels"] |= {"dtj.dev/role": "worker", "dtj.dev/index": str(index), "dtj.dev/round": "1"}
        containers = [{"name": "trainer", "image": image}]
        return {**made, "spec": {"containers": containers, "schedulingGates": [{"name": gate} for gate in gates]}}

    def _child(self, api_version: str, kind: str, name: str) -> Json:
        owner = {
            "apiVersion": "dtj.dev/v1alpha1",
            "kind": JOB.kind,
            "name": KEY.name,
            "uid": self.situation.uid,
            "controller": True,
            "blockOwnerDeletion": False,
        }
        labels = {"dtj.dev/job-name": KEY.name}
        metadata = {"name": name, "namespace": KEY.namespace, "labels": labels, "ownerReferences": [owner]}
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


@pytest.fixture
async def bench(client: HttpClient) -> Bench:
    bench = Bench(client)
    await bench.submit()
    return bench


async def test_nothing_to_do_is_no_call(bench: Bench, script: Script) -> None:
    bench.applier = Applier(script.client(), bench.store, Sole(), lambda: NOW)
    assert await bench.act() == "Nothing"
    assert await bench.act(status=bench.situation.status) == "Done"
    assert script.requests == []


async def test_status_then_children_then_pods_and_the_store_knows_at_once(bench: Bench) -> None:
    status = JobStatus(phase="Starting", attempt=1)
    made = [Create(bench.service()), Create(bench.secret()), Create(bench.pod(0)), Create(bench.pod(1))]
    assert await bench.act(*made, status=status) == "Done"
    s = bench.situation
    assert s.status == status
    assert [pod.name for pod in s.pods] == ["mnist-worker-0-1", "mnist-worker-1-1"]
    assert {child[:2] for child in s.children} == {("Service", "mnist-peers"), ("Secret", "mnist-token")}
    live = await bench.client.get(JOB, "default", "mnist")
    zeros = {"failures": 0, "disruptions": 0, "stalls": 0, "total": 0}
    assert live["status"] == {"phase": "Starting", "observedGeneration": 0, "attempt": 1, "restarts": zeros}
    assert live["metadata"]["resourceVersion"] == s.resource_version
    versions = [
        int((await bench.client.get(kind, "default", name))["metadata"]["resourceVersion"])
        for kind, name in ((JOB, "mnist"), (SERVICE, "mnist-peers"), (POD, "mnist-worker-0-1"))
    ]
    assert versions == sorted(versions)


async def test_a_job_that_is_refused_at_once_shows_its_phase_and_its_restarts(bench: Bench) -> None:
    refused = planned(msgspec.structs.replace(bench.situation, faults=("spec.roles.worker: bad",)), NOW)
    assert await bench.applier.apply(bench.situation, refused) == "Done"
    live = await bench.client.get(JOB, "default", "mnist")
    assert (live["status"]["phase"], live["status"]["restarts"]["total"]) == ("Pending", 0)
    assert bench.situation.status == refused.status
    assert await bench.act(status=msgspec.structs.replace(bench.situation.status, phase="Queued")) == "Done"
    live = await bench.client.get(JOB, "default", "mnist")
    assert (live["status"]["phase"], live["status"]["restarts"]["total"]) == ("Queued", 0)


async def test_a_plan_for_a_job_that_has_changed_is_dropped(bench: Bench) -> None:
    before = bench.situation
    await bench.client.patch(JOB, "default", "mnist", {"spec": {"suspend": True}})
    plan = Plan(JobStatus(phase="Starting"), (Create(bench.pod(0)),))
    assert await bench.applier.apply(before, plan) == "Dropped"
    # No event had to come: the next plan is made for the job as it is.
    assert bench.situation.spec is not None
    assert bench.situation.spec.suspend
    assert bench.situation.pods == ()
    with pytest.raises(ApiError, match="not found"):
        await bench.client.get(POD, "default", "mnist-worker-0-1")


async def test_a_plan_for_a_job_that_is_gone_is_dropped(bench: Bench) -> None:
    before = bench.situation
    await bench.client.delete(JOB, "default", "mnist", uid=before.uid)
    assert await bench.applier.apply(before, Plan(JobStatus(phase="Starting"))) == "Dropped"
    assert bench.store.situation(KEY) is None


async def test_what_exists_and_is_ours_counts_as_made(bench: Bench) -> None:
    await bench.act(Create(bench.service()), Create(bench.secret()), Create(bench.pod(0)))
    restarted = Bench(bench.client)
    restarted.store.put(JOB, await bench.client.get(JOB, "default", "mnist"))
    actions = [Create(bench.service()), Create(bench.secret()), Create(bench.pod(0)), Create(bench.pod(1))]
    assert await restarted.act(*actions) == "Done"
    assert restarted.situation.pods[0].uid == bench.situation.pods[0].uid
    assert {child[:2] for child in restarted.situation.children} == {
        ("Service", "mnist-peers"),
        ("Secret", "mnist-token"),
    }


@pytest.mark.parametrize(
    ("owner", "told", "is_left"),
    [
        pytest.param(None, None, False, id="nobody's"),
        pytest.param("Secret", "Secret owner", False, id="somebody's"),
        pytest.param(JOB.kind, None, True, id="of a job that is gone"),
    ],
)
async def test_a_name_that_someone_else_has_is_never_taken(
    bench: Bench, owner: str | None, told: str | None, is_left: bool
) -> None:
    foreign = bench.service()
    foreign["metadata"]["ownerReferences"] = []
    if owner:
        # The store does not know this one, as if it were deleted and its children were still to be.
        job = await bench.client.get(JOB, "default", "mnist")
        secret = {"apiVersion": "v1", "kind": "Secret"}
        what = {"apiVersion": job["apiVersion"], "kind": owner, "spec": job["spec"]} if owner == JOB.kind else secret
        made = await bench.client.create({**what, "metadata": {"name": "owner", "namespace": "default"}})
        uid = made["metadata"]["uid"]
        reference = {"apiVersion": what["apiVersion"], "kind": owner, "name": "owner", "uid": uid, "controller": True}
        foreign["metadata"]["ownerReferences"] = [reference]
    await bench.client.create(foreign)
    assert await bench.act(Create(bench.service()), Create(bench.pod(0))) == "Refused"
    s = bench.situation
    foreigner = ForeignChild("Service", "mnist-peers", terminating=False, owner=told, is_left=is_left)
    assert s.foreign_names == (foreigner,)
    assert not s.children
    assert not s.pods
    live = await bench.client.get(SERVICE, "default", "mnist-peers")
    await bench.client.delete(SERVICE, "default", "mnist-peers", uid=live["metadata"]["uid"])
    assert await bench.lookups.refresh(s)
    assert bench.situation.foreign_names == ()
    assert not await bench.lookups.refresh(bench.situation)


async def test_a_claim_that_outlived_its_job_is_reused(bench: Bench) -> None:
    claim = bench._child("v1", "PersistentVolumeClaim", "mnist-checkpoints")
    del claim["metadata"]["ownerReferences"]
    claim["spec"] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await bench.client.create(claim)
    assert await bench.act(Create(claim)) == "Done"
    assert [child[:2] for child in bench.situation.children] == [("PersistentVolumeClaim", "mnist-checkpoints")]


@pytest.mark.parametrize(
    ("status", "is_known"),
    [
        pytest.param(JobStatus(phase="Queued"), False, id="before a start"),
        pytest.param(
            JobStatus(phase="Queued", gang=GangStatus(admitted_at=NOW)), True, id="its pods say what they lack"
        ),
        pytest.param(JobStatus(phase="Running"), True, id="nobody asks while it runs"),
    ],
)
async def test_a_claim_that_was_deleted_is_gone_before_a_start(bench: Bench, status: JobStatus, is_known: bool) -> None:
    """Though no watch has told of it."""
    claim = bench._child("v1", "PersistentVolumeClaim", "mnist-checkpoints")
    claim["spec"] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await bench.act(Create(claim))
    live = await bench.client.get(CLAIM, "default", "mnist-checkpoints")
    await bench.client.delete(CLAIM, "default", "mnist-checkpoints", uid=live["metadata"]["uid"])
    await bench.lookups.refresh(msgspec.structs.replace(bench.situation, status=status))
    assert bool(bench.situation.children) == is_known


async def test_a_named_claim_is_looked_for_until_it_is_there_and_again_before_each_start(client: HttpClient) -> None:
    bench = Bench(client)
    await bench.submit(checkpoint={"persistentVolumeClaim": "data"})
    assert await bench.lookups.refresh(bench.situation)
    assert bench.claim_seen() is None
    assert not await bench.lookups.refresh(bench.situation)
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": "data", "namespace": "default"}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
    live = await client.create(claim)
    bench.now += timedelta(seconds=5)
    assert await bench.lookups.refresh(bench.situation)
    assert bench.claim_seen() == ("ReadWriteMany",)
    bench.now += timedelta(seconds=5)
    assert not await bench.lookups.refresh(bench.situation)
    bench.now += timedelta(seconds=25)
    released = JobStatus(phase="Queued", gang=GangStatus(admitted_at=bench.now))
    assert not await bench.lookups.refresh(msgspec.structs.replace(bench.situation, status=released))
    await client.delete(CLAIM, "default", "data", uid=live["metadata"]["uid"])
    assert await bench.lookups.refresh(bench.situation)
    assert bench.claim_seen() is None


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        pytest.param({"managedBy": "kueue.x-k8s.io/multikueue"}, JobStatus(), id="somebody else's job"),
        pytest.param({}, JobStatus(phase="Failed"), id="one that ended before it was formed"),
    ],
)
async def test_no_claim_is_read_for_a_job_that_needs_nothing(
    client: HttpClient, fields: dict[str, Any], status: JobStatus
) -> None:
    bench = Bench(client)
    await bench.submit(checkpoint={"persistentVolumeClaim": "data"}, **fields)
    assert not await bench.lookups.refresh(msgspec.structs.replace(bench.situation, status=status))


async def test_a_refused_create_is_kept_in_the_apis_own_words_until_a_status_is_written(bench: Bench) -> None:
    broken = bench.pod(0)
    broken["spec"]["containers"] = []
    assert await bench.act(Create(bench.pod(1)), Create(broken), Ungate("x", "y")) == "Refused"
    (words,) = bench.situation.refusals
    assert "spec.containers" in words
    # The others of the stage were made, and the next stage was not begun.
    assert [pod.task.index for pod in bench.situation.pods] == [1]
    await bench.act(status=JobStatus(phase="Queued"))
    assert bench.situation.refusals == ()


async def test_a_delete_hits_one_incarnation(bench: Bench) -> None:
    await bench.act(Create(bench.pod(0)), Create(bench.pod(1)), Create(bench.service()))
    first, second = bench.situation.pods
    (_, service, service_uid, _), *_ = bench.situation.children
    actions = [Delete("Pod", first.name, "another"), Delete("Pod", second.name, second.uid)]
    assert await bench.act(*actions, Delete("Service", service, service_uid)) == "Done"
    assert (await bench.client.get(POD, "default", first.name))["metadata"]["uid"] == first.uid
    assert bench.situation.children == frozenset()
    # It may still be there for its grace period, and is not deleted again.
    assert [pod.deleting_since for pod in bench.situation.pods if pod.uid == second.uid] in ([], [NOW])
    assert await bench.act(Delete("Service", service, service_uid)) == "Done"


async def test_only_our_gate_is_taken_from_a_pod(bench: Bench) -> None:
    await bench.act(Create(bench.pod(0, "other.io/first", "dtj.dev/gang", "other.io/last")))
    (pod,) = bench.situation.pods
    assert await bench.act(Ungate(pod.name, pod.uid)) == "Done"
    assert bench.situation.pods[0].gates == ("other.io/first", "other.io/last")
    assert await bench.act(Ungate(pod.name, pod.uid)) == "Done"


async def test_a_gate_that_has_moved_is_looked_up_first(bench: Bench) -> None:
    await bench.act(Create(bench.pod(0, "other.io/first", "dtj.dev/gang")))
    before = bench.situation
    (pod,) = before.pods
    moved = [{"op": "remove", "path": "/spec/schedulingGates/0"}]
    await bench.client.patch(POD, "default", pod.name, moved, type="json")
    ungate = Ungate(pod.name, pod.uid)
    assert await bench.applier.apply(before, Plan(None, (ungate,))) == "Refused"
    assert bench.situation.pods[0].gates == ("dtj.dev/gang",)
    assert await bench.act(ungate) == "Done"
    assert not bench.situation.pods[0].gates


async def test_answers_to_probes_lie_in_the_store(bench: Bench) -> None:
    broken = bench.pod(0)
    broken["spec"]["containers"][0]["imge"] = "typo"
    await bench.act(Probe("worker", "good", bench.pod(0)), Probe("worker", "bad", broken))
    good, bad = bench.situation.probes["good"], bench.situation.probes["bad"]
    assert good.code == 201
    assert good.pod is not None
    assert good.pod["spec"]["restartPolicy"] == "Always"
    assert bad.code in (400, 422)
    assert "imge" in bad.message
    assert bench.situation.pods == ()


async def test_a_server_in_trouble_says_nothing_about_a_template(bench: Bench, script: Script) -> None:
    script.answers = [says(503)]
    async with script.client() as client:
        bench.applier = Applier(client, bench.store, Sole(), lambda: NOW)
        with pytest.raises(ApiError):
            await bench.act(Probe("worker", "hash", bench.pod(0)))
    assert (bench.situation.probes, bench.situation.unanswered) == ({}, "503 Unknown")
    bench.applier = Applier(bench.client, bench.store, Sole(), lambda: NOW)
    await bench.act(Probe("worker", "hash", bench.pod(0)))
    assert bench.situation.unanswered is None


async def test_an_event_is_about_the_job(bench: Bench) -> None:
    await bench.act(Emit("Warning", "Restarting", "worker-1 exited 3"), Emit("Normal", "Queued", "waits"))
    (page,) = [page async for page in bench.client.pages(EVENT, "default")]
    told = {(event["type"], event["reason"], event["message"]) for event in page.items}
    assert told == {("Warning", "Restarting", "worker-1 exited 3"), ("Normal", "Queued", "waits")}
    assert page.items[0]["involvedObject"]["uid"] == bench.situation.uid


async def test_an_event_that_is_refused_stops_nothing(bench: Bench, script: Script) -> None:
    script.answers = [says(403), says(200, {})]
    async with script.client() as client:
        bench.applier = Applier(client, bench.store, Sole(), lambda: NOW)
        assert await bench.act(Emit("Normal", "Queued", "waits"), DeleteJob("mnist", "uid")) == "Done"
    assert [method for method, *_ in script.requests] == ["POST", "DELETE"]


async def test_an_object_is_made_anew_in_one_plan(bench: Bench) -> None:
    await bench.act(Create(signed(bench.service())))
    ((_, name, uid, digest),) = bench.situation.children
    other = {**bench.service(), "spec": {"clusterIP": "None", "publishNotReadyAddresses": True}}
    assert await bench.act(Delete("Service", name, uid), Create(signed(other))) == "Done"
    ((_, _, new_uid, new_digest),) = bench.situation.children
    assert uid != new_uid
    assert digest != new_digest
    live = await bench.client.get(SERVICE, "default", name)
    assert live["spec"]["publishNotReadyAddresses"]
    assert live["metadata"]["annotations"] == {"dtj.dev/made-of": new_digest}


async def test_the_job_goes_when_its_time_is_over(bench: Bench) -> None:
    assert await bench.act(DeleteJob("mnist", "another")) == "Done"
    assert await bench.act(DeleteJob("mnist", bench.situation.uid)) == "Done"
    with pytest.raises(ApiError, match="not found"):
        await bench.client.get(JOB, "default", "mnist")


class Unsettled(Sole):
    is_settled = False


class Lost(Sole):
    def check(self) -> None:
        raise LeaseLost("gone")


async def test_a_new_leader_waits_before_it_releases_or_forces(client: HttpClient) -> None:
    bench = Bench(client, Unsettled())
    await bench.submit()
    assert await bench.act(Create(bench.pod(0, "dtj.dev/gang"))) == "Done"
    (pod,) = bench.situation.pods
    assert await bench.act(Ungate(pod.name, pod.uid)) == "Unsettled"
    assert await bench.act(Delete("Pod", pod.name, pod.uid, force=True)) == "Unsettled"
    assert (await client.get(POD, "default", pod.name))["spec"]["schedulingGates"] == [{"name": "dtj.dev/gang"}]


async def test_who_has_lost_the_lease_writes_nothing(bench: Bench, script: Script) -> None:
    bench.applier = Applier(script.client(), bench.store, Lost(), lambda: NOW)
    for plan in (
        Plan(JobStatus(phase="Starting")),
        Plan(None, (Create(bench.pod(0)),)),
        Plan(None, (Emit("Normal", "a", "b"),)),
    ):
        with pytest.raises(LeaseLost):
            await bench.applier.apply(bench.situation, plan)
    assert script.requests == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(JobStatus(), JobStatus(phase="Queued", gang=GangStatus(queued_at=NOW)), id="more"),
        pytest.param(
            JobStatus(phase="Running", gang=GangStatus(queued_at=NOW, missed=2), finished={"worker": "0-1"}),
            JobStatus(phase="Running", gang=GangStatus(missed=1)),
            id="less",
        ),
        pytest.param(
            JobStatus(finished={"worker": "0", "ps": "1"}, restarts=Restarts(failures=1)),
            JobStatus(finished={"worker": "0-1"}, restarts=Restarts(failures=1)),
            id="within a map",
        ),
        pytest.param(
            JobStatus(
                conditions=[Condition("Accepted", "True", "Accepted", NOW), Condition("Training", "True", "X", NOW)]
            ),
            JobStatus(conditions=[Condition("Accepted", "False", "Invalid", NOW)]),
            id="a list is replaced",
        ),
    ],
)
def test_the_patch_makes_one_status_the_other(before: JobStatus, after: JobStatus) -> None:
    live = msgspec.to_builtins(before) | {"ofANewerOperator": 1}
    patched = merge_patched(live, difference(before, after))
    assert patched.pop("ofANewerOperator") == 1
    assert msgspec.convert(patched, JobStatus) == after
