"""There is a plan for every situation that the types allow, and it is the same one each time."""

from datetime import timedelta
from typing import Any, get_args

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dtj_operator.api.observed import (
    Admit,
    ContainerEnd,
    ForeignChild,
    NodeView,
    PodStage,
    PodView,
    ProbeResult,
    Situation,
    TrainingView,
    Wait,
)
from dtj_operator.api.spec import JobSpec
from dtj_operator.api.status import (
    Attempt,
    CheckpointStatus,
    Clock,
    Condition,
    ConditionType,
    FailureClass,
    GangStatus,
    JobStatus,
    LastFailure,
    Phase,
    RecoveryState,
    Restarts,
    RoleStatus,
    RoundOf,
)
from dtj_operator.decide.plan import plan
from dtj_operator.desired.probes import template_hash
from dtj_worker.contract import ROLES, Death, Stage, Task, TrainingStatus, Verdict, VerdictKind
from tests.decide.situations import NOW, UID, new, spec

MAYBE = st.none
TIMES = st.integers(-5000, 5000).map(lambda seconds: NOW + timedelta(seconds=seconds))
WORDS = st.sampled_from(["", "ok", "exceeded quota", "Evicted", "OOMKilled", "worker-1", "mnist-worker-0-0", "9" * 30])
STEPS = st.one_of(MAYBE(), st.integers(0, 1000))
TASKS = st.builds(Task, st.sampled_from(ROLES), st.integers(0, 3))
INDEXES = st.sampled_from(["", "0", "0-1", "1,3", "0-3"])


def one_of(literal: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(get_args(literal))


VERDICTS = st.builds(
    Verdict,
    attempt=st.integers(0, 4),
    by=st.sampled_from(["supervisor", "child"]),
    kind=one_of(VerdictKind),
    task=WORDS,
    exit_code=STEPS,
    signal=st.one_of(MAYBE(), st.just("SIGKILL")),
    step=STEPS,
    message=WORDS,
)
ENDS = st.builds(
    ContainerEnd, st.integers(0, 255), st.one_of(MAYBE(), st.integers(-1, 99)), WORDS, WORDS, TIMES | MAYBE()
)
PODS = st.builds(
    PodView,
    name=WORDS,
    uid=WORDS,
    task=TASKS,
    round=st.integers(0, 4),
    stage=one_of(PodStage),
    owner_uid=st.just(UID),
    node=st.sampled_from([None, "n0", "n1"]),
    gates=st.sampled_from([(), ("dtj.dev/gang",), ("x/y",)]),
    bound_at=TIMES | MAYBE(),
    started_at=TIMES | MAYBE(),
    deleting_since=TIMES | MAYBE(),
    trainer=ENDS | MAYBE(),
    verdict=VERDICTS | MAYBE(),
    waiting_reason=WORDS | MAYBE(),
    disrupted_by=WORDS | MAYBE(),
    phase_reason=WORDS | MAYBE(),
)
NODES = st.builds(NodeView, st.sampled_from(["n0", "n1", "n2"]), st.booleans(), TIMES | MAYBE(), st.booleans())
TRAININGS = st.builds(
    TrainingView,
    st.builds(
        TrainingStatus,
        attempt=st.integers(0, 4),
        stage=one_of(Stage),
        reports=st.booleans(),
        step=STEPS,
        epoch=STEPS,
        epochs=STEPS,
        loss=st.one_of(MAYBE(), st.floats()),
        checkpoint_step=STEPS,
        resumed_from_step=STEPS,
        seconds_since_step=st.one_of(MAYBE(), st.floats()),
        tasks=st.dictionaries(WORDS, one_of(Stage), max_size=2),
        first_death=st.builds(Death, WORDS, one_of(VerdictKind)) | MAYBE(),
        notice=WORDS | MAYBE(),
    ),
    TIMES,
)
CONDITIONS = st.builds(Condition, one_of(ConditionType), st.sampled_from(["True", "False", "Unknown"]), WORDS, TIMES)
STATUSES = st.builds(
    JobStatus,
    phase=one_of(Phase),
    observed_generation=st.integers(0, 2),
    attempt=st.integers(0, 4),
    conditions=st.lists(CONDITIONS, max_size=4, unique_by=lambda c: c.type),
    rounds=st.dictionaries(
        st.sampled_from(ROLES), st.lists(st.builds(RoundOf, INDEXES, st.integers(0, 4)), max_size=2), max_size=2
    ),
    starts=st.dictionaries(WORDS, st.integers(0, 20), max_size=1),
    finished=st.dictionaries(st.sampled_from(ROLES), INDEXES, max_size=2),
    chief_finished_at=TIMES | MAYBE(),
    restarts=st.builds(Restarts, *[st.integers(0, 9)] * 4),
    recovery=st.builds(
        RecoveryState,
        failures_since_progress=st.integers(0, 30),
        signature=WORDS | MAYBE(),
        signature_step=STEPS,
        signature_count=st.integers(0, 5),
        signature_nodes=st.lists(WORDS, max_size=2),
        checkpoint_step_at_failure=STEPS,
        not_before=TIMES | MAYBE(),
    ),
    clock=st.builds(Clock, st.floats(0, 9e9), st.floats(0, 9e9), TIMES | MAYBE()),
    roles=st.dictionaries(st.sampled_from(ROLES), st.builds(RoleStatus, *[st.integers(0, 3)] * 5), max_size=2),
    checkpoint=st.builds(CheckpointStatus, STEPS, STEPS, TIMES | MAYBE()) | MAYBE(),
    last_failure=st.builds(LastFailure, TIMES, st.integers(0, 4), one_of(FailureClass), pod=WORDS | MAYBE()) | MAYBE(),
    gang=st.builds(
        GangStatus,
        queued_at=TIMES | MAYBE(),
        formed=st.one_of(MAYBE(), st.integers(0, 4)),
        admitted_at=TIMES | MAYBE(),
        missed=st.integers(0, 99),
        refused=st.integers(0, 99),
        not_before=TIMES | MAYBE(),
    ),
    timeline=st.lists(
        st.builds(Attempt, st.integers(0, 4), TIMES, TIMES | MAYBE(), TIMES | MAYBE(), WORDS | MAYBE()), max_size=2
    ),
    start_time=TIMES | MAYBE(),
    completion_time=TIMES | MAYBE(),
    cleanup=st.sampled_from([None, "Pending"]),
    frozen=WORDS | MAYBE(),
)
RULES = [{"action": "Fail", "messagePattern": "o"}, {"action": "Ignore", "roles": ["evaluator"]}]
SPECS = st.sampled_from(
    [
        None,
        spec(),
        spec(workers=1, activeDeadlineSeconds=1, ttlSecondsAfterFinished=0),
        spec(suspend=True, restartRequest="x"),
        spec(roles={"chief": {}, "ps": {"replicas": 2}, "evaluator": {"required": True}}, recovery={"rules": RULES}),
        spec(gang={"scheduler": "BuiltIn"}, successPolicy="AllWorkers", cleanPodPolicy="All", keepFailedPods=3),
        spec(gang={"scheduler": "Kueue"}, network={"policy": "None"}, supervisor="None"),
        # What CEL refuses, and the types allow.
        spec(strategy="ParameterServer", template={"spec": {"containers": "none", "hostNetwork": True}}),
        spec(strategy="TPU", workers=3, template={}, checkpoint={"keep": 1}),
    ]
)


def asked(job: JobSpec | None, answer: ProbeResult | None, **fields: Any) -> Situation:
    """A job of whose pods the API server has said this, or nothing yet."""
    probes = {template_hash(job, role): answer for role in ROLES} if job and answer else {}
    return replace(new(), spec=job, probes=probes, **fields)


SITUATIONS = st.builds(
    asked,
    SPECS,
    st.sampled_from(
        [None, ProbeResult(201), ProbeResult(201), ProbeResult(422, "bad"), ProbeResult(403, "exceeded quota")]
    ),
    status=STATUSES,
    faults=st.sampled_from([(), ("spec: bad",)]),
    deleting=st.sampled_from([False, False, False, True]),
    pods=st.lists(PODS, max_size=4).map(tuple),
    gone=st.frozensets(WORDS, max_size=1),
    nodes=st.none() | st.lists(NODES, max_size=3).map(tuple),
    training=st.none() | TRAININGS,
    admission=st.sampled_from([None, Admit(("n0",)), Wait("full"), Wait("never", can_never_fit=True)]),
    children=st.sampled_from([frozenset(), frozenset({("Service", "mnist-peers", "u", "")})]),
    foreign_names=st.sampled_from([(), (), (ForeignChild("Service", "x", terminating=True),)]),
    refusals=st.sampled_from([(), (), ("exceeded quota",), ("forbidden",)]),
)


@settings(max_examples=150)
@given(SITUATIONS)
def test_there_is_a_plan(s: Situation) -> None:
    made = plan(s, NOW)
    assert made.reason
    assert made == plan(s, NOW)
    assert made.wake_at is None or made.wake_at > NOW
    for message in [made.status.reason or "", *(c.message for c in made.status.conditions)] if made.status else []:
        assert len(message.encode()) <= 1024


@settings(max_examples=150)
@given(SITUATIONS)
def test_a_written_status_is_not_written_again(s: Situation) -> None:
    made = plan(s, NOW)
    if made.status is not None:
        assert plan(replace(s, status=made.status, refusals=()), NOW).status is None
