"""How the parts of `make e2e` go one after the other."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from e2e import suite


@pytest.mark.parametrize(
    ("ends", "code", "begun"),
    [
        ([0, 0], 0, ["1.37", "1.34"]),
        ([1, 0], 1, ["1.37", "1.34"]),
        ([130, 0], 130, ["1.37"]),
    ],
)
def test_a_part_that_fails_keeps_no_other_from_its_run_and_an_interrupt_does(
    ends: list[int], code: int, begun: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    entered: list[str] = []

    def enter(version: str, _: Sequence[str], __: Sequence[str]) -> int:
        entered.append(version)
        return ends[len(entered) - 1]

    assert suite.run(suite.USUAL, enter, lambda _: None) == code
    assert entered == begun


def test_no_table_is_made_of_an_earlier_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    suite.results().mkdir(parents=True)
    for part in suite.ALL:
        suite.report_of(part.kubernetes).write_text("of an earlier run")
    suite.run(suite.ALL, lambda *_: 1, lambda _: None)
    said: list[str] = []
    assert suite.table(said.append) == 1
    assert said == ["docs/scenarios.md stays as it was: there is no report of 1.37, 1.34"]
