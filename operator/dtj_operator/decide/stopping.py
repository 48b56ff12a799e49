"""The deletes of pods that have to go: asked for once, by force when overdue. Which pods those are, others decide."""

from collections.abc import Iterable

from dtj_operator.api.observed import PodView, Situation
from dtj_operator.api.status import Time
from dtj_operator.decide.actions import Delete
from dtj_operator.decide.lost import may_force
from dtj_operator.decide.members import Members


def deletes(s: Situation, pods: Iterable[PodView], now: Time) -> tuple[Delete, ...]:
    """What to ask the API server for: nothing of a pod that is on its way out and still has time."""
    asked = []
    for pod in pods:
        force = may_force(s, pod, now)
        if pod.deleting_since is None or force:
            asked.append(Delete("Pod", pod.name, pod.uid, force=force))
    return tuple(asked)


def sentence(m: Members) -> str:
    """Who is still waited for before anything new may start."""
    names = ", ".join(pod.name for pod in m.living[:3]) + (" and others" if len(m.living) > 3 else "")
    return f"waits for {len(m.living)} pod{'s' * (len(m.living) != 1)} to end: {names}"
