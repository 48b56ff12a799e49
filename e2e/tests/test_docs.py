"""The commands of README and docs as they stand there, in an order in which a platform engineer would type them."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.chart import CHART, NAMESPACE, Helm, program
from e2e.cluster import Cluster
from e2e.machine import ROOT
from e2e.tests.installs import job_of

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").glob("*/README.md")))
COMMAND = re.compile(r"(kubectl|helm) ")

INSTALL = (
    "helm install dtj charts/dtj-operator --namespace dtj-system --create-namespace",
    "kubectl -n dtj-system rollout status deployment/dtj-operator",
    "helm -n dtj-system test dtj",
    "kubectl label namespace dtj-system pod-security.kubernetes.io/enforce=restricted",
    "kubectl auth can-i --list --as=system:serviceaccount:dtj-system:dtj-operator",
)
FIRST_JOB = (
    "kubectl apply -f examples/digits/job.yaml",
    "kubectl wait dtj/digits --for=condition=Complete --timeout=10m",
    "kubectl get dtj -o wide",
)
DRAINED = """\
sed -e 's/name: digits/name: drained/' -e 's/fit.py/fit.py, --epochs=150/' examples/digits/job.yaml | kubectl apply -f -
kubectl wait dtj/drained --for=condition=Training --timeout=10m
node=$(kubectl get pod drained-worker-1-0 --output='jsonpath={.spec.nodeName}')
kubectl drain "$node" --ignore-daemonsets --delete-emptydir-data
kubectl wait dtj/drained --for=condition=Complete --timeout=10m
kubectl get dtj drained -o wide
kubectl uncordon "$node"
"""
UPGRADE = (
    "helm upgrade dtj charts/dtj-operator --namespace dtj-system",
    "helm rollback dtj --namespace dtj-system",
)
UNINSTALL = ("helm uninstall dtj --namespace dtj-system",)
REMOVE_JOBS = ("kubectl delete dtj --all --all-namespaces",)
REMOVE_ALL = (
    "kubectl delete crd distributedtrainingjobs.dtj.dev",
    "kubectl delete namespace dtj-system",
)
CLAIMS = "kubectl get pvc --all-namespaces -l dtj.dev/job-name"
WITHOUT_HELM = (
    "kubectl apply --server-side -f crds/",
    "kubectl apply -f install.yaml",
    "kubectl -n dtj-system rollout status deployment/dtj-operator",
    "kubectl get dtj",
    "kubectl explain dtj.spec",  # after a command that looks again: explain trusts what kubectl has heard of the API
    "kubectl delete -f install.yaml",
)
OF_SOME_NAMESPACES = (
    "helm install dtj charts/dtj-operator --namespace dtj-system --create-namespace --set 'namespaces={team-a,team-b}'",
)
RUN = {
    *(line for lines in (INSTALL, FIRST_JOB, UPGRADE, UNINSTALL, REMOVE_JOBS, REMOVE_ALL) for line in lines),
    *(line for lines in (WITHOUT_HELM, OF_SOME_NAMESPACES) for line in lines),
    *DRAINED.splitlines(),
    CLAIMS,
}
ONLY_NAMED = {
    *("kubectl apply -f", "kubectl auth can-i", "kubectl create …", "kubectl describe", "kubectl exec"),
    *("kubectl explain", "kubectl get"),
    *("kubectl get dtj -o yaml", "helm upgrade --no-hooks"),
}
"""What the text speaks of, without all that it takes to run it or without a need to."""


def test_every_command_of_the_docs_is_run_here() -> None:
    missing = {f"{page.relative_to(ROOT)}: {line}" for page in PAGES for line in commands(page) - RUN - ONLY_NAMED}
    assert not missing
    written = set().union(*map(commands, PAGES))
    assert written >= RUN | ONLY_NAMED, "nobody is told to do this any more"


def commands(page: Path) -> set[str]:
    """The lines of its shell blocks that have to do with a cluster, and what it has inline of kubectl and helm."""
    text = page.read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    lines = [re.sub(r"\s+# .*", "", line) for block in blocks for line in block.splitlines()]
    inline = re.findall(r"`([^`\n]+)`", text)
    return {line for line in lines if re.search(r"\b(kubectl|helm) ", line)} | {
        words for words in inline if COMMAND.match(words)
    }


@pytest.fixture
def bare(cluster: Cluster, helm: Helm) -> Iterator[Cluster]:
    """No operator and no definition, before and after; volumes for claims."""
    remove(cluster)
    cluster.offer_volumes(6)  # for two claims, and what other tests left pending
    yield cluster
    helm.uninstall()
    cluster.kubectl("delete", "namespace/team-a", "namespace/team-b", "--ignore-not-found")
    cluster.kubectl("uncordon", *cluster.nodes)
    remove(cluster)
    cluster.kubectl("delete", "persistentvolumeclaims", "--all")
    cluster.kubectl("delete", "persistentvolumes", "--all")


def remove(cluster: Cluster) -> None:
    gone = ("crd/distributedtrainingjobs.dtj.dev", "namespace/dtj-system")
    cluster.kubectl("delete", *gone, "--ignore-not-found")


def typed(cluster: Cluster, text: str) -> str:
    """As in a terminal, in a clone: what it printed."""
    paths = (str(program().parent), str(Path(sys.executable).parent), os.environ["PATH"])
    environment = os.environ | {"PATH": os.pathsep.join(paths), "KUBECONFIG": str(cluster.kubeconfig)}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=ROOT,
        env=environment,
        text=True,
        capture_output=True,
        timeout=1500,  # more than all of its own waits
        check=False,
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.machine
@pytest.mark.timeout(2400)
def test_from_install_to_uninstall(bare: Cluster) -> None:
    said = {line: typed(bare, line) for line in (*INSTALL, *FIRST_JOB)}
    assert "successfully rolled out" in said[INSTALL[1]]
    assert said[FIRST_JOB[2]].splitlines()[1].startswith("digits ")
    notes = {line.strip() for line in said[INSTALL[0]].splitlines() if COMMAND.match(line.strip())}
    assert notes, (CHART / "templates" / "NOTES.txt").read_text()
    assert notes <= RUN

    assert "drained" in typed(bare, DRAINED)
    assert job_of(bare, "drained")["restarts"] == {"failures": 0, "disruptions": 1, "stalls": 0, "total": 1}

    for line in (*UPGRADE, *UNINSTALL):
        typed(bare, line)
    assert job_of(bare, "digits")["phase"] == "Succeeded", "an uninstall keeps the jobs"
    for lines in (REMOVE_JOBS, REMOVE_ALL):
        for line in lines:
            typed(bare, line)
    assert nothing_is_left_of_it(bare)
    assert "drained-checkpoints" in typed(bare, CLAIMS)


@pytest.mark.machine
@pytest.mark.timeout(600)
def test_other_ways_to_install(bare: Cluster) -> None:
    for line in WITHOUT_HELM:
        typed(bare, line)
    assert nothing_is_left_of_it(bare)
    for name in ("team-a", "team-b"):
        bare.kubectl("create", "namespace", name)
    for line in (*OF_SOME_NAMESPACES, *INSTALL[1:3]):
        typed(bare, line)
    (operator,) = json.loads(bare.kubectl("get", "deployments", f"--namespace={NAMESPACE}", "--output=json"))["items"]
    assert "--namespaces=team-a,team-b" in json.dumps(operator["spec"]["template"])


def nothing_is_left_of_it(cluster: Cluster) -> bool:
    left = cluster.kubectl("get", "clusterroles,clusterrolebindings", "--output=name")
    return "dtj.dev" not in cluster.kubectl("api-versions") and "dtj-operator" not in left
