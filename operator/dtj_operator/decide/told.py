"""A failure as supervisors tell it: the task's own Verdict, the chief's word about it, and what only its peers miss."""

from msgspec.structs import replace

from dtj_operator.api import names
from dtj_operator.api.observed import PodView, Situation
from dtj_operator.api.status import FailureClass
from dtj_operator.decide import hearing
from dtj_operator.decide.actions import Failure
from dtj_operator.decide.members import Members
from dtj_operator.decide.words import at_step
from dtj_worker.codec import ContractError
from dtj_worker.contract import Death, Task, Verdict, VerdictKind

CLASSES: dict[VerdictKind, FailureClass] = {
    "Saved": "Preempted",
    "Stopped": "Preempted",
    "Peer": "Application",
    "Config": "Configuration",
    "Rendezvous": "Rendezvous",
    "Stall": "Stall",
    "Memory": "OutOfMemory",
    "Program": "Application",
    "Done": "Application",
}


def as_told(
    s: Situation,
    m: Members,
    task: Task,
    pod: PodView | None,
    word: Verdict | Death,
    *,
    message: str,
) -> Failure:
    """A failure as a supervisor tells it: the task's own, or the chief's about it."""
    # What has trained once can be loaded: then it is a volume or a node that misses something.
    is_wrong = word.unloadable and word.kind == "Program" and not _has_trained(s)
    kind: VerdictKind = "Config" if is_wrong else word.kind
    step = word.step if word.step is not None else hearing.step(s)
    ended = f"exited {word.exit_code}" if word.exit_code is not None else "ended"
    what = {
        "Saved": f"was asked to stop and saved{at_step(step)}",
        "Stopped": f"was asked to stop{at_step(step)}",
        "Peer": f"lost a peer{at_step(step)}",
        "Config": f"can't run: {message}",
        "Rendezvous": f"did not find its peers: {message}",
        "Stall": f"stalled{at_step(step)}: {message}",
        "Memory": f"ran out of memory{at_step(step)}",
    }.get(kind, f"{f'killed by {word.signal}' if word.signal else ended}{at_step(step)}")
    heals = kind != "Config"
    what = what.removesuffix(": ")
    failure = failure_of(s, m, task, pod, CLASSES[kind], what=what, step=step, message=message, heals=heals)
    return replace(failure, exit_code=word.exit_code, signal=word.signal)


def first_death(s: Situation, m: Members) -> Failure | None:
    """The first death that the chief's supervisor recorded in this attempt."""
    death: Death | None = s.training.status.first_death if s.training and hearing.speaks(s) else None
    if death is None or death.kind == "Done":
        return None
    try:
        task = Task.parse(death.task)
    except ContractError:
        return None  # Answers from pods are hostile.
    if task not in m.topology.gang or task in m.finished:
        return None
    return as_told(s, m, task, m.wanted.get(task), death, message=death.message)


def missed(s: Situation, m: Members, victim: Task, *, by_chief: bool) -> Failure | None:
    """The task that its peers no longer hear, if its own pod has not ended: nobody can tell what became of it.

    `victim` is the one that says so, or with `by_chief` the one that the chief's supervisor has given up. Peers notice
    that a node is lost or cut off after 20 s, Kubernetes after 40 s or more. It counts as no failure: a program that
    ends is told of by its supervisor, and a supervisor that ends by its pod.
    """
    death = s.training.status.first_death if s.training else None
    teller = m.wanted.get(victim)
    blamed = teller.verdict.blames if teller and teller.verdict else None
    if by_chief:
        is_silent = death is not None and (death.kind, death.exit_code, death.signal) == ("Program", None, None)
        blamed = str(victim) if is_silent else None
    task, pod = next(((task, pod) for task, pod in m.gang.items() if str(task) == blamed), (victim, None))
    if pod is None or pod.is_over:
        return None
    message = death.message if by_chief and death else ""
    step = hearing.step(s)
    what = f"is not heard of any more{at_step(step)}"
    return failure_of(s, m, task, pod, "Disruption", what=what, step=step, message=message)


def _has_trained(s: Situation) -> bool:
    """Whether any attempt of the job has made a step, as far as it was heard."""
    begun = any(attempt.first_step is not None for attempt in s.status.timeline)
    return begun or s.status.checkpoint is not None or hearing.step(s) is not None


def failure_of(
    s: Situation,
    m: Members,
    task: Task,
    pod: PodView | None,
    kind: FailureClass,
    *,
    what: str,
    step: int | None = None,
    message: str = "",
    reason: str = "",
    heals: bool = True,
    node_refused: bool = False,
) -> Failure:
    return Failure(
        kind=kind,
        task=task,
        attempt=s.status.attempt,
        what=what,
        pod=pod.name if pod else names.pod(s.key.name, task, m.rounds[task]),
        node=pod.node if pod else None,
        step=step,
        message=message,
        reason=reason,
        heals=heals,
        node_refused=node_refused,
    )
