"""The embedded cluster as a whole: a job from manifest to end, and what is left when the cluster goes, in any way."""

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from dtj_operator.local.cluster import ClusterFailed
from dtj_operator.local.deployment import Deployment, OperatorFailed
from dtj_operator.local.process import runtime
from tests.local.embedded import Embedded, can_isolate, death, embedded, lives, pod

Json = dict[str, Any]

ROOT = Path(__file__).resolve().parents[2]
FROM_HERE = Path(os.path.relpath(sys.executable))
JOBS = "distributedtrainingjobs.dtj.dev"


@pytest.fixture
async def whole() -> AsyncIterator[Embedded]:
    """With the operator; programs lie in tests/programs."""
    async with embedded(ROOT / "tests" / "programs", operator=True) as running:
        yield running


def counting(name: str, workers: int, *args: str) -> Json:
    claim = {"spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}}
    trainer = {"name": "trainer", "image": "dtj/worker", "args": ["counter.py", *args]}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "roles": {"worker": {"replicas": workers}},
            "template": {"spec": {"containers": [trainer]}},
            "checkpoint": {"volumeClaimTemplate": claim},
        },
    }


def in_phase(*phases: str) -> Callable[[Json], bool]:
    return lambda job: job.get("status", {}).get("phase") in phases


async def test_a_job_runs_from_its_manifest_to_its_end(whole: Embedded) -> None:
    whole.objects.create(JOBS, counting("count", 2, "--steps", "150"))
    await whole.runs("count-worker-0-0")
    followed = asyncio.create_task(whole.kubectl("logs", "-f", "count-worker-0-0"))
    told = await whole.kubectl("wait", "--for=condition=Complete", "--timeout=60s", "dtj/count")
    assert told == "distributedtrainingjob.dtj.dev/count condition met\n"
    job = await whole.until("count", in_phase("Succeeded", "Failed"), JOBS)
    assert job["status"]["phase"] == "Succeeded"
    assert job["status"]["checkpoint"]["step"] == 150
    assert "worker-0: counted to 150" in await followed
    described = await whole.kubectl("describe", "pod", "count-worker-1-0")
    assert "Successfully assigned default/count-worker-1-0 to local-0" in described


async def test_an_operator_that_dies_is_started_again_and_goes_on(whole: Embedded) -> None:
    whole.objects.create(JOBS, counting("count", 2, "--steps", "100"))
    await whole.until("count", in_phase("Starting", "Running"), JOBS)
    operator = whole.cluster.operator
    assert operator is not None
    assert operator.pid is not None
    os.kill(operator.pid, signal.SIGKILL)
    job = await whole.until("count", in_phase("Succeeded", "Failed"), JOBS)
    assert (job["status"]["phase"], job["status"].get("attempt", 0), operator.restarts) == ("Succeeded", 0, 1)
    assert any("the operator's process ended with 137" in sentence for sentence in whole.said)


async def test_nothing_is_left_when_the_cluster_is_left(tmp_path: Path) -> None:
    async with embedded(tmp_path, operator=True) as nodes:
        nodes.create(
            pod("stays", script="trap '' TERM; (setsid sleep 1000 &); echo ready; while true; do sleep 0.1; done")
        )
        await nodes.says("stays", "ready")
        processes = nodes.cluster.kubelet.processes("default", "stays")
        assert nodes.cluster.operator is not None
        assert nodes.cluster.operator.pid is not None
        processes.append(nodes.cluster.operator.pid)
        state, kubeconfig = nodes.cluster.state, nodes.cluster.kubeconfig
        assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
        assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert not any(lives(process) for process in processes)
    assert not state.exists()


async def test_a_state_folder_that_was_named_is_kept_with_its_claims(tmp_path: Path) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "default"}, "spec": spec}
    volumes = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]}
    mounts = [{"name": "data", "mountPath": "/data"}]
    for name, script, told in (("writes", "echo kept > /data/file", ""), ("reads", "cat /data/file", "kept\n")):
        async with embedded(tmp_path, state=tmp_path / "state") as nodes:
            nodes.create(claim)
            nodes.create(pod(name, script=script, spec=volumes, volumeMounts=mounts))
            await nodes.ended(name)
            assert await nodes.log(name) == told


KILLED = """
import asyncio, json, sys
from pathlib import Path
from tests.local.embedded import embedded, pod

async def main():
    async with embedded(Path(sys.argv[1]), operator=True) as nodes:
        # A child in a session of its own that has lost its parent, and one that has not.
        nodes.create(pod("stays", script="(setsid sleep 1000 &); sleep 1000 & echo ready; wait"))
        await nodes.says("stays", "ready")
        [kubelet, *pids] = [*nodes.cluster.kubelet.processes("default", "stays")]
        print(json.dumps([kubelet, *pids, nodes.cluster.operator.pid]), flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_the_process_of_the_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    command, environment = [sys.executable, "-c", KILLED, str(tmp_path)], os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, env=environment, text=True) as owner:
        assert owner.stdout is not None
        processes: list[int] = json.loads(owner.stdout.readline())
        processes += orphans_of(processes[0])
        owner.send_signal(number)
    assert len(processes) >= 4
    for process in processes:
        asyncio.run(death(process))
    assert not any(lives(process) for process in processes)
    # Its files go when the next one comes.
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert len([*tmp_path.glob("dtj-*")]) == 1
    asyncio.run(starts_and_ends(tmp_path))
    assert [*tmp_path.glob("dtj-*")] == []


async def test_the_first_line_says_which_ports_are_open_and_to_whom(tmp_path: Path) -> None:
    async with embedded(tmp_path, isolate=False) as nodes:
        first = nodes.cluster.lines[0]
        assert nodes.cluster.url == f"http://127.0.0.1:{first.removeprefix('port ').partition(':')[0]}"
        assert "without a password for whoever reaches this machine" in first


@pytest.mark.skipif(not can_isolate(), reason="this machine lets us have no network of our own")
async def test_isolated_programs_have_a_network_of_their_own(tmp_path: Path) -> None:
    async with embedded(tmp_path, isolate=True, operator=True) as nodes:
        nodes.create(pod("looks", script="tail -n +3 /proc/net/dev | cut -d: -f1"))
        await nodes.ended("looks")
        assert (await nodes.log("looks")).split() == ["lo"]
        assert "a network of their own" in nodes.cluster.lines[0]


async def test_an_environment_without_our_worker_gets_it_as_one_file(tmp_path: Path) -> None:
    (tmp_path / "hello.py").write_text("import sys; print('hello from', sys.prefix)")
    bare = Path(sys.base_prefix, "bin", "python3")
    async with embedded(tmp_path, python=bare) as nodes:
        body = pod("hello", "x", args=["hello.py"])
        del body["spec"]["containers"][0]["command"]
        nodes.create(body)
        ended = await nodes.ended("hello")
        assert ended["status"]["phase"] == "Succeeded"
        assert f"hello from {sys.base_prefix}" in await nodes.log("hello")


async def test_a_python_may_be_named_from_here(tmp_path: Path) -> None:
    (tmp_path / "hello.py").write_text("import sys; print('hello from', sys.prefix)")
    async with embedded(tmp_path, python=FROM_HERE) as nodes:
        body = pod("hello", "python", "hello.py")
        nodes.create(body)
        await nodes.ended("hello")
        assert await nodes.log("hello") == f"hello from {sys.prefix}\n"
        body = pod("worker", "x", args=["hello.py"])
        del body["spec"]["containers"][0]["command"]
        nodes.create(body)
        assert (await nodes.ended("worker"))["status"]["phase"] == "Succeeded"


async def test_an_operator_that_cannot_work_says_why(tmp_path: Path) -> None:
    async with runtime(tmp_path / "runtime.log") as run:
        deployment = Deployment(run, tmp_path / "no-kubeconfig", tmp_path / "operator.log", 16400, print)
        working = asyncio.create_task(deployment.run())
        with pytest.raises(OperatorFailed, match="no-kubeconfig"):
            await deployment.ready()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def test_a_cluster_that_has_lost_a_part_of_itself_ends(tmp_path: Path) -> None:
    with pytest.raises(ClusterFailed, match=r"^the operator's Deployment failed: .*the container runtime has ended"):
        await loses_its_runtime(tmp_path)


async def test_a_state_folder_is_of_one_cluster_at_a_time(tmp_path: Path) -> None:
    async with embedded(tmp_path, state=tmp_path / "state"):
        with pytest.raises(ClusterFailed, match=r"state is in use by another cluster; name another folder"):
            await starts_and_ends(tmp_path, state=tmp_path / "state")
    await starts_and_ends(tmp_path, state=tmp_path / "state")


async def test_a_lost_node_is_not_heard_of_and_its_processes_run_on(tmp_path: Path) -> None:
    async with embedded(tmp_path, nodes=2) as nodes:
        nodes.create(pod("there", script="echo ready; exec sleep 1000"))
        await nodes.says("there", "ready")
        [command] = nodes.cluster.kubelet.processes("default", "there")
        lost = nodes.pod("there")["spec"]["nodeName"]
        nodes.cluster.kubelet.lose(lost)
        assert "NotReady" in await nodes.kubectl("get", "node", lost)
        nodes.objects.delete("pods", nodes.pod("there")["metadata"], grace_seconds=1)
        nodes.create(pod("here", "true"))
        assert (await nodes.ended("here"))["spec"]["nodeName"] != lost
        assert "deletionTimestamp" in nodes.pod("there")["metadata"]
        nodes.objects.delete("pods", nodes.pod("there")["metadata"], grace_seconds=0)
        nodes.create(pod("later", "true"))
        await nodes.ended("later")
        assert lives(command)


async def loses_its_runtime(folder: Path) -> None:
    async with asyncio.timeout(60), embedded(folder, operator=True) as nodes:
        assert nodes.cluster.operator is not None
        operator = nodes.cluster.operator.pid
        assert operator is not None
        runtime_process = parent(parent(operator))
        os.kill(runtime_process, signal.SIGKILL)
        await death(runtime_process)
        os.kill(operator, signal.SIGKILL)
        # Whatever is waited for: nothing will come of it any more.
        await asyncio.Event().wait()


async def starts_and_ends(folder: Path, **options: Any) -> None:
    async with embedded(folder, **options):
        pass


def orphans_of(process: int) -> list[int]:
    """What the container's shim has adopted: its own children."""
    shim = parent(process)
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        fields = entry.read_text().rpartition(")")[2].split()
        if int(fields[1]) == shim:
            found.append(int(entry.parent.name))
    return [shim, *found]


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
