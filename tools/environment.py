"""`make setup`: the virtual environment in .venv, exactly as the pinned requirements say. Standard library only, for it runs first.

The environment carries a stamp, `.venv/.ready`, written last: the digest of everything it was made from. While that
still holds, there is nothing to do. Packages come by pip as this machine has it configured: index, proxy, certificates.
"""

import fcntl
import hashlib
import subprocess
import sys
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
        sys.exit(f"make setup: Python 3.11 to 3.13 is needed, {sys.executable} is {have}; name one: make setup PYTHON=python3.11")
    VENV.mkdir(exist_ok=True)
    with (VENV / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = digest()
        if STAMP.exists() and STAMP.read_text() == wanted:
            return
        started = time.monotonic()
        STAMP.unlink(missing_ok=True)
        print("make setup: filling .venv, about 1 GB is fetched the first time", flush=True)
        venv.create(VENV, symlinks=True, with_pip=True)
        # --no-deps: the lock is complete, and tf-keras would pull a second TensorFlow (requirements/overrides.txt).
        pip("--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", "requirements/dev.txt")
        pip("--no-deps", "--no-build-isolation", "-e", "worker_image", "-e", ".")
        STAMP.write_text(wanted)
        print(f"make setup: .venv is ready after {time.monotonic() - started:.0f} s")


def digest() -> str:
    """What .venv follows from: the interpreter, the lock, both distributions' metadata, and this file."""
    sources = [
        ROOT / "requirements" / "dev.txt",
        ROOT / "requirements" / "operator.in",
        ROOT / "requirements" / "cli.in",
        ROOT / "pyproject.toml",
        ROOT / "worker_image" / "pyproject.toml",
        Path(__file__),
    ]
    whole = hashlib.sha256(f"{sys.version} {ROOT}".encode())
    for source in sources:
        whole.update(source.read_bytes())
    return whole.hexdigest()


def pip(*arguments: str) -> None:
    command = [str(VENV / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    if code := subprocess.run(command, cwd=ROOT, check=False).returncode:
        sys.exit(f"make setup: pip install {' '.join(arguments)} ended with {code}; its words stand above")


if __name__ == "__main__":
    main()
