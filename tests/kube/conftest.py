"""The neighbours of `kube`: a real API server in this process, and one that answers by a script."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pytest
from aiohttp import web

from dtj_operator.api.crd import crd
from dtj_operator.kube.http import Credentials, HttpClient
from dtj_operator.local.api import Api
from dtj_operator.local.apiserver import ApiServer
from dtj_operator.local.state import Request

TOKEN = "secret"
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@pytest.fixture
async def api() -> Api:
    api = Api()
    definitions = api.kind("apiextensions.k8s.io/v1", "customresourcedefinitions")
    api.request(Request(verb="create", kind=definitions, body=crd()))
    return api


@pytest.fixture
async def server(api: Api) -> AsyncIterator[ApiServer]:
    server = ApiServer(api, token=TOKEN)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def client(server: ApiServer) -> AsyncIterator[HttpClient]:
    async with HttpClient(lambda: Credentials(server.url, {"Authorization": f"Bearer {TOKEN}"})) as client:
        yield client


class Script:
    """Answers each request with the next answer, the last one for ever, and remembers what was asked."""

    def __init__(self) -> None:
        self.answers: Sequence[Answer] = ()
        self.requests: list[tuple[str, str, str]] = []
        self.queries: list[dict[str, str]] = []
        self.url = ""

    def client(self) -> HttpClient:
        return HttpClient(lambda: Credentials(self.url))

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append((request.method, request.path, request.headers.get("Authorization", "")))
        self.queries.append(dict(request.query))
        return await self.answers[min(len(self.requests), len(self.answers)) - 1](request)  # type: ignore[arg-type]


@pytest.fixture
async def script() -> AsyncIterator[Script]:
    script = Script()
    runner = web.ServerRunner(web.Server(script.serve), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    script.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield script
    await runner.cleanup()


def says(code: int, body: object = None, **headers: str) -> Answer:
    """The answer with this code and body."""

    async def answer(request: web.Request) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.json_response(body or {}, status=code, headers=named)

    return answer


async def hangs_up(request: web.Request) -> web.StreamResponse:
    """No answer at all."""
    assert request.transport is not None
    request.transport.close()
    return web.Response()
