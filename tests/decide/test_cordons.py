"""A gang that a drain sent away lets the drain go on to its other nodes before it starts again."""

from typing import Any

import pytest
from msgspec.structs import replace

from dtj_operator.api.observed import Facts, NodeView, Situation
from dtj_operator.api.status import Attempt, JobStatus, RecoveryState
from dtj_operator.decide.plan import plan
from tests.decide.situations import LONG_AGO, NOW, accepted, after, ago, attempt, exited, pod, running

FULL = [f"m{n}" for n in range(8)]
NODE_RIGHTS = Facts(started_at=LONG_AGO, has_node_rights=True)


def drained(*cordoned: str, seconds: float, **recovery: Any) -> Situation:
    """A gang of n0 and n1 after a disruption so long ago, its pods gone; these nodes of the cluster are cordoned."""
    nodes = tuple(NodeView(name, unschedulable=name in cordoned) for name in ("n0", "n1", "n2"))
    state = RecoveryState(**{"left_nodes": ["n0", "n1"]} | recovery)
    past = [Attempt(attempt=0, start=LONG_AGO, end=ago(seconds), outcome="Disruption")]
    status = JobStatus(phase="Restarting", attempt=1, recovery=state, timeline=past)
    return accepted(nodes=nodes, facts=NODE_RIGHTS, status=status)


def test_a_disruption_remembers_the_nodes_of_its_gang() -> None:
    s = attempt([running("worker-0"), pod("worker-1", "Failed", disrupted_by="EvictionByEvictionAPI")])
    assert after(s, plan(s, NOW)).recovery.left_nodes == ["n0", "n1"]
    unseen = replace(attempt([running("worker-0")]), gone=frozenset({"mnist-worker-1-0"}))
    assert after(unseen, plan(unseen, NOW)).recovery.left_nodes == ["*"], "it may have been on any"
    failed = attempt([running("worker-0"), exited("worker-1", 1)])
    assert after(failed, plan(failed, NOW)).recovery.left_nodes == []


@pytest.mark.parametrize(
    ("s", "due_in"),
    [
        pytest.param(drained("n1", seconds=1), 60, id="its node is cordoned"),
        pytest.param(drained("n0", "n1", seconds=50, cordoned=["n1"], not_before=ago(-10)), 60, id="and the next one"),
        pytest.param(drained("n1", seconds=50, cordoned=["n1"], not_before=ago(-10)), 10, id="known already"),
        pytest.param(drained(seconds=50, cordoned=["n1"], not_before=ago(-10)), 10, id="done with, the next may come"),
        pytest.param(drained("n0", seconds=290, cordoned=["n1"], not_before=ago(-10)), 10, id="5 minutes at the most"),
        pytest.param(drained("n2", seconds=1), None, id="another's node"),
        pytest.param(drained("n2", seconds=1, left_nodes=["*"]), 60, id="a gang on so many nodes is on this one, too"),
        pytest.param(drained("n1", seconds=1, cordoned=FULL[1:]), 299, id="so many that no more are noted"),
        pytest.param(drained("n1", seconds=1, cordoned=FULL, not_before=ago(-9)), 9, id="nor looked for"),
        pytest.param(drained("n1", seconds=70, cordoned=["n1"], not_before=ago(10)), None, id="no more for a minute"),
        pytest.param(replace(drained(seconds=1), nodes=None), 29, id="nodes are to be seen first"),
        pytest.param(replace(drained(seconds=31), nodes=None), None, id="nodes are not seen"),
        pytest.param(
            replace(drained(seconds=1), nodes=None, facts=Facts(started_at=LONG_AGO)), None, id="nor ever will be"
        ),
    ],
)
def test_a_drain_may_go_on_to_the_next_node(s: Situation, due_in: int | None) -> None:
    made = plan(s, NOW)
    waits = None if made.wake_at is None else round((made.wake_at - NOW).total_seconds())
    status = after(s, made)
    assert (status.phase == "Restarting", waits if status.phase == "Restarting" else None) == (
        due_in is not None,
        due_in,
    )


def test_a_drain_that_is_waited_for_is_told() -> None:
    s = drained("n0", "n1", seconds=1)
    status = after(s, plan(s, NOW))
    assert status.reason == "n0, n1 are cordoned: attempt 1 lets the drain go on until 12:01:00 UTC"
    assert status.recovery.cordoned == ["n0", "n1"]
