"""What `make e2e` runs: on which Kubernetes, from which images, which tests."""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from e2e import commands, images
from e2e.machine import ROOT
from e2e.programs import release

SCENARIOS = ("tests/scenarios", "--world=kube")
EVERYTHING = (*SCENARIOS, "e2e/tests")
"""Scenarios first, in one run: they share an operator, and tests of the chart take it away."""
PLAYED = ("kwok",)
"""What plays a fleet of nodes."""
WITH_TENSORFLOW = ("dtj/digits:latest", "dtj/foreign:latest")


@dataclass(frozen=True)
class Part:
    """A run of pytest on a cluster of its own."""

    kubernetes: str
    images: tuple[str, ...]
    tests: tuple[str, ...]
    programs: tuple[str, ...] = ()
    """Families beyond those of every cluster (`e2e/programs`)."""


USUAL = (
    Part("1.37", (*WITH_TENSORFLOW, *images.SMALL), (*EVERYTHING, "-m", "core")),
    Part("1.34", images.SMALL, (*EVERYTHING, "-m", "smoke")),
)
ALL = tuple(Part(version, (*WITH_TENSORFLOW, *images.SMALL), EVERYTHING, PLAYED) for version in ("1.37", "1.34"))

RESULTS = ROOT / "build" / "results"
"""Of this clone: two of them may be at it."""
INTERRUPTED = (129, 130, 143)
"""By SIGHUP, Ctrl-C and SIGTERM, as shells count them."""

Enter = Callable[[Part, Part | None, Sequence[str]], int]
"""Run pytest with these arguments on the cluster of a part, with an eye to the next one; the exit code."""


def run(parts: Sequence[Part], enter: Enter, say: Callable[[str], None], results: Path = RESULTS) -> int:
    """All parts, whatever a test of one ends with; the largest exit code. Their reports go to `results`."""
    results.mkdir(parents=True, exist_ok=True)
    for part in parts:
        _report(results, part).unlink(missing_ok=True)
    worst = 0
    for part, after in zip_longest(parts, parts[1:]):
        code = enter(part, after, [*part.tests, f"--junitxml={_report(results, part)}"])
        say(f"Kubernetes {part.kubernetes}: {'passed' if not code else f'failed with {code}'}")
        worst = max(worst, code)
        if code in INTERRUPTED:
            break
    return worst


def table(say: Callable[[str], None], results: Path = RESULTS) -> int:
    """docs/scenarios.md, of what all parts reported and of the embedded cluster, where the scenarios run now."""
    if silent := [part.kubernetes for part in ALL if not _report(results, part).exists()]:
        say(f"docs/scenarios.md stays as it was: there is no report of {', '.join(silent)}")
        return 1
    embedded = results / "embedded.xml"
    played = (sys.executable, "-m", "pytest", "tests/scenarios", "--world=embedded", f"--junitxml={embedded}")
    code = commands.foreground(played, ROOT)
    columns = (f"{release(part.kubernetes)}={_report(results, part)}" for part in ALL)
    command = (sys.executable, "-m", "tools.scenarios", f"embedded={embedded}", *columns)
    made = commands.foreground(command, ROOT)
    if not made:
        say("docs/scenarios.md is made anew")
    return max(code, made)


def on_given(tests: Sequence[str]) -> int:
    """On the cluster of KUBECONFIG, which has the operator and the images."""
    print(f"on the cluster of KUBECONFIG ({os.environ['KUBECONFIG']}); without that, on one of its own", flush=True)
    return commands.foreground([*pytest(), *tests], ROOT)


def pytest() -> tuple[str, ...]:
    return sys.executable, "-m", "pytest", "-p", "e2e.plugin"


def _report(results: Path, part: Part) -> Path:
    return results / f"{part.kubernetes}.xml"
