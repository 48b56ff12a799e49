"""What the words of kubelets, programs and the API mean, and what makes two failures look the same."""

import re

from dtj_operator.decide.actions import Failure

SIGNATURE_LENGTH = 200

_REFUSAL = re.compile(
    r"NodeAffinity|NodeUnschedulable|NodePorts|NodeResourcesFit|TopologyAffinityError|UnexpectedAdmissionError"
    r"|PodOS\w+|OutOf\w+"
)
"""Reasons with which a kubelet turns down what the scheduler gave it."""

_OWN_LIMIT = re.compile(r"exceed|limit", re.IGNORECASE)
"""An eviction for the pod's own limits: "Usage of EmptyDir volume … exceeds the limit", "ephemeral local storage usage
exceeds the total limit of containers". For the node's needs it reads "The node was low on resource: memory"."""

_NO_PROGRAM = re.compile(r'exec: "|executable file .*not found|exec format error')
"""What runc and crun say of a command that is not there or can't be run; what else keeps a container from starting,
such as a cgroup that takes its time, may pass."""

_COLLECTIVE = re.compile(
    r"UnavailableError|Collective ops is aborted|coordination service|Connection reset by peer|Socket closed"
    r"|RecvBuf|peer closed|failed to connect to all addresses",
    re.IGNORECASE,
)
"""What TensorFlow's collectives say when a peer has gone."""

_CHANGES = re.compile(r"0x[0-9a-fA-F]+|\d+")


def is_refusal(reason: str) -> bool:
    """Whether a kubelet refused the pod: its node is to be avoided."""
    return _REFUSAL.fullmatch(reason) is not None


def is_own_limit(reason: str, message: str) -> bool:
    """Whether a pod was evicted because of its own limits, not because its node was in need."""
    return reason == "Evicted" and _OWN_LIMIT.search(message) is not None and "node was low" not in message


def no_program(reason: str, message: str) -> bool:
    """Whether a container did not start for want of its program, as containerd or Docker tells it."""
    return reason in ("StartError", "ContainerCannotRun") and _NO_PROGRAM.search(message) is not None


def collective(message: str) -> bool:
    """Whether a program died of a peer's death, as far as its last words tell."""
    return _COLLECTIVE.search(message) is not None


def all_pods(count: int) -> str:
    """The pods of a whole gang, as the subject of a sentence."""
    return "its pod" if count == 1 else f"all {count} pods"


def at_step(step: int | None) -> str:
    return "" if step is None else f" at step {step}"


def signature(failure: Failure) -> str:
    """Equal for failures that look the same: class, way of ending, and the message without what changes in it.

    A container out of memory looks the same whoever tells it: the supervisor, where the kernel has taken the program
    alone, or the kubelet, where it was first or the supervisor is gone as well.
    """
    if _is_of_host_memory(failure):
        return "OutOfMemory/host"
    end = failure.signal or failure.exit_code or failure.reason
    message = _CHANGES.sub("#", " ".join(failure.message.split()))
    return f"{failure.kind}/{end}/{message}"[:SIGNATURE_LENGTH]


def is_quota(message: str) -> bool:
    """Whether the API server refused a pod for want of quota; such a refusal heals by itself."""
    return "exceeded quota" in message


def memory_advice(failure: Failure) -> str:
    """What helps against running out of memory: the host's (a kill by the kernel) or a device's (a program's error)."""
    if _is_of_host_memory(failure):
        return "raise the container's memory limit, or make the batch or the input pipeline's buffers smaller"
    return (
        "make the batch per replica smaller; if a single example is too much, the model does not fit one device, "
        "and more replicas do not change that"
    )


def _is_of_host_memory(failure: Failure) -> bool:
    is_host = failure.reason == "OOMKilled" or failure.signal == "SIGKILL" or "CPU" in failure.message
    return failure.kind == "OutOfMemory" and is_host
