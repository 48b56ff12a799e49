"""What holds for every test: TensorFlow two at a time, hypothesis without a clock, `--world` for the scenarios."""

import asyncio

import pytest
from hypothesis import settings

# The same examples each time, so that nothing fails which the change at hand has not broken. `deep` looks for new ones.
settings.register_profile("dtj", deadline=None, print_blob=True, derandomize=True)
settings.register_profile("deep", settings.get_profile("dtj"), max_examples=2000, derandomize=False)
settings.load_profile("dtj")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--world", default="sim,embedded", help="where scenarios run: sim, embedded, kube")
    parser.addoption("--kills", type=int, default=3, help="how often one scenario kills the operator at random")


def pytest_configure() -> None:
    # looptime asks for the current loop before each test, and Python 3.11 would make one for it that nobody closes.
    asyncio.set_event_loop(None)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if mark := item.get_closest_marker("tensorflow"):
            # Two supervised jobs at once would starve each other on a small machine and miss deadlines.
            item.add_marker(pytest.mark.xdist_group("supervised" if mark.kwargs.get("supervised") else "unsupervised"))
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(600))
