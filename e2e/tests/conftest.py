"""Helm on the run's cluster, for tests that install the operator themselves."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e import images
from e2e.chart import NAMESPACE, RELEASE, Helm
from e2e.cluster import Cluster

HERE = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    if not config.pluginmanager.has_plugin("e2e.plugin"):
        raise pytest.UsageError("these tests need a cluster: `python -m e2e test e2e/tests …` brings one up for them")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and not item.get_closest_marker("thorough"):
            item.add_marker(pytest.mark.core)


@pytest.fixture(scope="module")
def helm(cluster: Cluster) -> Iterator[Helm]:
    """Helm, on a cluster without an operator; one that others had installed is back afterwards."""
    nodes = json.loads(cluster.kubectl("get", "nodes", "--output=json"))["items"]
    there = [{name for image in node["status"].get("images", []) for name in image.get("names", [])} for node in nodes]
    missing = [name for name in images.SMALL if not all(f"docker.io/{name}" in names for names in there)]
    for archive in images.archives(missing).values():
        cluster.load(archive)
    found = Helm(cluster.kubeconfig)
    was = {release["name"] for release in json.loads(found("list", f"--namespace={NAMESPACE}", "--output=json"))}
    values = json.loads(found("get", "values", RELEASE, f"--namespace={NAMESPACE}", "--output=json")) if was else {}
    found.uninstall()
    cluster.kubectl("delete", f"namespace/{NAMESPACE}", "--ignore-not-found")
    yield found
    if was:
        found.install(values)
