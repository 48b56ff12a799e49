"""What the repository promises about itself: short modules, a bare supervisor, nothing of one machine."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OPERATOR = ROOT / "operator" / "dtj_operator"
WORKER = ROOT / "worker_image" / "dtj_worker"
SOURCES = sorted([*OPERATOR.rglob("*.py"), *WORKER.rglob("*.py")])
BARE = sorted({*WORKER.glob("*.py"), *(WORKER / "supervisor").rglob("*.py")})


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_a_module_is_short_and_has_a_headline(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 280
    assert ast.get_docstring(ast.parse(text)), "the first line says what lives here"


@pytest.mark.parametrize("path", BARE, ids=relative)
def test_what_runs_in_foreign_images_imports_the_standard_library_alone(path: Path) -> None:
    # Which modules of dtj_worker it may import is import-linter's business.
    known = {"dtj_worker", *sys.stdlib_module_names}
    assert {name.split(".")[0] for name in imports(ast.parse(path.read_text()))} - known == set()


def imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "."


@pytest.mark.parametrize("package", ["dtj_operator", "dtj_worker"])
def test_importing_a_package_imports_no_module_of_it_and_no_library(package: str) -> None:
    program = f"import sys; before = set(sys.modules); import {package}; print(*sorted(set(sys.modules) - before))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert [name for name in run.stdout.split() if name.split(".")[0] not in sys.stdlib_module_names] == [package]


def test_nothing_of_one_machine_is_in_the_repository() -> None:
    hosts = [
        "python" + "hosted.org",
        "py" + "pi.org",
        "proxy.go" + "lang.org",
        "registry.npm" + "js.org",
        "deb.de" + "bian.org",
    ]
    options = ["--index" + "-url", "--extra-index" + "-url", "--trusted" + "-host", "--find" + "-links"]
    paths = [f"{ROOT}/", *({f"{Path.home()}/"} - {"//"})]
    stray = re.compile("|".join(re.escape(word) for word in [*hosts, *options, *paths]))
    found = [
        f"{name}:{number}: {line.strip()}"
        for name in committed()
        for number, line in enumerate((ROOT / name).read_text(errors="replace").splitlines(), 1)
        if stray.search(line)
    ]
    assert found == []


def committed() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.parametrize("group", sorted(path.stem for path in (ROOT / "requirements").glob("*.in")))
def test_every_requirement_is_locked(group: str) -> None:
    assert names(f"{group}.in") - names(f"{group}.txt") - {"dtj-worker"} == set(), "run `make lock`"


@pytest.mark.parametrize("group", ["operator", "cli", "worker-cpu"])
def test_what_parts_need_is_developed_with(group: str) -> None:
    assert names(f"{group}.in") - names("dev.txt") - {"dtj-worker"} == set(), "run `make lock`"


def names(file: str) -> set[str]:
    """Of the distributions in a requirement file."""
    lines = (ROOT / "requirements" / file).read_text().splitlines()
    return {found for line in lines if (found := name(line))}


def name(line: str) -> str | None:
    """The normalised distribution name that a line of a requirement file begins with."""
    match = re.match(r"[A-Za-z][A-Za-z0-9._-]*", line)
    return match[0].lower().replace("_", "-") if match else None
