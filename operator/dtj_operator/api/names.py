"""Names that are derived: children, labels, annotations, gates, and how long each may be. No manifest is built here."""

from dtj_worker.contract import Task

GROUP = "dtj.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "DistributedTrainingJob"
PLURAL = "distributedtrainingjobs"
MANAGER = "dtj.dev/operator"

LABEL_JOB = "dtj.dev/job-name"
LABEL_ROLE = "dtj.dev/role"
LABEL_INDEX = "dtj.dev/index"
LABEL_ROUND = "dtj.dev/round"
ANNOTATION_FAULT = "dtj.dev/fault"
ANNOTATION_STATUS_ADDRESS = "dtj.dev/status-address"
"""Where the embedded kubelet put a pod's status port; honoured only with the flag that the embedded cluster passes."""
ANNOTATION_MADE_OF = "dtj.dev/made-of"
"""On children that follow an edit: a digest of what they were made as."""
GATE = "dtj.dev/gang"

PROGRAM_FOLDER = "/program"
"""Where the files of spec.program are mounted, unless the trainer names its working directory."""

DNS_LABEL_LENGTH = 63
ROUND_DIGITS = 6


def pod(job: str, task: Task, round_: int) -> str:
    """Name of a pod; the round makes it one that is never used twice."""
    return f"{hostname(job, task)}-{round_}"


def hostname(job: str, task: Task) -> str:
    return f"{job}-{task}"


def peers_service(job: str) -> str:
    return f"{job}-peers"


def token_secret(job: str, uid: str) -> str:
    return f"{job}-token-{uid[:8]}"


def network_policy(job: str) -> str:
    return f"{job}-peers"


def checkpoint_claim(job: str) -> str:
    return f"{job}-checkpoints"


def disruption_budget(job: str) -> str:
    return f"{job}-peers"


def host(job: str, namespace: str, task: Task, cluster_domain: str) -> str:
    """The DNS name of a task; it stays the same whatever pod stands behind it."""
    return f"{hostname(job, task)}.{peers_service(job)}.{namespace}.svc.{cluster_domain}"
