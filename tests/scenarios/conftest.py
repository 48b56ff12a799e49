"""Every scenario runs in every world that `--world` names and that can do what its story needs."""

import os
from collections.abc import AsyncIterator

import looptime
import pytest

from e2e import machine
from e2e.chart import Helm
from e2e.cluster import Cluster
from e2e.given import Given
from tests.worlds import embedded, home, kube, operators, sim
from tests.worlds.embedded import embedded_world
from tests.worlds.kube import KubeWorld, kube_world
from tests.worlds.operators import Installed
from tests.worlds.sim import sim_world
from tests.worlds.world import Ability, World

ABILITIES: dict[str, frozenset[Ability]] = {
    "sim": sim.ABILITIES,
    "embedded": embedded.ABILITIES,
    "kube": kube.ABILITIES if machine.FOLDER in os.environ else kube.ANYWHERE,
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "world" in metafunc.fixturenames:
        needed = needs(metafunc.definition)
        asked = metafunc.config.getoption("--world").split(",")
        if unknown := set(asked) - set(ABILITIES):
            raise pytest.UsageError(f"--world: {', '.join(sorted(unknown))} is none of {', '.join(ABILITIES)}")
        metafunc.parametrize("world", [name for name in asked if needed <= ABILITIES[name]], indirect=True)


def needs(item: pytest.Item) -> set[Ability]:
    return {one for mark in item.iter_markers("needs") for one in mark.args}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        parameters = getattr(item, "callspec", None)
        is_real = parameters is not None and parameters.params.get("world") == "kube"
        if is_real:  # as its patience is longer, too: a wait that is over has a message, a test that is over has none
            own = item.get_closest_marker("timeout")
            limit = own.args[0] if own else float(item.config.getini("timeout"))
            item.add_marker(pytest.mark.timeout(limit * KubeWorld.patience), append=False)


@pytest.fixture
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    match request.param:
        case "sim":
            # By hand, and not by looptime's own mark: that one leaves fixtures in true time.
            with looptime.enabled():
                async with sim_world() as simulated:
                    yield simulated
        case "embedded":
            runs_digits = request.node.get_closest_marker("tensorflow") is not None
            async with embedded_world(folder=embedded.DIGITS if runs_digits else embedded.COUNTER) as running:
                yield running
        case "kube":
            cluster = request.getfixturevalue("cluster")
            os.environ["KUBECONFIG"] = str(cluster.kubeconfig)
            async with kube_world(request.getfixturevalue("installed"), cluster) as real:
                if lacking := sorted(one for one in needs(request.node) if not real.can(one)):
                    pytest.skip(f"the story needs what this cluster has not: {', '.join(lacking)}")
                yield real


@pytest.fixture(scope="session")
def installed(cluster: Cluster | Given) -> Installed:
    """The operator by our chart, once for all scenarios, which a given cluster has already; and their namespace."""
    home.take(cluster.kubectl)
    if isinstance(cluster, Cluster):
        # Two, as by default: a node that is lost may be the operator's.
        Helm(cluster.kubeconfig).install({"replicas": 2})
        return Installed(cluster)
    deployment = (f"deployment/{operators.DEPLOYMENT}", f"--namespace={operators.NAMESPACE}")
    cluster.kubectl("rollout", "status", *deployment, "--timeout=60s")
    return Installed(None)


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    count: int = request.config.getoption("--kills")
    return count
