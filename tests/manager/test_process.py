"""The operator as a process of its own, as a Deployment or `dtj run` starts it, against a real API server."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import yaml
from aiohttp import web

from dtj_operator.kube.client import JOB, LEASE, POD, Json
from dtj_operator.kube.http import HttpClient
from dtj_operator.local.api import Api
from dtj_operator.local.apiserver import ApiServer
from dtj_operator.local.state import Request
from tests.kube.conftest import TOKEN
from tests.worker.supervisor.gang import free_ports


class Operator:
    """A running process and the lines it has logged."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[dict[str, str]] = []

    async def says(self, words: str) -> dict[str, str]:
        """The next line with these words."""
        assert self.process.stderr is not None
        async for raw in self.process.stderr:
            line = json.loads(raw) if raw.startswith(b"{") else {"message": raw.decode()}
            self.lines.append(line)
            if words in line["message"]:
                return line
        raise AssertionError(f"it ended without {words!r}: {self.lines}")

    async def ends(self, by: signal.Signals | None = None) -> int:
        """Its exit code, after a signal if one is given."""
        if by is not None:
            self.process.send_signal(by)
        assert self.process.stderr is not None
        async for raw in self.process.stderr:
            self.lines.append({"message": raw.decode()})
        return await self.process.wait()


Start = Callable[..., Awaitable[Operator]]


@pytest.fixture
async def start(server: ApiServer, tmp_path: Path) -> AsyncIterator[Start]:
    """Starts an operator with these options; what still runs at the end is killed."""
    started: list[Operator] = []

    async def start(
        *options: str, url: str = server.url, program: tuple[str, ...] = ("-m", "dtj_operator")
    ) -> Operator:
        kubeconfig = tmp_path / f"kubeconfig-{len(started)}"
        config = server.kubeconfig()
        config["clusters"][0]["cluster"]["server"] = url
        kubeconfig.write_text(yaml.safe_dump(config))
        common = ("--kubeconfig", str(kubeconfig), "--operator-namespace", "default", "--json-logs", "--port", "0")
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *(*program, *common, *options),
            stderr=asyncio.subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if not name.startswith("DTJ_")},
        )
        started.append(Operator(process))
        return started[-1]

    yield start
    for operator in started:
        if operator.process.returncode is None:
            operator.process.kill()
            await operator.ends()


def listening() -> list[str]:
    """Addresses and ports of this machine that are listened on, as the kernel writes them."""
    return [line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines() if " 0A " in line]


def job(name: str = "mnist", namespace: str = "default") -> Json:
    containers = [{"name": "trainer", "image": "dtj/worker", "args": ["train.py"]}]
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "roles": {"worker": {"replicas": 2}},
            "gang": {"scheduler": "None"},
            "template": {"spec": {"containers": containers}},
        },
    }


async def pods(client: HttpClient, count: int, namespace: str = "default") -> dict[str, str]:
    """Names and UIDs of the pods as soon as there are so many."""
    pages = [page async for page in client.pages(POD, namespace)]
    found = {item["metadata"]["name"]: item["metadata"]["uid"] for page in pages for item in page.items}
    if len(found) < count:
        async for event in client.watch(POD, namespace, pages[0].resource_version):
            if event.type == "ADDED":
                found[event.object["metadata"]["name"]] = event.object["metadata"]["uid"]
            if len(found) >= count:
                break
    return found


async def test_a_job_becomes_pods_and_a_stop_gives_the_lease_back(start: Start, client: HttpClient) -> None:
    operator = await start("--identity", "one")
    await operator.says("the operator is ready")
    await client.create(job())
    assert set(await pods(client, 2)) == {"mnist-worker-0-0", "mnist-worker-1-0"}
    live = await client.get(JOB, "default", "mnist")
    assert "finalizers" not in live["metadata"]
    assert "annotations" not in live["metadata"]
    assert (await client.get(LEASE, "default", "dtj-operator"))["spec"]["holderIdentity"] == "one"
    assert await operator.ends(signal.SIGTERM) == 0
    assert (await client.get(LEASE, "default", "dtj-operator"))["spec"]["holderIdentity"] == ""


async def test_the_user_it_runs_as_needs_no_name(start: Start, client: HttpClient) -> None:
    """As in an image with nothing but a number for it."""
    nameless = "import getpass, runpy; getpass.getuser = {}.popitem; runpy.run_module('dtj_operator', None, '__main__')"
    operator = await start(program=("-c", nameless))
    await operator.says("the operator is ready")
    await client.create(job())
    await operator.says("released by None")
    assert not [line for line in operator.lines if "starts again" in line["message"]]


async def test_killed_and_started_again_it_goes_on_with_the_same_pods(start: Start, client: HttpClient) -> None:
    first = await start("--identity", "one")
    await first.says("the operator is ready")
    await client.create(job())
    before = await pods(client, 2)
    await first.ends(signal.SIGKILL)
    second = await start("--identity", "one")
    await second.says("the operator is ready")
    await client.create(job("next"))
    await second.says("released by None")
    assert before.items() <= (await pods(client, 4)).items()


async def test_a_second_one_stands_by_and_takes_over(start: Start, client: HttpClient) -> None:
    first = await start("--identity", "one")
    await first.says("the operator is ready")
    port = free_ports(1)
    second = await start("--identity", "two", "--port", str(port))
    await second.says("one holds the Lease; this process waits")
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        async with session.get("/readyz") as response:
            assert await response.text() == "standby\n"
        await first.ends(signal.SIGINT)
        await second.says("the operator is ready")
        async with session.get("/healthz") as response:
            assert (response.status, (await response.text()).split(";")[0]) == (200, "leader")
        async with session.get("/metrics") as response:
            assert "dtj_api_calls_total" in await response.text()


@pytest.mark.parametrize(("options", "address"), [((), "00000000"), (("--local",), "0100007F")])
async def test_health_and_metrics_of_an_embedded_cluster_are_for_this_machine(
    start: Start, options: tuple[str, ...], address: str
) -> None:
    port = free_ports(1)
    operator = await start("--port", str(port), *options)
    await operator.says("the operator is ready")
    assert f"{address}:{port:04X}" in listening()


async def test_who_loses_the_lease_ends_and_says_why(start: Start, client: HttpClient) -> None:
    operator = await start()
    await operator.says("the operator is ready")
    await client.patch(LEASE, "default", "dtj-operator", {"spec": {"holderIdentity": "usurper"}})
    assert (await operator.says("another process took the Lease"))["level"] == "critical"
    assert await operator.ends() == 3
    assert (await client.get(LEASE, "default", "dtj-operator"))["spec"]["holderIdentity"] == "usurper"


async def test_without_its_crd_it_ends_and_says_what_to_do(start: Start, server: ApiServer) -> None:
    bare = ApiServer(Api(), token=TOKEN)
    await bare.start()
    operator = await start(url=bare.url)
    assert (await operator.says("install the CRD"))["level"] == "critical"
    assert await operator.ends() == 2
    await bare.stop()


async def test_a_taken_port_is_named(start: Start) -> None:
    with socket.socket() as listener:
        listener.bind(("0.0.0.0", 0))
        listener.listen()
        port = listener.getsockname()[1]
        operator = await start("--port", str(port))
        await operator.says(f"port {port} can't be listened on")
        assert await operator.ends() == 2


async def test_in_named_namespaces_it_leaves_the_others_alone(start: Start, client: HttpClient, api: Api) -> None:
    for name in ("a", "b", "c"):
        api.request(Request(verb="create", kind=api.kind("v1", "namespaces"), body={"metadata": {"name": name}}))
    operator = await start("--namespaces", "a,b")
    await operator.says("the operator is ready")
    for name in ("c", "b", "a"):
        await client.create(job(namespace=name))
    await pods(client, 2, "a")
    await pods(client, 2, "b")
    assert "status" not in await client.get(JOB, "c", "mnist")


async def test_a_dead_watch_starts_the_process_again(start: Start, server: ApiServer, client: HttpClient) -> None:
    """Up to an error of its watch that kopf does not get over, it works; after it, a fresh process does."""
    broken = asyncio.Event()
    async with _proxy(server.url, broken) as url:
        operator = await start("--no-lease", url=url)
        await operator.says("the operator is ready")
        await client.create(job("first"))
        await pods(client, 2)
        broken.set()
        assert (await operator.says("the operator starts again"))["level"] == "error"
        await operator.says("the operator is ready")
        await client.create(job("second"))
        assert len(await pods(client, 4)) == 4
        assert operator.process.returncode is None
        await operator.ends(signal.SIGKILL)


@asynccontextmanager
async def _proxy(url: str, broken: asyncio.Event) -> AsyncIterator[str]:
    """Passes everything on, but ends a watch of jobs with an error once it is told to."""

    async def pass_on(answer: aiohttp.ClientResponse, response: web.StreamResponse) -> None:
        while chunk := await answer.content.readany():
            await response.write(chunk)

    async def watch(request: web.BaseRequest, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        passing = asyncio.create_task(pass_on(answer, response))
        breaking = asyncio.create_task(broken.wait() if JOB.plural in request.path else asyncio.Event().wait())
        try:
            await asyncio.wait({passing, breaking}, return_when=asyncio.FIRST_COMPLETED)
            if breaking.done():
                broken.clear()
                error = {"type": "ERROR", "object": {"kind": "Status", "code": 500, "message": "etcd is gone"}}
                await response.write(json.dumps(error).encode() + b"\n")
        finally:
            passing.cancel()
            breaking.cancel()
        return response

    async def serve(request: web.BaseRequest) -> web.StreamResponse:
        headers = {name: request.headers[name] for name in ("Authorization", "Content-Type") if name in request.headers}
        body = await request.read()
        async with session.request(request.method, url + request.path_qs, data=body, headers=headers) as answer:
            if request.query.get("watch") == "true":
                return await watch(request, answer)
            return web.Response(status=answer.status, body=await answer.read(), content_type="application/json")

    async with aiohttp.ClientSession() as session:
        runner = web.ServerRunner(web.Server(serve), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        await runner.cleanup()


def test_a_template_as_deep_as_an_api_server_takes_it_ends_nothing() -> None:
    """In a process of its own: what is too deep for the stack is no exception, it is the process's end."""
    program = """
import json, sys, msgspec
from dtj_operator.api.observed import Facts
from dtj_operator.kube.client import JOB
from dtj_operator.kube.fleet import Fleet
from dtj_operator.kube.store import Store
from dtj_operator.manager.main import DEEPEST
sys.setrecursionlimit(DEEPEST)
deep = '{"a":' * 9_990 + "1" + "}" * 9_990
job = '{"metadata":{"name":"mnist","namespace":"ml","uid":"u","resourceVersion":"1","generation":1,"creationTimestamp":'
job += '"2030-01-01T00:00:00Z"},"spec":{"roles":{"worker":{"replicas":1}},"template":{"spec":' + deep + "}}}"
assert json.loads(job) == msgspec.json.decode(job)
store = Store(Facts(), Fleet())
s = store.situation(store.put(JOB, msgspec.json.decode(job)))
assert s.spec is not None, s.faults
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
