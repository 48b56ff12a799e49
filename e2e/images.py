"""The images of the cluster, from the repository's Dockerfiles, as archives named by what they were built of.

How an image is built is `buildah.py`'s business. That needs the machine's network for pip and apt, so archives are
asked for before the cluster's namespace is entered.
"""

import dataclasses
import hashlib
import os
import platform
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from e2e import buildah, commands, packages
from e2e.machine import FOLDER, ROOT
from e2e.programs import alone, cache

DOCKERFILES = "e2e/dockerfiles"
BASE = "base"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
OPERATOR, SUPERVISOR = f"dtj/operator:{VERSION}", f"dtj/supervisor:{VERSION}"
"""As `make images` calls them, and the chart asks for them."""


@dataclasses.dataclass(frozen=True)
class Recipe:
    file: str
    sources: tuple[str, ...]
    """What the build sees of the repository, files and folders: nothing else can get into the image."""
    context: str = "."
    parents: tuple[tuple[str, str], ...] = (("BASE", BASE),)
    """Build arguments that name images of which this one is made."""
    arguments: tuple[str, ...] = ()
    target: str = ""


def _worker(flavour: str, *sources: str, target: str = "") -> Recipe:
    arguments = (f"FLAVOUR={flavour}",)
    return Recipe("worker_image/Dockerfile", ("requirements/build.txt", *sources), arguments=arguments, target=target)


_OPERATOR = (
    "LICENSE",
    "README.md",
    "pyproject.toml",
    "operator",
    "worker_image/pyproject.toml",
    "worker_image/dtj_worker",
)
_LOCKS = tuple(f"requirements/{name}" for name in ("build.txt", "operator.txt", "operator.in", "cli.in"))
_SUPERVISOR = ("worker_image/pyproject.toml", "worker_image/dtj_worker")
_CPU = "requirements/worker-cpu.txt"

RECIPES = {
    OPERATOR: Recipe("Dockerfile", (*_OPERATOR, *_LOCKS)),
    SUPERVISOR: _worker("supervisor", *_SUPERVISOR),
    "dtj/worker:cpu": _worker("cpu", *_SUPERVISOR, _CPU),
    "dtj/tensorflow:cpu": _worker("cpu", _CPU, target="tensorflow"),
    # For scenarios that count, this is the worker: thousands of starts, none of TensorFlow.
    "dtj/worker:latest": Recipe(
        f"{DOCKERFILES}/counting.Dockerfile",
        ("tests/programs/counter.py",),
        parents=(("SUPERVISOR", SUPERVISOR),),
    ),
    "dtj/digits:latest": Recipe(
        "examples/digits/Dockerfile",
        ("examples/digits",),
        context="examples/digits",
        parents=(("WORKER", "dtj/worker:cpu"),),
    ),
    "dtj/foreign:latest": Recipe(
        f"{DOCKERFILES}/foreign.Dockerfile",
        ("examples/digits/fit.py",),
        parents=(("TENSORFLOW", "dtj/tensorflow:cpu"),),
    ),
}
SMALL = (OPERATOR, SUPERVISOR, "dtj/worker:latest")
"""Without TensorFlow."""
DEVICES = {"gpu": ("x86_64-manylinux_2_28",), "tpu": ("x86_64-manylinux_2_31", "--override=overrides-tpu.txt")}
"""Flavours of the worker whose gigabytes are built where they are used: their platform, as `make lock` has it."""


def archives(names: Iterable[str], say: Callable[[str], None] = print) -> dict[str, Path]:
    """A docker-archive of each image; what is not there yet is built."""
    files = {name: archive(name) for name in names}
    missing = [name for name, file in files.items() if not file.exists()]
    if not missing:
        return files
    if FOLDER in os.environ:
        options = " ".join(f"--image={name}" for name in missing)
        words = "not built of these sources yet, and here is no network for it: start with"
        raise RuntimeError(f"{', '.join(missing)}: {words} {options}")
    packages.install(say, buildah.PROGRAMS)
    with alone(folder() / "store"):
        # Named anew, for the wait may have been long and the sources edited.
        return {name: _made(name, archive(name), say) for name in files}


def resolve(flavour: str, say: Callable[[str], None] = print) -> None:
    """Ask the package index, once for each state of the flavour's lock, whether it has all of it with its hashes.

    Nothing may be missing in the lock either. Where all is built, no index has to be in reach.
    """
    platform_, *options = DEVICES[flavour]
    lock = ROOT / "requirements" / f"worker-{flavour}.txt"
    asked = hashlib.sha256(repr(DEVICES[flavour]).encode() + lock.read_bytes()).hexdigest()[:16]
    mark = cache() / "resolved" / f"{flavour}-{asked}"
    if mark.exists():
        return
    with tempfile.TemporaryDirectory() as nowhere:
        commands.run(
            *(sys.executable, "-m", "uv", "pip", "install", "--quiet", "--dry-run", f"--target={nowhere}"),
            *("--python-version=3.11", f"--python-platform={platform_}", "--only-binary=:all:", "--require-hashes"),
            *(*options, f"--requirements={lock.name}"),
            folder=lock.parent,
            seconds=300,
        )
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()
    say(f"the lock of the worker's flavour {flavour} resolves")


def _made(name: str, file: Path, say: Callable[[str], None]) -> Path:
    if not file.exists():
        started = time.monotonic()
        buildah.save(build(name, say), name, file)
        _forget_older(file)
        say(f"{name}: {file.stat().st_size / 1e6:.0f} MB after {time.monotonic() - started:.0f} s")
    return file


def folder() -> Path:
    return cache() / "images"


def archive(name: str) -> Path:
    return folder() / f"{name.replace('/', '-').replace(':', '-')}-{key(name)}.tar"


def key(name: str) -> str:
    """What the image follows from, its parents included."""
    whole = hashlib.sha256(platform.machine().encode())
    if name == BASE:
        whole.update(buildah.base_digest())
    else:
        recipe = recipe_of(name)
        whole.update(repr((recipe, [key(parent) for _, parent in recipe.parents])).encode())
        for path in (ROOT / recipe.file, *files_of(recipe)):
            whole.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return whole.hexdigest()[:16]


def recipe_of(name: str) -> Recipe:
    if name not in RECIPES:
        raise RuntimeError(f"no image {name!r}; there are {', '.join(RECIPES)}")
    return RECIPES[name]


def files_of(recipe: Recipe) -> Iterator[Path]:
    for source in map(ROOT.joinpath, recipe.sources):
        found = [source] if source.is_file() else sorted(path for path in source.rglob("*") if path.is_file())
        yield from (path for path in found if "__pycache__" not in path.parts)


def build(name: str, say: Callable[[str], None]) -> str:
    """Bring the image into buildah's store, after its parents; its name there."""
    repository = f"localhost/{name.replace(':', '/')}"
    tag = f"{repository}:{key(name)}"
    if buildah.has(tag):
        return tag
    if name == BASE:
        say("making the base, a Debian with Python")
        buildah.base(tag)
        return tag
    recipe = recipe_of(name)
    parents = [f"{argument}={build(parent, say)}" for argument, parent in recipe.parents]
    say(f"building {name}")
    with buildah.staged(ROOT, files_of(recipe)) as context:
        arguments = (*parents, *recipe.arguments)
        buildah.build(tag, ROOT / recipe.file, context / recipe.context, arguments, recipe.target)
    buildah.forget(repository, but=tag)
    return tag


def _forget_older(file: Path) -> None:
    # One that another process is reading stays readable for it; two stay for who goes back and forth.
    stem = file.name[: -len("0123456789abcdef.tar")]
    same = [other for other in file.parent.glob(f"{stem}*.tar") if len(other.name) == len(file.name)]
    for old in sorted(same, key=lambda path: path.stat().st_mtime)[:-2]:
        old.unlink(missing_ok=True)
