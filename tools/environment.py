"""`make setup`: the environment in .venv, as the pinned requirements say. Standard library only, for it runs first.

The environment carries a stamp, `.venv/.ready`, written last: the digest of everything it was made from. While that
still holds, there is nothing to do. Packages come by pip as this machine has it configured: index, proxy, certificates.
"""

import compileall
import fcntl
import hashlib
import re
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / ".ready"
OLDEST, NEWEST = (3, 11), (3, 13)  # TensorFlow 2.21 has wheels for these.


def main() -> None:
    """Bring .venv up to date. A second process waits for the first and then finds the work done."""
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        have = f"{sys.version_info[0]}.{sys.version_info[1]}"
        sys.exit(f"make setup: Python 3.11 to 3.13 is needed, {sys.executable} is {have}: make setup PYTHON=python3.11")
    with Path(__file__).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = digest()
        if STAMP.exists() and STAMP.read_text() == wanted:
            return
        started = time.monotonic()
        STAMP.unlink(missing_ok=True)
        print("make setup: filling .venv, about half a GB is fetched the first time", flush=True)
        create()
        # --no-deps: the lock is complete, and tf-keras would pull a second TensorFlow (requirements/overrides.txt).
        install_locked(ROOT / "requirements" / "dev.txt")
        # On all cores; pip would take one, and without bytecode every start of TensorFlow takes 20 s. A third of all
        # sources is the Kubernetes client's class for each kind and call, of which hardly any is used.
        compileall.compile_dir(
            VENV / "lib", quiet=2, workers=0, rx=re.compile(r"/tests?/|/kubernetes/client/(models|api)/")
        )
        pip("--no-deps", "--no-build-isolation", "-e", "worker_image", "-e", ".")
        STAMP.write_text(wanted)
        print(f"make setup: .venv is ready after {time.monotonic() - started:.0f} s")


def digest() -> str:
    """What .venv follows from: interpreter, place, lock, this file, and what the two distributions are made of."""
    import tomllib  # noqa: PLC0415 - an older Python shall get main's sentence, not an ImportError

    whole = hashlib.sha256(f"{sys.version} {ROOT}".encode())
    for name in ("requirements/dev.txt", "requirements/operator.in", "requirements/cli.in", "tools/environment.py"):
        whole.update((ROOT / name).read_bytes())
    for name in ("pyproject.toml", "worker_image/pyproject.toml"):
        metadata = tomllib.loads((ROOT / name).read_text())
        whole.update(repr((metadata["build-system"], metadata["project"], metadata["tool"]["setuptools"])).encode())
    return whole.hexdigest()


def create() -> None:
    """An environment with pip; one of another Python is emptied first."""
    ours = VENV / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    try:
        venv.create(VENV, clear=not ours.exists(), symlinks=True, with_pip=True)
    except subprocess.CalledProcessError:
        sys.exit(f"make setup: {sys.executable} cannot make environments with pip; on Debian, install python3-venv")


def install_locked(lock: Path) -> None:
    """All packages of a lock, by two processes of pip, for it takes one core: one has TensorFlow alone, the largest."""
    packages = re.split(r"^(?=\w)", lock.read_text(), flags=re.MULTILINE)
    halves: tuple[list[str], list[str]] = ([], [])
    for package in packages:
        halves[package.startswith("tensorflow")].append(package)
    how = ("--no-deps", "--no-compile", "--require-hashes", "--only-binary", ":all:")
    with tempfile.TemporaryDirectory() as folder:
        running = []
        for number, half in enumerate(halves):
            part = Path(folder, f"part-{number}.txt")
            part.write_text("".join(half))
            running.append(subprocess.Popen(pip_install(*how, "-r", str(part)), cwd=ROOT))
        codes = [process.wait() for process in running]
    if any(codes):
        sys.exit(f"make setup: pip could not install {lock.relative_to(ROOT)}; its words stand above")


def pip(*arguments: str) -> None:
    if code := subprocess.run(pip_install(*arguments), cwd=ROOT, check=False).returncode:
        sys.exit(f"make setup: pip install {' '.join(arguments)} ended with {code}; its words stand above")


def pip_install(*arguments: str) -> list[str]:
    return [str(VENV / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]


if __name__ == "__main__":
    main()
