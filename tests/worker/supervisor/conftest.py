"""Gangs of real supervisors; none outlives its test."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.worker.supervisor.gang import Gang


@pytest.fixture
def gang(tmp_path: Path) -> Iterator[Callable[..., Gang]]:
    made: list[Gang] = []

    def make(*tasks: str, **told: Any) -> Gang:
        made.append(Gang(tmp_path, tasks, **told))
        return made[-1]

    yield make
    for each in made:
        each.end()
