"""Budgets, back-off, rules, nodes: what a failure leads to, given all that came before it."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from dtj_operator.api.observed import NodeView, PodView, Situation
from dtj_operator.api.status import Attempt, CheckpointStatus, RecoveryState, Restarts
from dtj_operator.decide.plan import plan
from dtj_operator.decide.recovery import backoff
from tests.decide.situations import LONG_AGO, NOW, after, ago, attempt, exited, kinds, running, said, spec, told

OTHER = running("worker-0")
KILLED = told("worker-1", "Program", signal="SIGKILL", step=412)
STALLED = told("worker-1", "Stall", step=412, message="no step")
STOPPED = told("worker-1", "Stopped", step=412)


def with_past(end: PodView, budgets: dict[str, Any], **past: Any) -> Situation:
    """Worker 1 has ended in attempt 3 of a job with this spec.recovery and this past."""
    first, other = (replace(pod, round=3, name=f"{pod.name[:-1]}3") for pod in (OTHER, end))
    known = {"restarts": Restarts(3, 0, 0, 3), "recovery": RecoveryState(checkpoint_step_at_failure=100)}
    status = known | {"checkpoint": CheckpointStatus(step=100, at=LONG_AGO)} | past
    timeline = [Attempt(attempt=3, start=ago(60), first_step=ago(50), resumed_from_step=100)]
    return attempt([first, other], job=spec(recovery=budgets), number=3, status={"timeline": timeline} | status)


@pytest.mark.parametrize(
    ("end", "recovery", "past", "reason"),
    [
        pytest.param(
            KILLED,
            {},
            {},
            "worker-1 killed by SIGKILL at step 412: failure 1 of 10, attempt 4 now, all 2 pods replaced",
            id="the first restarts at once",
        ),
        pytest.param(
            KILLED,
            {},
            {"recovery": RecoveryState(failures_since_progress=1, checkpoint_step_at_failure=100)},
            "worker-1 killed by SIGKILL at step 412: failure 2 of 10, attempt 4 in 5 s, all 2 pods replaced",
            id="the second waits",
        ),
        pytest.param(
            KILLED,
            {},
            {"recovery": RecoveryState(failures_since_progress=9, checkpoint_step_at_failure=100)},
            "worker-1 killed by SIGKILL at step 412: failure 10 of 10, attempt 4 in 318 s, all 2 pods replaced",
            id="the tenth is the last that restarts",
        ),
        pytest.param(
            KILLED,
            {},
            {"recovery": RecoveryState(failures_since_progress=10, checkpoint_step_at_failure=100)},
            "worker-1 killed by SIGKILL at step 412: more than 10 failures without a newer checkpoint",
            id="the eleventh fails the job",
        ),
        pytest.param(
            KILLED,
            {},
            {"recovery": RecoveryState(failures_since_progress=10, checkpoint_step_at_failure=50)},
            "worker-1 killed by SIGKILL at step 412: failure 1 of 10, attempt 4 now, all 2 pods replaced",
            id="a newer checkpoint is progress",
        ),
        pytest.param(
            KILLED,
            {"maxRestarts": 0},
            {},
            "worker-1 killed by SIGKILL at step 412: more than 0 failures without a newer checkpoint",
            id="0 means none",
        ),
        pytest.param(
            KILLED,
            {"maxRestarts": 1},
            {},
            "worker-1 killed by SIGKILL at step 412: failure 1 of 1, attempt 4 now, all 2 pods replaced",
            id="1 means one",
        ),
        pytest.param(
            KILLED,
            {"maxRestarts": 1},
            {"recovery": RecoveryState(failures_since_progress=1, checkpoint_step_at_failure=100)},
            "worker-1 killed by SIGKILL at step 412: more than 1 failures without a newer checkpoint",
            id="and no second one",
        ),
        pytest.param(
            KILLED,
            {"maxRestartsTotal": 3},
            {},
            "worker-1 killed by SIGKILL at step 412: more than 3 failures in all",
            id="a bound for the whole life",
        ),
        pytest.param(
            STOPPED,
            {"maxRestarts": 0},
            {},
            "worker-1 was asked to stop at step 412: disruption 1, attempt 4 now, all 2 pods replaced",
            id="a disruption is free",
        ),
        pytest.param(
            STOPPED,
            {},
            {
                "restarts": Restarts(3, 6, 0, 9),
                "recovery": RecoveryState(disruptions_since_progress=1, checkpoint_step_at_failure=100),
            },
            "worker-1 was asked to stop at step 412: disruption 7, attempt 4 in 5 s, all 2 pods replaced",
            id="later ones without progress wait",
        ),
        pytest.param(
            STOPPED,
            {},
            {"recovery": RecoveryState(disruptions_since_progress=20, checkpoint_step_at_failure=100)},
            "worker-1 was asked to stop at step 412: more than 20 disruptions without a newer checkpoint",
            id="not for ever",
        ),
        pytest.param(
            STALLED,
            {},
            {"recovery": RecoveryState(stalls_since_progress=3, checkpoint_step_at_failure=100)},
            "worker-1 stalled at step 412: no step: more than 3 stalls without a newer checkpoint",
            id="stalls have their own budget",
        ),
    ],
)
def test_budgets(end: PodView, recovery: dict[str, Any], past: dict[str, Any], reason: str) -> None:
    made = plan(with_past(end, recovery, **past), NOW)
    assert made.reason == reason


def test_counters_say_what_happened() -> None:
    s = with_past(KILLED, {}, recovery=RecoveryState(failures_since_progress=1, checkpoint_step_at_failure=100))
    status = after(s, plan(s, NOW))
    assert status.restarts == Restarts(failures=4, disruptions=0, stalls=0, total=4)
    assert status.recovery.failures_since_progress == 2
    assert status.recovery.checkpoint_step_at_failure == 100
    assert status.recovery.not_before is not None
    assert timedelta(seconds=5) <= status.recovery.not_before - NOW <= timedelta(seconds=5.5)
    exhausted = with_past(KILLED, {"maxRestarts": 0})
    assert said(after(exhausted, plan(exhausted, NOW)), "Failed") == "True RestartsExhausted"


def test_a_back_off_survives_the_operator_and_ends_by_the_clock() -> None:
    s = with_past(KILLED, {}, recovery=RecoveryState(failures_since_progress=1, checkpoint_step_at_failure=100))
    status = after(s, plan(s, NOW))
    waits = replace(s, status=status, pods=(replace(KILLED, round=3, name="mnist-worker-1-3"),))
    made = plan(waits, NOW)
    assert (made.status, kinds(made), made.wake_at) == (None, [], status.recovery.not_before)
    assert made.reason == "attempt 4 begins at 12:00:05 UTC"
    goes = plan(waits, NOW + timedelta(seconds=6))
    assert kinds(goes) == ["Create worker-0-4", "Create worker-1-4"]


@pytest.mark.parametrize(
    ("count", "low", "high"), [(0, 0, 0), (1, 0, 0), (2, 5, 5.5), (3, 10, 11), (9, 300, 330), (99, 300, 330)]
)
def test_back_off_doubles(count: int, low: float, high: float) -> None:
    waits = {backoff(uid, count, 5, 300).total_seconds() for uid in ("a", "b", "c")}
    assert all(low <= wait <= high for wait in waits)
    assert len(waits) == (1 if count < 2 else 3), "jobs that failed together do not come back together"
    assert backoff("a", count, 5, 300) == backoff("a", count, 5, 300)


SAME = RecoveryState(
    failures_since_progress=2,
    checkpoint_step_at_failure=100,
    signature="Application/SIGKILL/",
    signature_step=412,
    signature_count=2,
    signature_nodes=["n1"],
    node_failures={"n1": 2},
)
CORDONED = NodeView("n0", unschedulable=True)
NODES = tuple(NodeView(f"n{i}") for i in range(3))


@pytest.mark.parametrize(
    ("state", "end", "nodes", "then"),
    [
        pytest.param(SAME, KILLED, None, ("Failed", 3, ["n1"]), id="three times the same: it is the program"),
        pytest.param(
            replace(SAME, signature_count=1, node_failures={}),
            KILLED,
            None,
            ("Restarting", 2, ["n1"]),
            id="before the last try its node is left",
        ),
        pytest.param(replace(SAME, signature_step=411), KILLED, None, ("Restarting", 1, ["n1"]), id="at another step"),
        pytest.param(
            replace(SAME, signature="Application/1/"), KILLED, None, ("Restarting", 1, ["n1"]), id="another failure"
        ),
        pytest.param(SAME, exited("worker-1", 1), None, ("Restarting", 0, ["n1"]), id="at no known step"),
        pytest.param(
            replace(SAME, signature_step=90),
            told("worker-1", "Program", signal="SIGKILL", step=90),
            None,
            ("Restarting", 0, ["n1"]),
            id="not beyond the restored step",
        ),
        pytest.param(SAME, KILLED, NODES, ("Restarting", 3, ["n1"]), id="not yet tried on another node that is there"),
        pytest.param(
            replace(SAME, signature_count=3, excluded_nodes=["n1"]),
            KILLED,
            NODES,
            ("Failed", 4, ["n1"]),
            id="tried, and came back",
        ),
        pytest.param(
            replace(SAME, signature_nodes=["n0"]), KILLED, NODES, ("Failed", 3, ["n1"]), id="seen on two nodes"
        ),
        pytest.param(SAME, KILLED, (CORDONED, NodeView("n1")), ("Failed", 3, []), id="there is no other node"),
        pytest.param(
            SAME,
            KILLED,
            (CORDONED, NodeView("n1"), NodeView("n3", ready=False)),
            ("Failed", 3, []),
            id="no other that takes pods",
        ),
        pytest.param(
            replace(SAME, checkpoint_step_at_failure=50), KILLED, None, ("Restarting", 1, ["n1"]), id="progress since"
        ),
    ],
)
def test_the_same_failure(
    state: RecoveryState, end: PodView, nodes: tuple[NodeView, ...] | None, then: tuple[str, int, list[str]]
) -> None:
    phase, count, _ = then
    s = replace(with_past(end, {}, recovery=state), nodes=nodes)
    status = after(s, plan(s, NOW))
    assert (status.phase, status.recovery.signature_count, status.recovery.excluded_nodes) == then
    if phase == "Failed":
        assert said(status, "Failed") == "True SameFailure"
        assert status.reason == f"worker-1 killed by SIGKILL at step 412: {count} times the same: it is the program"


BY_KUBELET = exited("worker-1", 137, reason="OOMKilled")
BY_SUPERVISOR = told(
    "worker-1", "Memory", signal="SIGKILL", message="killed by the kernel: the container is out of memory"
)
ON_DEVICE = told("worker-1", "Memory", message="OOM when allocating tensor with shape[8] on GPU:0")


@pytest.mark.parametrize(
    ("end", "then", "advice"),
    [
        pytest.param(BY_KUBELET, BY_KUBELET, "raise the container's memory limit", id="the host's"),
        pytest.param(BY_KUBELET, BY_SUPERVISOR, "raise the container's memory limit", id="told by another"),
        pytest.param(
            ON_DEVICE,
            ON_DEVICE,
            "the model does not fit one device, and more replicas do not change that",
            id="a device's",
        ),
    ],
)
def test_memory_runs_out_twice(end: PodView, then: PodView, advice: str) -> None:
    s = with_past(end, {})
    status = after(s, plan(s, NOW))
    assert (status.phase, status.recovery.signature_count) == ("Restarting", 1)
    again = with_past(then, {}, recovery=status.recovery)
    status = after(again, plan(again, NOW))
    assert said(status, "Failed") == "True OutOfMemory"
    assert advice in (status.reason or "")


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        pytest.param({"action": "Fail", "exitCodes": [3]}, "a rule of recovery.rules says Fail", id="by exit code"),
        pytest.param(
            {"action": "Fail", "reasons": ["Application"]}, "a rule of recovery.rules says Fail", id="by class"
        ),
        pytest.param(
            {"action": "Fail", "reasons": ["Error"]}, "a rule of recovery.rules says Fail", id="by Kubernetes' word"
        ),
        pytest.param(
            {"action": "Fail", "messagePattern": "^license .* expired$"},
            "a rule of recovery.rules says Fail",
            id="by message",
        ),
        pytest.param({"action": "Fail", "messagePattern": "("}, "failure 1 of 10", id="a pattern that is none"),
        pytest.param({"action": "Fail", "exitCodes": [4]}, "failure 1 of 10", id="another exit code"),
        pytest.param({"action": "Fail", "roles": ["ps"]}, "failure 1 of 10", id="another role"),
        pytest.param(
            {"action": "Fail", "exitCodes": [3], "roles": ["ps"]}, "failure 1 of 10", id="all criteria must fit"
        ),
        pytest.param(
            {"action": "RestartUncounted"}, "uncounted, attempt 4 in 5 s", id="uncounted, but not in a tight loop"
        ),
        pytest.param(
            {"action": "Ignore", "roles": ["worker"]}, "failure 1 of 10", id="nobody ignores a synchronous worker"
        ),
    ],
)
def test_rules(rule: dict[str, Any], reason: str) -> None:
    end = told("worker-1", "Program", exit_code=3, step=412, message="license 7 expired")
    s = with_past(end, {"rules": [rule, {"action": "Restart"}]})
    assert reason in plan(s, NOW).reason


@pytest.mark.parametrize(
    ("end", "codes", "is_matched"),
    [
        pytest.param(KILLED, [137], True, id="as its supervisor tells it"),
        pytest.param(exited("worker-1", 137, signal=9), [137], True, id="as the kubelet tells it"),
        pytest.param(KILLED, [9, 143], False, id="another signal"),
        pytest.param(told("worker-1", "Program", signal="SIGRTMIN+1"), [137], False, id="one without a name"),
        pytest.param(told("worker-1", "Program", signal="signal 35"), [163], True, id="told by its number"),
    ],
)
def test_a_rule_names_a_signal_as_a_shell_does(end: PodView, codes: list[int], *, is_matched: bool) -> None:
    s = with_past(end, {"rules": [{"action": "Fail", "exitCodes": codes}]})
    assert ("a rule of recovery.rules says Fail" in plan(s, NOW).reason) is is_matched


def test_an_uncounted_restart_uses_up_no_budget() -> None:
    s = with_past(KILLED, {"maxRestarts": 0, "rules": [{"action": "RestartUncounted"}]})
    status = after(s, plan(s, NOW))
    assert (status.restarts, status.recovery.failures_since_progress) == (Restarts(3, 0, 0, 4), 0)


def test_a_rule_may_restart_what_else_fails_at_once() -> None:
    s = with_past(told("worker-1", "Config", message="no license"), {"rules": [{"action": "Restart"}]})
    assert plan(s, NOW).reason.startswith("worker-1 can't run: no license: failure 1 of 10, attempt 4 now")


def test_nodes_with_two_failures_of_their_own_are_avoided() -> None:
    once = RecoveryState(checkpoint_step_at_failure=100, node_failures={"n1": 1})
    s = with_past(exited("worker-1", 1), {}, recovery=once)
    assert after(s, plan(s, NOW)).recovery.excluded_nodes == ["n1"]
    no = with_past(exited("worker-1", 1), {"excludeNodes": False}, recovery=once)
    assert after(no, plan(no, NOW)).recovery.excluded_nodes == []
    many = replace(
        once, excluded_nodes=[f"m{i}" for i in range(16)], node_failures={f"m{i}": 1 for i in range(15)} | {"n1": 1}
    )
    s = with_past(exited("worker-1", 1), {}, recovery=many)
    recovery = after(s, plan(s, NOW)).recovery
    assert (len(recovery.excluded_nodes), recovery.excluded_nodes[-1], len(recovery.node_failures)) == (16, "n1", 16)
