"""A test that hangs ends with its name, whatever it hangs in."""

import faulthandler
import os
from collections.abc import Generator

import pytest

GRACE = 300.0
"""Seconds that a test's fixtures have to clean up, once its own timeout has ended it: a node of a real cluster is
brought back, and a namespace emptied."""

STDERR = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[STDERR] = os.dup(2)  # during a test, 2 is captured


def pytest_unconfigure(config: pytest.Config) -> None:
    os.close(config.stash[STDERR])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    # pytest-timeout raises in the main thread, once. An event loop keeps what is raised in a callback to itself, C code
    # isn't interrupted, and cleaning up can hang in its turn: then the stacks are printed and the process ends.
    mark = item.get_closest_marker("timeout")
    limit = float(mark.args[0] if mark else item.config.getini("timeout"))
    faulthandler.dump_traceback_later(limit + GRACE, exit=True, file=item.config.stash[STDERR])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
