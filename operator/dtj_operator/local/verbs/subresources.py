"""What does something of its own: binding, eviction, finalize, and the questions of `kubectl auth`."""

from typing import Any

import msgspec

from dtj_operator.local import budgets
from dtj_operator.local.conversion import served_body
from dtj_operator.local.failures import ApiFailure, bad_request, conflict, not_found, quoted, unexpected
from dtj_operator.local.state import Reply, Request, State
from dtj_operator.local.store import Entry
from dtj_operator.local.verbs import deleting
from dtj_operator.local.verbs.options import delete_options, write_options

Json = dict[str, Any]


def bind(state: State, request: Request) -> Reply:
    """Put the pod on the node that `target.name` names. 409 for a pod that has one, has gates or is going."""
    kind = request.kind
    entry = _pod(state, request)
    body = entry.decode()
    _check_named("Binding", request)
    target = (request.body or {}).get("target") or {}
    node = target.get("name")
    if target.get("kind") not in (None, "", "Node"):
        told = f'target.kind: Unsupported value: {quoted(target["kind"])}: supported values: "Node", "<empty>"'
        raise unexpected(told)
    if not node:
        raise unexpected("target.name: Required value")
    refusals = (
        (body["metadata"].get("deletionTimestamp"), f"pod {entry.name} is being deleted, cannot be assigned to a host"),
        (
            body["spec"].get("nodeName"),
            f"pod {entry.name} is already assigned to node {quoted(body['spec'].get('nodeName') or '')}",
        ),
        (body["spec"].get("schedulingGates"), f"pod {entry.name} has non-empty .spec.schedulingGates"),
    )
    for applies, why in refusals:
        if applies:
            raise conflict("pods/binding", entry.name, why)
    if not write_options(request).dry_run:
        body["spec"]["nodeName"] = node
        status = body.setdefault("status", {})
        status["conditions"] = with_condition(status.get("conditions") or [], _condition(state, "PodScheduled", "True"))
        state.write(kind, body)
    return _success(201)


def evict(state: State, request: Request) -> Reply:
    """Delete the pod as `kubectl drain` asks, unless a PodDisruptionBudget says no (429)."""
    _check_named("Eviction", request)
    entry = _pod(state, request)
    options = delete_options(msgspec.structs.replace(request, body=(request.body or {}).get("deleteOptions") or {}))
    body = entry.decode()
    deleting.check_preconditions(request.kind, body["metadata"], options)
    ended = (body.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    if not ended and not body["metadata"].get("deletionTimestamp"):
        _check_budgets(state, entry)
        if not options.dry_run:
            condition = _condition(state, "DisruptionTarget", "True")
            condition |= {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}
            status = body.setdefault("status", {})
            status["conditions"] = with_condition(status.get("conditions") or [], condition)
            entry = state.write(request.kind, body)
    deleting.delete_entry(state, request.kind, entry, msgspec.structs.replace(options, resource_version=None))
    return _success(201)


def finalize(state: State, request: Request) -> Reply:
    """Replace a namespace's finalizers, as namespace controllers do."""
    entry = state.read(request.kind, "", request.name)
    if entry is None:
        raise not_found(request.kind.resource, request.name)
    body = entry.decode()
    body["spec"] = {
        **(body.get("spec") or {}),
        "finalizers": (request.body or {}).get("spec", {}).get("finalizers") or [],
    }
    state.write(request.kind, body)
    deleting.finish(state, request.kind, body)
    return Reply(raw=msgspec.json.encode(served_body(request.kind, body)))


def review(state: State, request: Request) -> Reply:
    """Everything is allowed to whoever has the token."""
    body = {**(request.body or {}), **request.kind.header}
    body.setdefault("metadata", {})
    match request.kind.kind:
        case "SelfSubjectAccessReview":
            body["status"] = {
                "allowed": True,
                "reason": "the embedded cluster allows everything to the holder of its token",
            }
        case "SelfSubjectRulesReview":
            everything: Json = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
            paths: Json = {"verbs": ["*"], "nonResourceURLs": ["*"]}
            body["status"] = {"resourceRules": [everything], "nonResourceRules": [paths], "incomplete": False}
        case _:
            body["status"] = {
                "userInfo": {"username": "dtj-local", "groups": ["system:masters", "system:authenticated"]}
            }
    return Reply(raw=msgspec.json.encode(body), code=201)


def with_condition(conditions: list[Json], condition: Json) -> list[Json]:
    """The list with this condition in the place of the one of its type."""
    others = [one for one in conditions if one.get("type") != condition["type"]]
    return [*others, condition]


def _condition(state: State, kind: str, status: str) -> Json:
    return {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": state.timestamp()}


def _check_named(kind: str, request: Request) -> None:
    named = ((request.body or {}).get("metadata") or {}).get("name")
    if named != request.name:
        raise bad_request(f"name in URL does not match name in {kind} object")


def _pod(state: State, request: Request) -> Entry:
    entry = state.read(request.kind, request.namespace, request.name)
    if entry is None:
        raise not_found(request.kind.resource, request.name)
    return entry


def _check_budgets(state: State, pod: Entry) -> None:
    """The pod counts as unhealthy from its deletion on, so that evictions at once don't share one allowance."""
    covering = []
    for entry in state.store.entries(budgets.STORAGE, pod.namespace):
        body = entry.decode()
        if budgets.covers(body["spec"], pod):
            covering.append(body)
    if len(covering) > 1:
        told = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise unexpected(told)
    for body in covering:
        status = budgets.status_of(state, body)
        if status["disruptionsAllowed"] < 1:
            raise _too_many_requests(body["metadata"]["name"], status)


def _too_many_requests(budget: str, status: Json) -> ApiFailure:
    told = (
        f"The disruption budget {budget} needs {status['desiredHealthy']} healthy pods and has "
        f"{status['currentHealthy']} currently"
    )
    cause = {"reason": "DisruptionBudget", "message": told}
    sentence = "Cannot evict pod as it would violate the pod's disruption budget."
    return ApiFailure(429, "TooManyRequests", sentence, {"causes": [cause]})


def _success(code: int) -> Reply:
    return Reply(
        raw=msgspec.json.encode(
            {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code}
        ),
        code=code,
    )
