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
    ends: list[int], code: int, begun: list[str], tmp_path: Path
) -> None:
    entered: list[str] = []

    def enter(part: suite.Part, after: suite.Part | None, _: Sequence[str]) -> int:
        entered.append(part.kubernetes)
        assert after == (None if part is suite.USUAL[-1] else suite.USUAL[-1])
        return ends[len(entered) - 1]

    assert suite.run(suite.USUAL, enter, lambda _: None, tmp_path / "results") == code
    assert entered == begun


def test_no_table_is_made_of_an_earlier_run(tmp_path: Path) -> None:
    def write(_: suite.Part, __: suite.Part | None, tests: Sequence[str]) -> int:
        Path(tests[-1].removeprefix("--junitxml=")).write_text("of an earlier run")
        return 0

    suite.run(suite.ALL, write, lambda _: None, tmp_path)
    suite.run(suite.ALL, lambda *_: 1, lambda _: None, tmp_path)
    said: list[str] = []
    assert suite.table(said.append, tmp_path) == 1
    assert said == ["docs/scenarios.md stays as it was: there is no report of 1.37, 1.34"]
