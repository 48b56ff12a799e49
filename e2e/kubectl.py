"""kubectl, the one that `make setup` installs, on a cluster of a kubeconfig."""

import shutil
import subprocess
import sys
from pathlib import Path

LONGEST_SECONDS = 600
"""More than any wait that a command is asked for."""


class Kubectl:
    def __init__(self, kubeconfig: Path) -> None:
        program = shutil.which("kubectl", path=str(Path(sys.executable).parent)) or shutil.which("kubectl")
        if program is None:
            raise RuntimeError("there is no kubectl; `make setup` installs one")
        self._command = [program, "--kubeconfig", str(kubeconfig)]

    def __call__(self, *args: str, stdin: str = "") -> str:
        """What it prints; its error is raised."""
        try:
            done = subprocess.run(
                self.command(*args), input=stdin, text=True, capture_output=True, check=False, timeout=LONGEST_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"kubectl {' '.join(args)} has not ended after {LONGEST_SECONDS} s") from None
        if done.returncode:
            raise RuntimeError(f"kubectl {' '.join(args)} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def command(self, *args: str) -> list[str]:
        """For what is to run while other things happen."""
        return [*self._command, *args]
