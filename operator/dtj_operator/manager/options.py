"""What the operator can be told on its command line or by its environment. What it finds out itself is `survey.py`."""

import argparse
import json
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from dtj_operator.api.observed import Facts

FLAGS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


class Options(Struct, frozen=True):
    """`namespaces` is empty for the whole cluster, `port` 0 for no health and metrics."""

    namespaces: tuple[str | None, ...]
    kubeconfig: str | None
    operator_namespace: str
    port: int
    lease: bool
    identity: str
    local: bool
    autoscaler: bool
    supervisor_image: str | None
    operator_labels: dict[str, str]
    monitoring: tuple[dict[str, Any], ...]
    json_logs: bool
    verbose: bool

    def facts(self) -> Facts:
        """The facts that are told and not found out."""
        return Facts(
            namespace=self.operator_namespace,
            has_autoscaler=self.autoscaler,
            local=self.local,
            supervisor_image=self.supervisor_image,
            labels_of_operator=self.operator_labels,
            monitoring=self.monitoring,
        )


def parse(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Options:
    """The options; ends the process with a line when there is a mistake in them."""
    parser = argparse.ArgumentParser(
        prog="python -m dtj_operator",
        description="Runs DistributedTrainingJobs. Each option can be given as DTJ_<OPTION> in the environment, too.",
    )

    def add(name: str, **how: Any) -> None:
        variable = "DTJ_" + name.removeprefix("--").upper().replace("-", "_")
        if variable in environment:
            how["default"] = flag(variable) if "action" in how else environment[variable]
        parser.add_argument(name, **how)

    def flag(variable: str) -> bool:
        text = environment[variable].strip().lower()
        if text not in FLAGS:
            # Not taken for false: a typo would have two processes write at a time.
            parser.error(f"{variable}: {environment[variable]!r} is neither true nor false")
        return FLAGS[text]

    boolean = argparse.BooleanOptionalAction
    add("--namespaces", default="", help="watch only these, separated by commas; default: the whole cluster")
    add("--kubeconfig", help="how to reach the API server; default: the pod's service account, else KUBECONFIG")
    add("--operator-namespace", default="dtj-system", help="where the operator's own Lease and Secret are")
    add("--port", type=int, default=8080, help="of /healthz, /readyz and /metrics; 0: none")
    add("--lease", action=boolean, default=True, help="let only one of several processes write")
    add("--identity", default=f"{socket.gethostname()}-{os.getpid()}", help="this process in the Lease: the pod's name")
    add("--local", action=boolean, default=False, help="the API server is the embedded cluster's")
    add("--autoscaler", action=boolean, default=False, help="nodes may come when pods wait for them")
    add("--supervisor-image", help="image that brings the supervisor into other people's images")
    add("--operator-labels", type=_labels, default={}, help="of the operator's own pods, as in app=dtj,part=operator")
    add("--monitoring", type=_peers, default=(), help="JSON list of NetworkPolicyPeers that may read status ports")
    add("--json-logs", action=boolean, default=False, help="one JSON object a line")
    add("--verbose", action=boolean, default=False, help="log looks that change nothing, and kopf's own words")
    told = vars(parser.parse_args(arguments))
    # Each once: a namespace that is named twice would be watched twice.
    namespaces = dict.fromkeys(name.strip() for name in told.pop("namespaces").split(","))
    return Options(namespaces=tuple(filter(None, namespaces)) or (None,), **told)


def _labels(text: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",") if pair.strip()]
    if not all(equals and key.strip() for key, equals, _ in pairs):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of labels; expected key=value, separated by commas")
    return {key.strip(): value.strip() for key, _, value in pairs}


def _peers(text: str) -> tuple[dict[str, Any], ...]:
    try:
        peers = json.loads(text)
    except ValueError:
        peers = None
    if not isinstance(peers, list) or not all(isinstance(peer, dict) for peer in peers):
        raise argparse.ArgumentTypeError('expected a JSON list of NetworkPolicyPeers, such as [{"podSelector": {}}]')
    return tuple(peers)
