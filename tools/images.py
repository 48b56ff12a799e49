"""`make images`: the images of operator and worker, by whichever builder is here. What is in them: docs/images.md."""

import argparse
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILDERS = {
    # How each is asked whether it works here: a docker without its engine is no builder.
    "docker": ["docker", "version"],
    "podman": ["podman", "info"],
    "buildah": ["buildah", "info"],
}
FLAVOURS = ("cpu", "gpu", "tpu", "supervisor")


def main() -> None:
    """Build what is asked for; say what was built, or why nothing can be."""
    arguments, rest = parser().parse_known_args()
    if unknown := set(arguments.flavours) - set(FLAVOURS):
        parser().error(f"--flavours: {', '.join(sorted(unknown))} is none of {', '.join(FLAVOURS)}")
    builder = arguments.builder or next(filter(works, BUILDERS), None)
    if builder is None:
        sys.exit(
            "make images: no builder works here: docker has no engine that answers or is not installed, and neither "
            "podman nor buildah is; install one of the three"
        )
    built = []
    for file, options, tags in images(arguments.flavours, arguments.prefix):
        words = [builder, "build", *options, *rest, "--file", file, *(f"--tag={tag}" for tag in tags), "."]
        print(f"make images: {shlex.join(words)}", flush=True)
        if code := subprocess.run(words, cwd=ROOT, check=False).returncode:
            sys.exit(f"make images: {builder} ended with {code}; its words stand above")
        built += tags
    print(f"make images: {builder} built {', '.join(built)}")


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="make images", description=__doc__, epilog="Further options go to the builder: --build-arg, --secret, …"
    )
    made.add_argument(
        "--flavours",
        type=lambda text: text.split(","),
        default=["cpu", "supervisor"],
        help=f"of the worker, separated by commas: {', '.join(FLAVOURS)}; default: cpu,supervisor",
    )
    made.add_argument("--prefix", default="dtj", help="before each name, as in registry.example.com/ml; default: dtj")
    made.add_argument("--builder", choices=BUILDERS, help="default: the first of them that works here")
    return made


def works(builder: str) -> bool:
    if not shutil.which(builder):
        return False
    return subprocess.run(BUILDERS[builder], capture_output=True, check=False).returncode == 0


def images(flavours: Sequence[str], prefix: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Dockerfile, build arguments and tags of each."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    described = [f"--build-arg=VERSION={version}", f"--build-arg=REVISION={revision()}"]
    yield "Dockerfile", described, [f"{prefix}/operator:{tag}" for tag in (version, "latest")]
    for flavour in flavours:
        options = [*described, f"--build-arg=FLAVOUR={flavour}"]
        yield "worker_image/Dockerfile", options, [f"{prefix}/{name}" for name in names(flavour, version)]


def names(flavour: str, version: str) -> list[str]:
    """The supervisor's is an image that the chart asks for, and nobody else; the plain worker is the CPU's."""
    if flavour == "supervisor":
        return [f"supervisor:{version}", "supervisor:latest"]
    suffixes = (f"-{flavour}", "") if flavour == "cpu" else (f"-{flavour}",)
    return [f"worker:{tag}{suffix}" for suffix in suffixes for tag in (version, "latest")]


def revision() -> str:
    """The commit, as far as the checkout is one and unchanged."""
    git = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return git.stdout.strip()


if __name__ == "__main__":
    main()
