"""What a container finds: environment, command line, volumes, and where the names and paths of a cluster lie here."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from dtj_operator.local import podenv
from dtj_operator.local.api import Api
from dtj_operator.local.node.paths import Paths
from dtj_operator.local.objects import Objects
from dtj_operator.local.podenv import ConfigError, Place
from tests.local.embedded import Embedded, condition, embedded, pod, state

Json = dict[str, Any]

PLACE = Place("local-0", {"cpu": "8", "memory": "16Gi"})
POD: Json = {
    "metadata": {
        "name": "p",
        "namespace": "default",
        "uid": "u-1",
        "labels": {"app": "a"},
        "annotations": {"x/y": "z"},
    },
    "spec": {
        "serviceAccountName": "default",
        "containers": [
            {
                "name": "main",
                "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}, "requests": {"memory": "512Mi"}},
            },
            {"name": "free"},
        ],
    },
}


@pytest.fixture
async def objects() -> Objects:
    objects = Objects(Api(), "test")
    objects.create("configmaps", {"metadata": {"name": "cm", "namespace": "default"}, "data": {"a": "1", "b": "2"}})
    secret = {"metadata": {"name": "s", "namespace": "default"}, "data": {"token": "c2VjcmV0"}}
    objects.create("secrets", secret)
    return objects


@pytest.mark.parametrize(("source", "value"), [
    pytest.param({"fieldRef": {"fieldPath": "metadata.name"}}, "p", id="name"),
    pytest.param({"fieldRef": {"fieldPath": "metadata.uid"}}, "u-1", id="uid"),
    pytest.param({"fieldRef": {"fieldPath": "metadata.labels['app']"}}, "a", id="a label"),
    pytest.param({"fieldRef": {"fieldPath": "metadata.annotations['x/y']"}}, "z", id="an annotation"),
    pytest.param({"fieldRef": {"fieldPath": "metadata.annotations['none']"}}, "", id="an annotation that isn't there"),
    pytest.param({"fieldRef": {"fieldPath": "spec.nodeName"}}, "local-0", id="node"),
    pytest.param({"fieldRef": {"fieldPath": "spec.host"}}, "local-0", id="node by its old name"),
    pytest.param({"fieldRef": {"fieldPath": "status.podIP"}}, "127.0.0.1", id="address"),
    pytest.param({"resourceFieldRef": {"resource": "limits.cpu"}}, "2", id="cores, rounded up"),
    pytest.param({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}, "1500", id="thousandths of cores"),
    pytest.param({"resourceFieldRef": {"resource": "requests.memory", "divisor": "1Mi"}}, "512", id="MiB"),
    pytest.param({"resourceFieldRef": {"resource": "limits.memory", "containerName": "free"}}, str(16 * 2**30),
                 id="no limit: the node"),
    pytest.param({"configMapKeyRef": {"name": "cm", "key": "a"}}, "1", id="a ConfigMap's entry"),
    pytest.param({"secretKeyRef": {"name": "s", "key": "token"}}, "secret", id="a Secret's entry"),
    pytest.param({"secretKeyRef": {"name": "none", "key": "x", "optional": True}}, None, id="optional and missing"),
])  # fmt: skip
async def test_where_a_value_comes_from(objects: Objects, source: Json, value: str | None) -> None:
    container = POD["spec"]["containers"][0] | {"env": [{"name": "V", "valueFrom": source}]}
    assert podenv.environment(POD, container, PLACE, objects).get("V") == value


@pytest.mark.parametrize(("container", "told"), [
    pytest.param({"env": [{"name": "V", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "a"}}}]},
                 'configmap "none" not found', id="no such ConfigMap"),
    pytest.param({"env": [{"name": "V", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "c"}}}]},
                 "couldn't find key c in ConfigMap default/cm", id="no such entry"),
    pytest.param({"env": [{"name": "V", "valueFrom": {"secretKeyRef": {"name": "none", "key": "a"}}}]},
                 'secret "none" not found', id="no such Secret"),
    pytest.param({"envFrom": [{"secretRef": {"name": "none"}}]}, 'secret "none" not found', id="all of no Secret"),
])  # fmt: skip
async def test_what_is_missing_is_said_as_the_kubelet_says_it(objects: Objects, container: Json, told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        podenv.environment(POD, {"name": "main", **container}, PLACE, objects)
    assert str(raised.value) == told


async def test_variables_build_on_earlier_ones(objects: Objects) -> None:
    container = {
        "name": "main",
        "envFrom": [{"configMapRef": {"name": "cm"}, "prefix": "CM_"}],
        "env": [
            {"name": "CM_a", "value": "over"},
            {"name": "SUM", "value": "$(CM_a)+$(CM_b)+$(LATER)+$$(CM_a)"},
            {"name": "LATER", "value": "x"},
        ],
        "command": ["run", "$(SUM)"],
        "args": ["$(LATER)$(NONE)"],
    }
    variables = podenv.environment(POD, container, PLACE, objects)
    assert variables["SUM"] == "over+2+$(LATER)+$(CM_a)"
    assert podenv.words(container, variables) == ("run", "over+2+$(LATER)+$(CM_a)", "x$(NONE)")


async def test_a_mount_does_not_move_the_program_that_stands_for_the_image(nodes: Embedded, tmp_path: Path) -> None:
    (tmp_path / "hello.py").write_text("import sys; print('hello', *sys.argv[1:])")
    # The worker lies below such a path on this machine.
    above = f"/{Path(sys.executable).parts[1]}"
    mounts = [{"name": "v", "mountPath": above}]
    spec = {"volumes": [{"name": "v", "emptyDir": {}}]}
    body = pod(
        "hello", "x", args=["hello.py", "$(X)"], volumeMounts=mounts, env=[{"name": "X", "value": "1"}], spec=spec
    )
    del body["spec"]["containers"][0]["command"]
    nodes.create(body)
    await nodes.ended("hello")
    assert "hello 1\n" in await nodes.log("hello")


def test_credentials_of_this_machine_stay_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "TF_CONFIG", "KUBECONFIG", "LANG"):
        monkeypatch.setenv(name, "x")
    found = podenv.base(Path("/env/bin/python"), "host")
    assert found["PATH"].split(os.pathsep)[0] == "/env/bin"
    assert found["HOSTNAME"] == "host"
    assert "LANG" in found
    assert found.keys() & {"AWS_SECRET_ACCESS_KEY", "TF_CONFIG", "KUBECONFIG"} == set()


@pytest.mark.parametrize(("text", "here"), [
    ("/data", "/here/d"),
    ("/data/train", "/here/d/train"),
    ("--data=/data/train", "--data=/here/d/train"),
    ("a:/data:/data/ckpt", "a:/here/d:/here/c"),
    ('{"directory":"/data/ckpt/ns/job"}', '{"directory":"/here/c/ns/job"}'),
    ("/database", "/database"),
    ("/mydata /x/data ~/data", "/mydata /x/data ~/data"),
    ("/data-old /data.txt", "/data-old /data.txt"),
])  # fmt: skip
def test_paths_of_mounts_are_found_in_words(text: str, here: str) -> None:
    assert Paths({"/data": "/here/d", "/data/ckpt/": "/here/c"}).rewritten(text) == here


@pytest.mark.parametrize(
    ("inside", "here"), [("/data/x", "/here/d/x"), ("/data", "/here/d"), ("/dat", None), ("/", None)]
)
def test_where_a_path_lies(inside: str, here: str | None) -> None:
    assert Paths({"/data": "/here/d"}).here(inside) == here


async def test_a_missing_source_is_waited_for(nodes: Embedded) -> None:
    source = {"name": "V", "valueFrom": {"configMapKeyRef": {"name": "late", "key": "v"}}}
    nodes.create(pod("waits", script="echo $V", env=[source]))
    waiting = await nodes.until(
        "waits", lambda pod: state(pod).get("waiting", {}).get("reason") == "CreateContainerConfigError"
    )
    assert state(waiting)["waiting"]["message"] == 'configmap "late" not found'
    assert waiting["status"]["phase"] == "Pending"
    assert ("Failed", 'Error: configmap "late" not found') in nodes.events("waits")
    nodes.create({"kind": "ConfigMap", "metadata": {"name": "late", "namespace": "default"}, "data": {"v": "here"}})
    await nodes.ended("waits")
    assert await nodes.log("waits") == "here\n"


async def test_volumes_hold_what_they_are_said_to(nodes: Embedded) -> None:
    nodes.create(
        {"kind": "ConfigMap", "metadata": {"name": "cm", "namespace": "default"}, "data": {"a": "1", "b": "2"}}
    )
    nodes.create({"kind": "Secret", "metadata": {"name": "s", "namespace": "default"}, "stringData": {"key": "word"}})
    volumes = [
        {"name": "all", "configMap": {"name": "cm"}},
        {"name": "some", "configMap": {"name": "cm", "items": [{"key": "b", "path": "deep/two", "mode": 0o755}]}},
        {"name": "secret", "secret": {"secretName": "s"}},
        {"name": "me", "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"name": "mixed", "projected": {"sources": [{"configMap": {"name": "cm"}}, {"secret": {"name": "s"}}]}},
        {"name": "empty", "emptyDir": {}},
    ]
    mounts = [{"name": volume["name"], "mountPath": f"/v/{volume['name']}"} for volume in volumes]
    mounts.append({"name": "all", "mountPath": "/one", "subPath": "a"})
    script = "cat /v/all/a /one /v/some/deep/two /v/secret/key /v/me/labels /v/mixed/b /v/mixed/key; ls /v/empty"
    script += "; test -x /v/some/deep/two && echo executable"
    nodes.create(pod("reads", script=script, volumeMounts=mounts, spec={"volumes": volumes}))
    await nodes.ended("reads")
    assert await nodes.log("reads") == '112wordapp="reads"2wordexecutable\n'


async def test_containers_of_a_pod_share_its_volumes(nodes: Embedded) -> None:
    mount = [{"name": "shared", "mountPath": "/shared"}]
    first = {"name": "first", "image": "x", "command": ["sh", "-c", "echo hello > /shared/file"], "volumeMounts": mount}
    spec = {"volumes": [{"name": "shared", "emptyDir": {}}], "initContainers": [first]}
    nodes.create(
        pod(
            "shares", script="cat $FILE", volumeMounts=mount, env=[{"name": "FILE", "value": "/shared/file"}], spec=spec
        )
    )
    await nodes.ended("shares")
    assert await nodes.log("shares") == "hello\n"


async def test_a_claim_is_bound_to_a_folder_that_pods_share_one_after_the_other(nodes: Embedded) -> None:
    spec = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]}
    mount = [{"name": "data", "mountPath": "/data"}]
    nodes.create(pod("writes", script="echo kept > /data/file", volumeMounts=mount, spec=spec))
    told = 'persistentvolumeclaim "c" not found'
    waiting = await nodes.until("writes", lambda pod: told in condition(pod, "PodScheduled").get("message", ""))
    assert condition(waiting, "PodScheduled")["reason"] == "Unschedulable"
    assert ("FailedScheduling", f"0/1 nodes are available: {told}.") in nodes.events("writes")
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    nodes.create({"kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "default"}, "spec": claim})
    await nodes.ended("writes")
    bound = nodes.objects.find("persistentvolumeclaims", "default", "c")
    assert bound is not None
    assert (bound["status"]["phase"], bound["status"]["capacity"]) == ("Bound", {"storage": "1Gi"})
    nodes.create(pod("reads", script="cat /data/file", volumeMounts=mount, spec=spec))
    await nodes.ended("reads")
    assert await nodes.log("reads") == "kept\n"


async def test_a_deleted_claim_takes_its_folder_along_when_no_pod_uses_it(nodes: Embedded) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = nodes.create(
        {"kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "default"}, "spec": spec}
    )
    volumes = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]}
    mounts = [{"name": "data", "mountPath": "/data"}]
    nodes.create(pod("uses", script="echo /data; exec sleep 1000", volumeMounts=mounts, spec=volumes))
    folder = (await nodes.says("uses", "c\n")).strip()
    nodes.objects.delete("persistentvolumeclaims", claim["metadata"])
    nodes.create({"kind": "PersistentVolumeClaim", "metadata": {"name": "other", "namespace": "default"}, "spec": spec})
    # When this one is bound, the deletion of the first has been looked at, too.
    await nodes.until("other", lambda claim: claim["status"]["phase"] == "Bound", "persistentvolumeclaims")
    assert is_folder(folder)
    nodes.objects.delete("pods", nodes.pod("uses")["metadata"], grace_seconds=1)
    await nodes.gone("uses")
    await nodes.until_gone("persistentvolumes", "", f"pvc-{claim['metadata']['uid']}")
    assert not is_folder(folder)


@pytest.mark.parametrize(("volume", "told"), [
    pytest.param({"secret": {"secretName": "none"}}, 'secret "none" not found', id="no such Secret"),
    pytest.param({"hostPath": {"path": "/nowhere/at/all"}}, "hostPath /nowhere/at/all does not exist on this machine",
                 id="no such folder"),
    pytest.param({"nfs": {"server": "s", "path": "/p"}}, "the embedded cluster mounts no volume of type nfs", id="nfs"),
])  # fmt: skip
async def test_a_volume_that_cannot_be_mounted_is_named(nodes: Embedded, volume: Json, told: str) -> None:
    mounts = [{"name": "v", "mountPath": "/v"}]
    nodes.create(pod("waits", "true", volumeMounts=mounts, spec={"volumes": [{"name": "v", **volume}]}))
    waiting = await nodes.until_event("waits", "FailedMount")
    assert waiting.startswith(f'MountVolume.SetUp failed for volume "v" : {told}')
    assert state(nodes.pod("waits"))["waiting"]["reason"] == "ContainerCreating"
    assert any(told in sentence for sentence in nodes.said)


async def test_a_script_may_end_like_the_name_of_a_program(nodes: Embedded) -> None:
    nodes.create(pod("long", script=f"echo started; : {'a' * 300}.py"))
    await nodes.ended("long")
    assert await nodes.log("long") == "started\n"


async def test_paths_with_spaces_may_stand_in_a_script(tmp_path: Path) -> None:
    data = tmp_path / "my data"
    data.mkdir()
    (data / "train").write_text("rows\n")
    async with embedded(tmp_path, state=tmp_path / "my runs", mapped={"/data": data}) as nodes:
        volumes = {"volumes": [{"name": "v", "emptyDir": {}}]}
        mounts = [{"name": "v", "mountPath": "/scratch"}]
        script = "cp /data/train /scratch/copy && cat /scratch/copy"
        nodes.create(pod("copies", script=script, volumeMounts=mounts, spec=volumes))
        await nodes.ended("copies")
        assert await nodes.log("copies") == "rows\n"


async def test_a_mount_that_the_disk_refuses_is_waited_for(nodes: Embedded, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    mounts = [{"name": "v", "mountPath": "/v", "subPath": "file/below"}]
    volumes = {"volumes": [{"name": "v", "hostPath": {"path": str(tmp_path)}}]}
    nodes.create(pod("waits", script="cat /v/told", volumeMounts=mounts, spec=volumes))
    assert "Not a directory" in await nodes.until_event("waits", "Failed")
    assert state(nodes.pod("waits"))["waiting"]["reason"] == "CreateContainerConfigError"
    (tmp_path / "file").unlink()
    (tmp_path / "file" / "below").mkdir(parents=True)
    (tmp_path / "file" / "below" / "told").write_text("it came")
    await nodes.ended("waits")
    assert await nodes.log("waits") == "it came"


async def test_a_folder_takes_the_place_of_what_a_cluster_would_mount(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "train").write_text("rows\n")
    async with embedded(tmp_path, mapped={"/data": data}) as nodes:
        volumes = {"volumes": [{"name": "v", "nfs": {"server": "s", "path": "/p"}}]}
        mounts = [{"name": "v", "mountPath": "/data"}]
        nodes.create(pod("maps", script="cat /data/train", volumeMounts=mounts, spec=volumes))
        await nodes.ended("maps")
        assert await nodes.log("maps") == "rows\n"


@pytest.mark.parametrize(("folder", "expected"), [
    pytest.param(None, "{here}", id="none: the manifest's folder"),
    pytest.param("/app", "{here}", id="one of the image: the manifest's folder"),
    pytest.param("/project/sub", "{volume}/sub", id="one in a volume"),
])  # fmt: skip
async def test_where_a_command_runs(nodes: Embedded, tmp_path: Path, folder: str | None, expected: str) -> None:
    mounts = [{"name": "v", "mountPath": "/project"}]
    first = {"name": "first", "image": "x", "command": ["mkdir", "/project/sub"], "volumeMounts": mounts}
    spec = {"volumes": [{"name": "v", "emptyDir": {}}], "initContainers": [first]}
    more = {"workingDir": folder} if folder else {}
    nodes.create(pod("where", script="pwd; echo /project", volumeMounts=mounts, spec=spec, **more))
    await nodes.ended("where")
    cwd, volume = (await nodes.log("where")).split()
    assert cwd == expected.format(here=tmp_path, volume=volume)


async def test_a_path_that_is_written_into_the_program_is_pointed_out(nodes: Embedded, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import os\nprint(os.path.exists('/data/train'))\n")
    mounts = [{"name": "v", "mountPath": "/data"}]
    spec = {"volumes": [{"name": "v", "emptyDir": {}}]}
    nodes.create(pod("fixed", "python3", "train.py", volumeMounts=mounts, spec=spec))
    await nodes.ended("fixed")
    assert any(sentence.startswith("train.py:2 has /data written in it") for sentence in nodes.said)


async def test_a_sidecar_without_a_command_is_told_that_there_are_no_images(nodes: Embedded) -> None:
    body = pod("two", "true")
    body["spec"]["containers"].append({"name": "side", "image": "nginx"})
    nodes.create(body)
    waiting = await nodes.until(
        "two", lambda pod: state(pod, "side").get("waiting", {}).get("reason") == "CreateContainerError"
    )
    told = "container side names no command, and there are no images here to ask"
    assert state(waiting, "side")["waiting"]["message"] == told


async def test_peers_are_found_at_the_same_loopback_ports_by_all(nodes: Embedded) -> None:
    ports = [{"name": f"p{port}", "port": port} for port in (*range(2222, 2230), 2280)]
    nodes.create({
        "kind": "Service",
        "metadata": {"name": "peers", "namespace": "default"},
        "spec": {"clusterIP": "None", "selector": {"job": "j"}, "ports": ports},
    })  # fmt: skip
    names = [f"j-worker-{index}.peers.default.svc.cluster.local" for index in range(2)]
    told = json.dumps(
        {"tf": [f"{name}:2222" for name in names], "last": f"{names[0]}:2229", "status": f"{names[0]}:2280"}
    )
    status = {"name": "dtj-status", "containerPort": 2280}
    for index in range(2):
        env = [{"name": "TOLD", "value": told}]
        spec = {"hostname": f"j-worker-{index}", "subdomain": "peers"}
        nodes.create(pod(f"j-{index}", script='echo "$TOLD"', env=env, ports=[status], spec=spec))
        await nodes.ended(f"j-{index}")
    first, second = json.loads(await nodes.log("j-0")), json.loads(await nodes.log("j-1"))
    assert first == second
    hosts, numbers = zip(
        *(address.split(":") for address in [*first["tf"], first["last"], first["status"]]), strict=True
    )
    assert set(hosts) == {"127.0.0.1"}
    tf_0, tf_1, last, status_0 = map(int, numbers)
    assert last == tf_0 + 7
    ranges = [set(range(tf_0, tf_0 + 8)), set(range(tf_1, tf_1 + 8)), {status_0}]
    assert len(set.union(*ranges)) == 17
    annotations = nodes.pod("j-0")["metadata"]["annotations"]
    assert annotations["dtj.dev/status-address"] == first["status"]


def is_folder(path: str) -> bool:
    return Path(path).is_dir()
