"""The scenarios' namespace of a real cluster. It is marked as theirs, since they delete whatever is in it."""

import json

from e2e.kubectl import Kubectl
from tests.worlds.world import NAMESPACE

LABEL = "dtj.dev/scenarios"


def take(kubectl: Kubectl) -> None:
    """Make it where there is none; RuntimeError where it may be somebody's."""
    found = kubectl("get", "namespace", NAMESPACE, "--ignore-not-found", "--output=json")
    if not found:
        metadata = {"name": NAMESPACE, "labels": {LABEL: ""}}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        kubectl("create", "--filename=-", stdin=json.dumps(namespace))
    elif LABEL not in json.loads(found)["metadata"].get("labels", {}):
        raise RuntimeError(
            f"scenarios delete whatever is in namespace {NAMESPACE}, and this one was not made by them, for it has no "
            f"label {LABEL}: delete it, or let them have it by `kubectl label namespace {NAMESPACE} {LABEL}=`"
        )
    # Without it no pod is accepted, and a new namespace gets it a moment later.
    kubectl("wait", "--for=create", "serviceaccount/default", f"--namespace={NAMESPACE}", "--timeout=60s")
