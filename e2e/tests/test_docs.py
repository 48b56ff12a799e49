"""The commands of docs/install.md as they stand there, in an order in which a platform engineer would type them."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.chart import Helm, program
from e2e.cluster import Cluster

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "install.md"
OUR_NAMES = {f"docker.io/dtj/{name}:e2e": f"docker.io/dtj/{name}:0.1.0" for name in ("operator", "supervisor")}
"""What the images of this tree are called by a chart whose values say nothing."""

WITH_HELM = (
    "helm install dtj charts/dtj-operator --namespace dtj-system --create-namespace",
    "kubectl -n dtj-system rollout status deployment/dtj-operator",
    "helm -n dtj-system test dtj",
    "kubectl apply -f examples/smallest.yaml",
    "kubectl get dtj",
    "helm upgrade dtj charts/dtj-operator --namespace dtj-system",
    "helm rollback dtj --namespace dtj-system",
    "helm uninstall dtj --namespace dtj-system",
)
WITHOUT_HELM = (
    "kubectl apply -f install.yaml",
    WITH_HELM[1],
    "kubectl delete -f install.yaml",
)
OF_SOME_NAMESPACES = (
    "helm install dtj charts/dtj-operator --namespace dtj-system --create-namespace --set 'namespaces={team-a,team-b}'",
)
TO_REMOVE_ALL = (
    "kubectl delete crd distributedtrainingjobs.dtj.dev",
    "kubectl delete namespace dtj-system",
)


def test_every_command_of_the_page_is_run_here() -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    written = {line for block in blocks for line in block.splitlines()}
    assert written == {*WITH_HELM, *WITHOUT_HELM, *OF_SOME_NAMESPACES, *TO_REMOVE_ALL}


@pytest.fixture
def bare(cluster: Cluster, helm: Helm) -> Iterator[Cluster]:
    """No operator and no definition, before and after; the images have the names that the chart gives them."""
    for node in cluster.nodes.values():
        for ours, theirs in OUR_NAMES.items():
            node.containerd.ctr("images", "tag", "--force", ours, theirs)
    remove(cluster)
    yield cluster
    helm.uninstall()
    cluster.kubectl("delete", "namespace/team-a", "namespace/team-b", "--ignore-not-found")
    remove(cluster)


def remove(cluster: Cluster) -> None:
    gone = ("crd/distributedtrainingjobs.dtj.dev", "namespace/dtj-system")
    cluster.kubectl("delete", *gone, "--ignore-not-found")


def typed(cluster: Cluster, line: str) -> str:
    """As in a terminal, in a clone: what it printed."""
    paths = (str(program().parent), str(Path(sys.executable).parent), os.environ["PATH"])
    environment = os.environ | {"PATH": os.pathsep.join(paths), "KUBECONFIG": str(cluster.kubeconfig)}
    done = subprocess.run(
        ["bash", "-c", line], cwd=ROOT, env=environment, text=True, capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.machine
@pytest.mark.timeout(600)
def test_from_install_to_uninstall(bare: Cluster) -> None:
    said = {line: typed(bare, line) for line in WITH_HELM}
    assert "successfully rolled out" in said["kubectl -n dtj-system rollout status deployment/dtj-operator"]
    assert said["kubectl get dtj"].splitlines()[1].startswith("mnist ")
    assert "mnist" in bare.kubectl("get", "dtj"), "an uninstall keeps the jobs"
    for way in (TO_REMOVE_ALL, WITHOUT_HELM):
        for line in way:
            typed(bare, line)
        assert "dtj.dev" not in bare.kubectl("api-versions")
        assert "dtj-operator" not in bare.kubectl("get", "clusterroles,clusterrolebindings", "--output=name")
    for name in ("team-a", "team-b"):
        bare.kubectl("create", "namespace", name)
    for line in (*OF_SOME_NAMESPACES, WITH_HELM[1]):
        typed(bare, line)
