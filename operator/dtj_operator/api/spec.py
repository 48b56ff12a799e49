"""What a user writes: every field of `spec` once, with type, bound, default, description. `crd.py` makes the CRD of it.

How the job is run stands in `policies.py`, rules between fields in `rules.py`; `faults.py` checks what no schema sees.
"""

from typing import Annotated, Literal

from msgspec import Meta, field

from dtj_operator.api import names
from dtj_operator.api import rules as cel
from dtj_operator.api.fields import (
    DictTemplate,
    Fields,
    Label,
    Name,
    Path,
    Positive,
    PositiveSeconds,
    Replicas,
    Seconds,
    about,
)
from dtj_operator.api.policies import Communication, Disruption, Gang, Network, Preflight, Recovery
from dtj_worker.contract import Keras
from dtj_worker.contract import Strategy as ResolvedStrategy

Strategy = Literal["Auto"] | ResolvedStrategy
Request = Annotated[str, Meta(max_length=256)]


class WorkerRole(Fields, frozen=True):
    replicas: Annotated[Replicas, about("How many workers train.")]
    template: Annotated[DictTemplate | None, about("Pod template of the workers, laid over spec.template.")] = None


class ChiefRole(Fields, frozen=True):
    replicas: Annotated[int, Meta(ge=1, le=1), about("A job has one chief at most.")] = 1
    template: Annotated[DictTemplate | None, about("Pod template of the chief, laid over spec.template.")] = None


class ParameterServerRole(Fields, frozen=True):
    replicas: Annotated[Replicas, about("How many parameter servers share the variables.")] = 1
    template: Annotated[DictTemplate | None, about("Pod template of the servers, laid over spec.template.")] = None


class EvaluatorRole(Fields, frozen=True):
    replicas: Annotated[int, Meta(ge=1, le=1), about("A job has one evaluator at most.")] = 1
    template: Annotated[DictTemplate | None, about("Pod template of the evaluator, laid over spec.template.")] = None
    required: Annotated[bool, about("Whether its failure fails the job.")] = False
    finish_seconds: Annotated[
        Seconds, about("How long after the chief's success the evaluator may go on before it is stopped.")
    ] = 600


class Roles(Fields, frozen=True):
    worker: Annotated[WorkerRole, about("The tasks that train. Without a chief, worker 0 is the chief.")]
    chief: Annotated[
        ChiefRole | None,
        about("One task that leads: it decides success, saves checkpoints, and runs ParameterServer's coordinator."),
    ] = None
    ps: Annotated[ParameterServerRole | None, about("Parameter servers; for strategy ParameterServer only.")] = None
    evaluator: Annotated[
        EvaluatorRole | None,
        about("One task that evaluates checkpoints beside the training. It is no member of the gang."),
    ] = None


class Program(Fields, frozen=True):
    config_map: Annotated[
        Name, about("ConfigMap of the job's namespace whose keys are mounted as files; the trainer works beside them.")
    ]


class Batch(Fields, frozen=True):
    per_replica: Annotated[Positive | None, about("Examples per replica and step.")] = None
    global_size: Annotated[
        Positive | None, about("Examples per step over all replicas; the replicas must divide it.")
    ] = field(default=None, name="global")
    allow_change: Annotated[bool, about("Whether a resumed run may have another batch size.")] = False


class Checkpoint(Fields, frozen=True):
    persistent_volume_claim: Annotated[Name | None, about("Name of an existing claim.")] = None
    volume_claim_template: Annotated[
        DictTemplate | None, about("A claim to make for the job, called <job>-checkpoints: metadata and spec.")
    ] = None
    volume: Annotated[
        DictTemplate | None, about("Any other volume source, as under a pod's volumes but without its name.")
    ] = None
    uri: Annotated[
        Path | None,
        about("A folder of an object store, gs://bucket/path."),
        cel.rules(
            cel.Rule(
                "!self.startsWith('s3://')",
                "TensorFlow has no S3 file system; mount the bucket with a CSI driver, and name its claim in "
                "persistentVolumeClaim or its source in volume",
            ),
            cel.Rule(
                "self.startsWith('s3://') || self.matches('^gs://[a-z0-9][-_.a-z0-9]+(/.*)?$')",
                "write gs://bucket/path; for other storage name a claim or a volume",
            ),
        ),
    ] = None
    directory: Annotated[
        str,
        Meta(min_length=1, max_length=512),
        about("Where the volume is mounted. The job's own folder is <directory>/<namespace>/<job>."),
        cel.rules(
            cel.Rule(
                "self.matches('^(/[^/:]+)+$') && !self.matches('/[.][.]?(/|$)')",
                "write an absolute path below /, such as /checkpoints; no colon, no '..', no slash at its end",
            )
        ),
    ] = "/checkpoints"
    every: Annotated[
        int | Literal["epoch"],
        about('When to save: "epoch", after each epoch, or a number of steps.'),
        cel.rules(
            cel.Rule(
                "type(self) == string ? self == 'epoch' : self >= 1", "write epoch, or a number of steps of 1 or more"
            )
        ),
    ] = "epoch"
    keep: Annotated[int, Meta(ge=1, le=100), about("How many checkpoints of an attempt are kept.")] = 2
    on_existing: Annotated[
        Literal["Auto", "Resume", "StartFresh", "Fail"],
        about(
            "What to do when an earlier job of this name left checkpoints. Auto resumes an unfinished run and refuses "
            "a finished one."
        ),
    ] = "Auto"
    resume_from: Annotated[
        Path | None,
        about("A checkpoint, or the folder of another job, whose newest checkpoint the first attempt starts from."),
        cel.rules(
            cel.Rule("self.startsWith('/') || self.startsWith('gs://')", "write an absolute path, or gs://bucket/path")
        ),
    ] = None
    access: Annotated[
        Literal["Auto", "Chief", "Shared"],
        about(
            "Who mounts the volume. Chief: the chief alone (with ParameterServer the servers too). Auto: Chief for "
            "ReadWriteOnce claims, else Shared."
        ),
    ] = "Auto"
    reclaim: Annotated[
        Literal["Retain", "Delete"],
        about("What becomes of a claim made from volumeClaimTemplate when the job is deleted."),
    ] = "Retain"


class JobSpec(Fields, frozen=True):
    """What to train, with what, and how to come back from failures."""

    roles: Annotated[Roles, about("The tasks of the job.")]
    strategy: Annotated[
        Strategy,
        about(
            "The tf.distribute strategy. Auto takes the smallest topology that works, and says why. None, OneDevice, "
            "Mirrored, CentralStorage and TPU run on one host."
        ),
    ] = "Auto"
    keras: Annotated[
        Keras, about("Which Keras the program gets: Keras3, Legacy (tf_keras), or what the strategy needs.")
    ] = "Auto"
    template: Annotated[
        DictTemplate | None, about("The pod that all roles share, as in a Deployment: metadata and spec.")
    ] = None
    trainer_container: Annotated[
        Label | None,
        about('The container that trains and decides success. Absent: the one named "trainer", else the first.'),
    ] = None
    program: Annotated[
        Program | None, about("Scripts from a ConfigMap, so that a small experiment needs no image.")
    ] = None
    supervisor: Annotated[
        Literal["Auto", "Inject", "None"],
        about(
            "How the supervisor gets into the trainer. Auto injects it where the template sets a command; without one "
            "the image's entry point is taken to be dtj-worker."
        ),
    ] = "Auto"
    batch: Annotated[
        Batch | None, about("The batch size, checked against what the program does."), cel.rules(*cel.BATCH)
    ] = None
    checkpoint: Annotated[
        Checkpoint | None,
        about("Where and when to save. Without it a restart begins from zero."),
        cel.rules(*cel.CHECKPOINT),
    ] = None
    recovery: Annotated[Recovery, about("When to restart, and when to give up.")] = field(default_factory=Recovery)
    gang: Annotated[Gang, about("How all required pods get their places together.")] = field(default_factory=Gang)
    communication: Annotated[Communication, about("How the tasks talk.")] = field(default_factory=Communication)
    preflight: Annotated[Preflight, about("What is tried before the program starts.")] = field(
        default_factory=Preflight
    )
    network: Annotated[Network, about("Ports, and who may reach them.")] = field(default_factory=Network)
    disruption: Annotated[Disruption, about("How voluntary evictions are kept off.")] = field(
        default_factory=Disruption
    )
    security_defaults: Annotated[
        Literal["Restricted", "None"],
        about(
            "Restricted fills in what the Pod Security Standard of that name asks for where the template is silent. "
            "None is for images that run as root."
        ),
    ] = "Restricted"
    success_policy: Annotated[
        Literal["Chief", "AllWorkers"], about("Whose exit 0 is the job's success: the chief's, or every worker's.")
    ] = "Chief"
    suspend: Annotated[bool, about("True stops the job and frees everything; a checkpoint is saved first.")] = False
    restart_request: Annotated[Request | None, about("Any text; a change restarts the job once, uncounted.")] = None
    active_deadline_seconds: Annotated[
        PositiveSeconds | None, about("Unsuspended time from admission after which the job fails.")
    ] = None
    ttl_seconds_after_finished: Annotated[
        Seconds | None, about("How long after its end the job is deleted; absent: never.")
    ] = None
    clean_pod_policy: Annotated[
        Literal["Running", "All", "None"],
        about("Which pods are deleted at the end: those that ran until then, All, or None. All of them are stopped."),
    ] = "Running"
    keep_failed_pods: Annotated[
        int, Meta(ge=0, le=100), about("Of how many failed attempts the culprit's pod stays, for its logs.")
    ] = 1
    managed_by: Annotated[
        Name,
        about("Who runs the job; the operator leaves it alone when this is another."),
        cel.rules(cel.Rule("self == oldSelf", "can't change; make a new job")),
    ] = names.MANAGER
