"""The status stays under 16 KiB, and keeps what decisions read."""

from datetime import UTC, datetime
from typing import get_args

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dtj_operator.api.bounds import MESSAGE_BYTES, STATUS_BYTES, bounded, cut
from dtj_operator.api.reasons import Reason
from dtj_operator.api.status import (
    Attempt,
    CheckpointStatus,
    Clock,
    Condition,
    ConditionType,
    GangStatus,
    JobStatus,
    LastFailure,
    Progress,
    RecoveryState,
    Restarts,
    RoleStatus,
    RoundOf,
    ranges,
)

NOW = datetime(2030, 1, 31, 23, 59, 59, 123456, tzinfo=UTC)
NODE = "ip-10-123-234-{}.eu-central-1.compute.internal"


def worst(message: str, lone_restarts: int = 512) -> JobStatus:
    """512 workers, each second one ended or of another round; every field set, every number long."""
    nodes = [NODE.format(n) for n in range(40)]
    odd = ranges(range(1, 512, 2))
    return JobStatus(
        phase="Restarting",
        reason=message,
        observed_generation=123456,
        attempt=123456,
        conditions=[
            Condition(kind, "Unknown", max(get_args(Reason), key=len), NOW, message, 123456)
            for kind in get_args(ConditionType)
        ],
        strategy="MultiWorkerMirrored",
        strategy_reason=message,
        replicas_in_sync=4096,
        global_batch_size=10**6,
        rounds={"worker": [RoundOf(ranges(range(0, 512, 2)), 123456), RoundOf(odd, 123457)]},
        starts={f"worker-{n}": 12 for n in range(lone_restarts)},
        finished={"worker": odd, "ps": "0"},
        chief_finished_at=NOW,
        restarts=Restarts(12345, 12345, 12345, 37035),
        recovery=RecoveryState(
            10, 20, 3, "s" * 160, 10**9, 3, nodes, 10**9, dict.fromkeys(nodes, 2), nodes, NOW, nodes[:16], nodes[:8]
        ),
        restart_request="r" * 256,
        clock=Clock(1234567.123456, 1234567.123456, NOW),
        roles={role: RoleStatus(512, 512, 512, 512, 512) for role in ("chief", "worker", "ps", "evaluator")},
        progress=Progress(NOW, 100, 1000, 10**9, 0.12345678901234567, 12345.678901234567, NOW),
        checkpoint=CheckpointStatus(10**9, 1000, NOW, "c" * 63),
        last_failure=LastFailure(
            NOW, 123456, "Configuration", "worker", 511, "p" * 63, NODE, 137, "SIGKILL", 10**9, message
        ),
        gang=GangStatus("Coscheduling", "g" * 63, NOW, 123456, NOW, 12345.678901, 99, 99, NOW, message),
        timeline=[Attempt(n, NOW, NOW, NOW, "Configuration", 10**9, 1000) for n in range(60)],
        goodput=0.98765432109876543,
        start_time=NOW,
        completion_time=NOW,
        cleanup="Pending",
        ready="512/512",
        frozen=",".join(f"spec.roles.evaluator.template={n:010}" for n in range(9)),
    )


def size(status: JobStatus) -> int:
    return len(msgspec.json.encode(status))


@given(st.text(max_size=4000), st.integers(0, 300))
def test_any_message_in_the_worst_status_fits(message: str, lone_restarts: int) -> None:
    status = worst(message, lone_restarts)
    kept = bounded(status)
    assert size(kept) <= STATUS_BYTES
    assert bounded(kept) == kept
    assert kept.rounds == status.rounds
    assert kept.starts == status.starts
    assert kept.finished == status.finished
    assert kept.restarts == status.restarts
    assert [c.type for c in kept.conditions] == [c.type for c in status.conditions]
    assert kept.timeline == status.timeline[-len(kept.timeline) :] != []


def test_messages_keep_as_much_as_there_is_room_for() -> None:
    full = worst("m" * 4000, lone_restarts=0)
    for status, most in ((full, 128), (JobStatus(conditions=full.conditions), 1024)):
        kept = bounded(status)
        assert {len(c.message.encode()) for c in kept.conditions} == {most}
        assert len(kept.timeline) == min(20, len(status.timeline))


def test_short_things_stay_as_they_are() -> None:
    status = worst("waiting", lone_restarts=0)
    past = status.recovery
    few = replace(
        status,
        timeline=status.timeline[-20:],
        recovery=replace(past, signature_nodes=[], excluded_nodes=past.excluded_nodes[:16], node_failures={}),
    )
    assert bounded(few) == few


def test_the_newest_stay() -> None:
    kept = bounded(worst("waiting", lone_restarts=0))
    newest = [NODE.format(n) for n in range(24, 40)]
    assert [a.attempt for a in kept.timeline] == list(range(40, 60))
    assert kept.recovery.excluded_nodes == kept.recovery.signature_nodes == list(kept.recovery.node_failures) == newest


def test_one_long_message_keeps_a_kibibyte() -> None:
    status = bounded(JobStatus(conditions=[Condition("Accepted", "False", "Invalid", NOW, "é" * 5000)]))
    message = status.conditions[0].message
    assert message.startswith("é" * 500)
    assert message.endswith("…")
    assert len(message.encode()) <= MESSAGE_BYTES


@given(st.text(), st.integers(3, 40))
def test_a_cut_is_the_beginning(text: str, most: int) -> None:
    short = cut(text, most)
    assert len(short.encode()) <= most
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))
    assert cut(short, most) == short
