"""pytest plugin: the cluster of a whole test run, its own inside the namespace, or the one that KUBECONFIG names."""

import os
from pathlib import Path

import pytest

from e2e import machine
from e2e.cluster import Cluster, attached
from e2e.given import Given


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "machine: needs the machine of the nodes; skipped on a cluster of KUBECONFIG")
    if not inside() and "KUBECONFIG" not in os.environ:
        raise pytest.UsageError("these tests run by `python -m e2e test …`, or on the cluster that KUBECONFIG names")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not inside():
        for item in items:
            if item.get_closest_marker("machine"):
                item.add_marker(pytest.mark.skip(reason="needs the machine of the nodes, and the cluster was given"))


@pytest.fixture(scope="session")
def cluster() -> Cluster | Given:
    return attached(machine.folder()) if inside() else Given(Path(os.environ["KUBECONFIG"]))


def inside() -> bool:
    return machine.FOLDER in os.environ
