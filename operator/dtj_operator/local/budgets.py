"""The disruption controller: keeps the status of each PodDisruptionBudget. Evictions ask `status_of` themselves."""

from collections.abc import Callable
from typing import Any

from dtj_operator.local import selectors
from dtj_operator.local.state import State
from dtj_operator.local.store import Change, Entry

Json = dict[str, Any]

STORAGE = "poddisruptionbudgets.policy"


class Budgets:
    """Follows the store, like the garbage collector, and works when it is told to."""

    def __init__(self, state: State, notify: Callable[[], None]) -> None:
        self._state = state
        self._notify = notify
        self._work: set[str] = set()
        state.store.listen(self._changed)

    @property
    def pending(self) -> bool:
        return bool(self._work)

    def run(self) -> None:
        """Write the statuses that no longer hold."""
        kind = self._state.kinds.of_storage(STORAGE)
        while self._work:
            for entry in list(self._state.store.entries(STORAGE, self._work.pop())):
                body = entry.decode()
                status = status_of(self._state, body)
                status["conditions"] = [_allowance(status, body, self._state.timestamp())]
                if status != body.get("status"):
                    self._state.write(kind, {**body, "status": status})

    def _changed(self, change: Change) -> None:
        namespace = change.entry.namespace
        if change.storage == STORAGE or (change.storage == "pods" and self._state.store.count(STORAGE, namespace)):
            self._work.add(namespace)
            self._notify()


def status_of(state: State, budget: Json) -> Json:
    """How many pods the budget covers, how many of them are healthy, and how many may go."""
    namespace, spec = budget["metadata"]["namespace"], budget["spec"]
    pods = [entry.decode() for entry in state.store.entries("pods", namespace) if covers(spec, entry)]
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


def _allowance(status: Json, budget: Json, now: str) -> Json:
    """The condition that says whether a pod may go."""
    allowed = status["disruptionsAllowed"] > 0
    before: Json = next(iter((budget.get("status") or {}).get("conditions") or ()), {})
    same = before.get("status") == str(allowed)
    return {
        "type": "DisruptionAllowed",
        "status": str(allowed),
        "observedGeneration": status["observedGeneration"],
        "lastTransitionTime": before["lastTransitionTime"] if same else now,
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "message": "",
    }


def covers(spec: Json, pod: Entry) -> bool:
    requirements = selectors.of_label_selector(spec.get("selector"))
    return requirements is not None and all(one.holds(pod.labels) for one in requirements)


def _is_healthy(pod: Json) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    ready = any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)
    return ready and not pod["metadata"].get("deletionTimestamp")


def _share(bound: int | str, total: int) -> int:
    """A number, or a percentage rounded up."""
    return -(-int(bound.removesuffix("%")) * total // 100) if isinstance(bound, str) else bound
