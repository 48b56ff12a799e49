"""What the tests of installs and rights share: jobs that only count, looks at them, and a chart of the next version."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

from e2e.chart import CHART
from e2e.cluster import Cluster
from e2e.daemon import wait
from tests.worlds.world import counting

Json = dict[str, Any]

CRD = "crd/distributedtrainingjobs.dtj.dev"
NEXT = "99.0.0"
"""A version that is newer than any there will be."""
FIELD = "description: How many workers train"


def submit(cluster: Cluster, name: str, *, namespace: str = "default", steps: int = 100_000, **spec: Any) -> None:
    """A job of two pods that counts, without checkpoints if nothing else is said."""
    job = counting(name, steps=steps, **{"checkpoint": None, **spec})
    job["metadata"]["namespace"] = namespace
    job["spec"] = {field: value for field, value in job["spec"].items() if value is not None}
    cluster.kubectl("create", "--filename=-", stdin=json.dumps(job))


def job_of(cluster: Cluster, name: str, namespace: str = "default") -> Json:
    found = json.loads(cluster.kubectl("get", "dtj", name, f"--namespace={namespace}", "--output=json"))
    return dict(found.get("status", {}))


def await_phase(cluster: Cluster, name: str, phase: str, namespace: str = "default", seconds: int = 120) -> None:
    condition = f"--for=jsonpath={{.status.phase}}={phase}"
    cluster.kubectl("wait", condition, f"dtj/{name}", f"--namespace={namespace}", f"--timeout={seconds}s")


def await_progress(cluster: Cluster, name: str) -> None:
    """Somebody hears the job and writes so: its step becomes another one."""
    before = job_of(cluster, name).get("progress")
    wait(f"{name} makes steps and is heard", lambda: job_of(cluster, name).get("progress") != before, 60)


def pods_of(cluster: Cluster, name: str, namespace: str = "default") -> dict[str, tuple[str, int]]:
    """Of each pod its uid, and how often its containers were started again."""
    selector = f"--selector=dtj.dev/job-name={name}"
    found = json.loads(cluster.kubectl("get", "pods", f"--namespace={namespace}", selector, "--output=json"))
    return {
        pod["metadata"]["name"]: (
            pod["metadata"]["uid"],
            sum(container["restartCount"] for container in pod["status"]["containerStatuses"]),
        )
        for pod in found["items"]
    }


def next_chart(folder: Path) -> Path:
    """The chart as its next version may be: the definition says more, and the operator's pods are others."""
    chart = folder / "next"
    shutil.copytree(CHART, chart)
    values = chart / "values.yaml"
    values.write_text(values.read_text().replace("podAnnotations: {}", f"podAnnotations: {{version: {NEXT}}}"))
    about = chart / "Chart.yaml"
    about.write_text(re.sub(r"^((app)?[vV]ersion):.*", rf"\1: {NEXT}", about.read_text(), flags=re.MULTILINE))
    definition = chart / "files" / "crd.yaml"
    definition.write_text(definition.read_text().replace(FIELD, f"{FIELD} in {NEXT}"))
    return chart


def definition_of(cluster: Cluster) -> tuple[str, bool]:
    """The version that the cluster's definition says it has, and whether it is the next one's."""
    found = cluster.kubectl("get", CRD, "--output=json")
    return json.loads(found)["metadata"]["annotations"]["dtj.dev/version"], f"How many workers train in {NEXT}" in found
