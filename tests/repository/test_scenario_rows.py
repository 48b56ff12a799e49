"""Each scenario of the tree has a row in docs/scenarios.md, and each row there is of a scenario."""

from itertools import pairwise

from tools.scenarios import PAGE, page, scenarios


def test_the_page_has_the_scenarios_of_the_tree() -> None:
    rows = {(file, scenario.partition(": ")[0]) for file, scenario in rows_of(PAGE.read_text())}
    assert rows == set(scenarios()), "`make e2e ALL=1` makes docs/scenarios.md anew; until then a row has dashes"


def test_a_scenario_that_no_run_has_is_a_row_of_dashes() -> None:
    made = page({"embedded": [], "1.37.2": []}, [("ends", "all is well")])
    assert "| all is well | – | – |\n" in made
    assert rows_of(made) == [("ends", "all is well")]


def rows_of(text: str) -> list[tuple[str, str]]:
    """File and words."""
    found, file = [], ""
    for before, line in pairwise(text.splitlines()):
        file = line.removeprefix("## ") if line.startswith("## ") else file
        is_row = line.startswith("| ") and not line.startswith(("| |", "| ---")) and before.startswith("|")
        found += [(file, line.split(" | ")[0].removeprefix("| "))] if is_row else []
    return found
