"""What admission checks and fills in at creation: namespace, limits, service account, tolerations, priority."""

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dtj_operator.local.admission import poddefaults
from dtj_operator.local.failures import not_found, refused
from dtj_operator.local.kinds import Kind
from dtj_operator.local.quantity import value_of

if TYPE_CHECKING:
    from dtj_operator.local.state import State

Json = dict[str, Any]

# How long a pod stays on a node that is not ready or not reached, unless its own tolerations say something else.
_EVICTION_SECONDS = 300
_NODE_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def check_namespace(state: "State", kind: Kind, body: Json) -> None:
    """404 where the namespace is missing, 403 where it is being deleted."""
    if not kind.namespaced:
        return
    metadata = body["metadata"]
    namespace = state.store.read("namespaces", "", metadata["namespace"])
    if namespace is None:
        raise not_found("namespaces", metadata["namespace"])
    if namespace.decode()["metadata"].get("deletionTimestamp"):
        name = metadata["namespace"]
        told = f"unable to create new content in namespace {name} because it is being terminated"
        failure = refused(kind.resource, metadata.get("name", ""), told)
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {name} is being terminated",
            "field": "metadata.namespace",
        }
        failure.status["details"]["causes"] = [cause]
        raise failure


def mutate_pod(state: "State", kind: Kind, body: Json) -> None:
    """Fill in what the namespace and the cluster give a new pod; 403 for what they do not allow."""
    spec, namespace, name = body["spec"], body["metadata"]["namespace"], body["metadata"].get("name", "")
    for entry in state.store.entries("limitranges", namespace):
        _apply_limit_range(kind, name, entry.decode().get("spec", {}).get("limits") or [], body)
    _set_account(state, namespace, name, spec)
    set_tolerations(spec)
    _set_priority(state, kind, name, spec)
    body["status"]["qosClass"] = poddefaults.quality_class(spec)


def _apply_limit_range(kind: Kind, name: str, limits: list[Json], body: Json) -> None:
    spec, told = body["spec"], []
    for item in limits:
        if item.get("type") == "Container":
            for container in poddefaults.containers(spec):
                told += _default_resources(container, item)
    if told:
        annotations = body["metadata"].setdefault("annotations", {})
        annotations["kubernetes.io/limit-ranger"] = f"LimitRanger plugin set: {'; '.join(told)}"
    faults = [fault for item in limits if item.get("type") == "Container" for fault in _limit_faults(item, spec)]
    if faults:
        raise refused(kind.resource, name, faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")


def _default_resources(container: Json, item: Json) -> list[str]:
    """Fill in what is missing, and say what that was."""
    resources = container.setdefault("resources", {})
    told = []
    for field, default in (("requests", "defaultRequest"), ("limits", "default")):
        given, defaults = resources.get(field) or {}, item.get(default) or {}
        if missing := sorted(defaults.keys() - given.keys()):
            told.append(f"{', '.join(missing)} {field.removesuffix('s')} for container {container.get('name', '')}")
            resources[field] = {**defaults, **given}
    return told


def _limit_faults(item: Json, spec: Json) -> list[str]:
    found = []
    for container in poddefaults.containers(spec):
        resources = container.get("resources") or {}
        for resource, bound in (item.get("max") or {}).items():
            amount = (resources.get("limits") or {}).get(resource)
            if amount is None:
                found.append(f"maximum {resource} usage per Container is {bound}.  No limit is specified")
            elif value_of(amount) > value_of(bound):
                found.append(f"maximum {resource} usage per Container is {bound}, but limit is {amount}")
        for resource, bound in (item.get("min") or {}).items():
            amount = (resources.get("requests") or {}).get(resource)
            if amount is None:
                found.append(f"minimum {resource} usage per Container is {bound}.  No request is specified")
            elif value_of(amount) < value_of(bound):
                found.append(f"minimum {resource} usage per Container is {bound}, but request is {amount}")
        for resource, bound in (item.get("maxLimitRequestRatio") or {}).items():
            limit = value_of((resources.get("limits") or {}).get(resource, "0"))
            request = value_of((resources.get("requests") or {}).get(resource, "0")) or Fraction(1)
            if limit / request > value_of(bound):
                told = f"but provided ratio is {float(limit / request):f}"
                found.append(f"{resource} max limit to request ratio per Container is {bound}, {told}")
    return found


def _set_account(state: "State", namespace: str, name: str, spec: Json) -> None:
    account = spec.get("serviceAccountName") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = account
    entry = state.store.read("serviceaccounts", namespace, account)
    if entry is None:
        told = f'error looking up service account {namespace}/{account}: serviceaccount "{account}" not found'
        raise refused("pods", name, told)
    secrets = entry.decode().get("imagePullSecrets")
    if secrets and not spec.get("imagePullSecrets"):
        spec["imagePullSecrets"] = secrets


def set_tolerations(spec: Json) -> None:
    """Those that every pod has. An update that drops them gets them again."""
    given = spec.get("tolerations") or []
    for taint in _NODE_TAINTS:
        if not any(_tolerates(toleration, taint) for toleration in given):
            given = [
                *given,
                {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _EVICTION_SECONDS},
            ]
    spec["tolerations"] = given


def _tolerates(toleration: Json, taint: str) -> bool:
    return bool(toleration.get("key", taint) == taint and toleration.get("effect", "NoExecute") == "NoExecute")


def _set_priority(state: "State", kind: Kind, name: str, spec: Json) -> None:
    class_name = spec.get("priorityClassName")
    priority, policy = 0, "PreemptLowerPriority"
    if class_name in ("system-cluster-critical", "system-node-critical"):
        priority = 2_000_000_000 if class_name == "system-cluster-critical" else 2_000_001_000
    elif class_name:
        entry = state.store.read("priorityclasses.scheduling.k8s.io", "", class_name)
        if entry is None:
            raise refused(kind.resource, name, f"no PriorityClass with name {class_name} was found")
        found = entry.decode()
        priority, policy = found.get("value", 0), found.get("preemptionPolicy", policy)
    else:
        for entry in state.store.entries("priorityclasses.scheduling.k8s.io"):
            found = entry.decode()
            if found.get("globalDefault"):
                spec["priorityClassName"] = entry.name
                priority, policy = found.get("value", 0), found.get("preemptionPolicy", policy)
    given = spec.get("priority", priority)
    if given != priority:
        told = f"the integer value of priority ({given}) must not be provided in pod spec"
        computed = f"priority admission controller computed {priority} from the given PriorityClass name"
        raise refused(kind.resource, name, f"{told}; {computed}")
    spec["priority"] = priority
    spec["preemptionPolicy"] = policy
