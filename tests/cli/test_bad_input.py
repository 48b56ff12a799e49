"""Wrong manifests through `dtj run`: each ends in a clear line, and most of them before anything is started."""

import copy
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dtj_operator.cli.create import create
from dtj_operator.cli.manifest import read
from dtj_operator.cli.outcome import BAD_MANIFEST, FAILED, Ended
from dtj_operator.cli.run import Wish, run
from dtj_operator.local.api import Api
from dtj_operator.local.objects import Objects
from tests.cli.command import CLAIM, PATIENCE_SECONDS, Json, counting, started, until_line, write

QUOTA: Json = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "small"},
    "spec": {"hard": {"pods": "1"}},
}
OWNER = {
    "apiVersion": "dtj.dev/v1alpha1",
    "kind": "DistributedTrainingJob",
    "name": "count",
    "uid": "of-an-earlier-job",
}
LEFT_BEHIND: Json = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {
        "name": "count-peers",
        "finalizers": ["example.com/slow"],
        "ownerReferences": [{**OWNER, "controller": True}],
    },
    "spec": {"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"port": 2222}]},
}


def with_trainer(**fields: Any) -> Json:
    job = counting()
    job["spec"]["template"]["spec"]["containers"][0] |= fields
    return job


def with_pod(**fields: Any) -> Json:
    job = counting()
    job["spec"]["template"]["spec"] |= fields
    return job


LEVELS = "abcdefghij"
BOMB = "a: &a [x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + below] * 9)}]\n" for below, name in itertools.pairwise(LEVELS)
)
SIDECAR = {"name": "metrics", "image": "any", "command": ["sleep", "9"], "ports": [{"containerPort": 2280}]}
BEFORE_ANYTHING = [
    pytest.param(
        with_trainer(env=[{"name": "TF_CONFIG", "value": "{}"}]),
        ["spec.template.spec.containers[0].env[0]: TF_CONFIG: the operator gives every task its own; remove it"],
        id="TF_CONFIG set",
    ),
    pytest.param(
        counting(name="a" * 60), ["metadata.name: ", "is too long: 47 characters leave room"], id="name too long"
    ),
    pytest.param(
        with_pod(containers=[]),
        ["spec.template.spec.containers: the pod of worker has no container; add the one that trains"],
        id="no containers",
    ),
    pytest.param(
        with_pod(containers=[{"name": "trainer", "image": "any", "args": ["counter.py"]}, SIDECAR]),
        ["spec.template.spec.containers[1].ports[0].containerPort: the supervisor listens on 2280; take another"],
        id="port clash",
    ),
    pytest.param(
        counting(checkpoint={"persistentVolumeClaim": "elsewhere"}),
        ["spec.checkpoint.persistentVolumeClaim: there is no PersistentVolumeClaim elsewhere in namespace default"],
        id="missing claim",
    ),
    pytest.param(
        with_trainer(envFrom=[{"configMapRef": {"name": "settings"}}]),
        ["spec.template.spec.containers[0].envFrom[0].configMapRef: there is no ConfigMap settings"],
        id="missing config map",
    ),
    pytest.param(
        with_pod(volumes=[{"name": "all", "projected": {"sources": [{"secret": {"name": "keys"}}]}}]),
        ["spec.template.spec.volumes[0].projected.sources[0].secret.name: there is no Secret keys"],
        id="missing projected secret",
    ),
    pytest.param(
        with_trainer(arg=["x"], env=[{"name": "A", "value": 3}]),
        [
            "spec.template.spec.containers[0].arg: unknown field; did you mean args?",
            "spec.template.spec.containers[0].env[0].value: expected a text, got 3; put it in quotes",
        ],
        id="typos in a template",
    ),
    pytest.param(
        counting(rolls={}, gang={"timeoutSeconds": "soon"}),
        ["spec.rolls: ", "spec.gang.timeoutSeconds: "],
        id="every fault at once",
    ),
]


@pytest.mark.parametrize(("job", "lines"), BEFORE_ANYTHING)
def test_told_before_anything_is_started(tmp_path: Path, job: Json, lines: Sequence[str]) -> None:
    with pytest.raises(Ended) as ended:
        run(Wish(files=[write(tmp_path, CLAIM, job)]))
    assert ended.value.code == BAD_MANIFEST
    assert all(line.startswith(f"{tmp_path}/job.yaml, document 2: ") for line in ended.value.lines)
    assert all(any(line in told for told in ended.value.lines) for line in lines), ended.value.lines


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param(
            "a:\n  b: [",
            "job.yaml: no YAML: line 3, column 1: while parsing a flow node: did not find expected node content",
            id="no YAML",
        ),
        pytest.param("a: \x00", "job.yaml: no YAML: ", id="no text"),
        pytest.param(
            "kind: A\nspec:\n  roles: 1\n  more: 2\n  roles: 3",
            "job.yaml: line 5: 'roles' is there again, first in line 3; leave one of them",
            id="a key twice",
        ),
        pytest.param("{a: {b: 1, b: 2}}", "line 1: 'b' is there again, first in line 1", id="a key twice in a line"),
        pytest.param("- 1", "a manifest is an object with apiVersion, kind and metadata", id="a list"),
        pytest.param("", "job.yaml: it is empty; a DistributedTrainingJob is expected in it", id="empty"),
        pytest.param("---\n# later\n---\n", "job.yaml: it is empty", id="nothing but comments"),
        pytest.param("&a [*a]", "nested too deep, or contains itself", id="endless"),
        pytest.param("a: .nan\nkind: Pod", "it holds what JSON can't: the number nan", id="no number"),
        pytest.param("kind: Pod", "there is no DistributedTrainingJob", id="another kind"),
        pytest.param(BOMB, "its aliases stand for more than 1000000 values", id="aliases of aliases"),
    ],
)
def test_no_manifest(tmp_path: Path, text: str, line: str) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(text)
    with pytest.raises(Ended, match=r"job\.yaml") as ended:
        run(Wish(files=[str(file)]))
    assert ended.value.code == BAD_MANIFEST
    assert line in ended.value.lines[0]


def test_keys_that_are_there_once(tmp_path: Path) -> None:
    """What is merged in may be overridden, and what is there by an alias is there once."""
    file = tmp_path / "job.yaml"
    file.write_text("a: &a {b: 1, c: 2}\nd: &d {<<: *a, b: 3}\ne: {<<: [*a, *d], b: 4}\nf: [*d, *d]")
    (document,) = read([str(file)])
    assert document.body["e"] == {"b": 4, "c": 2}


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(Ended, match=r"nothing\.yaml: No such file or directory"):
        run(Wish(files=[str(tmp_path / "nothing.yaml")]))


def test_a_fault_of_another_form(tmp_path: Path) -> None:
    with pytest.raises(Ended, match=r"--fail: 'worker@60' is no fault; expected role:index@step=N"):
        run(Wish(files=[write(tmp_path, CLAIM, counting())], fail="worker@60"))


def test_a_template_that_the_api_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(
        Ended, match=r'spec\.roles\.worker\.template: .*imagePullPolicy: Unsupported value: "Sometimes"'
    ) as ended:
        run(Wish(files=[write(tmp_path, CLAIM, with_trainer(imagePullPolicy="Sometimes"))], output="json"))
    assert ended.value.code == BAD_MANIFEST
    (condition,) = json.loads(capsys.readouterr().out)["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Accepted", "False", "TemplateRefused")


def test_another_object_that_the_api_refuses(tmp_path: Path) -> None:
    claim = copy.deepcopy(CLAIM)
    claim["spec"]["accessModes"] = ["Sometimes"]
    with pytest.raises(Ended, match=r'job\.yaml, document 1: .*Unsupported value: "Sometimes"') as ended:
        run(Wish(files=[write(tmp_path, claim, counting())]))
    assert ended.value.code == BAD_MANIFEST


def test_a_program_that_does_not_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = with_trainer(args=["nowhere.py"])
    assert run(Wish(files=[write(tmp_path, CLAIM, job)])) == FAILED
    last = capsys.readouterr().out.rstrip().splitlines()[-1]
    assert f"program nowhere.py: No such file or directory (working directory {tmp_path})" in last


def test_a_namespace_may_stand_behind_what_lies_in_it(tmp_path: Path) -> None:
    api = Api()
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml", "labels": {"team": "a"}}}
    claim = {**CLAIM, "metadata": {**CLAIM["metadata"], "namespace": "ml"}}
    create(api, read([write(tmp_path, claim, namespace)]))
    assert Objects(api, "test").find("persistentvolumeclaims", "ml", "checkpoints")
    made = Objects(api, "test").find("namespaces", "", "ml")
    assert made is not None
    assert made["metadata"]["labels"]["team"] == "a"


@pytest.mark.parametrize(
    ("document", "line"),
    [
        pytest.param(QUOTA, "exceeded quota: small", id="namespace at its quota"),
        pytest.param(LEFT_BEHIND, "waits for Service count-peers of an earlier job to be gone", id="predecessor"),
    ],
)
async def test_told_while_it_waits(tmp_path: Path, document: Json, line: str) -> None:
    file = write(tmp_path, document, CLAIM, counting())
    async with started("run", "-f", file, folder=tmp_path) as process:
        await until_line(process.stdout, line)


@pytest.mark.parametrize(
    ("gpus", "remedy"),
    [
        pytest.param(
            2, "2 × nvidia.com/gpu per pod, largest node has 1; the nodes are played: --gpus 2 --nodes 2 ", id="a pod"
        ),
        pytest.param(
            1,
            "2 pods with 1 × nvidia.com/gpu each, and all nodes together hold 1; the nodes are played: --nodes 2, or "
            "--gpus 2 makes room for all",
            id="the gang",
        ),
    ],
)
def test_gpus_that_no_node_will_ever_have(tmp_path: Path, gpus: int, remedy: str) -> None:
    job = with_trainer(resources={"limits": {"nvidia.com/gpu": gpus}})
    # The limit is for the case that it waits after all.
    with pytest.raises(Ended) as ended:
        run(Wish(files=[write(tmp_path, CLAIM, job)], gpus=1, timeout=PATIENCE_SECONDS))
    assert ended.value.code == BAD_MANIFEST
    (line,) = ended.value.lines
    assert line.startswith(f"{tmp_path}/job.yaml, document 2: can never fit: ")
    assert remedy in line


def test_a_node_that_the_job_may_not_have(tmp_path: Path) -> None:
    with pytest.raises(Ended, match=r"can never fit: .*node selector.*; .* change what the job asks for"):
        run(Wish(files=[write(tmp_path, CLAIM, with_pod(nodeSelector={"pool": "gpu"}))], timeout=PATIENCE_SECONDS))
