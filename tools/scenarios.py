"""docs/scenarios.md: which scenario ran where and in what time, made of the JUnit files of test runs.

    python -m tools.scenarios embedded=embedded.xml 1.37.2=e2e-1.37.xml 1.34.4=e2e-1.34.xml

A column may be named several times, for runs of parts; the later one wins. A scenario that no run selected has a dash.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "scenarios.md"
HEAD = """\
# Scenarios

Each is one story in `tests/scenarios/`, told unchanged to the embedded cluster and to real ones of two versions of
Kubernetes. Made by `tools/scenarios.py` of what runs have reported. A cell has the seconds that the scenario took,
set-up and cleaning included, on the machine of that run, which may have had other work; a dash where it was not run, or
the world can't do what the story needs.
"""
WORLDS = re.compile(r"\[(?:sim|embedded|kube|NOTSET)(?:-(?P<row>.*))?\](?:@\w+)?$")


class Result(NamedTuple):
    file: str
    scenario: str
    cell: str


def main() -> int:
    named = [argument.partition("=")[::2] for argument in sys.argv[1:]]
    if not named or not all(file for _, file in named):
        print(__doc__, file=sys.stderr)
        return 2
    columns: dict[str, list[Result]] = {}
    for name, file in named:
        columns.setdefault(name, []).extend(results(Path(file)))
    PAGE.write_text(page(columns, scenarios()))
    return 0


def page(columns: Mapping[str, list[Result]], known: Iterable[tuple[str, str]] = ()) -> str:
    """The whole page; rows in the order of files and, in them, of the first run that has them, then those of none."""
    cells = {name: {(one.file, one.scenario): one.cell for one in found} for name, found in columns.items()}
    rows = dict.fromkeys(row for column in cells.values() for row in column)
    have_run = {(file, scenario.partition(": ")[0]) for file, scenario in rows}
    rows |= dict.fromkeys(one for one in known if one not in have_run)
    parts, file = [HEAD], ""
    for row in sorted(rows, key=lambda row: row[0]):
        if row[0] != file:
            file = row[0]
            parts.append(f"\n## {file}\n\n| | {' | '.join(columns)} |\n| --- |{' ---: |' * len(columns)}\n")
        parts.append(f"| {row[1]} | {' | '.join(column.get(row, '–') for column in cells.values())} |\n")
    return "".join(parts)


def scenarios() -> Iterator[tuple[str, str]]:
    """Of this tree: file and words, without the cases of one scenario."""
    for file in sorted((ROOT / "tests" / "scenarios").glob("test_*.py")):
        for found in ast.parse(file.read_text()).body:
            if isinstance(found, ast.AsyncFunctionDef) and found.name.startswith("test_"):
                yield file.stem.removeprefix("test_"), words(found.name)


def words(function: str) -> str:
    return function.removeprefix("test_").replace("_", " ")


def results(file: Path) -> list[Result]:
    """Of the scenarios in a JUnit file."""
    found = (result(case) for case in ElementTree.parse(file).iter("testcase"))
    return [one for one in found if one is not None]


def result(case: ElementTree.Element) -> Result | None:
    folder, _, module = (case.get("classname") or "").rpartition(".")
    name = case.get("name") or ""
    if not folder.endswith("scenarios"):
        return None
    world = WORLDS.search(name)
    told = words(WORLDS.sub("", name))
    scenario = f"{told}: {world['row']}" if world and world["row"] else told
    return Result(module.removeprefix("test_"), scenario, outcome(case))


def outcome(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "–" if case.find("skipped") is not None else f"{float(case.get('time') or 0):.0f}"


if __name__ == "__main__":
    sys.exit(main())
