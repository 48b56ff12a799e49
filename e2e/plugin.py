"""pytest plugin: the cluster of a whole test run, its own inside the namespace, or the one that KUBECONFIG names."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e import machine, programs
from e2e.cluster import Cluster, Options
from e2e.cluster import cluster as own_cluster
from e2e.given import Given


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("e2e")
    group.addoption("--kubernetes", choices=sorted(programs.KUBERNETES), default="1.37", help="the one to bring up")
    group.addoption("--image", type=Path, action="append", default=[], help="a docker-archive for all of its nodes")
    group.addoption("--feature-gates", default="", help="of the cluster that is brought up")


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
def cluster_options(request: pytest.FixtureRequest) -> Options:
    """What the run's cluster is to be like."""
    option = request.config.getoption
    images = tuple(option("--image"))
    return Options(version=option("--kubernetes"), feature_gates=option("--feature-gates"), images=images)


@pytest.fixture(scope="session")
def cluster(cluster_options: Options) -> Iterator[Cluster | Given]:
    if not inside():
        yield Given(Path(os.environ["KUBECONFIG"]))
        return
    with own_cluster(cluster_options, machine.folder(), print) as up:
        yield up


def inside() -> bool:
    return machine.FOLDER in os.environ
