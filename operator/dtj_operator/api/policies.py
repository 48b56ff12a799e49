"""How a job is run: recovery, gang, communication, preflight, network, disruption. What is run stands in `spec.py`."""

from typing import Annotated, Literal

from msgspec import Meta, field

from dtj_operator.api.fields import (
    Count,
    Fields,
    FirstPort,
    Label,
    Name,
    Pattern,
    Port,
    Positive,
    PositiveSeconds,
    Seconds,
    about,
)
from dtj_worker import contract
from dtj_worker.contract import Role


class FailureRule(Fields, frozen=True):
    """What a failure leads to when all of the given criteria match it."""

    action: Annotated[
        Literal["Restart", "RestartUncounted", "Fail", "Ignore"],
        about("Ignore leaves the task ended: for the evaluator and the workers of ParameterServer only."),
    ]
    roles: Annotated[list[Role], Meta(max_length=4), about("Roles of the culprit; none means any.")] = field(
        default_factory=list
    )
    exit_codes: Annotated[
        list[Annotated[int, Meta(ge=0, le=255)]],
        Meta(max_length=256),
        about("Exit codes of the culprit; 128 + n for one that signal n has ended, so 137 for SIGKILL."),
    ] = field(default_factory=list)
    reasons: Annotated[
        list[Label], Meta(max_length=32), about("Failure classes, or reasons of Kubernetes such as OOMKilled.")
    ] = field(default_factory=list)
    message_pattern: Annotated[
        Pattern | None, about("A google-re2 pattern that is searched for in the failure's message.")
    ] = None


class Backoff(Fields, frozen=True):
    initial_seconds: Annotated[
        PositiveSeconds,
        about(
            "Wait after the second failure without progress. The first restarts at once; each further one waits "
            "twice as long."
        ),
    ] = 5
    max_seconds: Annotated[PositiveSeconds, about("The longest wait.")] = 300


class Recovery(Fields, frozen=True):
    mode: Annotated[
        Literal["Auto", "InPlace", "Recreate"],
        about(
            "How to restart. InPlace keeps the pods and starts their programs again; Auto does so where every "
            "supervisor was seen."
        ),
    ] = "Auto"
    max_restarts: Annotated[
        Count, about("Failures since the last progress that the job survives. Progress is a newer verified checkpoint.")
    ] = 10
    max_restarts_total: Annotated[Count | None, about("Failures that the job survives in its whole life.")] = None
    max_same_failure: Annotated[
        Positive,
        about(
            "How often one failure may repeat at one step before it is the program's. What fails before the first step "
            "of its attempt does not count here, unless memory ran out."
        ),
    ] = 3
    max_disruptions_without_progress: Annotated[
        Count, about("Disruptions (lost nodes, preemption) in a row without progress that the job survives.")
    ] = 20
    max_stalls: Annotated[Count, about("Stalls without a newer checkpoint in between that the job survives.")] = 3
    backoff: Annotated[Backoff, about("Waits between failures without progress.")] = field(default_factory=Backoff)
    rules: Annotated[
        list[FailureRule], Meta(max_length=32), about("Exceptions, in order; the first that matches decides.")
    ] = field(default_factory=list)
    allow_restart_from_zero: Annotated[
        bool, about("Whether to begin anew when there was progress and no readable checkpoint is left.")
    ] = False
    exclude_nodes: Annotated[bool, about("Whether nodes with two failures of their own are avoided.")] = True
    schedule_seconds: Annotated[
        PositiveSeconds, about("From bound to all containers running: image pulls and volumes.")
    ] = 900
    first_step_seconds: Annotated[
        PositiveSeconds, about("From the program's start to its strategy, and from there to the first step.")
    ] = 3600
    stall_seconds: Annotated[PositiveSeconds, about("From one step to the next, after the first.")] = 1800
    lost_node_seconds: Annotated[
        PositiveSeconds, about("How long a node may be NotReady and its supervisor silent before its pod is given up.")
    ] = 120
    termination_seconds: Annotated[
        PositiveSeconds | None,
        about("From a pod's deletion until it is removed by force; absent: its grace period and 120 s."),
    ] = None


class Gang(Fields, frozen=True):
    scheduler: Annotated[
        Literal["Auto", "BuiltIn", "Native", "Volcano", "Kueue", "Coscheduling", "KAI", "None"],
        about(
            "Who places the gang. Auto: what the template's schedulerName or queue label says, else BuiltIn where the "
            "operator may read nodes, else None. Coscheduling and KAI are experimental."
        ),
    ] = "Auto"
    timeout_seconds: Annotated[
        PositiveSeconds, about("From release to all bound; then the gang is taken back and queued again, uncounted.")
    ] = 300
    queue: Annotated[Name | None, about("Queue of Volcano, Kueue or KAI.")] = None
    priority_class_name: Annotated[Name | None, about("Priority class, in the scheduler's own terms.")] = None
    topology_key: Annotated[
        Name | None, about("Node label; the whole gang goes to nodes with one value of it, such as one rack.")
    ] = None
    when_full: Annotated[
        Literal["Auto", "Wait", "Release"],
        about("BuiltIn, without room: Wait, or Release the pods so that an autoscaler sees them. Auto asks the chart."),
    ] = "Auto"
    scale_up_seconds: Annotated[PositiveSeconds, about("Instead of timeoutSeconds, after such a release.")] = 1200
    hold_seconds: Annotated[Seconds, about("BuiltIn: how long a restarting gang keeps its place.")] = 120


class Communication(Fields, frozen=True):
    implementation: Annotated[
        Literal["Auto", "Ring", "NCCL"], about("Collectives between hosts (MultiWorkerMirrored).")
    ] = "Auto"
    cross_device_ops: Annotated[
        Literal["NcclAllReduce", "HierarchicalCopyAllReduce", "ReductionToOneDevice"] | None,
        about("How the devices of one host reduce (Mirrored); absent: TensorFlow's choice."),
    ] = None
    bytes_per_pack: Annotated[
        Positive | None, about("Gradients are packed into messages of this size; absent: one message.")
    ] = None
    heartbeat_seconds: Annotated[
        PositiveSeconds, about("How soon TensorFlow itself notices a lost peer. Supervisors notice at once.")
    ] = 30
    rendezvous_seconds: Annotated[
        PositiveSeconds, about("How long the tasks may take to find each other before the missing ones are named.")
    ] = 300
    timeout_seconds: Annotated[
        PositiveSeconds | None,
        about("Time-out of one collective, for debugging: it costs a check at every step and ends slow steps too."),
    ] = None


class Preflight(Fields, frozen=True):
    network: Annotated[bool, about("Whether all peers are reached before the program starts.")] = True
    node_check: Annotated[bool, about("Whether compute, memory and devices of each node are tried first.")] = False
    timeout_seconds: Annotated[PositiveSeconds, about("From all containers running to all peers reached.")] = 300


class Network(Fields, frozen=True):
    port: Annotated[
        FirstPort, about("TensorFlow's port. Attempt k listens on port + k mod 8, so keep these eight free.")
    ] = contract.TENSORFLOW_PORT
    status_port: Annotated[Port, about("The supervisor's port: state, metrics and control.")] = contract.STATUS_PORT
    policy: Annotated[
        Literal["Isolated", "None"],
        about("Isolated: a NetworkPolicy lets in the job's own pods, the operator and monitoring, and no one else."),
    ] = "Isolated"
    expose: Annotated[list[Port], Meta(max_length=32), about("Ports that stay open to everyone.")] = field(
        default_factory=list
    )
    cluster_domain: Annotated[Name, about("DNS domain of the cluster.")] = "cluster.local"


class Disruption(Fields, frozen=True):
    protect: Annotated[
        bool, about("Whether autoscalers are asked to leave the pods' nodes alone, unless the template says otherwise.")
    ] = True
    budget: Annotated[bool, about("Whether a PodDisruptionBudget forbids voluntary evictions.")] = False
