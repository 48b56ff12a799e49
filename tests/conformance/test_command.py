"""How `python -m tests.conformance` ends."""

import sys

import pytest

from tests.conformance import __main__ as command
from tests.conformance.excuses import at
from tests.conformance.known import EXCUSES
from tests.conformance.servers import all_stories


@pytest.mark.parametrize(("needless", "code"), [(0, 0), (1, 1)])
def test_an_excuse_that_covers_nothing_is_a_failure(needless: int, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    excused = {excuse.story for excuse in EXCUSES}
    story = next(one.place for one in all_stories() if one.place not in excused and "kubectl" not in one.place)
    monkeypatch.setattr(sys, "argv", ["conformance", "-k", story])
    monkeypatch.setattr(command, "EXCUSES", EXCUSES + at(story, 1, "answer.none") * needless)
    assert command.main() == code
