"""The chart and Helm on it; and `python -m e2e.chart`: lint it, render install.yaml. What it must render, tests say."""

import functools
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from e2e import programs
from e2e.images import SUPERVISOR, VERSION
from e2e.machine import ROOT

Json = dict[str, Any]

CHART = ROOT / "charts" / "dtj-operator"
INSTALL = ROOT / "install.yaml"
NAMESPACE = "dtj-system"
RELEASE = "dtj"
E2E: Json = {
    "image": {"tag": VERSION, "pullPolicy": "Never"},
    "supervisorImage": SUPERVISOR,
    "replicas": 1,
    "logs": {"verbose": True},
}
"""The images of this tree, also for the chart of another version, and all that helps to find out why a test failed."""
HEAD = """\
# The chart dtj-operator with its default values, for kubectl apply -f. Made by `make chart`; other values take Helm.
"""


class HelmError(RuntimeError):
    """Helm refused; the message is what it said."""


@functools.cache
def program() -> Path:
    return programs.build("helm") / "helm"


class Helm:
    """Helm, on the cluster of a kubeconfig, or for what needs no cluster."""

    def __init__(self, kubeconfig: Path | None = None) -> None:
        self._program = program()
        # Whoever finds no kubeconfig looks for a cluster on localhost; and what a server had, the next one at that
        # address need not have.
        self._environment = os.environ | {"KUBECONFIG": str(kubeconfig or os.devnull)}
        if kubeconfig:
            self._environment["KUBECACHEDIR"] = str(kubeconfig.parent / "kubectl-cache")

    def __call__(self, *args: str, values: Mapping[str, Any] | None = None) -> str:
        """What it prints."""
        command = [str(self._program), *args, *(["--values=-"] if values is not None else [])]
        done = subprocess.run(
            command, input=json.dumps(values or {}), text=True, capture_output=True, env=self._environment, check=False
        )
        if done.returncode:
            raise HelmError(f"{done.stdout}{done.stderr}".strip())
        return done.stdout

    def install(self, values: Json | None = None, *, namespace: str = NAMESPACE, chart: Path = CHART) -> None:
        """Install or upgrade to E2E and `values`; return when the operator is ready."""
        command = ("upgrade", "--install", RELEASE, str(chart), f"--namespace={namespace}", "--create-namespace")
        self(*command, "--wait", "--timeout=120s", values=merged(E2E, values or {}))

    def uninstall(self, *, namespace: str = NAMESPACE) -> None:
        """Return when all is gone that goes."""
        self("uninstall", RELEASE, f"--namespace={namespace}", "--wait", "--timeout=120s", "--ignore-not-found")


def render(values: Json | None = None, *options: str, namespace: str = NAMESPACE) -> list[Json]:
    """The objects that an install would make, tests and other hooks included."""
    text = rendered(json.dumps(values or {}), f"--namespace={namespace}", *options)
    return [document for document in yaml.safe_load_all(text) if document]


@functools.cache
def rendered(values: str, *options: str) -> str:
    return Helm()("template", RELEASE, str(CHART), *options, values=json.loads(values))


def install_yaml() -> str:
    """The same as a default install, namespace included, in one file without a trace of Helm."""
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": restricted}}
    made = [namespace, *(without_helm(document) for document in render(None, "--no-hooks"))]
    return HEAD + yaml.safe_dump_all(made, sort_keys=False, allow_unicode=True, width=120)


def without_helm(manifest: Json) -> Json:
    metadata = dict(manifest["metadata"])
    for field in ("labels", "annotations"):
        kept = {name: text for name, text in metadata.pop(field, {}).items() if not is_of_helm(name)}
        if kept:
            metadata[field] = kept
    return {**manifest, "metadata": metadata}


def is_of_helm(name: str) -> bool:
    return name.startswith("helm.sh/") or name in ("app.kubernetes.io/managed-by", "app.kubernetes.io/instance")


def merged(base: Json, other: Json) -> Json:
    """As Helm lays values over each other."""
    return base | {
        name: merged(base[name], value) if isinstance(value, dict) and isinstance(base.get(name), dict) else value
        for name, value in other.items()
    }


def main() -> int:
    print(Helm()("lint", "--strict", str(CHART)).strip())
    made = install_yaml()
    is_new = not INSTALL.exists() or INSTALL.read_text() != made
    INSTALL.write_text(made)
    print(f"{INSTALL.name} {'is changed: it belongs into the same commit' if is_new else 'is as it was'}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RuntimeError as error:
        sys.exit(f"chart: {error}")
