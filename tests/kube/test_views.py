"""A pod's manifest, as kubelets, schedulers and programs leave it, to what decisions read."""

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from dtj_operator.api.observed import ContainerEnd, PodStage
from dtj_operator.api.status import Time
from dtj_operator.kube import views
from dtj_worker.codec import encode
from dtj_worker.contract import Task, Verdict

RUNNING = {"running": {"startedAt": "2026-11-30T10:00:09Z"}}
VERDICT = Verdict(
    attempt=2, by="child", kind="Program", task="worker-1", exit_code=3, step=412, message="ValueError: no"
)


def at(seconds: int) -> Time:
    return datetime(2026, 11, 30, 10, 0, seconds, tzinfo=UTC)


def pod(spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    """A pod of ml/mnist with a sidecar before its trainer, as a webhook may put one."""
    sidecar = {"name": "mesh"}
    trainer = {"name": "train", "env": [{"name": "TF_CONFIG", "value": "{}"}]}
    labels = {"dtj.dev/job-name": "mnist", "dtj.dev/role": "worker", "dtj.dev/index": "1", "dtj.dev/round": "3"}
    return {
        "metadata": {
            "name": "mnist-worker-1-3",
            "namespace": "ml",
            "uid": "u",
            "resourceVersion": "7",
            "creationTimestamp": "2026-11-30T10:00:00Z",
            "labels": labels,
            "ownerReferences": [{"uid": "other"}, {"uid": "job", "controller": True, "kind": "K", "name": "mnist"}],
            **metadata,
        },
        "spec": {"containers": [sidecar, trainer], "terminationGracePeriodSeconds": 60, **(spec or {})},
        "status": status or {},
    }


def containers(mesh: dict[str, Any], trainer: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": "mesh", "state": mesh}, {"name": "train", "state": trainer}]


def ended(code: int, **told: Any) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "finishedAt": "2026-11-30T10:00:30Z", "startedAt": None, **told}}


BOUND = {"nodeName": "n1"}


@pytest.mark.parametrize(
    ("spec", "status", "stage"),
    [
        pytest.param({"schedulingGates": [{"name": "dtj.dev/gang"}]}, {}, "Gated", id="a gate is left"),
        pytest.param({}, {"phase": "Pending"}, "Unbound", id="no node"),
        pytest.param(BOUND, {"phase": "Pending"}, "Bound", id="a node and no word of its kubelet"),
        pytest.param(
            BOUND,
            {"phase": "Running", "containerStatuses": containers({"waiting": {"reason": "ImagePullBackOff"}}, RUNNING)},
            "Bound",
            id="a sidecar is missing",
        ),
        pytest.param(
            BOUND, {"phase": "Running", "containerStatuses": containers(RUNNING, RUNNING)}, "Running", id="all started"
        ),
        pytest.param(
            BOUND,
            {"phase": "Running", "containerStatuses": containers(ended(1), RUNNING)},
            "Running",
            id="a sidecar's end is nobody's business",
        ),
        pytest.param(
            BOUND,
            {"phase": "Running", "containerStatuses": containers(RUNNING, ended(0))},
            "Succeeded",
            id="a sidecar keeps no finished trainer alive",
        ),
        pytest.param(
            BOUND,
            {"phase": "Running", "containerStatuses": containers(RUNNING, ended(3))},
            "Failed",
            id="the trainer failed",
        ),
        pytest.param(BOUND, {"phase": "Failed", "reason": "OutOfcpu"}, "Failed", id="the kubelet refused it"),
        pytest.param(
            BOUND,
            {"phase": "Failed", "containerStatuses": containers(RUNNING, RUNNING)},
            "Failed",
            id="the node is gone and nobody saw the end",
        ),
    ],
)
def test_stages(spec: dict[str, Any], status: dict[str, Any], stage: PodStage) -> None:
    view = views.pod(pod(spec, status))
    assert view is not None
    assert view.stage == stage


@pytest.mark.parametrize(
    ("phase", "mesh", "lingers"),
    [
        pytest.param("Running", RUNNING, True, id="a sidecar runs on"),
        pytest.param("Running", ended(0), False, id="the kubelet still ends native sidecars"),
        pytest.param("Failed", RUNNING, False, id="the node is gone and nobody saw the sidecar's end"),
    ],
)
def test_what_keeps_a_pod_alive_after_its_trainer(phase: str, mesh: dict[str, Any], *, lingers: bool) -> None:
    view = views.pod(pod(BOUND, {"phase": phase, "containerStatuses": containers(mesh, ended(0))}))
    assert view is not None
    assert view.lingers is lingers


def test_identity_and_times() -> None:
    conditions = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-30T10:00:02Z"},
        {"type": "Ready", "status": "True"},
    ]
    statuses = containers(RUNNING, {"running": {"startedAt": "2026-11-30T10:00:05Z"}})
    view = views.pod(
        pod(
            BOUND,
            {"conditions": conditions, "containerStatuses": statuses, "podIP": "10.0.0.7"},
            annotations={"dtj.dev/status-address": "127.0.0.1:4000"},
            deletionTimestamp="2026-11-30T10:00:50Z",
            deletionGracePeriodSeconds=10,
        )
    )
    assert view is not None
    assert (view.name, view.uid, view.task, view.round, view.owner_uid) == (
        "mnist-worker-1-3",
        "u",
        Task("worker", 1),
        3,
        "job",
    )
    assert (view.node, view.address, view.status_address, view.ready) == ("n1", "10.0.0.7", "127.0.0.1:4000", True)
    assert (view.created_at, view.bound_at, view.started_at) == (at(0), at(2), at(9))
    # Kubernetes writes the end of the grace period.
    assert (view.deleting_since, view.grace_seconds) == (at(40), 10)


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param({}, id="none"),
        pytest.param({"dtj.dev/role": "boss", "dtj.dev/index": "0", "dtj.dev/round": "0"}, id="a role there isn't"),
        pytest.param({"dtj.dev/role": "ps", "dtj.dev/index": "-1", "dtj.dev/round": "0"}, id="no index"),
        pytest.param(
            {"dtj.dev/role": "ps", "dtj.dev/index": "1", "dtj.dev/round": "٣"}, id="a digit of another script"
        ),
    ],
)
def test_a_pod_that_is_no_task_has_no_view(labels: dict[str, str]) -> None:
    assert views.pod(pod(labels=labels)) is None


@pytest.mark.parametrize("grace", [10**11, 2**63 - 1])
def test_a_grace_period_beyond_all_reason_is_a_year(grace: int) -> None:
    """Anybody may give a pod our labels, and such a period; it must not end the operator's process."""
    view = views.pod(pod({"terminationGracePeriodSeconds": grace}))
    assert (view.grace_seconds if view else None) == 31_536_000
    gone = views.pod(pod(deletionTimestamp="2026-11-30T10:00:00Z", deletionGracePeriodSeconds=grace))
    assert gone is not None
    assert gone.deleting_since is not None


def test_a_verdict_is_read_and_its_first_line_is_for_people() -> None:
    status = {"containerStatuses": containers(RUNNING, ended(3, message=VERDICT.termination_message()))}
    view = views.pod(pod(BOUND, status))
    assert view is not None
    assert view.verdict == VERDICT
    assert view.trainer == ContainerEnd(exit_code=3, message="ValueError: no", finished_at=at(30))


def test_of_a_foreign_program_the_last_line_tells() -> None:
    log = "Traceback (most recent call last):\n  File ...\nKeyError: 'x'\n\n"
    view = views.pod(pod(BOUND, {"containerStatuses": containers(RUNNING, ended(1, message=log, reason="Error"))}))
    assert view is not None
    assert view.verdict is None
    assert view.trainer == ContainerEnd(exit_code=1, reason="Error", message="KeyError: 'x'", finished_at=at(30))


@pytest.mark.parametrize(
    "message",
    [
        pytest.param("x\n" + "[" * 4000, id="nested without end"),
        pytest.param(
            'x\n{"attempt": 1e999, "by": "child", "kind": "Done", "task": "worker-0"}', id="a number too large"
        ),
        pytest.param(f'x\n{{"attempt": {10**30}, "by": "child", "kind": "Done", "task": "worker-0"}}', id="past 2^53"),
        pytest.param('x\n{"attempt": 1, "by": "me", "kind": "Done", "task": "worker-0"}', id="not by the contract"),
        pytest.param("\x00\x1b]0;owned\x07\n" + "A" * 100_000, id="endless"),
    ],
)
def test_a_hostile_message_is_no_verdict_and_breaks_nothing(message: str) -> None:
    view = views.pod(pod(BOUND, {"containerStatuses": containers(RUNNING, ended(0, message=message))}))
    assert view is not None
    assert view.verdict is None
    assert view.trainer is not None
    assert view.trainer.message.isprintable()
    assert len(view.trainer.message.encode()) <= 1024


def test_a_verdicts_text_carries_no_control_characters() -> None:
    told = Verdict(attempt=0, by="child", kind="Program", task="worker-0", message="a\x1b[31mred\x07")
    message = f"a program's own writing\n{encode(told)}\n"
    assert "\\u001b" in message
    view = views.pod(pod(BOUND, {"containerStatuses": containers(RUNNING, ended(1, message=message))}))
    assert view is not None
    assert view.verdict is not None
    assert view.verdict.message == "a [31mred"
    assert view.trainer is not None
    assert view.trainer.message.isprintable()


@pytest.mark.parametrize(
    ("status", "by", "message"),
    [
        pytest.param(
            {
                "conditions": [
                    {
                        "type": "DisruptionTarget",
                        "status": "True",
                        "reason": "EvictionByEvictionAPI",
                        "message": "drain",
                    }
                ]
            },
            "EvictionByEvictionAPI",
            "drain",
            id="the eviction API",
        ),
        pytest.param(
            {"conditions": [{"type": "DisruptionTarget", "status": "False", "reason": "X"}]},
            None,
            "",
            id="not any more",
        ),
        pytest.param(
            {"conditions": [{"type": "TerminationTarget", "status": "True", "reason": "StoppedByKueue"}]},
            "StoppedByKueue",
            "",
            id="Kueue",
        ),
        pytest.param(
            {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."},
            "Evicted",
            "The node was low on resource: memory.",
            id="the node's need",
        ),
        pytest.param({"phase": "Failed", "reason": "OutOfnvidia.com/gpu"}, "OutOfnvidia.com/gpu", "", id="no GPU left"),
        pytest.param(
            {"phase": "Failed", "reason": "UnexpectedAdmissionError"}, "UnexpectedAdmissionError", "", id="kubelet"
        ),
        pytest.param({"phase": "Failed", "reason": "NodeLost"}, "NodeLost", "", id="the node is gone"),
        pytest.param({"phase": "Failed", "reason": "DeadlineExceeded"}, None, "", id="its own deadline"),
        pytest.param({"phase": "Failed", "reason": "Error"}, None, "", id="its own end"),
    ],
)
def test_disruptions(status: dict[str, Any], by: str | None, message: str) -> None:
    view = views.pod(pod(BOUND, status))
    assert view is not None
    assert (view.disrupted_by, view.disruption_message) == (by, message)
    assert view.phase_reason == status.get("reason")


@pytest.mark.parametrize(
    ("spec", "status", "waits"),
    [
        pytest.param(
            {},
            {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3"}]},
            ("Unschedulable", "0/3", None),
            id="the scheduler's word",
        ),
        pytest.param(
            BOUND,
            {
                "containerStatuses": containers(
                    {"waiting": {"reason": "ContainerCreating"}}, {"waiting": {"reason": "PodInitializing"}}
                )
            },
            ("ContainerCreating", "", "mesh"),
            id="nothing worth telling",
        ),
        pytest.param(
            BOUND,
            {
                "containerStatuses": containers(
                    {"waiting": {"reason": "PodInitializing"}},
                    {"waiting": {"reason": "CreateContainerConfigError", "message": 'configmap "c" not found'}},
                )
            },
            ("CreateContainerConfigError", 'configmap "c" not found', "train"),
            id="a config map that isn't there",
        ),
        pytest.param(
            BOUND,
            {
                "initContainerStatuses": [
                    {"name": "dtj", "state": {"waiting": {"reason": "ErrImagePull", "message": "no"}}}
                ],
                "containerStatuses": containers({"waiting": {"reason": "PodInitializing"}}, {"waiting": {}}),
            },
            ("ErrImagePull", "no", "dtj"),
            id="an init container's image",
        ),
        pytest.param(BOUND, {"containerStatuses": containers(RUNNING, RUNNING)}, (None, "", None), id="it runs"),
    ],
)
def test_what_a_pod_waits_for(
    spec: dict[str, Any], status: dict[str, Any], waits: tuple[str | None, str, str | None]
) -> None:
    view = views.pod(pod(spec, status))
    assert view is not None
    assert (view.waiting_reason, view.waiting_message, view.waiting_container) == waits


def test_the_trainer_is_found_by_name_where_nothing_tells() -> None:
    plain = copy.deepcopy(pod(BOUND, {"containerStatuses": [{"name": "trainer", "state": ended(0)}]}))
    plain["spec"]["containers"] = [{"name": "first"}, {"name": "trainer"}]
    view = views.pod(plain)
    assert view is not None
    assert view.stage == "Succeeded"
    plain["spec"]["containers"] = [{"name": "only"}, {"name": "other"}]
    plain["status"]["containerStatuses"] = [{"name": "only", "state": ended(2)}]
    view = views.pod(plain)
    assert view is not None
    assert view.stage == "Failed"


def test_a_node() -> None:
    view = views.node(
        {
            "metadata": {"name": "n1", "labels": {"zone": "a"}},
            "spec": {"unschedulable": True, "taints": [{"key": "gpu", "effect": "NoSchedule"}]},
            "status": {
                "allocatable": {"cpu": "3900m", "memory": "2Gi"},
                "conditions": [{"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-11-30T10:00:02Z"}],
            },
        }
    )
    assert (view.ready, view.not_ready_since, view.unschedulable) == (False, at(2), True)
    assert (view.taints, view.labels) == ((("gpu", "", "NoSchedule"),), {"zone": "a"})
    assert view.allocatable == {"cpu": 3.9, "memory": 2 * 2**30}
    assert views.node({"metadata": {"name": "bare"}}).ready is False
