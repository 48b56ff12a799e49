"""When the built-in gang scheduler is asked, and what becomes of its answers. Whom it admits: see tests/gang."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dtj_operator.api.observed import Admit, Facts, JobKey, ProbeResult, Situation, Wait
from dtj_operator.api.status import Condition, GangStatus, JobStatus
from dtj_operator.desired.probes import template_hash
from dtj_operator.kube.client import JOB, NODE, POD
from dtj_operator.kube.fleet import Fleet
from dtj_operator.kube.store import Store
from dtj_operator.manager.admissions import Admissions

START = datetime(2026, 11, 30, 12, tzinfo=UTC)
GPU = "nvidia.com/gpu"


class Cluster:
    """Jobs of two workers with a GPU each, nodes, and what the Admissions have told."""

    def __init__(self) -> None:
        self.now = START
        self.fleet = Fleet()
        self.store = Store(Facts(has_node_rights=True), self.fleet)
        self.marked: list[str] = []
        self.wanted = 0
        self.version = 1
        self.told = asyncio.Event()
        self.admissions = Admissions(
            self.store, self.fleet, lambda: self.now, mark=self._mark, want_fleet=self._want_fleet
        )

    def _mark(self, key: JobKey) -> None:
        self.marked.append(key.name)
        self.told.set()

    def _want_fleet(self) -> None:
        self.wanted += 1

    def node(self, name: str, gpus: int, ready: str = "True") -> None:
        self.version += 1
        metadata = {
            "name": name,
            "uid": name,
            "resourceVersion": str(self.version),
            "labels": {"kubernetes.io/hostname": name},
        }
        status = {"allocatable": {GPU: str(gpus), "pods": "110"}, "conditions": [{"type": "Ready", "status": ready}]}
        self.fleet.put(NODE, {"metadata": metadata, "status": status})

    def load(self, name: str, node: str) -> None:
        """A pod of somebody else that has a GPU of that node."""
        self.version += 1
        metadata = {"name": name, "uid": name, "resourceVersion": str(self.version)}
        containers = [{"name": "x", "resources": {"limits": {GPU: "1"}}}]
        status = {"phase": "Running"}
        self.fleet.put(
            POD, {"metadata": metadata, "spec": {"nodeName": node, "containers": containers}, "status": status}
        )

    def known(self) -> None:
        """All was listed, and no pod of anybody is there."""
        self.fleet.retain(NODE, None, {"n1", "n2"}, str(self.version))
        self.fleet.retain(POD, None, set(), str(self.version))

    def job(self, name: str, *, probed: bool = True, **status: Any) -> Situation:
        """The job as it is in the store afterwards, and the Admissions have considered it."""
        self.version += 1
        key = JobKey("ml", name)
        container = {"name": "trainer", "image": "a", "resources": {"limits": {GPU: "1"}}}
        metadata = {
            "name": name,
            "namespace": "ml",
            "uid": name,
            "resourceVersion": str(self.version),
            "generation": 1,
            "creationTimestamp": "2026-11-30T10:00:00Z",
        }
        spec = {"roles": {"worker": {"replicas": 2}}, "template": {"spec": {"containers": [container]}}}
        self.store.put(JOB, {"metadata": metadata, "spec": spec, "status": {"phase": "Queued"} | status})
        s = self._situation(key)
        assert s.spec is not None
        if probed:
            pod = {"metadata": {}, "spec": {"containers": [container]}}
            self.store.note_probe(key, template_hash(s.spec, "worker"), ProbeResult(201, pod=pod))
        s = self._situation(key)
        self.admissions.consider(key, s)
        return s

    def admission(self, name: str) -> object:
        return self._situation(JobKey("ml", name)).admission

    def _situation(self, key: JobKey) -> Situation:
        s = self.store.situation(key)
        assert s is not None
        return s


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.node("n1", 1)
    cluster.node("n2", 1)
    return cluster


def test_nobody_is_answered_before_the_fleet_is_known(cluster: Cluster) -> None:
    cluster.job("one")
    cluster.admissions.answer()
    assert cluster.admission("one") is None
    cluster.known()
    cluster.admissions.answer()
    assert cluster.admission("one") == Admit(nodes=("n1", "n2"))
    assert cluster.marked == ["one"]


def test_places_that_were_promised_are_given_once(cluster: Cluster) -> None:
    cluster.known()
    cluster.job("one")
    cluster.job("two")
    cluster.admissions.answer()
    assert isinstance(cluster.admission("one"), Admit)
    assert isinstance(cluster.admission("two"), Wait)
    # The first has not moved yet, has moved, is bound in part: its places stay its own all the time.
    for gang in ({}, {"admittedAt": "2026-11-30T12:00:00Z"}):
        cluster.job("one", gang=gang)
        cluster.admissions.answer()
        assert isinstance(cluster.admission("one"), Admit)
        assert isinstance(cluster.admission("two"), Wait)
    cluster.admissions.consider(JobKey("ml", "one"), None)
    cluster.admissions.answer()
    assert isinstance(cluster.admission("two"), Admit)


def test_an_admission_is_void_when_the_gang_was_taken_back(cluster: Cluster) -> None:
    cluster.known()
    s = cluster.job("one")
    cluster.admissions.answer()
    released = JobStatus(phase="Queued", gang=GangStatus(admitted_at=START))
    cluster.admissions.decided(s.key, s.status, released)
    assert isinstance(cluster.admission("one"), Admit)
    cluster.admissions.decided(s.key, released, JobStatus(phase="Starting", gang=GangStatus(admitted_at=START)))
    assert isinstance(cluster.admission("one"), Admit)
    cluster.admissions.decided(s.key, released, JobStatus(phase="Queued"))
    assert cluster.admission("one") is None


def test_an_admission_is_void_when_the_job_turned_elsewhere(cluster: Cluster) -> None:
    cluster.known()
    s = cluster.job("one")
    cluster.admissions.answer()
    cluster.admissions.decided(s.key, s.status, JobStatus(phase="Suspended"))
    assert cluster.admission("one") is None


def test_an_admission_is_void_while_the_job_s_claim_is_missing(cluster: Cluster) -> None:
    """Else its places would be kept from those who could use them."""
    cluster.known()
    s = cluster.job("one")
    cluster.admissions.answer()
    lacks = Condition("GangScheduled", "False", "ClaimMissing", START)
    cluster.admissions.decided(s.key, s.status, JobStatus(phase="Queued", conditions=[lacks]))
    assert cluster.admission("one") is None


def test_words_change_seldom_an_admission_at_once(cluster: Cluster) -> None:
    cluster.known()
    cluster.load("a", "n1")
    cluster.job("one")
    cluster.admissions.answer()
    first = cluster.admission("one")
    assert isinstance(first, Wait)
    cluster.load("b", "n2")
    cluster.admissions.answer()
    assert (cluster.admission("one"), cluster.marked) == (first, ["one"])
    cluster.now += timedelta(seconds=11)
    cluster.admissions.answer()
    second = cluster.admission("one")
    assert isinstance(second, Wait)
    assert (second != first, cluster.marked) == (True, ["one", "one"])
    cluster.known()
    cluster.admissions.answer()
    assert isinstance(cluster.admission("one"), Admit)


def test_a_job_that_was_not_probed_or_is_bound_by_others_does_not_wait(cluster: Cluster) -> None:
    cluster.known()
    cluster.job("unprobed", probed=False)
    cluster.admissions.answer()
    assert cluster.admission("unprobed") is None


@pytest.mark.looptime
async def test_jobs_that_are_restarting_hear_of_nodes(cluster: Cluster) -> None:
    task = asyncio.create_task(cluster.admissions.run())
    cluster.job("one", phase="Restarting")
    cluster.job("two", phase="Running")
    assert cluster.wanted == 1
    cluster.known()
    await asyncio.sleep(1)
    assert cluster.marked == ["one"]
    cluster.load("a", "n1")
    await asyncio.sleep(1)
    assert cluster.marked == ["one"]
    cluster.node("n2", 1, ready="False")
    await asyncio.sleep(1)
    assert cluster.marked == ["one", "one"]
    cluster.job("one", phase="Starting")
    cluster.node("n2", 1)
    await asyncio.sleep(1)
    assert cluster.marked == ["one", "one"]
    task.cancel()


@pytest.mark.looptime
async def test_jobs_that_wait_for_pods_of_an_earlier_one_hear_of_nodes(cluster: Cluster) -> None:
    task = asyncio.create_task(cluster.admissions.run())
    pending = cluster.job("one", phase="Pending")
    assert cluster.wanted == 0
    owner = {"kind": "DistributedTrainingJob", "name": "one", "uid": "earlier", "controller": True}
    labels = {"dtj.dev/job-name": "one", "dtj.dev/role": "worker", "dtj.dev/index": "0", "dtj.dev/round": "0"}
    metadata = {
        "name": "one-worker-0-0",
        "namespace": "ml",
        "uid": "p",
        "resourceVersion": "99",
        "creationTimestamp": "2026-11-30T10:00:00Z",
        "labels": labels,
        "ownerReferences": [owner],
    }
    spec = {"containers": [{"name": "trainer"}], "nodeName": "n1"}
    cluster.store.put(POD, {"metadata": metadata, "spec": spec})
    cluster.admissions.consider(pending.key, cluster.store.situation(pending.key))
    assert cluster.wanted == 1
    cluster.known()
    cluster.node("n1", 1, ready="False")
    await asyncio.sleep(1)
    assert cluster.marked == ["one"]
    task.cancel()


@pytest.mark.looptime
async def test_it_answers_when_something_changes_and_has_the_fleet_watched_meanwhile() -> None:
    cluster = Cluster()
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(cluster.admissions.run())
    await asyncio.sleep(1000)
    assert cluster.wanted == 0
    cluster.job("one", gang={"notBefore": "2026-11-30T12:00:20Z"})
    await asyncio.sleep(1)
    assert cluster.wanted == 1
    cluster.node("n1", 2)
    cluster.known()
    await asyncio.sleep(1)
    assert isinstance(cluster.admission("one"), Wait)
    before = loop.time()
    cluster.told.clear()
    cluster.now = START + timedelta(seconds=20)
    await cluster.told.wait()
    assert isinstance(cluster.admission("one"), Admit)
    assert loop.time() - before < 25
    task.cancel()
