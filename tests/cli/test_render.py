"""`dtj render` and `dtj validate`: what they print of the examples and of wrong files."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from dtj_operator.cli.outcome import BAD_MANIFEST, Ended
from dtj_operator.cli.render import render
from dtj_operator.cli.validate import validate
from tests.cli.command import CLAIM, Json, counting, dtj, write

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.yaml"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate([str(example)]) == 0
    assert "has no fault" in capsys.readouterr().out
    objects = list(yaml.safe_load_all(render([str(example)], "yaml")))
    assert objects[0]["kind"] == "Service"
    assert [one["kind"] for one in objects].count("Pod") >= 1
    assert all({"apiVersion", "kind", "metadata"} <= set(one) for one in objects)


def test_roles_have_their_tf_config(tmp_path: Path) -> None:
    roles = {"chief": {"replicas": 1}, "worker": {"replicas": 2}, "ps": {"replicas": 1}, "evaluator": {"replicas": 1}}
    file = write(tmp_path, CLAIM, counting(roles=roles, strategy="ParameterServer"))
    pods = [one for one in msgspec.json.decode(render([file], "json"))["items"] if one["kind"] == "Pod"]
    found = {pod["metadata"]["name"]: tf_config(pod) for pod in pods}
    assert list(found) == [f"count-{task}-0" for task in ("chief-0", "worker-0", "worker-1", "ps-0", "evaluator-0")]
    training = {"chief": 1, "worker": 2, "ps": 1}
    for name, config in found.items():
        role, index = name.split("-")[1:3]
        assert config["task"] == {"type": role, "index": int(index)}
        extra = {"evaluator": 1} if role == "evaluator" else {}
        assert {of: len(addresses) for of, addresses in config["cluster"].items()} == {**training, **extra}
    assert found["count-ps-0-0"]["cluster"]["worker"][1] == "count-worker-1.count-peers.default.svc.cluster.local:2222"


def test_one_worker_and_no_secret(tmp_path: Path) -> None:
    file = write(tmp_path, CLAIM, counting(roles={"worker": {"replicas": 1}}))
    objects = msgspec.json.decode(render([file], "json"))["items"]
    pod = objects[-1]
    assert tf_config(pod)["cluster"] == {"worker": ["count-worker-0.count-peers.default.svc.cluster.local:2222"]}
    assert pod["spec"]["schedulingGates"] == [{"name": "dtj.dev/gang"}]
    (secret,) = [one for one in objects if one["kind"] == "Secret"]
    assert secret["stringData"] == {"token": "made by the operator"}
    assert "data" not in secret


@pytest.mark.parametrize("command", ["validate", "render"])
async def test_faults_and_the_exit_code(tmp_path: Path, command: str) -> None:
    file = write(tmp_path, CLAIM, counting(rolls={}), counting(name="other", strategy="Fast"))
    ended = await dtj(command, "-f", file, folder=tmp_path)
    assert (ended.code, ended.out) == (BAD_MANIFEST, "")
    first, second = ended.err.splitlines()
    assert first.startswith(f"{file}, document 2: spec.rolls: ")
    assert second.startswith(f"{file}, document 3: spec.strategy: ")


def test_a_list_of_jobs(tmp_path: Path) -> None:
    file = tmp_path / "jobs.json"
    file.write_text(
        json.dumps({"kind": "List", "apiVersion": "v1", "items": [counting(), counting(name="b", rolls=1)]})
    )
    with pytest.raises(Ended) as ended:
        validate([str(file)])
    assert [line.partition(": ")[0] for line in ended.value.lines] == [f"{file}, document 2"]


def tf_config(pod: Json) -> Any:
    (trainer,) = [one for one in pod["spec"]["containers"] if one["name"] == "trainer"]
    (text,) = [variable["value"] for variable in trainer["env"] if variable["name"] == "TF_CONFIG"]
    return json.loads(text)
