"""Lists and watches of our own through closed streams, lost connections and forgotten versions."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest
from aiohttp import web

from dtj_operator.api.observed import Facts, JobKey
from dtj_operator.kube import reflector
from dtj_operator.kube.client import JOB, POD, ApiError, Json, Kind
from dtj_operator.kube.fleet import Fleet
from dtj_operator.kube.http import HttpClient
from dtj_operator.kube.reflector import Feed, Reflector
from dtj_operator.kube.store import Store
from tests.kube.conftest import Answer, Script, hangs_up, says
from tests.kube.test_store import child, job, pod

KEY = JobKey("ml", "mnist")


class Ears:
    """Remembers what it was told; `until` waits for news."""

    def __init__(self) -> None:
        self.marked: list[JobKey] = []
        self.kinds: list[str] = []
        self._news = asyncio.Event()

    def mark(self, key: JobKey) -> None:
        self.marked.append(key)
        self._news.set()

    def heard(self, kind: Kind) -> None:
        self.kinds.append(kind.plural)
        self._news.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not holds():
                await self._news.wait()
                self._news.clear()


@pytest.fixture
def store() -> Store:
    return Store(Facts(), Fleet())


@pytest.fixture
def ears() -> Ears:
    return Ears()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector, "FIRST_PAUSE_SECONDS", 0.0)


def listed(version: int, *items: Json, more: str = "") -> Answer:
    return says(200, {"metadata": {"resourceVersion": str(version), "continue": more}, "items": list(items)})


def streamed(*events: tuple[str, Json], then: str = "end") -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for kind, manifest in events:
            await response.write(msgspec.json.encode({"type": kind, "object": manifest}) + b"\n")
        if then == "stay":
            await asyncio.sleep(60)
        elif then == "break":
            assert request.transport is not None
            request.transport.close()
        return response

    return answer


def bookmark(version: int) -> tuple[str, Json]:
    return "BOOKMARK", {"metadata": {"resourceVersion": str(version)}}


def expired() -> tuple[str, Json]:
    return "ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}


def pods_of(store: Store) -> list[int]:
    s = store.situation(KEY)
    return [] if s is None else [view.task.index for view in s.pods]


async def test_a_watch_goes_on_where_it_was_cut_and_lists_again_when_that_is_forgotten(
    script: Script, store: Store, ears: Ears
) -> None:
    store.put(JOB, job(1))
    script.answers = [
        listed(10, pod(0, 3), pod(1, 4)),
        streamed(("ADDED", pod(2, 11)), bookmark(20)),
        streamed(("DELETED", pod(0, 21)), then="break"),
        hangs_up,
        streamed(expired()),
        # In the gap pod 1 was deleted and pod 3 made.
        listed(30, pod(2, 11), pod(3, 25)),
        streamed(("MODIFIED", pod(3, 31, node="n1")), then="stay"),
    ]
    async with script.client() as client:
        task = asyncio.create_task(Feed(client, POD, store, ears).follow())
        await ears.until(lambda: pods_of(store) == [2, 3] and len(script.requests) >= 7)
        await ears.until(lambda: any(view.node for view in store.situation(KEY).pods))  # type: ignore[union-attr]
        task.cancel()
    versions = [query.get("resourceVersion") for query in script.queries if "watch" in query]
    assert versions == ["10", "20", "21", "21", "30"]
    assert all(query["labelSelector"] == "dtj.dev/job-name" for query in script.queries)
    assert set(ears.marked) == {KEY}


async def test_a_list_in_pages_is_complete_only_at_its_end(script: Script, store: Store, ears: Ears) -> None:
    store.put(JOB, job(1))
    store.put(POD, pod(7, 2))
    script.answers = [listed(10, pod(0, 3), more="next"), says(410, {"code": 410, "reason": "Expired"})]
    async with script.client() as client:
        feed = Feed(client, POD, store, ears)
        with pytest.raises(ApiError):
            await feed.relist()
        assert pods_of(store) == [0, 7]
        script.requests.clear()
        script.answers = [listed(10, pod(0, 3), more="next"), listed(10, pod(1, 4))]
        assert await feed.relist() == "10"
    assert pods_of(store) == [0, 1]


async def test_everything_is_listed_before_anything_is_decided(client: HttpClient, store: Store, ears: Ears) -> None:
    made = await client.create(
        {
            "apiVersion": "dtj.dev/v1alpha1",
            "kind": JOB.kind,
            "metadata": {"name": "mnist", "namespace": "default"},
            "spec": job(1)["spec"],
        }
    )
    service = child("mnist-peers", 1, owner=made["metadata"]["uid"])
    owner = {"apiVersion": "dtj.dev/v1alpha1", "kind": JOB.kind, "name": "mnist", "uid": made["metadata"]["uid"]}
    metadata = {"name": "mnist-peers", "namespace": "default", "labels": service["metadata"]["labels"]}
    metadata["ownerReferences"] = [{**owner, "controller": True}]
    await client.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"clusterIP": "None"}})
    one = Reflector(client, store, store.fleet, ears)
    await one.relist()
    s = store.situation(JobKey("default", "mnist"))
    assert s is not None
    assert [name for _, name, *_ in s.children] == ["mnist-peers"]
    assert {"distributedtrainingjobs", "pods", "services", "networkpolicies"} <= set(ears.kinds)


async def test_only_named_namespaces_are_listed(script: Script, store: Store, ears: Ears) -> None:
    script.answers = [listed(1)]
    async with script.client() as client:
        await Reflector(client, store, store.fleet, ears, namespaces=("a", "b")).relist()
    assert len(script.requests) == 2 * len(reflector.LISTED)
    assert all("/namespaces/a/" in path or "/namespaces/b/" in path for _, path, _ in script.requests)


async def test_regular_lists_heal_and_survive_an_api_server_that_is_away(
    script: Script, store: Store, ears: Ears, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FIRST_RELIST_SECONDS", "RELIST_SECONDS", "LONGEST_PAUSE_SECONDS"):
        monkeypatch.setattr(reflector, name, 0.01)
    store.put(JOB, job(1))
    store.put(POD, pod(0, 2))
    script.answers = [says(403), *[listed(10)] * 100]
    async with script.client() as client:
        task = asyncio.create_task(Reflector(client, store, store.fleet, ears).run())
        await ears.until(lambda: not store.keys())
        task.cancel()
    assert set(ears.marked) == {KEY}


async def test_the_fleet_is_watched_while_it_is_wanted(
    client: HttpClient, store: Store, ears: Ears, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.create(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4"}}}
    )
    fleet = store.fleet
    one = Reflector(client, store, fleet, ears)
    task = asyncio.create_task(one.run())
    await asyncio.sleep(0)
    assert fleet.nodes() is None
    one.want_fleet()
    await ears.until(lambda: fleet.nodes() is not None and fleet.loads() is not None)
    assert [node.name for node in fleet.nodes() or ()] == ["n1"]
    await client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2"}})
    await ears.until(lambda: len(fleet.nodes() or ()) == 2)
    task.cancel()


async def test_the_fleet_is_unknown_again_when_nobody_wants_it(
    client: HttpClient, store: Store, ears: Ears, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflector, "FLEET_SECONDS", 0.2)
    one = Reflector(client, store, store.fleet, ears)
    task = asyncio.create_task(one.run())
    one.want_fleet()
    await ears.until(lambda: store.fleet.nodes() is not None)
    async with asyncio.timeout(60):
        while store.fleet.nodes() is not None:
            store.fleet.changed.clear()
            await store.fleet.changed.wait()
    one.want_fleet()
    await ears.until(lambda: store.fleet.nodes() is not None)
    task.cancel()


async def test_an_object_that_nobody_understands_ends_no_list(
    script: Script, store: Store, ears: Ears, caplog: pytest.LogCaptureFixture
) -> None:
    strange = {**job(2, uid="strange"), "spec": {}}
    strange["metadata"] = {**strange["metadata"], "name": "strange", "creationTimestamp": "yesterday"}
    script.answers = [listed(7, strange, job(3))]
    async with script.client() as client:
        await Feed(client, JOB, store, ears).relist()
    assert ears.marked == [KEY]
    assert "a DistributedTrainingJob is passed over: strange" in caplog.text
