"""The trainer container and its volumes: environment, ports, mounts, command. The rest of the pod is in `pods.py`."""

from typing import Any

from dtj_operator.api import names
from dtj_operator.api.observed import Situation
from dtj_operator.api.policies import Network
from dtj_operator.desired import checkpoints, supervision
from dtj_operator.desired.overlay import mapping
from dtj_operator.desired.supervision import Supervision
from dtj_operator.desired.topology import Topology, spec_of, tf_config_text
from dtj_worker import contract
from dtj_worker.codec import encode
from dtj_worker.contract import Task, TaskSpec

SCRATCH = "/dtj/scratch"
SCRATCH_VOLUME = "dtj-scratch"
PROGRAM_VOLUME = "dtj-program"
TOKEN_KEY = "token"
TERMINATION_LOG = "/dev/termination-log"


def suggested(s: Situation, t: Topology, task: Task, own: dict[str, Any], how: Supervision) -> dict[str, Any]:
    """What the template may change: a part of a pod's spec to lay it over. `own` is the template's trainer."""
    spec = spec_of(s)
    # All of them, for the host's network: there they keep two tasks off one node.
    listening = ports(spec.network, t) if how.is_supervised else ports(spec.network, t)[:1]
    container: dict[str, Any] = {
        "name": own["name"],
        "ports": [{"name": n, "containerPort": p, "protocol": "TCP"} for n, p in listening],
    }
    pod: dict[str, Any] = {"containers": [container]}
    if spec.program is not None:
        container["workingDir"] = names.PROGRAM_FOLDER
    if how.is_supervised:
        container["env"] = [{"name": "TMPDIR", "value": SCRATCH}]
    else:
        # A foreign program leaves no message; the end of its log says more than nothing.
        container["terminationMessagePolicy"] = "FallbackToLogsOnError"
    mounted = _mounted(s, t, task, own, how)
    pod["volumes"] = list({volume["name"]: volume for volume, _ in mounted}.values())
    container["volumeMounts"] = [{"name": volume["name"], **mount} for volume, mount in mounted]
    return pod


def fixed(s: Situation, t: Topology, own: dict[str, Any], how: Supervision, told: TaskSpec) -> dict[str, Any]:
    """What the template may not change: the trainer's TF_CONFIG, and the supervisor's variables, log and command."""
    task = Task.parse(told.task)
    container = {"name": own["name"], "env": [{"name": "TF_CONFIG", "value": tf_config_text(t, task)}]}
    if not how.is_supervised:
        return container
    container["env"] += [
        {"name": contract.ENV_TASK, "value": encode(told)},
        {"name": contract.ENV_GRACE_SECONDS, "value": f"{told.limits.grace_seconds:g}"},
        {"name": contract.ENV_TOKEN, "valueFrom": {"secretKeyRef": {"name": _token(s, t), "key": TOKEN_KEY}}},
    ]
    # The supervisor writes its Verdict there; a message made of the log would hide it.
    container |= {"terminationMessagePath": TERMINATION_LOG, "terminationMessagePolicy": "File"}
    if how.mode == "Injected":
        container["command"] = supervision.injected_command(own["command"])
    return container


def ports(network: Network, t: Topology) -> list[tuple[str, int]]:
    """Names and numbers of the ports of a task: TensorFlow's, one per attempt in turn, and the supervisor's last."""
    # Under ParameterServer a task that restarts alone has to be found where it was.
    count = 1 if t.strategy == "ParameterServer" else contract.PORTS_PER_TASK
    return [*((f"dtj-tf-{k}", network.port + k) for k in range(count)), ("dtj-status", network.status_port)]


def _token(s: Situation, t: Topology) -> str:
    return names.token_secret(t.job, s.uid)


def _mounted(
    s: Situation, t: Topology, task: Task, own: dict[str, Any], how: Supervision
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each volume with one mount of it."""
    spec, mounted = spec_of(s), list[tuple[dict[str, Any], dict[str, Any]]]()
    if spec.program is not None:
        folder = own.get("workingDir")
        volume = {"name": PROGRAM_VOLUME, "configMap": {"name": spec.program.config_map}}
        mounted.append((volume, {"mountPath": folder if isinstance(folder, str) and folder else names.PROGRAM_FOLDER}))
    saved = checkpoints.volume(s, t, task)
    if saved is not None and spec.checkpoint is not None:
        mounted.append((saved, {"mountPath": spec.checkpoint.directory}))
    if how.is_supervised:
        scratch = {"name": SCRATCH_VOLUME, "emptyDir": {}}
        mounted.append((scratch, {"mountPath": SCRATCH}))
        if mapping(own.get("securityContext")).get("readOnlyRootFilesystem") is True:
            mounted.append((scratch, {"mountPath": "/tmp"}))
    if how.mode == "Injected":
        volume = {"name": supervision.VOLUME, "emptyDir": {}}
        mounted.append((volume, {"mountPath": supervision.FOLDER, "readOnly": True}))
    return mounted
