"""The programs of a real cluster, built from the Go modules under `programs/`, each family once into a cache.

A family is a Go module of its own, since their dependencies disagree; its `tool` lines are what is built.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from e2e import commands

FAMILIES = Path(__file__).resolve().parent / "programs"
KUBERNETES = {"1.37": "kubernetes-1.37", "1.34": "kubernetes-1.34"}


def cache() -> Path:
    """Everything of e2e that is worth keeping from one run to the next; it may be deleted at any time."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "dtj"


def build(family: str, say: Callable[[str], None] = print) -> Path:
    """The folder with the family's programs; they are built where this exact source was not built yet."""
    source = FAMILIES / family
    if not (source / "go.mod").exists():
        known = ", ".join(sorted(path.parent.name for path in FAMILIES.glob("*/go.mod")))
        raise RuntimeError(f"no family of programs {family!r} in {FAMILIES}; there are {known}")
    folder = _folder(source)
    with alone(folder):
        if not folder.exists():
            compile_into(folder, source, say)
    return folder


@contextlib.contextmanager
def beside(family: str, say: Callable[[str], None]) -> Iterator[None]:
    """Build what is needed later by the time that others leave, as far as it gets.

    At the end it is ended, whatever it has come to: what it compiled is in Go's cache, from where `build` goes on.
    """
    if _folder(FAMILIES / family).exists():
        yield
        return
    say(f"building {family} beside, for later")
    # If it fails, `build` says why.
    with commands.beside((sys.executable, "-m", "e2e", "build", family), is_calm=True, is_heard=False):
        yield


def compile_into(folder: Path, source: Path, say: Callable[[str], None]) -> None:
    """Build beside the folder and rename at the end: a folder that exists is whole."""
    started = time.monotonic()
    say(f"building {source.name} {version(source.name)}, once for this machine")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as scratch:
        built = Path(scratch) / "built"
        built.mkdir()
        command = ("go", "build", *flags(source), "-o", f"{built}/", *packages(source))
        commands.run(*command, folder=source, environment={**os.environ, "CGO_ENABLED": "0"})
        built.rename(folder)
    say(f"{source.name} is built after {time.monotonic() - started:.0f} s")


def _folder(source: Path) -> Path:
    return cache() / "programs" / f"{source.name}-{digest(source)}"


def release(kubernetes: str) -> str:
    """Of `1.37` the version in full, `1.37.2`, as the cluster itself says it."""
    return version(KUBERNETES[kubernetes]).removeprefix("v")


def version(family: str) -> str:
    """That of the module which gives the family its name, as it is pinned: `v1.37.2`; empty where nothing is."""
    text = (FAMILIES / family / "go.mod").read_text()
    package = next(iter(packages(FAMILIES / family)))
    pinned = dict(re.findall(r"^\s*(?:require )?(\S+) (v\S+)", text, re.MULTILINE))
    modules = [module for module in pinned if package == module or package.startswith(f"{module}/")]
    if package == ".":
        modules = [module for module in pinned if module.endswith(f"/{family}")]
    return pinned[max(modules, key=len)] if modules else ""


def flags(source: Path) -> list[str]:
    """Small, the same wherever they are built, and with Kubernetes' own version in them."""
    link = f"-s -w -X k8s.io/component-base/version.gitVersion={version(source.name)}"
    return ["-trimpath", "-buildvcs=false", "-ldflags", link]


def packages(source: Path) -> list[str]:
    """The module's tools; a module without any is itself the program."""
    text = (source / "go.mod").read_text()
    block = re.search(r"^tool \((.*?)\)", text, re.MULTILINE | re.DOTALL)
    named = block.group(1).split() if block else re.findall(r"^tool (\S+)", text, re.MULTILINE)
    return sorted(named) or ["."]


def digest(source: Path) -> str:
    """What the programs follow from: the module's own files, the flags, the compiler."""
    whole = hashlib.sha256(repr((flags(source), compiler())).encode())
    for path in sorted(source.iterdir()):
        whole.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return whole.hexdigest()[:16]


def compiler() -> str:
    if not shutil.which("go"):
        raise RuntimeError("the cluster's programs are built by Go, and there is no go in PATH: install Go 1.26")
    return commands.run("go", "env", "GOVERSION", "GOARCH")


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One process at a time makes what will be this folder; the others wait and find it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
