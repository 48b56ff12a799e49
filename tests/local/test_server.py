"""The embedded API server as HTTP clients see it: who may ask, streams, forms of answers, logs."""

import asyncio
import contextlib
import io
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import aiohttp
import pytest

from dtj_operator.local.api import Api
from dtj_operator.local.apiserver import ApiServer
from dtj_operator.local.failures import ApiFailure
from dtj_operator.local.logs import LogQuery
from tests.local.calls import config_map, pod
from tests.local.training import definition, training

TOKEN = "a-token-of-the-test"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    server = ApiServer(Api(), token=TOKEN)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def http(server: ApiServer) -> AsyncIterator[aiohttp.ClientSession]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with aiohttp.ClientSession(server.url, headers=headers) as session:
        yield session


async def post(http: aiohttp.ClientSession, path: str, manifest: Any, **rest: Any) -> Any:
    async with http.post(path, json=manifest, **rest) as response:
        body = await response.json()
        assert response.status == 201, body
        return body


@pytest.mark.parametrize(
    ("headers", "path", "code"),
    [
        ({}, PODS, 401),
        ({"Authorization": "Bearer wrong"}, PODS, 401),
        ({"Authorization": f"Bearer {TOKEN}"}, PODS, 200),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "http://evil.example"}, PODS, 403),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}, PODS, 403),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "127.0.0.1"}, PODS, 403),
        ({}, f"/{TOKEN}{PODS}", 200),
        ({}, f"/wrong{PODS}", 401),
        ({"Origin": "http://evil.example"}, f"/{TOKEN}{PODS}", 403),
        ({}, "/healthz", 200),
        ({"Host": "evil.example"}, "/healthz", 403),
    ],
)
async def test_only_the_holder_of_the_token_is_served(
    server: ApiServer, headers: dict[str, str], path: str, code: int
) -> None:
    async with aiohttp.ClientSession() as session, session.get(server.url + path, headers=headers) as response:
        assert response.status == code


async def test_a_refusal_is_a_status(http: aiohttp.ClientSession) -> None:
    async with http.get(f"{PODS}/none") as response:
        status = await response.json()
    assert response.status == 404
    assert status == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'pods "none" not found',
        "reason": "NotFound",
        "code": 404,
        "details": {"name": "none", "kind": "pods"},
    }


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/api/v1/namespaces/default/things", 404),
        ("GET", "/apis/none.io/v1", 404),
        ("GET", "/apis/none.io/v1/things", 404),
        ("GET", "/nowhere", 404),
        ("POST", "/api/v1/pods", 405),
        ("POST", f"{PODS}/a", 405),
        ("PURGE", PODS, 405),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", 405),
        ("GET", f"{PODS}/a/exec", 501),
        ("POST", f"{PODS}/a/portforward", 501),
        ("GET", f"{PODS}/a/other", 404),
    ],
)
async def test_what_is_not_served_is_refused(http: aiohttp.ClientSession, method: str, path: str, code: int) -> None:
    async with http.request(method, path, json={}) as response:
        assert response.status == code
        if response.content_type == "text/plain":
            # A group that nobody serves is the router's own answer, as in kube-apiserver.
            assert await response.text() == "404 page not found\n"
        else:
            assert (await response.json())["code"] == code


async def test_a_body_is_json_or_yaml(http: aiohttp.ClientSession) -> None:
    text = "metadata: {name: a}\ndata: {x: '1'}\n"
    headers = {"Content-Type": "application/yaml"}
    async with http.post(MAPS, data=text, headers=headers) as response:
        assert response.status == 201
    async with http.post(MAPS, data="{", headers={"Content-Type": "application/json"}) as response:
        assert response.status == 400
    async with http.post(MAPS, data="x", headers={"Content-Type": "text/plain"}) as response:
        assert response.status == 415
    async with http.post(MAPS, data=io.BytesIO(b" " * (3 * 1024 * 1024 + 1))) as response:
        assert response.status == 413


async def test_an_unknown_field_is_warned_of(http: aiohttp.ClientSession) -> None:
    async with http.post(PODS, json=pod(foo=1)) as response:
        assert response.headers["Warning"] == '299 - "unknown field \\"spec.foo\\""'


async def test_a_client_lists_then_watches_without_a_gap(http: aiohttp.ClientSession) -> None:
    """As kopf does: the items of a list, then the changes since its version, over HTTP."""
    await post(http, PODS, pod("a"))
    async with http.get("/api/v1/pods", params={"limit": "500"}) as response:
        listed = await response.json()
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a"]
    await post(http, PODS, pod("b"))
    params = {"watch": "true", "resourceVersion": listed["metadata"]["resourceVersion"], "allowWatchBookmarks": "true"}
    async with http.get("/api/v1/pods", params=params) as stream:
        assert await next_event(stream) == ("ADDED", "b")
        async with http.patch(f"{PODS}/a/status", json={"status": {"phase": "Running"}}, headers=MERGE) as response:
            assert response.status == 200
        assert await next_event(stream) == ("MODIFIED", "a")
        async with http.delete(f"{PODS}/b") as response:
            assert (await response.json())["metadata"]["name"] == "b"
        assert await next_event(stream) == ("DELETED", "b")


MERGE = {"Content-Type": "application/merge-patch+json"}


async def next_event(stream: aiohttp.ClientResponse) -> tuple[str, str]:
    event = json.loads(await stream.content.readline())
    assert event["object"]["kind"] == "Pod"
    return event["type"], event["object"]["metadata"]["name"]


async def test_a_watch_ends_when_its_time_is_over(http: aiohttp.ClientSession) -> None:
    params = {"watch": "1", "timeoutSeconds": "1", "allowWatchBookmarks": "true"}
    async with http.get("/api/v1/pods", params=params) as stream:
        lines = [json.loads(line) async for line in stream.content]
    assert [line["type"] for line in lines] == ["BOOKMARK"]


async def test_stopping_the_server_ends_its_watches(server: ApiServer, http: aiohttp.ClientSession) -> None:
    async with http.get("/api/v1/pods", params={"watch": "1"}) as stream:
        await server.stop()
        with contextlib.suppress(aiohttp.ClientError):
            assert not await stream.content.readline()
    with pytest.raises(aiohttp.ClientConnectionError):
        await http.get("/healthz")


async def test_lists_of_built_in_kinds_carry_one_header_for_all(http: aiohttp.ClientSession) -> None:
    await post(http, MAPS, config_map("a"))
    await post(http, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition())
    await post(http, "/apis/test.dtj.dev/v1/namespaces/default/trainings", training())
    async with http.get(MAPS) as response:
        maps = await response.json()
    async with http.get("/apis/test.dtj.dev/v1/trainings") as response:
        trainings = await response.json()
    assert (maps["kind"], trainings["kind"]) == ("ConfigMapList", "TrainingList")
    assert "kind" not in maps["items"][0]
    assert trainings["items"][0]["kind"] == "Training"


async def test_a_table_and_bare_metadata_are_served_when_asked_for(http: aiohttp.ClientSession) -> None:
    await post(http, PODS, pod("a"))
    async with http.get(PODS, headers={"Accept": TABLE}) as response:
        table = await response.json()
    assert [column["name"] for column in table["columnDefinitions"] if not column["priority"]] == [
        "Name",
        "Ready",
        "Status",
        "Restarts",
        "Age",
    ]
    assert table["rows"][0]["cells"][:4] == ["a", "0/1", "Pending", "0"]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    async with http.get(PODS, headers={"Accept": accept}) as response:
        bare = await response.json()
    assert bare["kind"] == "PartialObjectMetadataList"
    assert bare["items"][0].keys() == {"kind", "apiVersion", "metadata"}
    params = {"watch": "1", "resourceVersion": "0"}
    async with http.get(PODS, params=params, headers={"Accept": TABLE}) as stream:
        await post(http, PODS, pod("b"))
        first, second = [json.loads(await stream.content.readline())["object"] for _ in range(2)]
    assert first["columnDefinitions"]
    assert second["columnDefinitions"] is None
    assert second["rows"][0]["cells"][0] == "b"


class Lines:
    """A log source that remembers what it was asked and tells lines until it is let go."""

    def __init__(self) -> None:
        self.asked: list[LogQuery] = []
        self.ended = asyncio.Event()

    async def logs(self, query: LogQuery) -> AsyncGenerator[bytes, None]:
        self.asked.append(query)
        if query.previous:
            told = f'previous terminated container "{query.container}" in pod "{query.pod}" not found'
            raise ApiFailure(400, "BadRequest", told)
        yield b"epoch 1\n"
        if query.follow:
            await self.ended.wait()
            yield b"epoch 2\n"


async def test_logs_come_from_the_kubelet(server: ApiServer, http: aiohttp.ClientSession) -> None:
    lines = Lines()
    await post(http, PODS, pod("b"))
    async with http.get(f"{PODS}/b/log") as response:
        assert response.status == 204, "a pod without a node has no log"
    await post(http, PODS, pod("a", nodeName="n1"))
    async with http.get(f"{PODS}/a/log") as response:
        assert response.status == 400
        assert "is waiting to start" in (await response.json())["message"]
    server.logs = lines
    params = {"tailLines": "5", "timestamps": "true", "sinceTime": "2026-11-30T12:00:00Z"}
    async with http.get(f"{PODS}/a/log", params=params) as response:
        assert await response.text() == "epoch 1\n"
    query = lines.asked[-1]
    assert (query.pod, query.container, query.tail, query.timestamps) == ("a", "trainer", 5, True)
    assert query.since == 1796040000.0
    async with http.get(f"{PODS}/a/log", params={"previous": "true"}) as response:
        assert response.status == 400
    async with http.get(f"{PODS}/a/log", params={"follow": "true"}) as response:
        assert await response.content.readline() == b"epoch 1\n"
        lines.ended.set()
        assert await response.content.readline() == b"epoch 2\n"
    async with http.get(f"{PODS}/none/log") as response:
        assert response.status == 404
    async with http.get(f"{PODS}/a/log", params={"container": "b"}) as response:
        assert (await response.json())["message"] == "container b is not valid for pod a"


async def test_discovery_comes_in_both_forms(http: aiohttp.ClientSession) -> None:
    await post(http, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition())
    async with http.get("/apis") as response:
        groups = [group["name"] for group in (await response.json())["groups"]]
    async with http.get("/apis/test.dtj.dev/v1") as response:
        resources = (await response.json())["resources"]
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
    async with http.get("/apis", headers={"Accept": accept}) as response:
        aggregated = await response.json()
        assert "as=APIGroupDiscoveryList" in response.headers["Content-Type"]
    assert "test.dtj.dev" in groups
    assert [resource["name"] for resource in resources] == ["trainings", "trainings/status"]
    assert resources[0]["shortNames"] == ["tr"]
    assert {item["metadata"]["name"] for item in aggregated["items"]} == set(groups)


async def test_the_api_is_described_for_each_version(http: aiohttp.ClientSession) -> None:
    await post(http, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition())
    async with http.get("/openapi/v3") as response:
        paths = (await response.json())["paths"]
    described = {}
    for path in ("api/v1", "apis/test.dtj.dev/v1"):
        async with http.get(paths[path]["serverRelativeURL"]) as response:
            described[path] = await response.json()
        references = set(_references(described[path]))
        schemas = {f"#/components/schemas/{name}" for name in described[path]["components"]["schemas"]}
        assert references <= schemas
    spec = described["apis/test.dtj.dev/v1"]["components"]["schemas"]["dev.dtj.test.v1.Training"]["properties"]["spec"]
    assert spec["properties"]["replicas"]["description"] == "How many."
    async with http.get("/openapi/v2") as response:
        assert (await response.json())["swagger"] == "2.0"


def _references(value: Any) -> Any:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)
