"""What the operator may do against what it did: its roles, and the audit logs of API servers.

A call is refused or allowed by RBAC as the log itself says; a 403 of a quota or of Pod Security is none of RBAC's.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from e2e.chart import render

Json = dict[str, Any]

ACCOUNT = "dtj-operator"
DECISION = "authorization.k8s.io/decision"
ROLES = ("Role", "ClusterRole")
BINDINGS = ("rolebindings", "clusterrolebindings")
TESTER = "Python-urllib"
"""The program of `helm test` runs with the operator's account, and is not the operator."""


class Right(NamedTuple):
    """One verb on one resource; a subresource is a resource of its own, as in roles."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{'.' if self.group else ''}{self.group}"


class Call(NamedTuple):
    """A request that RBAC judged."""

    right: Right
    namespace: str
    is_allowed: bool


# Whether it may read nodes and all pods, the operator finds out by asking (manager/survey.py); where an install has
# `nodeAccess: false`, no is the right answer.
ASKED = (Right("", "nodes", "list"), Right("", "pods", "list"))


def refused(made: Iterable[Call]) -> list[str]:
    lacked = {call for call in made if not call.is_allowed and not (call.right in ASKED and not call.namespace)}
    return [f"used and not granted: {call.right} in {call.namespace or 'all namespaces'}" for call in sorted(lacked)]


def unused(made: Iterable[Call]) -> list[str]:
    used = {call.right for call in made if call.is_allowed}
    return [f"granted and never used: {right}" for right in sorted(granted() - used)]


def granted() -> set[Right]:
    """What a default install may do. In single namespaces it is the same, in Roles."""
    return {
        Right(group, resource, verb)
        for role in render()
        if role["kind"] in ROLES and role["metadata"]["name"].startswith(ACCOUNT)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def calls(log: Path) -> Iterator[Call]:
    """The operators' requests for resources, but what is refused to one that is just being uninstalled."""
    unbound: set[str] = set()
    with log.open() as lines:
        for line in lines:
            # The last line may be half written.
            if ACCOUNT not in line or not line.endswith("\n"):
                continue
            event = json.loads(line)
            note_binding(event, unbound)
            call = judged(event)
            if call is not None and (call.is_allowed or namespace_of(event) not in unbound):
                yield call


def note_binding(event: Json, unbound: set[str]) -> None:
    """Take down in which namespaces operators have lost a role: Helm takes the roles before the pods are gone."""
    about = event.get("objectRef") or {}
    if about.get("resource") in BINDINGS and about.get("name", "").startswith(ACCOUNT):
        namespace = about["name"].removeprefix(ACCOUNT).removeprefix("-").removesuffix("-nodes")
        change = unbound.add if event["verb"] == "delete" else unbound.discard
        change(namespace or about["namespace"])


def judged(event: Json) -> Call | None:
    about = event.get("objectRef")
    decision = event.get("annotations", {}).get(DECISION)
    if not namespace_of(event) or not about or not decision or event.get("userAgent", "").startswith(TESTER):
        return None
    resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
    right = Right(about.get("apiGroup", ""), resource, event["verb"])
    return Call(right, about.get("namespace", ""), decision == "allow")


def namespace_of(event: Json) -> str:
    """Where the operator runs that has asked; empty if it was not one."""
    parts = event["user"].get("username", "").split(":")  # empty: nobody known
    is_operator = parts[:2] == ["system", "serviceaccount"] and parts[3:] == [ACCOUNT]
    return parts[2] if is_operator else ""
