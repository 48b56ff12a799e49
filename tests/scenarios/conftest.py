"""Every scenario runs in every world that `--world` names and that can do what its story needs."""

from collections.abc import AsyncIterator

import looptime
import pytest

from tests.worlds import embedded, sim
from tests.worlds.embedded import embedded_world
from tests.worlds.sim import sim_world
from tests.worlds.world import Ability, World

ABILITIES: dict[str, frozenset[Ability]] = {"sim": sim.ABILITIES, "embedded": embedded.ABILITIES}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "world" in metafunc.fixturenames:
        needed = {one for mark in metafunc.definition.iter_markers("needs") for one in mark.args}
        asked = metafunc.config.getoption("--world").split(",")
        metafunc.parametrize("world", [name for name in asked if needed <= ABILITIES[name]], indirect=True)


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


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    count: int = request.config.getoption("--kills")
    return count
