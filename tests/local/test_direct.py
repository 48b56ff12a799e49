"""The operator's client in process: it answers as the one over HTTP does, and may be left at every await."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dtj_operator.kube.client import POD, ApiError, Client, Kind
from dtj_operator.kube.http import Credentials, HttpClient
from dtj_operator.local.api import Api
from dtj_operator.local.apiserver import ApiServer
from dtj_operator.local.direct import DirectClient
from tests.local.calls import Calls, pod

SERVICE = Kind("Service", "", "v1", "services")


def placed(name: str, **spec: Any) -> dict[str, Any]:
    manifest = pod(name, **spec)
    manifest["metadata"]["namespace"] = "default"
    manifest["metadata"]["labels"] = {"app": "x"}
    return manifest


@pytest.fixture(params=["direct", "http"])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    api = Api()
    if request.param == "direct":
        yield DirectClient(api)
        return
    server = ApiServer(api, token="a-token-of-the-test")
    await server.start()
    credentials = Credentials(server.url, {"Authorization": "Bearer a-token-of-the-test"}, tls=False)
    async with HttpClient(lambda: credentials) as over_http:
        yield over_http
    await server.stop()


async def test_both_clients_tell_the_same_story(client: Client) -> None:
    made = await client.create(placed("a"))
    await client.create(placed("b"))
    tried = await client.create(placed("c"), dry_run=True)
    assert tried["spec"]["restartPolicy"] == "Always"
    pages = [page async for page in client.pages(POD, labels="app=x", limit=1)]
    assert [item["metadata"]["name"] for page in pages for item in page.items] == ["a", "b"]
    assert {page.resource_version for page in pages} == {pages[0].resource_version}
    await client.patch(POD, "default", "a", {"status": {"phase": "Running"}}, subresource="status")
    await client.delete(POD, "default", "b", uid=(await client.get(POD, "default", "b"))["metadata"]["uid"])
    seen = []
    async for event in client.watch(POD, "default", pages[0].resource_version):
        seen.append((event.type, event.object["metadata"]["name"], event.object["kind"]))
        if len(seen) == 2:
            break
    assert seen == [("MODIFIED", "a", "Pod"), ("DELETED", "b", "Pod")]
    with pytest.raises(ApiError) as error:
        await client.delete(POD, "default", "a", uid="another")
    assert (error.value.code, error.value.reason) == (409, "Conflict")
    assert made["metadata"]["uid"] != "another"


@pytest.mark.parametrize(
    ("name", "spec", "code", "told"),
    [
        ("a", {}, 409, 'create /api/v1/namespaces/default/pods: 409 AlreadyExists: pods "a" already exists'),
        ("b", {"containers": []}, 422, "spec.containers: Required value"),
        ("b", {"foo": 1}, 400, 'unknown field "spec.foo"'),
    ],
)
async def test_both_clients_tell_a_refusal_alike(client: Client, name: str, spec: Any, code: int, told: str) -> None:
    await client.create(placed("a"))
    with pytest.raises(ApiError) as error:
        await client.create(placed(name, **spec), strict=True)
    assert error.value.code == code
    assert told in str(error.value)


async def test_a_forgotten_version_and_an_unknown_kind_are_api_errors() -> None:
    calls = Calls(history=1)
    client = DirectClient(calls.api)
    for name in "abc":
        await client.create(placed(name))
    with pytest.raises(ApiError) as error:
        async for _ in client.watch(POD, None, "2"):
            pass
    assert error.value.code == 410
    with pytest.raises(ApiError) as error:
        await client.get(Kind("Thing", "x.io", "v1", "things"), "default", "a")
    assert error.value.code == 404


async def test_a_caller_may_be_killed_before_and_after_the_server_acts() -> None:
    api = Api()
    client = DirectClient(api)
    for step, names in ((1, []), (2, ["a"])):
        task = asyncio.create_task(client.create(placed("a")))
        for _ in range(step):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [entry.name for entry in api.state.store.entries("pods")] == names


async def test_requests_are_observed() -> None:
    seen: list[tuple[str, int]] = []
    client = DirectClient(Api(), observe=lambda verb, code: seen.append((verb, code)))
    await client.create(placed("a"))
    with pytest.raises(ApiError):
        await client.get(SERVICE, "default", "none")
    assert seen == [("create", 201), ("get", 404)]
