"""What `make e2e` runs: on which Kubernetes, from which images, which tests."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from e2e import images
from e2e.machine import ROOT
from e2e.programs import KUBERNETES, cache, version

SCENARIOS = ("tests/scenarios", "--world=kube")
EVERYTHING = (*SCENARIOS, "e2e/tests")
"""Scenarios first, in one run: they share an operator, and tests of the chart take it away."""
WITH_TENSORFLOW = ("dtj/digits:latest", "dtj/foreign:latest")


@dataclass(frozen=True)
class Part:
    """A run of pytest on a cluster of its own."""

    kubernetes: str
    images: tuple[str, ...]
    tests: tuple[str, ...]


USUAL = (
    Part("1.37", (*WITH_TENSORFLOW, *images.SMALL), (*EVERYTHING, "-m", "core")),
    Part("1.34", images.SMALL, (*EVERYTHING, "-m", "smoke")),
)
ALL = tuple(Part(version, (*WITH_TENSORFLOW, *images.SMALL), EVERYTHING) for version in ("1.37", "1.34"))

Enter = Callable[[str, Sequence[str], Sequence[str]], int]
"""Run pytest with these arguments on a cluster of a version that has these images; the exit code."""


def run(parts: Sequence[Part], enter: Enter, say: Callable[[str], None]) -> int:
    """All parts, whatever one of them ends with; the largest exit code. Their reports are in `results`."""
    results().mkdir(parents=True, exist_ok=True)
    codes = [0]
    for part in parts:
        report = f"--junitxml={report_of(part.kubernetes)}"
        codes.append(enter(part.kubernetes, part.images, [*part.tests, report]))
        say(f"Kubernetes {part.kubernetes}: {'passed' if not codes[-1] else f'failed with {codes[-1]}'}")
    return max(codes)


def table(say: Callable[[str], None]) -> int:
    """docs/scenarios.md, of what all parts reported and of the embedded cluster, where the scenarios run now."""
    embedded = results() / "embedded.xml"
    played = (sys.executable, "-m", "pytest", "tests/scenarios", "--world=embedded", f"--junitxml={embedded}")
    code = subprocess.run(played, cwd=ROOT, check=False).returncode
    columns = (f"{full_version(part.kubernetes)}={report_of(part.kubernetes)}" for part in ALL)
    command = (sys.executable, "-m", "tools.scenarios", f"embedded={embedded}", *columns)
    made = subprocess.run(command, cwd=ROOT, check=False).returncode
    if not made:
        say("docs/scenarios.md is made anew")
    return max(code, made)


def full_version(kubernetes: str) -> str:
    """`1.37.2`, as the cluster itself says it."""
    return version(KUBERNETES[kubernetes]).removeprefix("v")


def on_given(tests: Sequence[str]) -> int:
    """On the cluster of KUBECONFIG, which has the operator and the images."""
    return subprocess.run((*pytest(), *tests), cwd=ROOT, check=False).returncode


def pytest() -> tuple[str, ...]:
    return sys.executable, "-m", "pytest", "-p", "e2e.plugin"


def results() -> Path:
    return cache() / "results"


def report_of(kubernetes: str) -> Path:
    return results() / f"{kubernetes}.xml"
