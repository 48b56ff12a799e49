"""What a user writes: every field of `spec` once, with its type, bound, default, description and CEL rule. `crd.py` makes the CRD of it."""

from typing import Annotated, Any, Literal

from dtj_worker.contract import Strategy as ResolvedStrategy
from msgspec import Meta, Struct, field

DictTemplate = Annotated[
    dict[str, Any], Meta(extra_json_schema={"type": "object", "x-kubernetes-preserve-unknown-fields": True})
]
"""A Kubernetes object of another kind, passed through; checked by a server-side dry run, not by our schema."""

Strategy = Literal["Auto"] | ResolvedStrategy
Seconds = Annotated[int, Meta(ge=0, le=31_536_000)]
PositiveSeconds = Annotated[int, Meta(ge=1, le=31_536_000)]
Port = Annotated[int, Meta(ge=1, le=65535)]
Path = Annotated[str, Meta(min_length=1, max_length=1024)]
Pattern = Annotated[str, Meta(min_length=1, max_length=256)]
Name = Annotated[str, Meta(min_length=1, max_length=253)]


def rules(*pairs: tuple[str, str]) -> Meta:
    """CEL rules of a field, each an expression and the message for people when it is false."""
    return Meta(extra_json_schema={"x-kubernetes-validations": [{"rule": r, "message": m} for r, m in pairs]})


class Fields(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base of every record of the spec: camelCase in YAML, snake_case in Python."""


class WorkerRole(Fields):
    replicas: Annotated[int, Meta(ge=1, le=512, description="How many workers train.")]
    template: Annotated[DictTemplate | None, Meta(description="Pod template laid over spec.template for the workers.")] = None


class ChiefRole(Fields):
    replicas: Annotated[int, Meta(ge=1, le=1, description="A job has one chief at the most.")] = 1
    template: Annotated[DictTemplate | None, Meta(description="Pod template laid over spec.template for the chief.")] = None


class ParameterServerRole(Fields):
    replicas: Annotated[int, Meta(ge=1, le=512, description="How many parameter servers hold the variables.")] = 1
    template: Annotated[DictTemplate | None, Meta(description="Pod template laid over spec.template for the parameter servers.")] = None


class EvaluatorRole(Fields):
    replicas: Annotated[int, Meta(ge=1, le=1, description="A job has one evaluator at the most.")] = 1
    template: Annotated[DictTemplate | None, Meta(description="Pod template laid over spec.template for the evaluator.")] = None
    required: Annotated[bool, Meta(description="Whether its failure fails the job.")] = False
    finish_seconds: Annotated[Seconds, Meta(description="How long after the chief's success it may still run.")] = 600


class Roles(Fields):
    worker: WorkerRole
    chief: ChiefRole | None = None
    ps: ParameterServerRole | None = None
    evaluator: EvaluatorRole | None = None


class Program(Fields):
    config_map: Annotated[Name, Meta(description="ConfigMap whose keys are mounted as files into the trainer's working directory.")]


class Batch(Fields):
    per_replica: Annotated[int | None, Meta(description="Examples per replica and step.")] = None
    global_size: Annotated[int | None, Meta(description="Examples per step over all replicas.")] = field(default=None, name="global")
    allow_change: Annotated[bool, Meta(description="Whether a resumed run may have another batch size.")] = False


class Checkpoint(Fields):
    persistent_volume_claim: Annotated[Name | None, Meta(description="An existing claim.")] = None
    volume_claim_template: Annotated[DictTemplate | None, Meta(description="A claim to make: metadata and spec.")] = None
    volume: Annotated[DictTemplate | None, Meta(description="Any volume source, as in a pod's volumes, without its name.")] = None
    uri: Annotated[Path | None, Meta(description="An object store folder, gs://bucket/path.")] = None
    directory: Annotated[str, Meta(pattern="^/", max_length=512, description="Where the volume is mounted.")] = "/checkpoints"
    every: Annotated[
        int | Literal["epoch"], Meta(description="Save after each epoch, or after this many steps.")
    ] = "epoch"
    keep: Annotated[int, Meta(ge=1, le=100, description="How many checkpoints of an attempt stay.")] = 2
    on_existing: Annotated[
        Literal["Auto", "Resume", "StartFresh", "Fail"],
        Meta(description="What to do with checkpoints of an earlier job of this name. Auto: resume an unfinished run, refuse a finished one."),
    ] = "Auto"
    resume_from: Annotated[Path | None, Meta(description="A checkpoint or job folder to start from.")] = None
    access: Annotated[
        Literal["Auto", "Chief", "Shared"], Meta(description="Who mounts the volume. Auto: Chief for ReadWriteOnce claims, else Shared.")
    ] = "Auto"
    reclaim: Annotated[Literal["Retain", "Delete"], Meta(description="What happens to a claim made from a template when the job is deleted.")] = (
        "Retain"
    )


class FailureRule(Fields):
    action: Literal["Restart", "RestartUncounted", "Fail", "Ignore"]
    roles: list[Literal["chief", "worker", "ps", "evaluator"]] = []
    exit_codes: list[int] = []
    reasons: list[str] = []
    message_pattern: Annotated[Pattern | None, Meta(description="google-re2 pattern searched in the failure's message.")] = None


class Backoff(Fields):
    initial_seconds: PositiveSeconds = 5
    max_seconds: PositiveSeconds = 300


class Recovery(Fields):
    mode: Annotated[Literal["Auto", "InPlace", "Recreate"], Meta(description="InPlace restarts programs inside their pods.")] = "Auto"
    max_restarts: Annotated[int, Meta(ge=0, description="Failures since the last progress before the job fails. Progress is a newer verified checkpoint.")] = 10
    max_restarts_total: Annotated[int | None, Meta(description="Upper bound of restarts after failures for the whole job.")] = None
    max_same_failure: Annotated[int, Meta(ge=1, description="How often the same failure at the same step may repeat.")] = 3
    max_disruptions_without_progress: Annotated[int, Meta(ge=0)] = 20
    max_stalls: Annotated[int, Meta(ge=0)] = 3
    backoff: Backoff = field(default_factory=Backoff)
    rules: list[FailureRule] = []
    allow_restart_from_zero: bool = False
    exclude_nodes: bool = True
    schedule_seconds: PositiveSeconds = 900
    first_step_seconds: PositiveSeconds = 3600
    stall_seconds: PositiveSeconds = 1800
    lost_node_seconds: PositiveSeconds = 120
    termination_seconds: PositiveSeconds | None = None
    """None: the pod's grace period + 120."""


class Gang(Fields):
    scheduler: Annotated[
        Literal["Auto", "BuiltIn", "Native", "Volcano", "Kueue", "Coscheduling", "KAI", "None"], Meta(description="Who schedules the gang.")
    ] = "Auto"
    timeout_seconds: PositiveSeconds = 300
    queue: Name | None = None
    priority_class_name: Name | None = None
    topology_key: Name | None = None
    when_full: Literal["Auto", "Wait", "Release"] = "Auto"
    scale_up_seconds: PositiveSeconds = 1200
    hold_seconds: Seconds = 120


class Communication(Fields):
    implementation: Literal["Auto", "Ring", "NCCL"] = "Auto"
    cross_device_ops: str | None = None
    bytes_per_pack: int | None = None
    heartbeat_seconds: PositiveSeconds = 30
    rendezvous_seconds: PositiveSeconds = 300
    timeout_seconds: PositiveSeconds | None = None


class Preflight(Fields):
    network: bool = True
    node_check: bool = False
    timeout_seconds: PositiveSeconds = 300


class Network(Fields):
    port: Port = 2222
    status_port: Port = 2280
    policy: Literal["Isolated", "None"] = "Isolated"
    expose: list[Port] = []
    cluster_domain: str = "cluster.local"


class Disruption(Fields):
    protect: bool = True
    budget: bool = False


class JobSpec(Fields):
    roles: Roles
    strategy: Strategy = "Auto"
    keras: Literal["Auto", "Keras3", "Legacy"] = "Auto"
    template: DictTemplate | None = None
    trainer_container: Name | None = None
    program: Program | None = None
    supervisor: Literal["Auto", "Inject", "None"] = "Auto"
    batch: Batch | None = None
    checkpoint: Checkpoint | None = None
    recovery: Recovery = field(default_factory=Recovery)
    gang: Gang = field(default_factory=Gang)
    communication: Communication = field(default_factory=Communication)
    preflight: Preflight = field(default_factory=Preflight)
    network: Network = field(default_factory=Network)
    disruption: Disruption = field(default_factory=Disruption)
    security_defaults: Literal["Restricted", "None"] = "Restricted"
    success_policy: Literal["Chief", "AllWorkers"] = "Chief"
    suspend: bool = False
    restart_request: str | None = None
    active_deadline_seconds: PositiveSeconds | None = None
    ttl_seconds_after_finished: Seconds | None = None
    clean_pod_policy: Literal["Running", "All", "None"] = "Running"
    keep_failed_pods: Annotated[int, Meta(ge=0, le=100)] = 1
    managed_by: Name = "dtj.dev/operator"
