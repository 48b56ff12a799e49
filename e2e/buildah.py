"""buildah with a store of its own, a base that stands in for Python's image, the machine's pip settings for builds.

buildah runs in a mount namespace, so that none of its mounts outlives it, and with the machine's network: with one of
its own it would leave a bridge and firewall rules. What pip is told (a mirror's address, perhaps a password) is mounted
for the time of a build and never in a layer.
"""

import ast
import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from e2e import commands
from e2e.programs import cache

PROGRAMS = {"buildah": "buildah", "runc": "runc", "mmdebstrap": "mmdebstrap", "unshare": "util-linux"}
BASE_FILE = Path(__file__).resolve().parent / "dockerfiles" / "base.Dockerfile"
SUITE = "bookworm"
PYTHON = "ca-certificates,python3,python3-venv,python3-pip,python-is-python3"
UNUSED = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")
KEPT_STEPS = 40
"""Unnamed images, each the end of a stage that a build may take up again, of some 30 MB."""
OWN = ("--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--")
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


def build(tag: str, file: Path, context: Path, arguments: Iterable[str], target: str = "") -> None:
    with _settings() as settings:
        _buildah(
            "bud",
            *("--layers", "--isolation", "oci", "--runtime", "runc", "--network", "host", "--pull=never"),
            *_policy(),
            *settings,
            *(f"--build-arg={argument}" for argument in arguments),
            *([f"--target={target}"] if target else []),
            *("--tag", tag, "--file", str(file), str(context)),
        )


def has(tag: str) -> bool:
    return bool(_buildah("images", "--quiet", "--filter", f"reference={tag}").strip())


def forget(repository: str, but: str) -> None:
    """Remove the image's earlier builds; what others have in common with them stays for the next build."""
    found = _buildah("images", "--filter", f"reference={repository}", "--format", "{{.Name}}:{{.Tag}}").split()
    for tag in set(found) - {but}:
        _buildah("rmi", tag)
    if len(_buildah("images", "--quiet", "--filter", "dangling=true").split()) > KEPT_STEPS:
        _buildah("rmi", "--prune")


def save(tag: str, name: str, file: Path) -> None:
    """Write the image as a docker-archive under the name by which pods know it; a file that exists is whole."""
    beside = file.with_name(f".{file.name}.new")
    beside.unlink(missing_ok=True)
    # By its number: by its name it would go by that one, too.
    number = _buildah("images", "--quiet", tag).strip()
    _buildah("push", *_policy(), number, f"docker-archive:{beside}:docker.io/{name}")
    beside.rename(file)


def base(tag: str) -> None:
    """Make the base by the packages of this machine's own Debian mirrors."""
    with tempfile.TemporaryDirectory(dir=_folder(), prefix=".base-") as scratch:
        Path(scratch, "pip.conf").touch()
        command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={PYTHON}"]
        command += [f"--dpkgopt=path-exclude={path}" for path in UNUSED]
        commands.run(*command, SUITE, f"{scratch}/base.tar", *_mirrors())
        build(tag, BASE_FILE, Path(scratch), ())


def base_digest() -> bytes:
    return hashlib.sha256(repr((SUITE, PYTHON, UNUSED)).encode() + BASE_FILE.read_bytes()).digest()


@contextlib.contextmanager
def staged(root: Path, files: Iterable[Path]) -> Iterator[Path]:
    """A context with these files alone: what a Dockerfile takes besides is missed here, and not in the image's key."""
    with tempfile.TemporaryDirectory(dir=_folder(), prefix=".context-") as scratch:
        context = Path(scratch)
        for file in files:
            copy = context / file.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, copy)
        for path in context.rglob("*"):  # as git has them, whatever the umask of the clone was
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        yield context


def _mirrors() -> list[str]:
    """Those of the suite that apt has on this machine, security updates included; none: mmdebstrap's own."""
    asked = ("--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Identifier: Packages")
    found = commands.run("apt-get", "indextargets", *asked)
    lines = {tuple(line.split()) for line in found.splitlines()}
    ours = [line for line in lines if len(line) == 3 and line[1].split("-")[0] == SUITE and line[2] == "main"]
    return [f"deb {' '.join(line)}" for line in sorted(ours)]


@contextlib.contextmanager
def _settings() -> Iterator[list[str]]:
    """Mounts of pip's settings and certificates: as secrets for Dockerfiles that take them, in place for others."""
    with tempfile.TemporaryDirectory() as scratch:
        settings = Path(scratch) / "pip.conf"
        settings.touch(mode=0o600)
        settings.write_text("\n".join(["[global]", *_pip_settings()]) + "\n")
        mounted = [f"--secret=id=pip,src={settings}", f"--volume={settings}:/etc/pip.conf:ro"]
        if certificates := _certificates():
            mounted += [f"--secret=id=certificates,src={certificates}", f"--volume={certificates}:{CERTIFICATES}:ro"]
        yield mounted


def _pip_settings() -> Iterator[str]:
    known = {"index-url", "extra-index-url", "trusted-host", "proxy", "default-timeout", "timeout", "retries"}
    for line in commands.run(sys.executable, "-m", "pip", "config", "list").splitlines():
        name, _, value = line.partition("=")
        if (option := name.rpartition(".")[2]) in known:
            yield f"{option} = " + "\n    ".join(str(ast.literal_eval(value)).split())
    if _certificates():
        yield f"cert = {CERTIFICATES}"


def _certificates() -> str:
    """The machine's own bundle, which may know the authority of a mirror."""
    named = [os.environ.get(name, "") for name in ("PIP_CERT", "SSL_CERT_FILE")]
    return next((path for path in (*named, CERTIFICATES) if path and Path(path).is_file()), "")


def _policy() -> tuple[str, str]:
    """No signature is asked for: what goes in was made here."""
    file = _folder() / "policy.json"
    file.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
    return ("--signature-policy", str(file))


def _folder() -> Path:
    folder = cache() / "images"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _buildah(*arguments: str) -> str:
    store = ("--root", f"{_folder()}/store", "--runroot", f"{_folder()}/run", "--storage-driver", "overlay")
    return commands.run("unshare", *OWN, "buildah", *store, *arguments)
