"""Who may write, against a real API server. The clock is moved by hand; what waits polls without a pause."""

import asyncio

import pytest
from aiohttp import web

from dtj_operator.kube import lease as module
from dtj_operator.kube.client import LEASE, ApiError
from dtj_operator.kube.http import HttpClient
from dtj_operator.kube.lease import Lease, LeaseLost, Sole
from tests.kube.conftest import Script, says


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(module, "POLL_SECONDS", 0.001)
    monkeypatch.setattr(module, "RENEWAL_SECONDS", 0.02)
    return Clock()


def lease(client: HttpClient, identity: str, clock: Clock) -> Lease:
    return Lease(client, "default", "dtj-operator", identity, clock)


async def holder(client: HttpClient) -> str:
    found = await client.get(LEASE, "default", "dtj-operator")
    return str(found["spec"]["holderIdentity"])


async def polled(client: HttpClient, waiting: asyncio.Task[None]) -> None:
    """Give whoever waits several chances to find out."""
    for _ in range(20):
        await client.get(LEASE, "default", "dtj-operator")
    assert not waiting.done()


async def test_the_first_process_leads_at_once_and_need_not_wait(client: HttpClient, clock: Clock) -> None:
    first = lease(client, "a", clock)
    with pytest.raises(LeaseLost):
        first.check()
    await first.acquire()
    first.check()
    assert first.is_settled
    assert await holder(client) == "a"


async def test_a_process_of_the_same_name_goes_on_at_once(client: HttpClient, clock: Clock) -> None:
    await lease(client, "a", clock).acquire()
    again = lease(client, "a", clock)
    await again.acquire()
    assert again.is_settled


async def test_what_was_given_back_is_taken_at_once(client: HttpClient, clock: Clock) -> None:
    first, second = lease(client, "a", clock), lease(client, "b", clock)
    await first.acquire()
    await first.release()
    with pytest.raises(LeaseLost):
        first.check()
    await second.acquire()
    assert second.is_settled
    found = await client.get(LEASE, "default", "dtj-operator")
    assert found["spec"]["leaseTransitions"] == 2


async def test_a_silent_leader_is_replaced_after_its_time_and_the_next_one_settles_first(
    client: HttpClient, clock: Clock
) -> None:
    first, second = lease(client, "a", clock), lease(client, "b", clock)
    await first.acquire()
    taking = asyncio.create_task(second.acquire())
    await polled(client, taking)
    clock.now += module.DURATION_SECONDS - 1
    await polled(client, taking)
    # The old one has stopped writing before the new one starts.
    with pytest.raises(LeaseLost, match="14 s"):
        first.check()
    clock.now += 1
    await asyncio.wait_for(taking, 60)
    second.check()
    assert not second.is_settled
    clock.now += module.DURATION_SECONDS - 3
    assert not second.is_settled
    clock.now += 3
    assert second.is_settled


async def test_a_leader_that_is_heard_of_is_waited_for(client: HttpClient, clock: Clock) -> None:
    first, second = lease(client, "a", clock), lease(client, "b", clock)
    await first.acquire()
    keeping = asyncio.create_task(first.keep())
    taking = asyncio.create_task(second.acquire())
    for _ in range(4):
        clock.now += module.DURATION_SECONDS - 5
        await _renewed(client)
        await polled(client, taking)
        first.check()
    for task in (taking, keeping):
        task.cancel()


async def test_a_leader_whose_lease_was_taken_ends(client: HttpClient, clock: Clock) -> None:
    first = lease(client, "a", clock)
    await first.acquire()
    await client.patch(LEASE, "default", "dtj-operator", {"spec": {"holderIdentity": "b"}})
    with pytest.raises(LeaseLost, match="another process took"):
        await first.keep()
    with pytest.raises(LeaseLost):
        first.check()


async def test_a_touch_by_others_loses_nothing(client: HttpClient, clock: Clock) -> None:
    first = lease(client, "a", clock)
    await first.acquire()
    await client.patch(LEASE, "default", "dtj-operator", {"metadata": {"labels": {"seen": "yes"}}})
    before = await client.get(LEASE, "default", "dtj-operator")
    keeping = asyncio.create_task(first.keep())
    await _renewed(client, since=before["metadata"]["resourceVersion"])
    first.check()
    keeping.cancel()


async def test_a_leader_that_cannot_renew_ends_in_time(script: Script, client: HttpClient, clock: Clock) -> None:
    first = lease(client, "a", clock)
    await first.acquire()
    keeping = asyncio.create_task(first.keep())
    await _renewed(client)
    # The machine slept: nothing failed, and yet nothing holds any more.
    clock.now += module.DURATION_SECONDS + 60
    with pytest.raises(LeaseLost):
        first.check()
    keeping.cancel()


async def test_an_api_server_without_the_right_to_leases_is_an_error(script: Script, clock: Clock) -> None:
    script.answers = [says(403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"})]
    async with script.client() as client:
        with pytest.raises(ApiError, match="Forbidden"):
            await lease(client, "a", clock).acquire()


async def test_a_failing_renewal_is_tried_again_until_time_is_over(script: Script, clock: Clock) -> None:
    taken = {"metadata": {"resourceVersion": "1"}, "spec": {}}

    async def fails(request: object) -> object:
        clock.now += 3
        return await says(503)(request)  # type: ignore[arg-type]

    script.answers = [says(200, taken), says(200, taken), fails]  # type: ignore[list-item]
    async with script.client() as client:
        first = lease(client, "a", clock)
        await first.acquire()
        with pytest.raises(LeaseLost, match="not renewed"):
            await first.keep()
    assert len(script.requests) > 4


async def test_one_renewal_without_an_answer_costs_nothing(
    script: Script, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was carried out, so the next one meets a version that this process has not seen."""
    ours = {"metadata": {"resourceVersion": "2"}, "spec": {"holderIdentity": "a"}}
    renewed = asyncio.Event()

    async def gets_lost(request: web.Request) -> web.StreamResponse:
        # From now on only the short pause may pass: a longer one would outlast the Lease, and this test.
        monkeypatch.setattr(module, "RENEWAL_SECONDS", 600)
        clock.now += 10
        return await says(503)(request)

    async def conflicts(request: web.Request) -> web.StreamResponse:
        clock.now += 2
        return await says(409, {"kind": "Status", "code": 409, "reason": "Conflict"})(request)

    async def renews(request: web.Request) -> web.StreamResponse:
        renewed.set()
        return await says(200, ours)(request)

    script.answers = [says(200, ours), says(200, ours), gets_lost, conflicts, says(200, ours), renews]
    async with script.client() as client:
        first = lease(client, "a", clock)
        await first.acquire()
        keeping = asyncio.create_task(first.keep())
        await asyncio.wait_for(renewed.wait(), 60)
        keeping.cancel()
    assert [method for method, _, _ in script.requests] == ["GET", "PATCH", "PATCH", "PATCH", "GET", "PATCH"]


def test_alone_nothing_is_ever_lost() -> None:
    Sole().check()
    assert Sole().is_settled


async def _renewed(client: HttpClient, since: str = "") -> None:
    """Wait until the Lease was written once more."""
    while True:
        found = await client.get(LEASE, "default", "dtj-operator")
        version = found["metadata"]["resourceVersion"]
        since = since or version
        if version != since:
            return
