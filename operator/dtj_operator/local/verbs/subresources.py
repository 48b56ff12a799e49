"""What does something of its own: binding, eviction, finalize, and the questions of `kubectl auth`."""

from typing import Any

import msgspec

from dtj_operator.local import selectors
from dtj_operator.local.conversion import served_body
from dtj_operator.local.failures import ApiFailure, bad_request, conflict, not_found
from dtj_operator.local.state import Reply, Request, State
from dtj_operator.local.store import Entry
from dtj_operator.local.verbs import deleting
from dtj_operator.local.verbs.options import delete_options, write_options

Json = dict[str, Any]

_BUDGETS = "poddisruptionbudgets.policy"


def bind(state: State, request: Request) -> Reply:
    """Put the pod on the node that `target.name` names. 409 for a pod that has one, has gates or is going."""
    kind = request.kind
    entry = _pod(state, request)
    body = entry.decode()
    node = ((request.body or {}).get("target") or {}).get("name")
    if not node:
        raise bad_request("target.name: Required value")
    refusals = (
        (body["metadata"].get("deletionTimestamp"), f"pod {entry.name} is being deleted, cannot be assigned to a host"),
        (
            body["spec"].get("nodeName"),
            f"pod {entry.name} is already assigned to node {body['spec'].get('nodeName')!r}",
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
    entry = _pod(state, request)
    options = delete_options(msgspec.structs.replace(request, body=(request.body or {}).get("deleteOptions") or {}))
    body = entry.decode()
    ended = (body.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    if not ended and not body["metadata"].get("deletionTimestamp"):
        _spend_budgets(state, entry, dry_run=options.dry_run)
        if not options.dry_run:
            condition = _condition(state, "DisruptionTarget", "True")
            condition |= {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}
            status = body.setdefault("status", {})
            status["conditions"] = with_condition(status.get("conditions") or [], condition)
            entry = state.write(request.kind, body)
    deleting.delete_entry(state, request.kind, entry, options)
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


def _pod(state: State, request: Request) -> Entry:
    entry = state.read(request.kind, request.namespace, request.name)
    if entry is None:
        raise not_found(request.kind.resource, request.name)
    return entry


def _spend_budgets(state: State, pod: Entry, *, dry_run: bool) -> None:
    kind = state.kinds.of_storage(_BUDGETS)
    for entry in list(state.store.entries(_BUDGETS, pod.namespace)):
        body = entry.decode()
        if not _covers(body["spec"], pod):
            continue
        status = budget_status(state, body)
        if status["disruptionsAllowed"] < 1:
            raise _too_many_requests(entry.name, status)
        if not dry_run:
            # Counted before the delete, so that two evictions at once don't share one allowance.
            status["disruptionsAllowed"] -= 1
            status["disruptedPods"] = {pod.name: state.timestamp()}
            state.write(kind, {**body, "status": status})


def budget_status(state: State, budget: Json) -> Json:
    """What a disruption controller would say now: how many healthy pods there are, and how many may go."""
    namespace, spec = budget["metadata"]["namespace"], budget["spec"]
    covered = [entry for entry in state.store.entries("pods", namespace) if _covers(spec, entry)]
    pods = [entry.decode() for entry in covered]
    healthy = sum(_is_healthy(pod) for pod in pods)
    if "minAvailable" in spec:
        desired = _share(spec["minAvailable"], len(pods))
    else:
        desired = max(0, len(pods) - _share(spec.get("maxUnavailable", 1), len(pods)))
    return {
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "disruptionsAllowed": max(0, healthy - desired),
        "expectedPods": len(pods),
        "observedGeneration": budget["metadata"].get("generation", 1),
    }


def _covers(spec: Json, pod: Entry) -> bool:
    requirements = selectors.of_label_selector(spec.get("selector"))
    return requirements is not None and all(one.holds(pod.labels) for one in requirements)


def _is_healthy(pod: Json) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    ready = any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)
    return ready and not pod["metadata"].get("deletionTimestamp")


def _share(bound: int | str, total: int) -> int:
    """A number, or a percentage rounded up."""
    return -(-int(bound.removesuffix("%")) * total // 100) if isinstance(bound, str) else bound


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
