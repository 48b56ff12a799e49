"""`dtj local`, and the commands that look at a cluster: status, logs, restart, suspend, resume."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.cli.command import CLAIM, Output, all_gone, counting, dtj, folders, started, until_line, write

KUBECTL = Path(sys.executable).parent / "kubectl"


class Local:
    """A running `dtj local` and its kubeconfig."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path, kubeconfig: str) -> None:
        self.process = process
        self.folder = folder
        self.kubeconfig = kubeconfig

    @property
    def is_private(self) -> bool:
        return Path(self.kubeconfig).stat().st_mode & 0o777 == 0o600

    async def dtj(self, *arguments: str) -> Output:
        return await dtj(*arguments, "--kubeconfig", self.kubeconfig, folder=self.folder)

    async def kubectl(self, *arguments: str) -> str:
        process = await asyncio.create_subprocess_exec(
            KUBECTL, "--kubeconfig", self.kubeconfig, *arguments, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        assert process.returncode == 0
        return out.decode()

    async def until(self, name: str, jsonpath: str) -> None:
        await self.kubectl("wait", f"dtj/{name}", f"--for=jsonpath={jsonpath}", "--timeout=60s")


@asynccontextmanager
async def local(folder: Path, *options: str) -> AsyncIterator[Local]:
    async with started("local", *options, folder=folder) as process:
        line = await until_line(process.stdout, "export KUBECONFIG=")
        await until_line(process.stdout, "ready")
        yield Local(process, folder, line.strip().partition("=")[2])


async def test_a_job_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    file = write(tmp_path, CLAIM, counting("--steps", "100000"))
    async with local(tmp_path) as cluster:
        assert cluster.is_private
        assert (await cluster.dtj("status")).out == "there are no jobs in namespace default\n"

        await cluster.kubectl("apply", "-f", file)
        await cluster.until("count", "{.status.checkpoint.step}")
        line = (await cluster.dtj("status", "-n", "default")).out.splitlines()[1]
        assert line.split()[:4] == ["count", "Running", "MultiWorkerMirrored", "2/2"]

        suspended = await cluster.dtj("suspend", "count")
        assert suspended.out == "count is being stopped; dtj resume count takes it up again\n"
        await cluster.until("count", "{.status.phase}=Suspended")

        await cluster.dtj("resume", "count")
        async with started(
            "logs", "-f", "count", "--task", "worker-1", "--kubeconfig", cluster.kubeconfig, folder=tmp_path
        ) as logs:
            await until_line(logs.stdout, "resumed after step ")
            logs.send_signal(signal.SIGINT)
            await logs.wait()
            assert logs.returncode == 130

        await cluster.until("count", "{.status.phase}=Running")
        await cluster.dtj("restart", "count")
        await cluster.until("count", "{.status.attempt}=2")
        await cluster.until("count", "{.status.phase}=Running")
        told = (await cluster.dtj("status", "count")).out
        assert "attempt 0 ended: Suspended" in told
        assert "attempt 1 ended: Requested" in told
        assert "attempt 2 resumed at epoch " in told
        assert "count-worker-0-2" in told
        whole = json.loads((await cluster.dtj("status", "count", "-o", "json")).out)
        assert whole["status"]["attempt"] == 2
        assert whole["status"]["restarts"]["total"] == 0, "what was asked for counts as no failure"

        cluster.process.send_signal(signal.SIGINT)
        await cluster.process.wait()
        assert cluster.process.returncode == 130
    await all_gone(tmp_path)
    assert folders(tmp_path) == []


async def test_logs_of_a_job_that_is_over(tmp_path: Path) -> None:
    file = write(tmp_path, CLAIM, counting("--steps", "20", "--exit-code", "0"))
    async with local(tmp_path) as cluster:
        await cluster.kubectl("apply", "-f", file)
        followed = await cluster.dtj("logs", "-f", "count")
        assert followed.code == 0
        assert {"worker-0 | worker-0: counted to 20", "worker-1 | worker-1: counted to 20"} <= set(
            followed.out.splitlines()
        )
        alone = await cluster.dtj("logs", "count", "--task", "worker-1")
        assert alone.out.splitlines()[0] == "worker-1: counted to 20"

        await cluster.kubectl("delete", "pod", "count-worker-1-0")
        kept = await cluster.dtj("logs", "count")
        assert "worker-0 | worker-0: counted to 20" in kept.out.splitlines(), "also of the only pod that is left"

        none = await cluster.dtj("logs", "count", "--attempt", "7")
        assert (none.code, none.out) == (1, "")
        assert none.err.startswith("there is no pod of attempt 7 (the job is Succeeded: ")
        stranger = await cluster.dtj("logs", "count", "--task", "worker-9", "-f")
        assert (stranger.code, stranger.out) == (2, "")
        assert stranger.err == "count has no worker-9; its tasks are worker-0, worker-1\n"
        over = await cluster.dtj("suspend", "count")
        assert over.code == 1
        assert over.err.startswith("count is over (Succeeded: ")


@pytest.mark.parametrize("command", ["status", "logs", "restart", "suspend", "resume"])
async def test_no_cluster(tmp_path: Path, command: str) -> None:
    ended = await dtj(command, "count", "--kubeconfig", "nowhere", folder=tmp_path)
    assert (ended.code, ended.out) == (3, "")
    assert ended.err == "no cluster: there is no kubeconfig nowhere; `dtj local` starts one on this machine\n"


async def test_a_context_that_the_kubeconfig_lacks(tmp_path: Path) -> None:
    write_kubeconfig(tmp_path, "http://127.0.0.1:1")
    ended = await dtj("status", "--context", "there", folder=tmp_path, KUBECONFIG="kubeconfig")
    assert (ended.code, ended.out) == (3, "")
    assert ended.err == (
        "no cluster: kubeconfig: Invalid kube-config file. Expected object with name there in kubeconfig/contexts "
        "list; `dtj local` starts one on this machine\n"
    )


@pytest.mark.parametrize("text", ["a: [b", "[]", "\x00", "clusters: 3\ncontexts: []\ncurrent-context: a"])
async def test_no_kubeconfig(tmp_path: Path, text: str) -> None:
    (tmp_path / "kubeconfig").write_text(text)
    ended = await dtj("status", "--kubeconfig", "kubeconfig", folder=tmp_path)
    assert (ended.code, ended.out) == (3, "")
    assert len(ended.err.splitlines()) == 1, ended.err


async def test_a_cluster_that_does_not_answer(tmp_path: Path) -> None:
    write_kubeconfig(tmp_path, "http://127.0.0.1:1/secret")
    # No proxy is asked for what is on this machine.
    proxy = "http://127.0.0.1:2"
    ended = await dtj("status", "--kubeconfig", "kubeconfig", folder=tmp_path, HTTP_PROXY=proxy, http_proxy=proxy)
    assert ended.code == 3
    assert ended.err.startswith("the cluster can't be reached: ")
    assert "port=1)" in ended.err
    assert "secret" not in ended.err
    assert len(ended.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        pytest.param(
            "401 Unauthorized",
            '{"kind":"Status","code":401,"message":"Unauthorized"}',
            "the cluster does not know who asks (Unauthorized); log in again, or name another --context\n",
            id="an expired login",
        ),
        pytest.param(
            "404 Not Found",
            "404 page not found",
            "the cluster has no distributedtrainingjobs.dtj.dev (404 Not Found); is the operator installed there?\n",
            id="a cluster without the operator",
        ),
    ],
)
async def test_a_cluster_that_refuses(tmp_path: Path, status: str, body: str, told: str) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode())
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1") as server:
        write_kubeconfig(tmp_path, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        ended = await dtj("status", "--kubeconfig", "kubeconfig", folder=tmp_path)
    assert (ended.code, ended.out, ended.err) == (3, "", told)


async def test_a_port_that_is_taken(tmp_path: Path) -> None:
    async with await asyncio.start_server(lambda reader, writer: None, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        ended = await dtj("local", "--port", str(port), folder=tmp_path)
    assert (ended.code, ended.out) == (3, "")
    assert f"port {port} can't be listened on: Address already in use; name another one, or none" in ended.err


def write_kubeconfig(folder: Path, server: str) -> None:
    user = {"name": "me", "user": {"token": "any"}}
    clusters = [{"name": "here", "cluster": {"server": server}}]
    contexts = [{"name": "here", "context": {"cluster": "here", "user": "me"}}]
    config = {"apiVersion": "v1", "kind": "Config", "clusters": clusters, "contexts": contexts, "users": [user]}
    (folder / "kubeconfig").write_text(json.dumps({**config, "current-context": "here"}))
