"""A task becomes a pod: defaults, template and what the job needs, laid over each other. Gangs mark it in `gang/`."""

from typing import Any

from dtj_operator.api import names
from dtj_operator.api.fault import parse_fault
from dtj_operator.api.observed import Situation
from dtj_operator.desired import affinity, checkpoints, trainer
from dtj_operator.desired.defaults import defaults
from dtj_operator.desired.objects import owner_reference
from dtj_operator.desired.overlay import mapping, overlay, role_template, without_nulls
from dtj_operator.desired.overlay import trainer as trainer_of
from dtj_operator.desired.supervision import install_container, supervision
from dtj_operator.desired.topology import Topology, spec_of
from dtj_worker.contract import Batch, Communication, Fault, Limits, Preflight, Task, TaskSpec

GRACE_SECONDS = 30
"""Kubernetes' own default of `terminationGracePeriodSeconds`."""


def pod(s: Situation, t: Topology, task: Task, round_: int, attempt: int) -> dict[str, Any]:
    """The manifest of one incarnation of a task, without the gang's marks.

    `attempt` is the one that its supervisor starts with. What makes no sense in the template is in it still, for the
    API server to refuse.
    """
    spec = spec_of(s)
    template = role_template(spec, task.role)
    how = supervision(s, task.role)
    if how.mode == "Injected" and s.facts.supervisor_image is not None:
        # Under the template, so that it comes first, before sidecars that the program may wait for.
        template = overlay({"spec": {"initContainers": [install_container(s.facts.supervisor_image)]}}, template)
    own = trainer_of(spec, template)
    under = defaults(spec, template, supervised=how.is_supervised)
    over: dict[str, Any] = _identity(s, t, task, round_)
    if own:
        under["spec"] = overlay(under["spec"], trainer.suggested(s, t, task, own, how))
        over["spec"]["containers"] = [trainer.fixed(s, t, own, how, task_spec(s, t, task, attempt))]
    made: dict[str, Any] = without_nulls(overlay(overlay(under, template), over))
    if not s.status.recovery.excluded_nodes:
        return made
    # A preference: with nowhere else to go, the bad node must do. A backend that sees others makes it a requirement.
    return affinity.preferring(made, avoided_hosts(s))


def avoided_hosts(s: Situation) -> dict[str, Any]:
    """The requirement to stay off the nodes that the job's failures point to."""
    return affinity.on_hosts(affinity.host_names(s.nodes, s.status.recovery.excluded_nodes), are=False)


def task_spec(s: Situation, t: Topology, task: Task, attempt: int) -> TaskSpec:
    """What the supervisor of a task is told for one attempt."""
    spec = spec_of(s)
    recovery, talk = spec.recovery, spec.communication
    return TaskSpec(
        namespace=t.namespace,
        job=t.job,
        uid=s.uid,
        task=str(task),
        attempt=attempt,
        strategy=t.strategy,
        chief=str(t.chief),
        chief_status=_status_address(s, t, t.chief),
        status=_status_address(s, t, task),
        peers=t.addresses,
        keras=spec.keras,
        success_policy=spec.success_policy,
        batch=Batch()
        if spec.batch is None
        else Batch(spec.batch.per_replica, spec.batch.global_size, spec.batch.allow_change),
        communication=Communication(
            implementation=talk.implementation,
            cross_device_ops=talk.cross_device_ops,
            bytes_per_pack=talk.bytes_per_pack,
            heartbeat_seconds=talk.heartbeat_seconds,
            timeout_seconds=talk.timeout_seconds,
        ),
        preflight=Preflight(network=spec.preflight.network, node_check=spec.preflight.node_check),
        checkpoint=checkpoints.plan(s, t),
        limits=Limits(
            registration_seconds=recovery.schedule_seconds + spec.preflight.timeout_seconds,
            program_seconds=recovery.first_step_seconds,
            rendezvous_seconds=talk.rendezvous_seconds,
            first_step_seconds=recovery.first_step_seconds,
            stall_seconds=recovery.stall_seconds,
            grace_seconds=grace_seconds(s, task),
        ),
        fault=_fault(s, task, attempt),
    )


def grace_seconds(s: Situation, task: Task) -> int:
    """How long a task's pod has between SIGTERM and SIGKILL."""
    own = mapping(role_template(spec_of(s), task.role).get("spec")).get("terminationGracePeriodSeconds")
    return own if isinstance(own, int) and not isinstance(own, bool) and own >= 0 else GRACE_SECONDS


def _identity(s: Situation, t: Topology, task: Task, round_: int) -> dict[str, Any]:
    """Who the pod is; no template may say otherwise."""
    return {
        "metadata": {
            "name": names.pod(t.job, task, round_),
            "namespace": t.namespace,
            "labels": {
                names.LABEL_JOB: t.job,
                names.LABEL_ROLE: task.role,
                names.LABEL_INDEX: str(task.index),
                names.LABEL_ROUND: str(round_),
            },
            "ownerReferences": [owner_reference(s)],
        },
        "spec": {
            "hostname": names.hostname(t.job, task),
            "subdomain": names.peers_service(t.job),
            "restartPolicy": "Never",
        },
    }


def _status_address(s: Situation, t: Topology, task: Task) -> str:
    network = spec_of(s).network
    return f"{names.host(t.job, t.namespace, task, network.cluster_domain)}:{network.status_port}"


def _fault(s: Situation, task: Task, attempt: int) -> Fault | None:
    """The failure to inject into this task in attempt 0; `faults.py` refuses a malformed annotation."""
    text = s.annotations.get(names.ANNOTATION_FAULT)
    if attempt != 0 or text is None:
        return None
    try:
        hurt, fault = parse_fault(text)
    except ValueError:
        return None
    return fault if hurt == task else None
