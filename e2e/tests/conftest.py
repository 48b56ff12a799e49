"""Helm on the run's cluster, for tests that install the operator themselves."""

import json
from collections.abc import Iterator

import pytest

from e2e import images
from e2e.chart import NAMESPACE, RELEASE, Helm
from e2e.cluster import Cluster


@pytest.fixture(scope="module")
def helm(cluster: Cluster) -> Iterator[Helm]:
    """Helm, on a cluster without an operator; one that others had installed is back afterwards."""
    for name, archive in images.archives(images.SMALL).items():
        nodes = json.loads(cluster.kubectl("get", "nodes", "--output=json"))["items"]
        if not all(f"docker.io/{name}" in json.dumps(node["status"].get("images", [])) for node in nodes):
            cluster.load(archive)
    found = Helm(cluster.kubeconfig)
    was = {release["name"] for release in json.loads(found("list", f"--namespace={NAMESPACE}", "--output=json"))}
    values = json.loads(found("get", "values", RELEASE, f"--namespace={NAMESPACE}", "--output=json")) if was else {}
    found.uninstall()
    yield found
    if was:
        found.install(values)
