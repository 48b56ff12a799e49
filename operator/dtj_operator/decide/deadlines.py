"""Every deadline the operator keeps, each with its due time and whom it blames; the only source of `wake_at`.

Those of the job's clock (active, back-off, time to live) run on the status' own times. Those of health need an
observation by this process: an operator that was away for an hour declares nobody lost.
"""

from collections.abc import Iterator
from datetime import timedelta

from dtj_operator.api.observed import NodeView, PodView, Situation
from dtj_operator.api.status import FINAL, Time
from dtj_operator.decide.actions import Deadline
from dtj_operator.decide.conditions import condition, says
from dtj_operator.decide.members import LAST_WORDS, Members
from dtj_worker.contract import HEARTBEAT_SECONDS, Task

REGISTRATION = timedelta(seconds=60)
"""From all containers running to the first word of a supervisor; then the job counts as unsupervised."""
UNREPORTED = timedelta(seconds=60)
"""From a built strategy to Running, for programs that report no steps."""
OTHERS_END = timedelta(seconds=30)
"""What the other trainers get after the chief's exit 0."""
PREDECESSOR = timedelta(seconds=5)
RETRY = timedelta(seconds=10)
"""For what is overdue and still there, such as a pod that was to be removed by force."""
NODE_UNSEEN = timedelta(seconds=40)
"""For how long a bound pod's node may not be seen yet; what Kubernetes' own pod garbage collection waits."""
FRESH = timedelta(seconds=3 * HEARTBEAT_SECONDS)
SILENCE = timedelta(seconds=60)
"""After which the progress counts as unknown."""
TERMINATION_EXTRA_SECONDS = 120

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


def active(s: Situation) -> Deadline | None:
    """`activeDeadlineSeconds` of unsuspended time since the first admission."""
    clock = s.status.clock
    if s.spec is None or s.spec.active_deadline_seconds is None or clock.since is None or s.status.chief_finished_at:
        return None
    limit = s.spec.active_deadline_seconds
    left = timedelta(seconds=limit - clock.active_seconds)
    return Deadline("active", clock.since + left, f"the job was active for {limit} s (activeDeadlineSeconds)")


def gang(s: Situation, m: Members) -> Deadline | None:
    """From release to all bound."""
    if s.spec is None or s.status.phase != "Queued" or s.status.gang.admitted_at is None:
        return None
    own = s.spec.gang
    scales = own.when_full == "Release" or (own.when_full == "Auto" and s.facts.has_autoscaler)
    seconds = own.scale_up_seconds if scales else own.timeout_seconds
    unbound = {task: m.wanted.get(task) for task in m.topology.gang if not _is_bound(m.wanted.get(task))}
    if not unbound:
        return None  # It formed while the operator was away.
    blames = f"{len(unbound)} of {len(m.topology.gang)} pods got no node in {seconds} s: {_waits(unbound)}"
    return Deadline("gang", s.status.gang.admitted_at + timedelta(seconds=seconds), blames)


def schedule(s: Situation, m: Members) -> Deadline | None:
    """From bound to all containers running: image pulls, volumes, config maps."""
    begun = s.status.timeline[-1].start if s.status.timeline else None
    if s.spec is None or s.status.phase != "Starting" or begun is None or m.all_run:
        return None
    seconds = s.spec.recovery.schedule_seconds
    blames = f"not all containers ran within {seconds} s: {_waits(dict(m.not_running()))}"
    return Deadline("schedule", begun + timedelta(seconds=seconds), blames)


def preflight(s: Situation, m: Members, now: Time) -> Deadline | None:
    """From all containers running to all supervisors registered, as the chief's tells it."""
    started = _all_started(s, m)
    waiting = unregistered(s, m)
    if s.spec is None or s.status.phase != "Starting" or started is None or not waiting or not is_fresh(s, now):
        return None
    seconds = s.spec.preflight.timeout_seconds
    registered = len(m.topology.gang) - len(waiting)
    who = ", ".join(map(str, waiting[:3])) + (f" and {len(waiting) - 3} more" if len(waiting) > 3 else "")
    blames = f"{registered} of {len(m.topology.gang)} tasks registered within {seconds} s; missing: {who}"
    return Deadline("preflight", started + timedelta(seconds=seconds), blames)


def registration(s: Situation, m: Members) -> Deadline | None:
    """When a job from which no supervisor was heard in this attempt counts as unsupervised."""
    started, told = _all_started(s, m), condition(s.status, "Supervised")
    is_known = told is not None and (told.status == "False" or s.status.phase == "Running")
    if started is None or is_known or speaks(s) or any(pod.verdict for pod in m.gang.values()):
        return None
    return Deadline("registration", started + REGISTRATION, "no supervisor registered")


def unreported(s: Situation) -> Deadline | None:
    """When a job whose program reports no steps counts as running."""
    built = condition(s.status, "Training")
    if s.status.phase != "Starting" or built is None or built.reason != "StrategyBuilt":
        return None
    return Deadline("unreported", built.last_transition_time + UNREPORTED, "the program reports no steps")


def others_end(s: Situation, m: Members) -> Deadline | None:
    """When the trainers that outlive the chief's success are stopped."""
    if s.status.chief_finished_at is None or all(pod.is_over for pod in m.gang.values()):
        return None
    return Deadline("others end", s.status.chief_finished_at + OTHERS_END, "trainers that outlive the chief")


def evaluator_ends(s: Situation) -> Deadline | None:
    """When an evaluator that is not done yet is stopped."""
    role = s.spec.roles.evaluator if s.spec else None
    if s.status.chief_finished_at is None or role is None:
        return None
    due = s.status.chief_finished_at + timedelta(seconds=role.finish_seconds)
    return Deadline("evaluator ends", due, f"the evaluator did not end within {role.finish_seconds} s")


def time_to_live(s: Situation) -> Deadline | None:
    seconds = s.spec.ttl_seconds_after_finished if s.spec else None
    if s.status.completion_time is None or seconds is None:
        return None
    return Deadline("time to live", s.status.completion_time + timedelta(seconds=seconds), "the job is over")


def termination(s: Situation, pod: PodView) -> Deadline | None:
    """When a pod that was told to go is removed by force: its node no longer does it, or hangs."""
    if pod.deleting_since is None:
        return None
    node = node_of(s, pod)
    own = s.spec.recovery.termination_seconds if s.spec else None
    seconds = pod.grace_seconds + TERMINATION_EXTRA_SECONDS if own is None else own
    if node is not None and not node.ready:
        seconds = min(seconds, pod.grace_seconds)
    due = pod.deleting_since + timedelta(seconds=seconds)
    gone_at = _node_gone_at(s, pod)
    if gone_at is not None:
        due = min(due, max(pod.deleting_since, gone_at))
    return Deadline("termination", due, f"{pod.name} does not go away")


def may_force(s: Situation, pod: PodView, now: Time) -> bool:
    """Whether to remove the pod by force. Never while most nodes are silent: then it is the network, not the nodes."""
    due = termination(s, pod)
    return due is not None and due.due <= now and not most_nodes_are_silent(s)


def lost_node(s: Situation, pod: PodView) -> Deadline | None:
    """When a pod is given up because its node is not ready and its supervisor silent. Only where nodes are seen."""
    node = node_of(s, pod)
    gone_at = _node_gone_at(s, pod)
    if gone_at is not None:
        return Deadline("lost node", gone_at, f"its node {pod.node} is gone")
    if s.spec is None or node is None or node.ready or node.not_ready_since is None or most_nodes_are_silent(s):
        return None
    heard = [t for t in (s.facts.started_at, _heard(s, pod.task)) if t is not None]
    since = max([node.not_ready_since, *heard])
    seconds = s.spec.recovery.lost_node_seconds
    return Deadline("lost node", since + timedelta(seconds=seconds), f"its node {pod.node} is not ready and silent")


def wake_at(s: Situation, m: Members | None, now: Time) -> Time | None:
    """When to look at the job again although nothing happens; None when nothing is waited for."""
    dues = [deadline.due for deadline in _all(s, m, now) if deadline is not None]
    return min((due if due > now else now + RETRY for due in dues), default=None)


def node_of(s: Situation, pod: PodView) -> NodeView | None:
    return next((node for node in s.nodes or () if node.name == pod.node), None)


def most_nodes_are_silent(s: Situation) -> bool:
    nodes = s.nodes or ()
    return sum(not node.ready for node in nodes) * 2 > len(nodes)


def is_fresh(s: Situation, now: Time) -> bool:
    """Whether the chief's supervisor was heard about this attempt just now."""
    return (
        speaks(s) and s.training is not None and now - s.training.heard_at <= timedelta(seconds=3 * HEARTBEAT_SECONDS)
    )


def speaks(s: Situation) -> bool:
    """Whether what was heard last is about the present attempt."""
    return s.training is not None and s.training.status.attempt == s.status.attempt


def last_word(s: Situation) -> Time | None:
    """When the chief's supervisor was last heard about this attempt, or could first have been by this process."""
    return s.training.heard_at if s.training is not None and speaks(s) else s.facts.started_at


def unregistered(s: Situation, m: Members) -> tuple[Task, ...]:
    """Tasks of the gang whose supervisors the chief's has not seen, as far as it was heard."""
    if s.training is None or not speaks(s):
        return ()
    stages = s.training.status.tasks
    return tuple(task for task in m.topology.gang if stages.get(str(task), "Waiting") == "Waiting")


def _all(s: Situation, m: Members | None, now: Time) -> Iterator[Deadline | None]:
    status = s.status
    if status.phase in FINAL and status.cleanup is None:
        yield time_to_live(s)
        return
    yield from (termination(s, pod) for pod in s.pods if not pod.is_over)
    if status.phase in FINAL or m is None:
        return
    yield from (active(s), unreported(s), others_end(s, m), evaluator_ends(s), gang(s, m), schedule(s, m))
    yield from (preflight(s, m, now), registration(s, m))
    yield from (lost_node(s, pod) for pod in m.gang.values() if not pod.is_over)
    if status.recovery.not_before is not None and status.phase in ("Restarting", "Starting", "Running"):
        yield from _still_to_come("back-off", status.recovery.not_before, now)
    if status.gang.not_before is not None and status.phase == "Queued":
        yield from _still_to_come("queue", status.gang.not_before, now)
    if status.last_failure is not None and any(pod.name in m.kept for pod in m.living):
        yield Deadline("last words", status.last_failure.at + LAST_WORDS, "the culprit's pod")
    if status.phase == "Pending" and says(status, "Accepted", "WaitingForPredecessor", "NameTaken"):
        yield Deadline("predecessor", now + PREDECESSOR, "objects that have the job's names")
    heard_at = last_word(s)
    if status.phase == "Running" and heard_at is not None:
        yield from _still_to_come("progress", heard_at + SILENCE, now)


def _still_to_come(name: str, due: Time, now: Time) -> Iterator[Deadline]:
    if due > now:
        yield Deadline(name, due, "")


def _all_started(s: Situation, m: Members) -> Time | None:
    """When the last container of the gang started, or this process if that was later; None before."""
    if s.status.phase not in ("Starting", "Running") or not m.all_run:
        return None
    times = [pod.started_at for pod in m.gang.values()] + [s.facts.started_at]
    return max((time for time in times if time is not None), default=None)


def _heard(s: Situation, task: Task) -> Time | None:
    """When the task's supervisor was last known to live: by the chief's word, which is its own too."""
    if s.training is None or not speaks(s) or s.training.status.tasks.get(str(task)) in (None, "Waiting", "Dead"):
        return None
    return s.training.heard_at


def _node_gone_at(s: Situation, pod: PodView) -> Time | None:
    """Since when the pod's node counts as gone; None while it is there, or nodes are not seen."""
    if not s.nodes or pod.node is None:
        return None
    node = node_of(s, pod)
    if node is not None:
        return pod.bound_at or s.created_at if _is_out_of_service(node) else None
    # Nodes and pods are watched apart: a pod may be seen on a new node before the node itself is.
    return (pod.bound_at or s.created_at) + NODE_UNSEEN


def _is_bound(pod: PodView | None) -> bool:
    return pod is not None and (pod.node is not None or pod.is_over)


def _is_out_of_service(node: NodeView) -> bool:
    return any(key == OUT_OF_SERVICE for key, _, _ in node.taints)


def _waits(pods: dict[Task, PodView | None]) -> str:
    """Who waits for what, in people's words; the first three."""
    told = [f"{task} {_waits_for(pod)}" for task, pod in list(pods.items())[:3]]
    more = f" and {len(pods) - 3} more" if len(pods) > 3 else ""
    return "; ".join(told) + more


def _waits_for(pod: PodView | None) -> str:
    if pod is None:
        return "has no pod yet"
    where = f" on {pod.node}" if pod.node else ""
    what = pod.waiting_reason or ("waits for its turn" if pod.node is None else "has not started")
    return f"{what}{where}" + (f": {pod.waiting_message}" if pod.waiting_message else "")
