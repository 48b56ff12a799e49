"""The Client over HTTP against a real API server, and against one that fails in every way that HTTP knows."""

from contextlib import aclosing
from typing import Any

import pytest
from aiohttp import web

from dtj_operator.kube import http
from dtj_operator.kube.client import POD, SECRET, ApiError, kind_named
from dtj_operator.kube.http import Credentials, HttpClient
from dtj_operator.local.api import Api
from tests.kube.conftest import Answer, Script, hangs_up, says

SERVICE = kind_named("Service")


def service(name: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"clusterIP": "None"},
    }


async def test_an_object_is_made_read_changed_and_deleted(client: HttpClient) -> None:
    made = await client.create(service("one"))
    read = await client.get(SERVICE, "default", "one")
    assert read["metadata"]["uid"] == made["metadata"]["uid"]
    version = {"resourceVersion": made["metadata"]["resourceVersion"], "labels": {"a": "b"}}
    changed = await client.patch(SERVICE, "default", "one", {"metadata": version})
    assert changed["metadata"]["labels"] == {"a": "b"}
    with pytest.raises(ApiError, match="Conflict"):
        await client.patch(SERVICE, "default", "one", {"metadata": version})
    with pytest.raises(ApiError) as refused:
        await client.delete(SERVICE, "default", "one", uid="another")
    assert refused.value.code == 409
    await client.delete(SERVICE, "default", "one", uid=made["metadata"]["uid"])
    with pytest.raises(ApiError, match='services "one" not found') as gone:
        await client.get(SERVICE, "default", "one")
    assert (gone.value.code, gone.value.reason) == (404, "NotFound")


async def test_a_list_comes_in_pages_of_one_version(client: HttpClient) -> None:
    for number in range(5):
        await client.create(service(f"s{number}", odd=str(number % 2)))
    found = [page async for page in client.pages(SERVICE, "default", limit=2)]
    assert [[item["metadata"]["name"] for item in page.items] for page in found] == [["s0", "s1"], ["s2", "s3"], ["s4"]]
    assert len({page.resource_version for page in found}) == 1
    odd = [page async for page in client.pages(SERVICE, labels="odd=1")]
    assert [item["metadata"]["name"] for item in odd[0].items] == ["s1", "s3"]


async def test_a_watch_goes_on_from_where_a_list_ended(client: HttpClient) -> None:
    (page,) = [page async for page in client.pages(SERVICE, "default")]
    made = await client.create(service("one"))
    await client.patch(SERVICE, "default", "one", {"metadata": {"labels": {"a": "b"}}})
    await client.delete(SERVICE, "default", "one", uid=made["metadata"]["uid"])
    seen = []
    async with aclosing(client.watch(SERVICE, "default", page.resource_version)) as events:
        async for event in events:
            seen.append((event.type, event.object["metadata"]["uid"]))
            if event.type == "DELETED":
                break
    assert seen == [(kind, made["metadata"]["uid"]) for kind in ("ADDED", "MODIFIED", "DELETED")]


async def test_a_watch_from_a_forgotten_version_says_so(api: Api, client: HttpClient) -> None:
    api.state.store._history = type(api.state.store._history)(maxlen=2)
    for number in range(4):
        await client.create(service(f"s{number}"))
    with pytest.raises(ApiError) as expired:
        async with aclosing(client.watch(SERVICE, "default", "2")) as events:
            await anext(events)
    assert expired.value.code == 410


async def test_a_dry_run_makes_nothing_and_a_strict_one_knows_its_fields(client: HttpClient) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [{"name": "a", "image": "b"}]},
    }
    answer = await client.create(pod, dry_run=True, strict=True)
    assert answer["spec"]["restartPolicy"] == "Always"
    pod["spec"] = {"containers": [{"name": "a", "image": "b", "comand": []}]}
    with pytest.raises(ApiError, match="comand") as refused:
        await client.create(pod, dry_run=True, strict=True)
    assert refused.value.code in (400, 422)
    with pytest.raises(ApiError, match="not found"):
        await client.get(POD, "default", "p")


async def test_a_json_patch_tests_first(client: HttpClient) -> None:
    await client.create(service("one", a="b"))
    wrong = [{"op": "test", "path": "/metadata/labels/a", "value": "c"}, {"op": "remove", "path": "/metadata/labels/a"}]
    with pytest.raises(ApiError) as refused:
        await client.patch(SERVICE, "default", "one", wrong, type="json")
    assert refused.value.code == 422
    right = [{"op": "test", "path": "/metadata/labels/a", "value": "b"}, wrong[1]]
    assert "a" not in (await client.patch(SERVICE, "default", "one", right, type="json"))["metadata"].get("labels", {})


@pytest.mark.parametrize(
    ("failures", "asked"),
    [
        pytest.param([says(503)], 2, id="the server is away for a moment"),
        pytest.param([says(500), says(504), says(503)], 4, id="three times is enough"),
        pytest.param([hangs_up], 2, id="the connection breaks"),
        pytest.param([says(429, Retry_After="1")], 2, id="the server is busy"),
    ],
)
async def test_what_is_safe_is_repeated(
    script: Script, monkeypatch: pytest.MonkeyPatch, failures: list[Answer], asked: int
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("dtj_operator.kube.http.asyncio.sleep", _pausing(pauses))
    script.answers = [*failures, says(200, {"metadata": {"name": "x"}})]
    async with script.client() as client:
        assert await client.get(SECRET, "a", "b") == {"metadata": {"name": "x"}}
        await client.delete(SECRET, "a", "b", uid="u")
    assert len(script.requests) == asked + 1
    # aiohttp itself repeats a GET once on a fresh connection, without a pause.
    assert len(pauses) == (0 if failures == [hangs_up] else asked - 1)


async def test_retry_after_is_honoured_up_to_a_limit(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("dtj_operator.kube.http.asyncio.sleep", _pausing(pauses))
    script.answers = [says(429, Retry_After="7"), says(201, {"metadata": {}}), says(429, Retry_After="3600")]
    async with script.client() as client:
        await client.create(service("a"))
        assert pauses == [7]
        with pytest.raises(ApiError) as refused:
            await client.create(service("a"))
    assert (refused.value.code, refused.value.retry_after) == (429, 3600)


@pytest.mark.parametrize(
    ("failure", "code"), [pytest.param(says(503), 503, id="503"), pytest.param(hangs_up, 0, id="no answer")]
)
async def test_what_may_have_been_done_is_not_repeated(script: Script, failure: Answer, code: int) -> None:
    script.answers = [failure]
    async with script.client() as client:
        with pytest.raises(ApiError) as error:
            await client.create(service("a"))
        assert (error.value.code, error.value.is_transient) == (code, True)
        with pytest.raises(ApiError):
            await client.patch(SERVICE, "a", "b", {})
    assert len(script.requests) == 2


async def test_a_rotated_token_is_read_anew(script: Script) -> None:
    tokens = iter(["old", "new"])
    script.answers = [says(401), says(201, {"metadata": {}})]
    calls: list[tuple[str, int]] = []
    login = lambda: Credentials(script.url, {"Authorization": next(tokens)})  # noqa: E731
    async with HttpClient(login, lambda verb, code: calls.append((verb, code))) as client:
        await client.create(service("a"))
    assert [token for _, _, token in script.requests] == ["old", "new"]
    assert calls == [("create", 401), ("create", 201)]


async def test_the_token_is_read_each_minute(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "CREDENTIALS_SECONDS", 0.0)
    tokens = iter(["first", "second"])
    script.answers = [says(200, {})]
    async with HttpClient(lambda: Credentials(script.url, {"Authorization": next(tokens)})) as client:
        await client.get(SECRET, "a", "b")
        await client.get(SECRET, "a", "b")
    assert [token for _, _, token in script.requests] == ["first", "second"]


async def test_a_token_that_is_refused_twice_is_an_error(script: Script) -> None:
    script.answers = [says(401, {"kind": "Status", "message": "who are you", "reason": "Unauthorized", "code": 401})]
    async with script.client() as client:
        with pytest.raises(ApiError, match="get /api/v1/namespaces/a/secrets/b: 401 Unauthorized: who are you"):
            await client.get(SECRET, "a", "b")
    assert len(script.requests) == 2


async def test_an_error_that_is_no_status_is_told_in_its_own_words(script: Script) -> None:
    async def proxy(request: web.Request) -> web.StreamResponse:
        return web.Response(status=403, text="<html>denied by the proxy</html>")

    script.answers = [proxy]
    async with script.client() as client:
        with pytest.raises(ApiError, match="403 Forbidden: <html>denied by the proxy"):
            await client.get(SECRET, "a", "b")


async def test_an_event_may_be_larger_than_a_buffer(script: Script) -> None:
    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        large = "x" * 300_000
        for version in ("1", "2"):
            line = f'{{"type":"ADDED","object":{{"metadata":{{"resourceVersion":"{version}","name":"{large}"}}}}}}\n'
            await response.write(line.encode())
        return response

    script.answers = [stream]
    async with script.client() as client:
        events = [event async for event in client.watch(POD, None, "0")]
    assert [(event.resource_version, len(event.object["metadata"]["name"])) for event in events] == [
        ("1", 300_000),
        ("2", 300_000),
    ]


async def test_a_stream_that_is_cut_within_a_line_is_an_error_and_no_event(script: Script) -> None:
    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"1"}}}\n{"type":"DEL')
        assert request.transport is not None
        request.transport.close()
        return response

    script.answers = [stream]
    async with script.client() as client:
        events = client.watch(POD, None, "0")
        assert (await anext(events)).type == "ADDED"
        with pytest.raises(ApiError) as error:
            await anext(events)
    assert error.value.code == 0


async def test_a_redirect_is_not_followed(script: Script) -> None:
    script.answers = [says(302, Location="http://127.0.0.1:1/")]
    async with script.client() as client:
        with pytest.raises(ApiError) as error:
            await client.get(SECRET, "a", "b")
    assert error.value.code == 302


def _pausing(pauses: list[float]) -> Any:
    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    return sleep
