"""The Client over HTTP: connections, credentials, time limits, repeats. Which calls to make is for others to know."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from http import HTTPMethod, HTTPStatus
from typing import Self

import aiohttp
import msgspec
from msgspec import Struct

from dtj_operator.kube.client import (
    FIELD_MANAGER,
    PAGE,
    ApiError,
    Json,
    Kind,
    Page,
    PatchType,
    Propagation,
    Verb,
    WatchEvent,
    kind_of,
)

# A bound token is renewed in its file well before it ends; reading it each minute is never too late.
CREDENTIALS_SECONDS = 60.0
REQUEST = aiohttp.ClientTimeout(total=30, sock_connect=10)
# Servers send a bookmark each minute. A stream silent for longer has lost its connection without anybody noticing.
WATCH = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=90)
WATCH_SECONDS = 300
REPEATS = (0.2, 1.0, 3.0)
LONGEST_RETRY_AFTER = 30.0
CONNECTIONS = 64

METHODS: dict[Verb, HTTPMethod] = {
    "get": HTTPMethod.GET,
    "list": HTTPMethod.GET,
    "watch": HTTPMethod.GET,
    "create": HTTPMethod.POST,
    "patch": HTTPMethod.PATCH,
    "delete": HTTPMethod.DELETE,
}
PATCH_TYPES: dict[PatchType, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}


class Credentials(Struct, frozen=True):
    """How to reach a server and be let in, as of now."""

    server: str
    headers: dict[str, str] = {}
    tls: ssl.SSLContext | bool = True
    proxy: str | None = None


Observe = Callable[[Verb, int], None]
"""Told of every request: its verb and the code of its answer, 0 where none came."""


class Call(Struct, frozen=True):
    """One request. `is_safe`: to make it twice does no more than to make it once."""

    verb: Verb
    path: str
    params: dict[str, str] = {}
    body: bytes | None = None
    content_type: str = "application/json"
    is_safe: bool = False

    @property
    def what(self) -> str:
        return f"{self.verb} {self.path}"


class HttpClient:
    """A Client that speaks to the server its `login` names. To be used as `async with HttpClient(login) as client`."""

    def __init__(self, login: Callable[[], Credentials], observe: Observe = lambda verb, code: None) -> None:
        self._login = login
        self._observe = observe
        self._credentials: Credentials | None = None
        self._read_at = 0.0
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(limit=CONNECTIONS)
        self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Json:
        return await self._answer(Call("get", kind.path(namespace, name), is_safe=True))

    async def pages(
        self, kind: Kind, namespace: str | None = None, *, labels: str = "", fields: str = "", limit: int = PAGE
    ) -> AsyncGenerator[Page, None]:
        params = _selectors(labels, fields) | {"limit": str(limit)}
        version = ""
        while True:
            answer = await self._answer(Call("list", kind.path(namespace), params, is_safe=True))
            metadata = answer["metadata"]
            # What later pages call their version may be newer than what they show.
            version = version or metadata["resourceVersion"]
            yield Page(items=answer.get("items") or [], resource_version=version)
            if not metadata.get("continue"):
                return
            params = params | {"continue": metadata["continue"]}

    async def watch(
        self, kind: Kind, namespace: str | None, since: str, *, labels: str = "", fields: str = ""
    ) -> AsyncGenerator[WatchEvent, None]:
        wanted = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(WATCH_SECONDS)}
        params = _selectors(labels, fields) | wanted | {"resourceVersion": since}
        call = Call("watch", kind.path(namespace), params)
        try:
            async with await self._response(call, WATCH) as response:
                async for line in _lines(response):
                    event = msgspec.json.decode(line)
                    if event["type"] == "ERROR":
                        raise ApiError.of_status(event["object"], what=call.what)
                    yield WatchEvent(event["type"], event["object"])
        except TimeoutError:
            return
        except (aiohttp.ClientError, msgspec.DecodeError) as error:
            raise _unreachable(error, call) from error

    async def create(self, manifest: Json, *, dry_run: bool = False, strict: bool = False) -> Json:
        params = {"fieldManager": FIELD_MANAGER}
        if dry_run:
            params["dryRun"] = "All"
        if strict:
            params["fieldValidation"] = "Strict"
        path = kind_of(manifest).path(manifest["metadata"].get("namespace"))
        return await self._answer(Call("create", path, params, msgspec.json.encode(manifest)))

    async def patch(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        patch: Json | list[Json],
        *,
        type: PatchType = "merge",  # noqa: A002 - Kubernetes' own word
        subresource: str = "",
    ) -> Json:
        path = kind.path(namespace, name, subresource)
        params = {"fieldManager": FIELD_MANAGER}
        return await self._answer(Call("patch", path, params, msgspec.json.encode(patch), PATCH_TYPES[type]))

    async def delete(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        *,
        uid: str,
        force: bool = False,
        propagation: Propagation = "Background",
    ) -> None:
        options: Json = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": propagation,
            "preconditions": {"uid": uid},
        }
        if force:
            options["gracePeriodSeconds"] = 0
        # With its UID a deletion hits one incarnation, however often it is asked for.
        path = kind.path(namespace, name)
        await self._answer(Call("delete", path, body=msgspec.json.encode(options), is_safe=True))

    async def _answer(self, call: Call) -> Json:
        """The decoded answer. Repeats what the server hasn't done (429), and safe calls after a passing error."""
        for delay in REPEATS:
            try:
                return await self._once(call)
            except ApiError as error:
                wanted = error.retry_after or 0.0
                may_repeat = error.code == HTTPStatus.TOO_MANY_REQUESTS or (call.is_safe and error.is_transient)
                if not may_repeat or wanted > LONGEST_RETRY_AFTER:
                    raise
                await asyncio.sleep(max(delay, wanted))
        return await self._once(call)

    async def _once(self, call: Call) -> Json:
        try:
            async with await self._response(call, REQUEST) as response:
                answer: Json = msgspec.json.decode(await response.read())
                return answer
        except (aiohttp.ClientError, TimeoutError, msgspec.DecodeError) as error:
            raise _unreachable(error, call) from error

    async def _response(self, call: Call, limits: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        """The response to a request that was accepted; after a 401 it is made once more with what login says then."""
        response = await self._request(call, limits, await self._current())
        if response.status == HTTPStatus.UNAUTHORIZED:
            response.release()
            response = await self._request(call, limits, await self._current(anew=True))
        if HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
            return response
        async with response:
            raise await _refusal(response, call)

    async def _request(
        self, call: Call, limits: aiohttp.ClientTimeout, credentials: Credentials
    ) -> aiohttp.ClientResponse:
        assert self._session is not None, "HttpClient is used as a context manager"
        code = 0
        try:
            response = await self._session.request(
                METHODS[call.verb],
                credentials.server.rstrip("/") + call.path,
                params=call.params,
                data=call.body,
                headers=credentials.headers | ({} if call.body is None else {"Content-Type": call.content_type}),
                ssl=credentials.tls,
                proxy=credentials.proxy,
                timeout=limits,
                allow_redirects=False,
            )
            code = response.status
            return response
        finally:
            self._observe(call.verb, code)

    async def _current(self, *, anew: bool = False) -> Credentials:
        now = asyncio.get_running_loop().time()
        if anew or self._credentials is None or now - self._read_at >= CREDENTIALS_SECONDS:
            self._read_at = now
            # Reads files; outside a cluster it may even run a program that asks a cloud.
            self._credentials = await asyncio.to_thread(self._login)
        return self._credentials


def _selectors(labels: str, fields: str) -> dict[str, str]:
    return {name: text for name, text in (("labelSelector", labels), ("fieldSelector", fields)) if text}


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The lines of a stream, of any length: aiohttp's own reader stops at 64 KiB, an object may have 1.5 MiB."""
    begun = bytearray()
    async for part in response.content.iter_any():
        *ends, rest = part.split(b"\n")
        for end in ends:
            begun += end
            if begun:
                yield bytes(begun)
            begun.clear()
        begun += rest


async def _refusal(response: aiohttp.ClientResponse, call: Call) -> ApiError:
    body = await response.read()
    try:
        status = msgspec.json.decode(body)
    except msgspec.DecodeError:
        status = None
    if not isinstance(status, dict):
        status = {"message": body.decode(errors="replace")[:300].strip(), "reason": response.reason}
    # Its other form, a date, isn't used by API servers.
    asked = response.headers.get("Retry-After", "")
    return ApiError.of_status(status, response.status, call.what, float(asked) if asked.isdecimal() else None)


def _unreachable(error: Exception, call: Call) -> ApiError:
    words = "no answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
    return ApiError(0, "Unreachable", words, call.what)
