"""Who ended an attempt, of what kind that was, and what follows at once: a row a story."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from dtj_operator.api.observed import NodeView, PodView, TrainingView
from dtj_operator.api.status import Attempt, CheckpointStatus, JobStatus, Restarts
from dtj_operator.decide.actions import Emit
from dtj_operator.decide.plan import plan
from tests.decide.situations import (
    LONG_AGO,
    NOW,
    accepted,
    after,
    ago,
    attempt,
    death,
    exited,
    heard,
    kinds,
    leaving,
    pod,
    running,
    said,
    spec,
    told,
)

NOT_FOUND = 'failed to create containerd task: OCI runtime create failed: exec: "nosuch": executable file not found'
MISSING = "ModuleNotFoundError: No module named 'nosuchmodule'"
OTHER = running("worker-0")


@pytest.mark.parametrize(
    ("pods", "training", "kind", "reason"),
    [
        pytest.param(
            [OTHER, told("worker-1", "Program", signal="SIGKILL", step=412)],
            heard(412),
            "Application",
            "worker-1 killed by SIGKILL at step 412: failure 1 of 10, attempt 1 now, all 2 pods replaced",
            id="a program is killed",
        ),
        pytest.param(
            [OTHER, told("worker-1", "Program", exit_code=3, step=60)],
            heard(61),
            "Application",
            "worker-1 exited 3 at step 60: failure 1 of 10, attempt 1 now, all 2 pods replaced",
            id="a program fails",
        ),
        pytest.param(
            [OTHER, exited("worker-1", 137)],
            None,
            "Application",
            "worker-1 exited 137: failure 1 of 10, attempt 1 now, all 2 pods replaced",
            id="a bare exit code is the program's, whatever its number",
        ),
        pytest.param(
            [OTHER, exited("worker-1", 137, signal=9)],
            None,
            "Application",
            "worker-1 killed by SIGKILL: failure 1 of 10, attempt 1 now, all 2 pods replaced",
            id="the kubelet tells a signal",
        ),
        pytest.param(
            [OTHER, exited("worker-1", 137, reason="OOMKilled")],
            None,
            "OutOfMemory",
            "worker-1 ran out of memory: failure 1 of 10, attempt 1 now, all 2 pods replaced",
            id="the kernel kills for memory",
        ),
        pytest.param(
            [OTHER, told("worker-1", "Memory", step=3, message="ResourceExhausted: OOM when allocating tensor")],
            None,
            "OutOfMemory",
            "worker-1 ran out of memory at step 3: failure 1 of 10, attempt 1 now, all 2 pods replaced",
            id="a device has no memory left",
        ),
        pytest.param(
            [OTHER, told("worker-1", "Stopped", step=60)],
            None,
            "Preempted",
            "worker-1 was asked to stop at step 60: disruption 1, attempt 1 now, all 2 pods replaced",
            id="somebody asks a supervisor to stop",
        ),
        pytest.param(
            [OTHER, told("worker-1", "Saved", step=60)],
            None,
            "Preempted",
            "worker-1 was asked to stop and saved at step 60: disruption 1, attempt 1 now, all 2 pods replaced",
            id="a supervisor saves before it stops",
        ),
        pytest.param(
            [OTHER],
            heard(412),
            "Disruption",
            "worker-1 was deleted by someone: disruption 1, attempt 1 now, all 2 pods replaced",
            id="a pod of a formed gang is missing",
        ),
        pytest.param(
            [OTHER, exited("worker-1", 143, deleting_since=ago(3))],
            None,
            "Disruption",
            "worker-1 was deleted by someone: disruption 1, attempt 1 now, all 2 pods replaced",
            id="a deleted pod ends before it is gone",
        ),
        pytest.param(
            [OTHER, exited("worker-1", 143, disrupted_by="EvictionByEvictionAPI", disruption_message="Eviction API")],
            None,
            "Disruption",
            "worker-1 was disrupted (EvictionByEvictionAPI): Eviction API: "
            "disruption 1, attempt 1 now, all 2 pods replaced",
            id="a node is drained",
        ),
        pytest.param(
            [OTHER, pod("worker-1", "Failed", disrupted_by="Evicted", disruption_message="The node was low on memory")],
            None,
            "Disruption",
            "worker-1 was disrupted (Evicted): The node was low on memory: "
            "disruption 1, attempt 1 now, all 2 pods replaced",
            id="evicted for the node's needs",
        ),
        pytest.param(
            [
                OTHER,
                pod("worker-1", "Failed", disrupted_by="Evicted", disruption_message="Usage exceeds the limit 1Gi"),
            ],
            None,
            "Application",
            "worker-1 failed: Evicted: failure 1 of 10, attempt 1 now, all 2 pods replaced",
            id="evicted for its own limits",
        ),
        pytest.param(
            [OTHER, exited("worker-1", 128, reason="StartError", message="cgroup: context deadline exceeded")],
            None,
            "Application",
            "worker-1 exited 128: failure 1 of 10, attempt 1 now, all 2 pods replaced",
            id="a runtime in trouble",
        ),
        pytest.param(
            [OTHER, told("worker-1", "Rendezvous", message="2 of 4 peers reached")],
            None,
            "Rendezvous",
            "worker-1 did not find its peers: 2 of 4 peers reached: "
            "failure 1 of 10, attempt 1 now, all 2 pods replaced",
            id="a rendezvous hangs",
        ),
        pytest.param(
            [OTHER, told("worker-1", "Stall", step=9, message="no step for 1800 s")],
            None,
            "Stall",
            "worker-1 stalled at step 9: no step for 1800 s: stall 1 of 3, attempt 1 now, all 2 pods replaced",
            id="steps have stopped",
        ),
    ],
)
def test_a_culprit_alone(pods: list[PodView], training: TrainingView | None, kind: str, reason: str) -> None:
    s = attempt(pods, training=training)
    made = plan(s, NOW)
    status = after(s, made)
    assert made.reason == reason
    assert (status.phase, status.attempt, status.reason) == ("Restarting", 1, reason)
    assert status.last_failure is not None
    assert (status.last_failure.failure_class, status.last_failure.role, status.last_failure.index) == (
        kind,
        "worker",
        1,
    )
    assert kinds(made) == ["Delete worker-0-0"], "the culprit's pod stays for its logs"
    assert [e for e in made.actions if isinstance(e, Emit)] == [Emit("Warning", kind, reason)]
    assert status.rounds["worker"][0].round == 1
    assert (status.timeline[-1].end, status.timeline[-1].outcome) == (NOW, kind)


@pytest.mark.parametrize(
    ("pods", "training", "culprit", "kind"),
    [
        pytest.param(
            [told("worker-0", "Program", exit_code=1, at=ago(9))], None, 1, "Disruption", id="a missing pod first"
        ),
        pytest.param(
            [exited("worker-0", 1, at=ago(9)), exited("worker-1", 137, reason="OOMKilled")],
            None,
            1,
            "OutOfMemory",
            id="out of memory before exit codes",
        ),
        pytest.param(
            [exited("worker-0", 1, at=ago(9)), told("worker-1", "Peer")],
            heard(first_death=death("worker-1", signal="SIGSEGV")),
            1,
            "Application",
            id="then the first death by the chief's clock",
        ),
        pytest.param(
            [told("worker-0", "Peer", at=ago(9), blames="worker-1"), running("worker-1")],
            heard(first_death=death("worker-1", signal="SIGKILL", step=7)),
            1,
            "Application",
            id="also while its own pod still runs",
        ),
        pytest.param(
            [exited("worker-0", 137, reason="OOMKilled"), running("worker-1")],
            heard(first_death=death("worker-1", "Peer")),
            0,
            "OutOfMemory",
            id="what the kernel did comes before the first death",
        ),
        pytest.param(
            [told("worker-0", "Peer", at=ago(9)), told("worker-1", "Program", exit_code=1)],
            None,
            1,
            "Application",
            id="a cause before what dies of it",
        ),
        pytest.param(
            [told("worker-0", "Program", exit_code=1, at=ago(9)), told("worker-1", "Stopped")],
            None,
            1,
            "Preempted",
            id="a stop before exit codes",
        ),
        pytest.param(
            [told("worker-0", "Program", exit_code=1, at=ago(9)), told("worker-1", "Program", signal="SIGSEGV")],
            None,
            1,
            "Application",
            id="a signal before exit codes",
        ),
        pytest.param(
            [exited("worker-0", 1, at=ago(9), message="UnavailableError: Socket closed"), exited("worker-1", 1)],
            None,
            1,
            "Application",
            id="exit codes before collective errors",
        ),
        pytest.param(
            [exited("worker-0", 1, at=ago(3)), exited("worker-1", 1, at=ago(4))],
            None,
            1,
            "Application",
            id="the earlier end",
        ),
        pytest.param(
            [exited("worker-0", 1, at=ago(3)), exited("worker-1", 2, at=ago(3))],
            None,
            0,
            "Application",
            id="ties by index",
        ),
        pytest.param(
            [told("worker-0", "Peer", blames="worker-1"), leaving(running("worker-1"))],
            heard(first_death=death("worker-1", "Stopped")),
            1,
            "Disruption",
            id="a pod that is taken away says that it was asked to stop",
        ),
        pytest.param(
            [exited("worker-0", 1), running("worker-1")],
            heard(number=7, first_death=death("worker-1", signal="SIGSEGV")),
            0,
            "Application",
            id="a word about another attempt is no word",
        ),
        pytest.param(
            [exited("worker-0", 1), running("worker-1")],
            heard(first_death=death("../../etc", signal="SIGSEGV")),
            0,
            "Application",
            id="a hostile word is no word",
        ),
    ],
)
def test_the_order_of_culprits(pods: list[PodView], training: TrainingView | None, culprit: int, kind: str) -> None:
    s = attempt(pods, training=training)
    failure = after(s, plan(s, NOW)).last_failure
    assert failure is not None
    assert (failure.index, failure.failure_class) == (culprit, kind)


@pytest.mark.parametrize(
    ("pods", "reason"),
    [
        pytest.param([OTHER, running("worker-1")], "step 5", id="all is well"),
        pytest.param([OTHER, exited("worker-1", 0)], "step 5", id="a worker is done before the chief"),
        pytest.param([OTHER, leaving(running("worker-1"))], "step 5", id="a pod on its way out may still save"),
        pytest.param([OTHER, told("worker-1", "Peer", blames="worker-0")], "step 5", id="a victim alone, a second ago"),
        pytest.param(
            [OTHER, running("worker-1"), exited("worker-1", 1, round_=-1)],
            "step 5",
            id="pods we stopped never classify",
        ),
    ],
)
def test_the_attempt_goes_on(pods: list[PodView], reason: str) -> None:
    s = attempt(pods, training=heard(5))
    status = after(s, plan(s, NOW))
    assert (status.phase, status.attempt, status.restarts) == ("Running", 0, Restarts())


def test_a_finished_worker_s_pod_may_go() -> None:
    """Else it would be made anew and train again (kubeflow/trainer#1186)."""
    s = attempt([OTHER, exited("worker-1", 0)])
    status = after(s, plan(s, NOW))
    assert status.finished == {"worker": "1"}
    later = replace(s, status=status, pods=(OTHER,))
    assert kinds(plan(later, NOW)) == []
    assert after(later, plan(later, NOW)).phase == "Running"


def test_a_victim_waits_for_its_culprit_no_longer_than_it_takes() -> None:
    s = attempt([OTHER, told("worker-1", "Peer", blames="worker-0")])
    assert after(s, plan(s, NOW)).attempt == 0
    late = attempt([OTHER, told("worker-1", "Peer", blames="worker-0", at=ago(11))])
    assert plan(late, NOW).reason.startswith("worker-0 is not heard of any more: disruption 1")
    ahead = attempt([OTHER, told("worker-1", "Peer", at=NOW.replace(hour=13))])
    assert after(ahead, plan(ahead, NOW)).attempt == 1, "a node's clock that is ahead holds nobody up"


def test_a_task_that_only_its_peers_miss_costs_no_failure() -> None:
    """Its node may be lost or cut off: its supervisor can't tell, and Kubernetes has not noticed yet."""
    silent = heard(412, first_death=death("worker-1", message="its supervisor is gone: silent for 20 s"))
    victim = told("worker-0", "Peer", blames="worker-1")
    soon = attempt([victim, running("worker-1")], training=silent)
    assert after(soon, plan(soon, NOW)).attempt == 0
    victim = told("worker-0", "Peer", blames="worker-1", at=ago(11))
    late = attempt([victim, running("worker-1")], training=silent)
    assert plan(late, NOW).reason.startswith("worker-1 is not heard of any more at step 412: disruption 1")
    failure = after(late, plan(late, NOW)).last_failure
    assert failure is not None
    assert failure.message == "its supervisor is gone: silent for 20 s"
    ended = attempt([victim, exited("worker-1", 137)], training=silent)
    assert plan(ended, NOW).reason.startswith("worker-1 exited 137")


@pytest.mark.parametrize(
    ("pods", "kind", "reason"),
    [
        pytest.param(
            [OTHER, told("worker-1", "Config", message="no module named mnist")],
            "Configuration",
            "worker-1 can't run: no module named mnist: no restart can heal it",
            id="the program is not there",
        ),
        pytest.param(
            [OTHER, exited("worker-1", 128, reason="StartError", message=NOT_FOUND)],
            "Configuration",
            f"worker-1 can't run: {NOT_FOUND}: no restart can heal it",
            id="a command that is not there",
        ),
        pytest.param(
            [OTHER, exited("worker-1", 127, reason="ContainerCannotRun", message='exec: "/run": permission denied')],
            "Configuration",
            'worker-1 can\'t run: exec: "/run": permission denied: no restart can heal it',
            id="one that may not be run, as Docker tells it",
        ),
        pytest.param(
            [OTHER, told("worker-1", "Program", message=MISSING, unloadable=True)],
            "Configuration",
            f"worker-1 can't run: {MISSING}: no restart can heal it",
            id="a program that can't be imported",
        ),
        pytest.param(
            [
                told("worker-0", "Program", signal="SIGSEGV"),
                told("worker-1", "Program", message=MISSING, unloadable=True),
            ],
            "Configuration",
            f"worker-1 can't run: {MISSING}: no restart can heal it",
            id="nor by what dies beside it",
        ),
        pytest.param(
            [OTHER, pod("worker-1", "Bound", waiting_reason="InvalidImageName", waiting_message="bad")],
            "Image",
            "worker-1 can't start: InvalidImageName: bad: no restart can heal it",
            id="no name of an image",
        ),
        pytest.param(
            [OTHER, pod("worker-1", "Bound", waiting_reason="ErrImageNeverPull", waiting_message="bad")],
            "Image",
            "worker-1 can't start: ErrImageNeverPull: bad: no restart can heal it",
            id="an image that may not be pulled",
        ),
        pytest.param(
            [told("worker-0", "Program", step=981, exit_code=1), told("worker-1", "Done", step=980)],
            "UnevenSteps",
            "worker-1 made 980 steps, worker-0 is at 981; give every worker the same number: no restart can heal it",
            id="a worker ends before its peers",
        ),
        pytest.param(
            [told("worker-0", "Stall", step=980), told("worker-1", "Done", step=980)],
            "UnevenSteps",
            "worker-1 made 980 steps, worker-0 is at 980; give every worker the same number: no restart can heal it",
            id="a peer hangs in the step that the other does not make",
        ),
    ],
)
def test_what_no_restart_heals(pods: list[PodView], kind: str, reason: str) -> None:
    s = attempt(pods, phase="Starting" if any(p.verdict and p.verdict.unloadable for p in pods) else "Running")
    made = plan(s, NOW)
    status = after(s, made)
    assert made.reason == reason
    assert (status.phase, status.completion_time, status.cleanup) == ("Failed", NOW, "Pending")
    assert status.last_failure is not None
    assert status.last_failure.failure_class == kind
    assert status.timeline[-1].outcome == kind
    assert status.attempt == 0


@pytest.mark.parametrize(
    ("status", "training"),
    [
        pytest.param({"timeline": [Attempt(0, LONG_AGO, first_step=ago(900)), Attempt(1, ago(60))]}, None, id="before"),
        pytest.param({"checkpoint": CheckpointStatus(step=10)}, None, id="a checkpoint is left of it"),
        pytest.param({}, heard(1), id="in this attempt"),
    ],
)
def test_what_has_trained_once_can_be_loaded(status: dict[str, Any], training: TrainingView | None) -> None:
    s = attempt([OTHER, told("worker-1", "Program", message=MISSING, unloadable=True)], phase="Starting", status=status)
    made = plan(replace(s, training=training), NOW)
    assert made.reason.startswith("worker-1 exited 1")
    assert "failure 1 of 10" in made.reason


def test_a_crash_after_the_last_step_is_no_matter_of_steps() -> None:
    s = attempt([told("worker-0", "Program", step=980, exit_code=1), told("worker-1", "Done", step=980)])
    assert plan(s, NOW).reason.startswith("worker-0 exited 1 at step 980: failure 1 of 10")


@pytest.mark.parametrize(
    ("node", "training", "lost"),
    [
        pytest.param(NodeView("n1", ready=False, not_ready_since=ago(121)), None, True, id="not ready and silent"),
        pytest.param(NodeView("n1", ready=False, not_ready_since=ago(60)), None, False, id="not ready for a minute"),
        pytest.param(
            NodeView("n1", ready=False, not_ready_since=ago(600)),
            heard(5),
            False,
            id="not ready, and its worker trains",
        ),
        pytest.param(
            NodeView("n1", ready=False, not_ready_since=ago(600)), heard(5, seconds=121), True, id="not heard since"
        ),
        pytest.param(
            NodeView("n1", taints=(("node.kubernetes.io/out-of-service", "", "NoExecute"),)),
            None,
            True,
            id="out of service",
        ),
        pytest.param(NodeView("n7"), None, True, id="the node is gone"),
        pytest.param(NodeView("n1"), None, False, id="the node is well"),
    ],
)
def test_a_lost_node(node: NodeView, training: TrainingView | None, *, lost: bool) -> None:
    nodes = (NodeView("n0"), NodeView("n2"), node)
    s = attempt([OTHER, running("worker-1", bound_at=LONG_AGO)], nodes=nodes, training=training)
    status = after(s, plan(s, NOW))
    assert status.restarts.disruptions == int(lost)
    unseen = replace(s, nodes=None)
    assert after(unseen, plan(unseen, NOW)).restarts.disruptions == 0, "rules that read nodes need to see them"


def test_most_nodes_silent_is_the_network() -> None:
    silent = tuple(NodeView(f"n{i}", ready=False, not_ready_since=ago(600)) for i in range(2))
    s = attempt([OTHER, running("worker-1")], nodes=silent)
    assert after(s, plan(s, NOW)).restarts == Restarts()


def test_a_node_that_is_not_seen_yet_is_not_gone() -> None:
    fresh = running("worker-1", bound_at=ago(5))
    s = attempt([OTHER, fresh], nodes=(NodeView("n0"),))
    assert after(s, plan(s, NOW)).attempt == 0


def test_a_kubelet_s_refusal_excludes_its_node() -> None:
    refused = pod("worker-1", "Failed", disrupted_by="OutOfcpu", disruption_message="Node didn't have enough cpu")
    s = attempt([OTHER, refused], nodes=(NodeView("n0"), NodeView("n1"), NodeView("n2")))
    status = after(s, plan(s, NOW))
    assert status.recovery.excluded_nodes == ["n1"]
    assert status.restarts == Restarts(disruptions=1, total=1)


def test_a_pod_that_does_not_go_ends_the_attempt_at_last() -> None:
    s = attempt([OTHER, leaving(running("worker-1"), 150)])
    assert plan(s, NOW).reason.startswith("worker-1 was deleted by someone: disruption 1")
    assert after(s, plan(s, NOW - timedelta(seconds=1))).attempt == 0


def test_an_attempt_may_fail_before_its_gang_is_whole() -> None:
    s = accepted()
    s = replace(s, status=after(s, plan(s, ago(60))))
    s = replace(s, pods=(exited("worker-0", 64), pod("worker-1", "Unbound")))
    made = plan(s, NOW)
    status = after(s, made)
    assert made.reason == "worker-0 exited 64: failure 1 of 10, attempt 1 now, all 2 pods replaced"
    assert [(a.attempt, a.start, a.end, a.outcome) for a in status.timeline] == [(0, ago(60), NOW, "Application")]
    assert kinds(made) == ["Delete worker-1-0"]


def test_a_stall_that_was_told_ends_with_its_attempt() -> None:
    s = attempt([OTHER, running("worker-1")], training=heard(5, seconds_since_step=400))
    s = replace(s, status=after(s, plan(s, NOW)))
    assert said(s.status, "Stalled") == "True NoStep"
    ended = replace(s, pods=(OTHER, told("worker-1", "Stall", step=5, message="no step for 1800 s")))
    assert said(after(ended, plan(ended, NOW)), "Stalled") == "False Ended"


def test_ps_and_chief_and_workers_start_again_together() -> None:
    job = spec(roles={"chief": {}, "ps": {}})
    s = attempt([running("chief-0"), running("ps-0"), running("worker-0"), exited("worker-1", 1)], job=job)
    made = plan(s, NOW)
    assert made.reason == "worker-1 exited 1: failure 1 of 10, attempt 1 now, all 4 pods replaced"
    assert kinds(made) == ["Delete chief-0-0", "Delete ps-0-0", "Delete worker-0-0"]


def test_an_ignored_worker_stays_ended() -> None:
    rules = [{"action": "Ignore", "roles": ["worker"]}]
    job = spec(roles={"chief": {}, "ps": {}}, recovery={"rules": rules})
    s = attempt([running("chief-0"), running("ps-0"), running("worker-0"), exited("worker-1", 1)], job=job)
    status = after(s, plan(s, NOW))
    assert (status.attempt, status.finished) == (0, {"worker": "1"})
    assert status.last_failure is not None
    assert plan(replace(s, status=status), NOW).status is None


def test_the_first_status_is_enough() -> None:
    """All that follows a failure can be derived from the status alone."""
    s = attempt([OTHER, exited("worker-1", 1)])
    status = after(s, plan(s, NOW))
    assert isinstance(status, JobStatus)
    again = plan(replace(s, status=status), NOW)
    assert (again.status, kinds(again)) == (None, ["Delete worker-0-0"])
