"""The supervisor is brought into an image that has TensorFlow and nothing of ours, with a script that knows nothing."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e import images
from e2e.chart import Helm
from e2e.cluster import Cluster
from e2e.tests.installs import await_phase, job_of

Json = dict[str, Any]

FOREIGN = "dtj/foreign:latest"
EXAMPLE = Path(__file__).parents[2] / "examples" / "digits" / "job.yaml"


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """One that takes only pods that are restricted."""
    cluster.kubectl("create", "namespace", "foreign")
    cluster.kubectl("label", "namespace", "foreign", "pod-security.kubernetes.io/enforce=restricted")
    yield "foreign"
    cluster.kubectl("delete", "namespace", "foreign")


@pytest.mark.machine
@pytest.mark.timeout(400)
def test_a_foreign_image_trains_and_is_heard(cluster: Cluster, helm: Helm, namespace: str) -> None:
    there = cluster.kubectl("get", "nodes", "--output=jsonpath={.items[*].status.images[*].names}")
    if FOREIGN not in there:
        cluster.load(images.archives([FOREIGN])[FOREIGN])
    helm.install()
    job: Json = yaml.safe_load(EXAMPLE.read_text())
    job["metadata"] |= {"name": "foreign", "namespace": namespace}
    del job["spec"]["checkpoint"]  # of which scenarios tell
    job["spec"]["supervisor"] = "Inject"
    trainer = job["spec"]["template"]["spec"]["containers"][0]
    del trainer["args"]
    trainer |= {"image": FOREIGN, "command": ["python", "fit.py"], "imagePullPolicy": "Never"}
    cluster.kubectl("create", "--filename=-", stdin=json.dumps(job))
    await_phase(cluster, "foreign", "Succeeded", namespace, seconds=300)

    status = job_of(cluster, "foreign", namespace)
    assert status.get("restarts", {}).get("total", 0) == 0
    assert status["progress"]["step"] == 20 * 11, "20 epochs of the 11 whole batches in 1437 images were heard of"
    printed = cluster.kubectl("logs", "foreign-worker-0-0", f"--namespace={namespace}", "--container=trainer")
    accuracy = re.search(r"test accuracy (0\.\d+)", printed)
    assert accuracy is not None, printed[-2000:]
    assert float(accuracy[1]) >= 0.93
