"""The HTTP side of the embedded API server: who may ask, which request a URL means, how answers and streams are sent.

What they say is `api.py`'s.
"""

import contextlib
import hmac
import logging
import socket
from typing import Any

import msgspec
import yaml
from aiohttp import web

from dtj_operator.local import protobuf, routes
from dtj_operator.local.api import Api
from dtj_operator.local.failures import ApiFailure, bad_request, unsupported_media_type
from dtj_operator.local.logs import LogSource, NoLogs, log_query
from dtj_operator.local.state import Request
from dtj_operator.local.tables import printing
from dtj_operator.local.verbs.bodies import summary

Json = dict[str, Any]

_log = logging.getLogger(__name__)

_MAX_BODY_BYTES = 3 * 1024 * 1024
_JSON = "application/json"
_NO_HEADER = "couldn't get version/kind; json parse error"
_TRUNCATED = "unexpected end of JSON input"


class ApiServer:
    """Serves an Api on a loopback port. Every request needs the token; browsers and foreign host names are refused."""

    def __init__(self, api: Api, *, token: str, logs: LogSource | None = None) -> None:
        self._api = api
        self._token = token
        self.logs: LogSource = logs or NoLogs()
        self._runner: web.ServerRunner | None = None
        self._hosts: frozenset[str] = frozenset()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def kubeconfig(self) -> Json:
        """For kubectl and the operator.

        The token stands in the server's path too: kubectl sends credentials over TLS only, and a certificate of our own
        would need a library to make it.
        """
        cluster = {"server": f"{self.url}/{self._token}"}
        context = {"cluster": "dtj-local", "user": "dtj-local", "namespace": "default"}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "dtj-local", "cluster": cluster}],
            "users": [{"name": "dtj-local", "user": {"token": self._token}}],
            "contexts": [{"name": "dtj-local", "context": context}],
            "current-context": "dtj-local",
        }

    async def start(self, port: int = 0) -> None:
        """Listen on 127.0.0.1; on a free port when none is given."""
        self._runner = web.ServerRunner(
            web.Server(self._serve, access_log=None, handler_cancellation=True), shutdown_timeout=0.5
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self._hosts = frozenset(f"{host}:{self.port}" for host in ("127.0.0.1", "localhost"))

    async def listen(self, listening: socket.socket) -> None:
        """Serve this one, too: the same port in another network. `start` comes first."""
        assert self._runner is not None
        await web.SockSite(self._runner, listening).start()

    async def stop(self) -> None:
        """End every stream and close the port."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _serve(self, http: web.BaseRequest) -> web.StreamResponse:
        path = ""
        try:
            path = self._admitted_path(http)
            return await self._answer(http, path)
        except ApiFailure as failure:
            return _refusal(failure)
        except Exception as why:
            # A fault of this server must reach the client as an answer, and its author with its place.
            _log.exception("%s %s failed", http.method, path)
            return _refusal(ApiFailure(500, "InternalError", f"Internal error occurred: {why!r}"))

    def _admitted_path(self, http: web.BaseRequest) -> str:
        """The path without its token. 401 without one, 403 for what a browser sends."""
        # A page in the user's browser reaches loopback too: it sends an Origin, or after DNS rebinding its own Host.
        if "Origin" in http.headers:
            raise ApiFailure(403, "Forbidden", "requests from web pages are refused: the request has an Origin header")
        if http.headers.get("Host") not in self._hosts:
            raise ApiFailure(403, "Forbidden", f"unknown host {http.headers.get('Host')!r}: use 127.0.0.1:{self.port}")
        path = http.path
        if path in routes.HEALTH:
            return path
        first, _, rest = path.removeprefix("/").partition("/")
        if self._is_token(first):
            return f"/{rest}"
        scheme, _, given = http.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._is_token(given.strip()):
            return path
        raise ApiFailure(401, "Unauthorized", "Unauthorized")

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())

    async def _answer(self, http: web.BaseRequest, path: str) -> web.StreamResponse:
        accept = http.headers.get("Accept", "")
        document = routes.document(self._api, path, accept)
        if document is not None:
            return document.response()
        target = routes.target(self._api, http.method, path, http.query)
        if target.subresource == "log":
            return await self._send_logs(http, target)
        form = printing.accepted_form(target, accept)
        if http.method in ("POST", "PUT", "PATCH", "DELETE"):
            target = msgspec.structs.replace(target, body=await _body(http, target), content_type=http.content_type)
        target = msgspec.structs.replace(target, agent=http.headers.get("User-Agent", "unknown"))
        if target.verb == "watch":
            return await self._send_watch(http, target, form)
        reply = printing.printed(self._api.state, target, self._api.request(target), form)
        return _json(reply.raw, reply.code, reply.warnings)

    async def _send_watch(self, http: web.BaseRequest, request: Request, form: printing.Form) -> web.StreamResponse:
        follower = self._api.watch(request)
        line = printing.watch_lines(self._api.state, request, form)
        response = web.StreamResponse(headers={"Content-Type": _JSON, "Cache-Control": "no-cache"})
        # A reset means that the reader is gone: there is nobody to tell.
        with contextlib.closing(follower), contextlib.suppress(ConnectionResetError):
            await response.prepare(http)
            async for event in follower.events():
                await response.write(line(event))
            await response.write_eof()
        return response

    async def _send_logs(self, http: web.BaseRequest, request: Request) -> web.StreamResponse:
        pod = self._api.request(msgspec.structs.replace(request, subresource="")).body
        query = log_query(request, pod["spec"])
        if not pod["spec"].get("nodeName"):
            return web.Response(status=204)
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        async with contextlib.aclosing(self.logs.logs(query)) as chunks:
            # The first chunk is waited for before the header goes out, so that a refusal is still an answer of its own.
            first = await anext(chunks, b"")
            with contextlib.suppress(ConnectionResetError):
                await response.prepare(http)
                await response.write(first)
                async for chunk in chunks:
                    await response.write(chunk)
                await response.write_eof()
        return response


def _refusal(failure: ApiFailure) -> web.Response:
    if failure.text:
        return web.Response(text=failure.text, status=failure.code)
    response = _json(msgspec.json.encode(failure.status), failure.code, failure.warnings)
    if wait := failure.status.get("details", {}).get("retryAfterSeconds"):
        response.headers["Retry-After"] = str(wait)
    return response


async def _body(http: web.BaseRequest, target: Request) -> Any:
    received = bytearray()
    async for chunk in http.content.iter_any():
        received += chunk
        if len(received) > _MAX_BODY_BYTES:
            raise ApiFailure(413, "RequestEntityTooLarge", f"Request entity too large: limit is {_MAX_BODY_BYTES}")
    text = bytes(received)
    if not text:
        if target.verb in ("create", "update"):
            raise _unrecognized(target, f"{_NO_HEADER}: {_TRUNCATED}", text)
        return None
    media = http.content_type
    if media == protobuf.MEDIA_TYPE:
        return protobuf.decode(text)
    if media == "application/apply-patch+yaml" or media in ("application/yaml", "text/yaml"):
        return _yaml(text, target)
    if "json" not in media and media != "application/octet-stream":
        raise unsupported_media_type([_JSON, "application/yaml", protobuf.MEDIA_TYPE])
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as why:
        if target.verb == "patch":
            raise bad_request("invalid JSON patch") from None
        told = f"{_NO_HEADER}: {_TRUNCATED if 'truncated' in str(why) else why}"
        raise (bad_request(told) if "delete" in target.verb else _unrecognized(target, told, text)) from None


def _unrecognized(target: Request, why: str, text: bytes) -> ApiFailure:
    told = f"the object provided is unrecognized (must be of type {target.kind.kind}): {why} ({summary(text)})"
    return bad_request(told)


def _yaml(text: bytes, target: Request) -> Any:
    try:
        # kubectl sends JSON under this name, which is two hundred times faster to read as such.
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        pass
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as why:
        told = f"yaml: {' '.join(str(why).split())}"
        if target.verb == "patch":
            raise bad_request(f"error decoding patch: error converting YAML to JSON: {told}") from None
        raise _unrecognized(target, told, text) from None


def _json(raw: bytes, code: int, warnings: tuple[str, ...] = ()) -> web.Response:
    response = web.Response(body=raw, status=code, content_type=_JSON)
    for warning in warnings:
        escaped = warning.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{escaped}"')
    return response
