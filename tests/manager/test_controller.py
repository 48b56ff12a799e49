"""The loop over jobs in virtual time, on the embedded API without HTTP. Whole lives of jobs are in tests/scenarios."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dtj_operator.api.crd import crd
from dtj_operator.api.observed import Facts, JobKey, Situation
from dtj_operator.kube.client import JOB, POD, ApiError, Json, kind_named
from dtj_operator.kube.lease import Sole
from dtj_operator.kube.reflector import LISTED
from dtj_operator.local.api import Api
from dtj_operator.local.state import Request
from dtj_operator.manager.controller import Controller
from dtj_operator.manager.telemetry import Metrics
from tests.manager.direct import DirectClient

pytestmark = pytest.mark.looptime
KEY = JobKey("default", "mnist")
START = datetime(2026, 11, 30, 12, tzinfo=UTC)
SERVICE = kind_named("Service")


def clock() -> datetime:
    return START + timedelta(seconds=asyncio.get_running_loop().time())


@asynccontextmanager
async def silent(url: str, token: str) -> AsyncIterator[AsyncIterator[bytes]]:
    """No supervisor answers."""
    raise OSError(url)
    yield


class Operator:
    """A Controller at work, its client, and the pods' kubelet: the test's own hands."""

    def __init__(self, facts: Facts, leader: Any = None) -> None:
        api = Api(now=clock)
        definitions = api.kind("apiextensions.k8s.io/v1", "customresourcedefinitions")
        api.request(Request(verb="create", kind=definitions, body=crd()))
        self.api = api
        self.client = DirectClient(api)
        self.metrics = Metrics(asyncio.get_running_loop().time)
        self.controller = Controller(
            self.client, facts, clock=clock, leader=leader or Sole(), lines=silent, metrics=self.metrics
        )

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        await self.controller.start()
        follow = self.controller.reflector.follow
        tasks = [asyncio.create_task(one) for one in (self.controller.run(), follow(JOB), follow(POD))]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    async def submit(self, **spec: Any) -> None:
        containers = [{"name": "trainer", "image": "dtj/worker", "args": ["train.py"]}]
        given = {"roles": {"worker": {"replicas": 2}}, "template": {"spec": {"containers": containers}}, **spec}
        metadata = {"name": KEY.name, "namespace": KEY.namespace}
        await self.client.create({"apiVersion": JOB.api_version, "kind": JOB.kind, "metadata": metadata, "spec": given})

    async def until(self, phase: str) -> Situation:
        """The situation as soon as the job is in this phase."""
        for _ in range(10_000):
            s = self.controller.store.situation(KEY)
            if s is not None and s.status.phase == phase:
                return s
            await asyncio.sleep(0.1)
        raise AssertionError(f"the job was never {phase}")

    async def bind(self, *names: str) -> None:
        """Do as scheduler and kubelet do: a node, and all containers running."""
        for name in names:
            pod = await self.client.get(POD, "default", name)
            binding = {"target": {"kind": "Node", "name": "n1"}, "metadata": {"name": name}}
            pods = self.api.kind("v1", "pods")
            self.api.request(
                Request(verb="create", kind=pods, namespace="default", name=name, subresource="binding", body=binding)
            )
            running = {"name": pod["spec"]["containers"][0]["name"], "state": {"running": {"startedAt": _stamp()}}}
            scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": _stamp()}
            status = {"phase": "Running", "conditions": [scheduled], "containerStatuses": [running]}
            await self.client.patch(POD, "default", name, {"status": status}, subresource="status")


def _stamp() -> str:
    return clock().strftime("%Y-%m-%dT%H:%M:%SZ")


NO_GANG = {"gang": {"scheduler": "None"}}


async def test_a_job_costs_its_creates_and_one_write_for_each_transition() -> None:
    operator = Operator(Facts())
    async with operator.at_work():
        operator.client.calls.clear()
        await operator.submit(**NO_GANG)
        await asyncio.sleep(60)
        calls = Counter(operator.client.calls)
        # One of the three pods is the question what the API makes of it.
        made = {"create DistributedTrainingJob": 1, "create Service": 1, "create Secret": 1, "create NetworkPolicy": 1}
        assert {call: n for call, n in calls.items() if call.startswith("create") and "Event" not in call} == {
            **made,
            "create Pod": 3,
        }
        assert calls["patch DistributedTrainingJob"] <= 4
        assert not any(call.startswith(("get", "delete", "patch Pod")) for call in calls)
        # Nothing happens: nothing is called but the lists.
        operator.client.calls.clear()
        await asyncio.sleep(200)
        assert set(operator.client.calls) <= {f"list {kind}" for kind in _listed()}


async def test_the_gang_is_bound_and_starts() -> None:
    operator = Operator(Facts())
    async with operator.at_work():
        await operator.submit(**NO_GANG)
        await operator.until("Queued")
        await asyncio.sleep(1)
        await operator.bind("mnist-worker-0-0", "mnist-worker-1-0")
        s = await operator.until("Starting")
        assert [pod.node for pod in s.pods] == ["n1", "n1"]
        assert s.status.ready is not None


async def test_how_far_a_job_is_takes_no_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dtj_operator")
    operator = Operator(Facts())
    async with operator.at_work():
        await operator.submit(**NO_GANG, supervisor="None")
        await operator.until("Queued")
        await asyncio.sleep(1)
        await operator.bind("mnist-worker-0-0", "mnist-worker-1-0")
        await operator.until("Running")
        assert "Running" in [record.phase for record in caplog.records if hasattr(record, "phase")]
        await asyncio.sleep(1)
        caplog.clear()
        waiting = {"name": "trainer", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
        status = {"status": {"containerStatuses": [waiting]}}
        await operator.client.patch(POD, "default", "mnist-worker-1-0", status, subresource="status")
        await asyncio.sleep(20)
        s = operator.controller.store.situation(KEY)
        assert s is not None
        assert s.status.ready == "1/2"
        assert [record.getMessage() for record in caplog.records] == []


async def test_a_gang_waits_without_pods_until_nodes_come() -> None:
    operator = Operator(Facts(has_node_rights=True))
    async with operator.at_work():
        await operator.submit()
        await asyncio.sleep(30)
        s = await operator.until("Queued")
        assert s.status.gang.scheduler == "BuiltIn"
        assert not s.pods
        assert s.status.gang.waiting_for
        for name in ("n1", "n2"):
            await operator.client.create(_node(name))
        await asyncio.sleep(30)
        s = await operator.until("Queued")
        assert len(s.pods) == 2
        assert s.status.gang.admitted_at is not None
        assert all(not pod.gates and pod.pinned for pod in s.pods)


class Unsettled(Sole):
    """A leader that took over from one that may still have calls under way."""

    @property
    def is_settled(self) -> bool:  # type: ignore[override]
        return asyncio.get_running_loop().time() > 100


async def test_a_new_leader_lets_no_gang_go_before_it_has_settled() -> None:
    operator = Operator(Facts(has_node_rights=True), Unsettled())
    async with operator.at_work():
        await operator.client.create(_node("n1"))
        await operator.submit()
        await asyncio.sleep(80)
        s = operator.controller.store.situation(KEY)
        assert s is not None
        assert [pod.gates for pod in s.pods] == [("dtj.dev/gang",)] * 2
        await asyncio.sleep(30)
        s = operator.controller.store.situation(KEY)
        assert s is not None
        assert [pod.gates for pod in s.pods] == [(), ()]


async def test_an_api_server_in_trouble_is_asked_ever_more_seldom() -> None:
    operator = Operator(Facts())
    async with operator.at_work():
        operator.client.fails["create Service"] = ApiError(500, "InternalError", "etcd is gone")
        await operator.submit(**NO_GANG)
        await asyncio.sleep(1000)
        tries = operator.client.calls.count("create Service")
        assert 8 < tries < 16
        del operator.client.fails["create Service"]
        await asyncio.sleep(300)
        s = operator.controller.store.situation(KEY)
        assert s is not None
        assert len(s.pods) == 2


async def test_a_refusal_is_told_in_the_apis_words_and_tried_again_later() -> None:
    operator = Operator(Facts())
    words = (
        'pods "mnist-worker-0-0" is forbidden: exceeded quota: team, requested: pods=1, used: pods=9, limited: pods=9'
    )
    async with operator.at_work():
        await operator.submit(**NO_GANG)
        operator.client.fails["create Service"] = ApiError(403, "Forbidden", words)
        await asyncio.sleep(600)
        s = await operator.until("Queued")
        assert s.status.gang.waiting_for is not None
        assert "exceeded quota" in s.status.gang.waiting_for
        assert 3 < operator.client.calls.count("create Service") < 30
        del operator.client.fails["create Service"]
        await asyncio.sleep(400)
        s = await operator.until("Queued")
        assert len(s.pods) == 2


async def test_a_name_that_is_taken_is_asked_for_seldom_until_it_is_free() -> None:
    operator = Operator(Facts())
    metadata = {"name": "mnist-peers", "namespace": "default"}
    spec = {"clusterIP": "None"}
    left = await operator.client.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
    async with operator.at_work():
        await operator.submit(**NO_GANG)
        await asyncio.sleep(100)
        s = await operator.until("Pending")
        (condition,) = [one for one in s.status.conditions if one.type == "Accepted"]
        assert (condition.status, condition.reason) == ("False", "NameTaken")
        assert operator.client.calls.count("create Service") <= 3
        assert 15 < operator.client.calls.count("get Service") < 30
        await operator.client.delete(SERVICE, "default", "mnist-peers", uid=left["metadata"]["uid"])
        await asyncio.sleep(10)
        s = await operator.until("Queued")
        assert len(s.pods) == 2


async def test_what_shows_no_effect_is_not_asked_for_in_a_spin() -> None:
    """As when the watch is silent: the job whose time is over was deleted, and nobody tells."""
    operator = Operator(Facts())
    await operator.submit(**NO_GANG, ttlSecondsAfterFinished=10)
    over = {"phase": "Succeeded", "observedGeneration": 1, "completionTime": _stamp()}
    await operator.client.patch(JOB, "default", "mnist", {"status": over}, subresource="status")
    await operator.controller.start()
    working = asyncio.create_task(operator.controller.run())
    await asyncio.sleep(14)
    assert 2 <= operator.client.calls.count("delete DistributedTrainingJob") <= 5
    await asyncio.sleep(10)
    # The regular list has told meanwhile.
    assert operator.controller.store.keys() == ()
    working.cancel()


async def test_a_job_that_is_gone_is_forgotten() -> None:
    operator = Operator(Facts())
    async with operator.at_work():
        await operator.submit(**NO_GANG)
        s = await operator.until("Queued")
        await operator.client.delete(JOB, "default", "mnist", uid=s.uid)
        await asyncio.sleep(60)
        assert operator.controller.store.keys() == ()
        assert operator.metrics._phases == {}


async def test_a_restarted_operator_makes_no_second_pod() -> None:
    first = Operator(Facts())
    async with first.at_work():
        await first.submit(**NO_GANG)
        await first.until("Queued")
        await asyncio.sleep(5)
    before = first.controller.store.situation(KEY)
    second = Operator(Facts())
    second.api = first.api
    second.client = DirectClient(first.api)
    second.controller = Controller(
        second.client, Facts(), clock=clock, leader=Sole(), lines=silent, metrics=second.metrics
    )
    async with second.at_work():
        await asyncio.sleep(30)
        after = second.controller.store.situation(KEY)
    assert before is not None
    assert after is not None
    assert [pod.uid for pod in after.pods] == [pod.uid for pod in before.pods]
    assert "create Pod" not in [call for call in second.client.calls if call == "create Pod"][1:]


def _node(name: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _listed() -> list[str]:
    return [kind.kind for kind in LISTED]
