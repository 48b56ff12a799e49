"""Which pod is what to a job: the one wanted of each task, old ones, those kept for their logs. Steps say what follows.

A task's round numbers the incarnations of its pod; `status.rounds` names the one that is wanted.
"""

from collections.abc import Iterable
from datetime import timedelta

from msgspec import Struct

from dtj_operator.api.observed import PodView, Situation
from dtj_operator.api.status import JobStatus, RoundOf, Time, indexes, ranges
from dtj_operator.desired.topology import Topology, topology
from dtj_worker.contract import Task

LAST_WORDS = timedelta(seconds=10)
"""How long a culprit's pod may take to end by itself, so that its logs can be kept."""


class Members(Struct, frozen=True):
    """The pods of a job by what they are to it.

    `old` pods belong to another round than the wanted one, or to a task that no longer exists: they are deleted and
    never classified. `kept` names those of them that stay.
    """

    topology: Topology
    rounds: dict[Task, int]
    wanted: dict[Task, PodView]
    gang: dict[Task, PodView]
    """Those of the wanted ones that belong to the gang."""
    old: tuple[PodView, ...]
    kept: frozenset[str]
    finished: frozenset[Task]

    @property
    def leftovers(self) -> tuple[PodView, ...]:
        """Old pods that have to go."""
        return tuple(pod for pod in self.old if pod.name not in self.kept)

    @property
    def living(self) -> tuple[PodView, ...]:
        """Old pods whose trainer may still write."""
        return tuple(pod for pod in self.old if not pod.is_over)

    def missing(self) -> tuple[Task, ...]:
        """Tasks of the gang without their wanted pod that have not ended 0."""
        return tuple(t for t in self.topology.gang if t not in self.wanted and t not in self.finished)

    def missing_beside(self) -> tuple[Task, ...]:
        """The same outside the gang: of the evaluator."""
        beside = (task for task in self.topology.tasks if task.role == "evaluator")
        return tuple(task for task in beside if task not in self.wanted and task not in self.finished)

    def not_running(self) -> dict[Task, PodView]:
        """The gang's pods of which not all containers have started."""
        return {t: p for t, p in self.gang.items() if p.stage not in ("Running", "Succeeded", "Failed")}

    @property
    def all_run(self) -> bool:
        """Every task of the gang has a pod whose containers run, or has ended 0."""
        return not self.missing() and not self.not_running()


def members(s: Situation, now: Time) -> Members:
    """The job's pods as its status wants them. The spec must be there."""
    t = topology(s)
    rounds = rounds_of(s.status, t.tasks)
    wanted: dict[Task, PodView] = {}
    old: list[PodView] = []
    for pod in s.pods:
        if rounds.get(pod.task) == pod.round:
            wanted[pod.task] = pod
        else:
            old.append(pod)
    gang = {task: wanted[task] for task in t.gang if task in wanted}
    return Members(t, rounds, wanted, gang, tuple(old), _kept(s, old, now), finished_of(s.status, t.tasks))


def rounds_of(status: JobStatus, tasks: Iterable[Task]) -> dict[Task, int]:
    """The round of each task's one wanted pod."""
    told = _told(status)
    return {task: told.get(task, 0) for task in tasks}


def next_round(status: JobStatus) -> int:
    """A round that no pod of the job has had: above every other, whatever the role."""
    taken = [entry.round for entries in status.rounds.values() for entry in entries]
    return max([*taken, status.gang.formed or 0], default=0) + 1


def raised(status: JobStatus, everyone: Iterable[Task], those: Iterable[Task]) -> dict[str, list[RoundOf]]:
    """The rounds in which `those` want a new pod and the others theirs."""
    # A role or replica may be taken out and come back later: it goes on where it was, since no name is used twice.
    rounds = _told(status) | rounds_of(status, everyone)
    rounds |= dict.fromkeys(those, next_round(status))
    by_role: dict[str, dict[int, list[int]]] = {}
    for task, number in rounds.items():
        by_role.setdefault(task.role, {}).setdefault(number, []).append(task.index)
    return {
        role: [RoundOf(ranges(tasks), number) for number, tasks in sorted(numbers.items())]
        for role, numbers in by_role.items()
    }


def finished_of(status: JobStatus, tasks: Iterable[Task]) -> frozenset[Task]:
    """The tasks that ended 0 in this attempt."""
    told = {role: indexes(text) for role, text in status.finished.items()}
    return frozenset(task for task in tasks if task.index in told.get(task.role, frozenset()))


def with_finished(status: JobStatus, those: Iterable[Task]) -> dict[str, str]:
    """What `finished` says once `those` have ended 0 too."""
    sets = {role: set(indexes(text)) for role, text in status.finished.items()}
    for task in those:
        sets.setdefault(task.role, set()).add(task.index)
    return {role: ranges(numbers) for role, numbers in sets.items()}


def finished_outside(status: JobStatus, gang: Iterable[Task]) -> dict[str, str]:
    """What has ended 0 outside the gang; inside it every child starts again."""
    roles = {task.role for task in gang}
    return {role: text for role, text in status.finished.items() if role not in roles}


def holds_nothing(pod: PodView) -> bool:
    """Whether the pod is nothing but its logs: no container of it runs any more."""
    return pod.is_over and not pod.lingers


def is_ending(s: Situation, pod: PodView, now: Time) -> bool:
    """Whether it is the last culprit's pod, and still has time to end by itself: deleted, it takes its logs along.

    Its supervisor tells how the program ended before its containers have.
    """
    last = s.status.last_failure
    if last is None or last.pod != pod.name or pod.deleting_since is not None:
        return False
    return (last.exit_code is not None or last.signal is not None) and now < last.at + LAST_WORDS


def _told(status: JobStatus) -> dict[Task, int]:
    """Each round that the status tells, of whatever task."""
    return {
        Task(role, index): entry.round  # type: ignore[arg-type]  # a role, as long as only we write the status
        for role, entries in status.rounds.items()
        for entry in entries
        for index in indexes(entry.indexes)
    }


def _kept(s: Situation, old: list[PodView], now: Time) -> frozenset[str]:
    """Names of the culprits' pods of the last failed attempts, as many as `keepFailedPods` says.

    The status names the last culprit only. Of an attempt before that, all but the culprit's pod were deleted before the
    next one began, so what is left of it and has failed is what was kept. The evaluator's pods are of no attempt: an
    old one that has failed was a culprit itself, and beside one every old pod of the gang is of an attempt before.
    """
    last = s.status.last_failure
    limit = 0 if s.spec is None else s.spec.keep_failed_pods
    if last is None or last.pod is None or limit == 0:
        return frozenset()
    gangs_round = None if last.role == "evaluator" else _round_in(last.pod)
    kept = [
        pod
        for pod in old
        if pod.deleting_since is None
        and (
            (pod.name == last.pod and (holds_nothing(pod) or is_ending(s, pod, now)))
            or (pod.stage == "Failed" and holds_nothing(pod) and _was_kept(pod, gangs_round))
        )
    ]
    kept.sort(key=lambda pod: (pod.name == last.pod, pod.round), reverse=True)
    return frozenset(pod.name for pod in kept[:limit])


def _was_kept(pod: PodView, gangs_round: int | None) -> bool:
    """Whether an old pod that has failed is left of an earlier culprit; `gangs_round`: of the gang's last culprit."""
    return pod.task.role == "evaluator" or gangs_round is None or pod.round < gangs_round


def _round_in(pod: str) -> int:
    number = pod.rpartition("-")[2]
    return int(number) if number.isascii() and number.isdecimal() else 0
