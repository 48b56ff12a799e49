"""What a task's pod looks like: the supervisor's way in, security, volumes, tolerations, nodes to avoid."""

from typing import Any

import msgspec
import pytest

from dtj_operator.api.observed import ClaimView, NodeView, Situation
from dtj_operator.api.status import CheckpointStatus, JobStatus, RecoveryState
from dtj_operator.desired.pods import pod, task_spec
from dtj_operator.desired.supervision import ZIPAPP
from dtj_operator.desired.topology import topology, topology_faults
from dtj_worker.codec import decode, encode
from dtj_worker.contract import Fault, Task, TaskSpec
from tests.desired.jobs import FACTS, SMALLEST, job, trained_by

WORKER = Task("worker", 0)


def made(s: Situation, task: Task = WORKER, attempt: int = 0) -> dict[str, Any]:
    return pod(s, topology(s), task, round_=0, attempt=attempt)


def container(manifest: dict[str, Any], name: str = "trainer", field: str = "containers") -> dict[str, Any]:
    return next(c for c in manifest["spec"][field] if c["name"] == name)


def environment(manifest: dict[str, Any], name: str = "trainer") -> dict[str, Any]:
    return {e["name"]: e.get("value", e.get("valueFrom")) for e in container(manifest, name).get("env", [])}


def one(template: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"roles": {"worker": {"replicas": 1}}, "template": template, **spec}


@pytest.mark.parametrize(
    ("trainer", "supervisor", "is_supervised", "is_injected"),
    [
        pytest.param({"args": ["train.py"]}, "Auto", True, False, id="no command: the entry point is dtj-worker"),
        pytest.param({"command": ["python", "train.py"]}, "Auto", True, True, id="a command is injected"),
        pytest.param({"command": ["python", "train.py"]}, "Inject", True, True, id="as asked"),
        pytest.param({"command": ["python", "train.py"]}, "None", False, False, id="left alone, as asked"),
        pytest.param({"args": ["train.py"]}, "None", False, False, id="left alone without a command"),
        pytest.param({"command": ["/usr/bin/dtj-worker", "train.py"]}, "Auto", True, False, id="dtj-worker itself"),
    ],
)
def test_supervision(trainer: dict[str, Any], supervisor: str, is_supervised: bool, is_injected: bool) -> None:
    manifest = made(job(one(trained_by(**trainer), supervisor=supervisor)))
    found = environment(manifest)
    assert "TF_CONFIG" in found
    assert {"DTJ_TASK", "DTJ_TOKEN", "DTJ_GRACE_SECONDS"} & found.keys() == (
        {"DTJ_TASK", "DTJ_TOKEN", "DTJ_GRACE_SECONDS"} if is_supervised else set()
    )
    assert ("initContainers" in manifest["spec"]) == is_injected
    assert container(manifest).get("args") == trainer.get("args")
    if not is_injected:
        assert container(manifest).get("command") == trainer.get("command")


def test_the_supervisor_is_copied_by_an_init_container_and_put_in_front_of_the_command() -> None:
    template = trained_by(command=["python", "train.py"], args=["--lr", "1"])
    template["spec"]["initContainers"] = [{"name": "mesh", "image": "mesh", "restartPolicy": "Always"}]
    manifest = made(job(one(template)))
    copies, mesh = manifest["spec"]["initContainers"]
    assert (copies["image"], copies["args"]) == ("dtj/supervisor:1", ["--install", ZIPAPP])
    assert "command" not in copies
    assert mesh["restartPolicy"] == "Always"
    shell, option, script, *words = container(manifest)["command"]
    assert (shell, option, words) == ("/bin/sh", "-c", ["dtj-worker", ZIPAPP, "python", "train.py"])
    assert "$(" not in script
    assert container(manifest)["args"] == ["--lr", "1"]
    folder = ZIPAPP.rpartition("/")[0]
    (mount,) = copies["volumeMounts"]
    assert mount["mountPath"] == folder
    assert {"name": mount["name"], "mountPath": folder, "readOnly": True} in container(manifest)["volumeMounts"]
    assert {"name": mount["name"], "emptyDir": {}} in manifest["spec"]["volumes"]


def test_without_a_supervisor_image_a_command_runs_alone() -> None:
    facts = msgspec.structs.replace(FACTS, supervisor_image=None)
    manifest = made(job(one(trained_by(command=["python", "train.py"])), facts=facts))
    assert container(manifest)["command"] == ["python", "train.py"]
    assert "DTJ_TASK" not in environment(manifest)


def test_the_trainer_alone_gets_tf_config_and_sidecars_stay_as_they_are() -> None:
    template = trained_by(env=[{"name": "A", "value": "1"}])
    proxy = {"name": "proxy", "image": "proxy", "env": [{"name": "A", "value": "2"}], "ports": [{"containerPort": 80}]}
    template["spec"]["containers"].insert(0, proxy)
    manifest = made(job(one(template, securityDefaults="None")))
    assert container(manifest, "proxy") == proxy
    assert environment(manifest)["A"] == "1"
    assert environment(manifest)["TMPDIR"] == "/dtj/scratch"


def test_the_task_in_the_environment_is_the_one_of_the_pods_first_attempt() -> None:
    s = job(SMALLEST)
    told = decode(TaskSpec, environment(made(s, Task("worker", 2), attempt=3))["DTJ_TASK"])
    assert told == task_spec(s, topology(s), Task("worker", 2), 3)
    assert (told.task, told.attempt, told.chief, told.strategy) == ("worker-2", 3, "worker-0", "MultiWorkerMirrored")
    assert told.chief_status == "mnist-worker-0.mnist-peers.ml.svc.cluster.local:2280"
    assert told.status == "mnist-worker-2.mnist-peers.ml.svc.cluster.local:2280"
    assert told.peers["worker-3"] == "mnist-worker-3.mnist-peers.ml.svc.cluster.local:2222"


def test_all_settings_reach_the_supervisor() -> None:
    s = job(
        one(
            trained_by() | {"spec": {**trained_by()["spec"], "terminationGracePeriodSeconds": 90}},
            keras="Legacy",
            successPolicy="AllWorkers",
            batch={"global": 64, "allowChange": True},
            communication={"implementation": "Ring", "heartbeatSeconds": 7, "rendezvousSeconds": 8, "bytesPerPack": 9},
            preflight={"network": False, "nodeCheck": True, "timeoutSeconds": 11},
            recovery={"scheduleSeconds": 100, "firstStepSeconds": 12, "stallSeconds": 13, "allowRestartFromZero": True},
            checkpoint={"uri": "gs://bucket/runs/", "every": 5, "keep": 3, "onExisting": "Resume", "resumeFrom": "/a"},
        ),
        status=JobStatus(checkpoint=CheckpointStatus(step=10)),
    )
    told = task_spec(s, topology(s), WORKER, 0)
    assert (told.keras, told.success_policy) == ("Legacy", "AllWorkers")
    assert (told.batch.global_size, told.batch.per_replica, told.batch.allow_change) == (64, None, True)
    assert (told.communication.implementation, told.communication.heartbeat_seconds) == ("Ring", 7)
    assert told.communication.bytes_per_pack == 9
    assert (told.preflight.network, told.preflight.node_check) == (False, True)
    limits = told.limits
    assert (limits.registration_seconds, limits.rendezvous_seconds, limits.grace_seconds) == (111, 8, 90)
    assert (limits.program_seconds, limits.first_step_seconds, limits.stall_seconds) == (12, 12, 13)
    kept = told.checkpoint
    assert kept is not None
    assert (kept.directory, kept.every, kept.keep) == ("gs://bucket/runs/ml/mnist", 5, 3)
    assert (kept.on_existing, kept.resume_from, kept.allow_restart_from_zero) == ("Resume", "/a", True)
    assert kept.progressed


def test_both_variables_fit_into_what_linux_takes_when_tf_config_is_as_large_as_allowed() -> None:
    s = job(
        {
            "roles": {"worker": {"replicas": 512}, "chief": {}, "ps": {"replicas": 440}},
            "template": trained_by(),
            "network": {"clusterDomain": "d" * 60},
        }
    )
    assert topology_faults(s, topology(s)) == ()
    found = environment(made(s))
    assert len(found["TF_CONFIG"]) > 94 * 1024
    assert len(f"DTJ_TASK={found['DTJ_TASK']}") < 128 * 1024


@pytest.mark.parametrize(
    ("text", "task", "attempt", "fault"),
    [
        ("worker:1@step=60", "worker-1", 0, Fault(step=60, signal="SIGKILL")),
        ("worker:1@step=60:SIGTERM", "worker-1", 0, Fault(step=60, signal="SIGTERM")),
        ("worker:0@step=60:exit=3", "worker-0", 0, Fault(step=60, exit_code=3)),
        ("worker:1@step=60", "worker-0", 0, None),
        ("worker:1@step=60", "worker-1", 1, None),
        ("worker-1 at 60", "worker-1", 0, None),
        (None, "worker-1", 0, None),
    ],
)
def test_a_fault_hits_its_task_in_the_first_attempt(
    text: str | None, task: str, attempt: int, fault: Fault | None
) -> None:
    s = job(SMALLEST, annotations={} if text is None else {"dtj.dev/fault": text})
    told = task_spec(s, topology(s), Task.parse(task), attempt)
    assert told.fault == fault
    assert decode(TaskSpec, encode(told)) == told


CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
SHARED_CLAIM = {**CLAIM, "accessModes": ["ReadWriteMany"]}
TWO = {"chief": {}, "worker": {"replicas": 1}}
THREE = {**TWO, "evaluator": {}}
SERVED = {**THREE, "ps": {"replicas": 1}}
NAMED = {"persistentVolumeClaim": "claim"}


@pytest.mark.parametrize(
    ("checkpoint", "roles", "changes", "mounted_by"),
    [
        pytest.param({"volumeClaimTemplate": {"spec": CLAIM}}, THREE, {}, "chief", id="one node at a time"),
        pytest.param({"volumeClaimTemplate": {"spec": SHARED_CLAIM}}, THREE, {}, "chief worker evaluator", id="many"),
        pytest.param({"volumeClaimTemplate": {"spec": CLAIM}}, SERVED, {}, "chief ps", id="servers write shards"),
        pytest.param(
            {"volumeClaimTemplate": {"spec": CLAIM}, "access": "Shared"},
            THREE,
            {},
            "chief worker evaluator",
            id="as asked",
        ),
        pytest.param(NAMED, TWO, {}, "chief", id="unknown modes: what works with every claim"),
        pytest.param(NAMED, THREE, {}, "chief worker evaluator", id="unknown modes: an evaluator has to read"),
        pytest.param(
            NAMED, THREE, {"claim": ClaimView("claim", ("ReadWriteMany",))}, "chief worker evaluator", id="read: many"
        ),
        pytest.param(NAMED, THREE, {"claim": ClaimView("claim", ("ReadWriteOnce",))}, "chief", id="read: one node"),
        pytest.param(
            NAMED,
            THREE,
            {"claim": ClaimView("former", ("ReadWriteOnce",))},
            "chief worker evaluator",
            id="read of the claim that was named before an edit",
        ),
        pytest.param(
            {"volume": {"nfs": {"server": "x"}}}, THREE, {}, "chief worker evaluator", id="a volume is shared"
        ),
        pytest.param({"volume": {"nfs": {}}, "access": "Chief"}, THREE, {}, "chief", id="unless asked otherwise"),
        pytest.param({"uri": "gs://b/c"}, THREE, {}, "", id="an object store is not mounted"),
    ],
)
def test_who_mounts_the_checkpoints(
    checkpoint: dict[str, Any], roles: dict[str, Any], changes: dict[str, Any], mounted_by: str
) -> None:
    s = job({"roles": roles, "template": trained_by(), "checkpoint": checkpoint}, **changes)
    t = topology(s)
    mounts = {
        task.role: [
            m["mountPath"] for m in container(pod(s, t, task, 0, 0))["volumeMounts"] if m["name"] == "dtj-checkpoints"
        ]
        for task in t.tasks
    }
    assert " ".join(role for role, paths in mounts.items() if paths == ["/checkpoints"]) == mounted_by
    plan = task_spec(s, t, WORKER, 0).checkpoint
    assert plan is not None
    assert plan.access == ("Chief" if mounted_by in ("chief", "chief ps") else "Shared")


def test_a_program_without_supervisor_shares_a_claim_of_unknown_modes() -> None:
    s = job({"roles": TWO, "template": trained_by(), "checkpoint": NAMED, "supervisor": "None"})
    for task in topology(s).tasks:
        assert {"name": "dtj-checkpoints", "mountPath": "/checkpoints"} in container(made(s, task))["volumeMounts"]


def test_the_claim_made_for_the_job_is_mounted_by_its_name() -> None:
    s = job(one(trained_by(), checkpoint={"volumeClaimTemplate": {"spec": CLAIM}, "directory": "/ckpt"}))
    claim = {"name": "dtj-checkpoints", "persistentVolumeClaim": {"claimName": "mnist-checkpoints"}}
    assert claim in made(s)["spec"]["volumes"]
    assert {"name": "dtj-checkpoints", "mountPath": "/ckpt"} in container(made(s))["volumeMounts"]


@pytest.mark.parametrize(("given", "folder"), [({}, "/program"), ({"workingDir": "/app"}, "/app")])
def test_a_program_from_a_config_map_lies_where_the_trainer_works(given: dict[str, Any], folder: str) -> None:
    manifest = made(job(one(trained_by(args=["train.py"], **given), program={"configMap": "code"})))
    assert container(manifest)["workingDir"] == folder
    assert {"name": "dtj-program", "mountPath": folder} in container(manifest)["volumeMounts"]
    assert {"name": "dtj-program", "configMap": {"name": "code"}} in manifest["spec"]["volumes"]


def test_a_read_only_root_leaves_places_to_write() -> None:
    manifest = made(job(one(trained_by(securityContext={"readOnlyRootFilesystem": True}))))
    paths = [m["mountPath"] for m in container(manifest)["volumeMounts"] if m["name"] == "dtj-scratch"]
    assert paths == ["/dtj/scratch", "/tmp"]
    assert [v for v in manifest["spec"]["volumes"] if v["name"] == "dtj-scratch"] == [
        {"name": "dtj-scratch", "emptyDir": {}}
    ]


def test_the_users_own_mount_at_a_path_wins() -> None:
    mine = {"name": "mine", "mountPath": "/checkpoints"}
    manifest = made(job(one(trained_by(volumeMounts=[mine]), checkpoint=NAMED)))
    assert [m for m in container(manifest)["volumeMounts"] if m["mountPath"] == "/checkpoints"] == [mine]


def test_tolerations_wait_for_the_supervisor_and_not_for_others() -> None:
    def seconds(**spec: Any) -> set[int]:
        return {t["tolerationSeconds"] for t in made(job(one(trained_by(), **spec)))["spec"]["tolerations"]}

    assert seconds() == {3600}
    assert seconds(supervisor="None", recovery={"lostNodeSeconds": 77}) == {77}


@pytest.mark.parametrize(
    ("own", "keys"),
    [
        pytest.param([{"key": "gpu", "operator": "Exists"}], ["not-ready", "unreachable", "gpu"], id="others are kept"),
        pytest.param([{"operator": "Exists"}], [""], id="one that tolerates all"),
        pytest.param(
            [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
            ["unreachable", "not-ready"],
            id="one of ours",
        ),
    ],
)
def test_the_templates_tolerations_are_kept(own: list[dict[str, Any]], keys: list[str]) -> None:
    template = trained_by()
    template["spec"]["tolerations"] = own
    found = [
        t.get("key", "").removeprefix("node.kubernetes.io/") for t in made(job(one(template)))["spec"]["tolerations"]
    ]
    assert found == keys


def test_nodes_to_avoid_are_a_preference_beside_the_users_own() -> None:
    status = JobStatus(recovery=RecoveryState(excluded_nodes=["bad", "worse"]))
    nodes = (NodeView(name="bad", labels={"kubernetes.io/hostname": "ip-1"}),)
    template = trained_by()
    theirs = {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
    required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "b", "operator": "Exists"}]}]}
    template["spec"]["affinity"] = {
        "podAffinity": {},
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [theirs],
            "requiredDuringSchedulingIgnoredDuringExecution": required,
        },
    }
    affinity = made(job(one(template), status=status, nodes=nodes))["spec"]["affinity"]
    assert affinity["podAffinity"] == {}
    assert affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] == required
    assert affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] == [
        theirs,
        {
            "weight": 100,
            "preference": {
                "matchExpressions": [
                    {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["ip-1", "worse"]}
                ]
            },
        },
    ]


@pytest.mark.parametrize(
    ("protect", "own", "found"),
    [
        pytest.param(True, {}, ("false", "true"), id="kept from being moved"),
        pytest.param(True, {"karpenter.sh/do-not-disrupt": "30m"}, ("false", "30m"), id="unless the template says"),
        pytest.param(False, {}, (None, None), id="switched off"),
    ],
)
def test_voluntary_disruptions(protect: bool, own: dict[str, str], found: tuple[str | None, str | None]) -> None:
    template = trained_by() | {"metadata": {"annotations": {"mine": "1", **own}, "labels": {"team": "a"}}}
    metadata = made(job(one(template, disruption={"protect": protect})))["metadata"]
    names = ("cluster-autoscaler.kubernetes.io/safe-to-evict", "karpenter.sh/do-not-disrupt")
    assert tuple(metadata["annotations"].get(name) for name in names) == found
    assert metadata["annotations"]["mine"] == "1"
    assert metadata["labels"] == {
        "team": "a",
        "dtj.dev/job-name": "mnist",
        "dtj.dev/role": "worker",
        "dtj.dev/index": "0",
        "dtj.dev/round": "0",
    }


def test_the_hosts_network_still_resolves_peers() -> None:
    template = trained_by()
    template["spec"]["hostNetwork"] = True
    assert made(job(one(template)))["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert "dnsPolicy" not in made(job(one(trained_by())))["spec"]


def test_a_token_of_the_api_only_for_those_who_ask() -> None:
    assert made(job(one(trained_by())))["spec"]["automountServiceAccountToken"] is False
    template = trained_by()
    template["spec"]["automountServiceAccountToken"] = True
    assert made(job(one(template)))["spec"]["automountServiceAccountToken"] is True


def test_unknown_fields_of_a_template_reach_the_api_server() -> None:
    template = trained_by(imagee="x") | {"spce": {}, "metadata": {"lables": {}}}
    manifest = made(job(one(template)))
    assert manifest["spce"] == {}
    assert manifest["metadata"]["lables"] == {}
    assert container(manifest)["imagee"] == "x"
