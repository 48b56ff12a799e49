"""Faults that neither schema nor rules see: each with its field path, all of them at once."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtj_operator.api.faults import all_faults, faults
from dtj_operator.api.frozen import frozen_hash
from dtj_operator.api.parse import parse
from dtj_operator.api.spec import JobSpec
from dtj_operator.desired.topology import tf_config_text, topology
from tests.api.manifests import SMALLEST, Manifest, job, lay, pod, trainer
from tests.desired import jobs

POD = "spec.template.spec"
MAIN = f"{POD}.containers[0]"
SIDECAR = {"name": "log", "image": "x"}
CLAIM: Manifest = {"spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}}


def both(change: Manifest) -> Manifest:
    """A trainer and a sidecar, in the shared template, and a change of it."""
    made = pod(containers=[{"name": "trainer", "image": "x"}, SIDECAR])
    lay(made, change)
    return made


def own(role: str, *containers: Manifest, **fields: Any) -> Manifest:
    """A change: a role with a template of its own."""
    template: Manifest = {"spec": {"containers": list(containers), **fields}}
    return {"roles": {role: {"template": template}}}


def claim(**fields: Any) -> Manifest:
    return {"checkpoint": {"persistentVolumeClaim": None, "volumeClaimTemplate": fields}}


FOUND: dict[str, tuple[Manifest, list[str]]] = {
    "the smallest": (job(), []),
    # What is no pod template.
    "no pod": (job({"template": {"spec": None}}), [f"{POD}.containers: the pod of worker has no container"]),
    "no containers": (job(pod(containers=[])), [f"{POD}.containers: the pod of worker has no container"]),
    "containers in the wrong place": (
        job({"template": {"containers": [SIDECAR], "spec": {"containers": [SIDECAR]}}}),
        ["spec.template.containers: a pod template has metadata and spec; did you mean spec.template.spec.containers?"],
    ),
    "a list for a pod": (
        job({"template": {"spec": [SIDECAR]}}),
        [f"{POD}: expected an object, got a list", f"{POD}.containers: the pod of worker has no container"],
    ),
    "an object for containers": (
        job(pod(containers=SIDECAR)),
        [
            f"{POD}.containers: expected a list of containers, got an object",
            f"{POD}.containers: the pod of worker has no container",
        ],
    ),
    "a text for a container": (
        job(pod(containers=["trainer", SIDECAR])),
        [f"{POD}.containers[0]: expected a container, got 'trainer'"],
    ),
    "a container without a name": (
        job(pod(containers=[SIDECAR, {"image": "x"}], initContainers=[{"image": "x"}])),
        [
            f"{POD}.containers[1].name: required; containers of the templates are matched by name",
            f"{POD}.initContainers[0].name: required; containers of the templates are matched by name",
        ],
    ),
    "a container without an image": (
        job(pod(containers=[{"name": "trainer"}, SIDECAR])),
        [f"{MAIN}.image: required; name the image that trainer runs"],
    ),
    "lists for metadata": (
        job({"template": {"metadata": []}}),
        ["spec.template.metadata: expected an object, got a list"],
    ),
    "lists for labels": (
        job({"template": {"metadata": {"labels": ["a"], "annotations": 7}}}),
        [
            "spec.template.metadata.labels: expected an object, got a list",
            "spec.template.metadata.annotations: expected an object, got 7",
        ],
    ),
    # What is the operator's.
    "fields of the operator": (
        job(pod(restartPolicy="Never", hostname="a", subdomain="b")),
        [
            f"{POD}.restartPolicy: pods never restart by themselves, the operator decides that; remove it, and see "
            "spec.recovery",
            f"{POD}.hostname: the operator gives every task its name; remove it",
            f"{POD}.subdomain: the operator gives every task its address; remove it",
        ],
    ),
    "fields of the operator in a role": (
        job({"roles": {"worker": {"template": {"spec": {"hostname": "a"}}}}}),
        ["spec.roles.worker.template.spec.hostname: the operator gives every task its name; remove it"],
    ),
    "labels of the operator": (
        job(
            {"template": {"metadata": {"labels": {"dtj.dev/role": "x", "app": "x"}, "annotations": {"dtj.dev/x": ""}}}}
        ),
        [
            "spec.template.metadata.labels[dtj.dev/role]: labels of dtj.dev are the operator's; remove it",
            "spec.template.metadata.annotations[dtj.dev/x]: annotations of dtj.dev are the operator's; remove it",
        ],
    ),
    "gates": (
        job(pod(schedulingGates=[{"name": "example.com/quota"}, {"name": "dtj.dev/gang"}])),
        [f"{POD}.schedulingGates[1]: gates of dtj.dev are the operator's; remove it"],
    ),
    "names of the operator": (
        job(both(pod(volumes=[{"name": "dtj-x"}], initContainers=[{"name": "dtj-y", "image": "x"}]))),
        [
            f"{POD}.volumes[0].name: names that begin with dtj- are the operator's",
            f"{POD}.initContainers[0].name: names that begin with dtj- are the operator's",
        ],
    ),
    "variables of the operator": (
        job(trainer(env=[{"name": "A"}, {"name": "TF_CONFIG"}, {"name": "DTJ_INJECT"}, {"name": "DTJ_TOKEN"}])),
        [
            f"{MAIN}.env[1]: TF_CONFIG: the operator gives every task its own; remove it",
            f"{MAIN}.env[3]: DTJ_TOKEN: the operator sets it; remove it",
        ],
    ),
    "TF_CONFIG in a sidecar of a role": (
        job(own("worker", {"name": "log", "image": "x", "env": [{"name": "TF_CONFIG"}]})),
        [
            "spec.roles.worker.template.spec.containers[0].env[0]: TF_CONFIG: the operator gives every task its own; "
            "remove it"
        ],
    ),
    # What both templates of a role say together.
    "the role's container is the shared one": (job(own("worker", {"name": "trainer", "command": ["x"]})), []),
    "a role brings the containers": (job({"template": {"metadata": {}}}, own("worker", SIDECAR)), []),
    "a role takes the containers away": (
        job({"roles": {"worker": {"template": {"spec": {"containers": None}}}}}),
        ["spec.roles.worker.template.spec.containers: the pod of worker has no container"],
    ),
    "the trainer is the one of that name": (
        job({"supervisor": "Inject"}, pod(containers=[SIDECAR, {"name": "trainer", "image": "x", "command": ["x"]}])),
        [],
    ),
    "another trainer": (job({"trainerContainer": "log"}, both({})), []),
    "a trainer that isn't there": (
        job(
            {"trainerContainer": "main", "roles": {"evaluator": {}}},
            both({}),
            own("worker", {**SIDECAR, "name": "main"}),
        ),
        ["spec.trainerContainer: 'main' is no container of evaluator, whose pod has trainer, log; name one of them"],
    ),
    "nothing to inject into": (
        job({"supervisor": "Inject", "roles": {"chief": {}}}),
        [
            f"spec.supervisor: Inject goes before the trainer's command, and {MAIN} has none",
        ],
    ),
    "a command of the role to inject into": (
        job({"supervisor": "Inject"}, own("worker", {"name": "trainer", "command": ["python", "a.py"]})),
        [],
    ),
    # Ports.
    "the trainer's own ports": (job(trainer(ports=[{"containerPort": 2222}, {"containerPort": 6006}])), []),
    "ports of later attempts": (
        job(trainer(ports=[{"containerPort": 2225}, {"containerPort": 2226, "protocol": "UDP"}])),
        [
            f"{MAIN}.ports[0].containerPort: 2225 is one of TensorFlow's ports 2222 to 2229; take another, or set "
            "spec.network.port"
        ],
    ),
    "the supervisor's port": (
        job(trainer(ports=[{"containerPort": 2280}])),
        [
            f"{MAIN}.ports[0].containerPort: the supervisor listens on 2280",
        ],
    ),
    "moved ports": (
        job(
            {"network": {"port": 3000, "statusPort": 3100}},
            trainer(ports=[{"containerPort": 2280}, {"containerPort": 2223}]),
        ),
        [],
    ),
    "a sidecar's ports": (
        job(pod(containers=[{"name": "trainer", "image": "x"}, {**SIDECAR, "ports": [{"containerPort": 2222}]}])),
        [
            f"{POD}.containers[1].ports[0].containerPort: 2222 is one of TensorFlow's ports 2222 to 2229",
        ],
    ),
    "a native sidecar's ports": (
        job(
            both(
                pod(
                    initContainers=[
                        {"name": "once", "image": "x", "ports": [{"containerPort": 2280}]},
                        {"name": "on", "image": "x", "restartPolicy": "Always", "ports": [{"containerPort": 2280}]},
                    ]
                )
            )
        ),
        [
            f"{POD}.initContainers[1].ports[0].containerPort: the supervisor listens on 2280; take another, or set "
            "spec.network.statusPort"
        ],
    ),
    # Mounts.
    "a mount where checkpoints are": (
        job(trainer(volumeMounts=[{"name": "x", "mountPath": "/data"}, {"name": "x", "mountPath": "/checkpoints/"}])),
        [
            f"{MAIN}.volumeMounts[1].mountPath: /checkpoints/ is where spec.checkpoint is mounted",
        ],
    ),
    "a mount where no checkpoints are": (
        job(
            {"checkpoint": {"persistentVolumeClaim": None, "uri": "gs://b/x"}},
            trainer(volumeMounts=[{"name": "x", "mountPath": "/checkpoints"}]),
        ),
        [],
    ),
    "a mount where the program is": (
        job({"program": {"configMap": "x"}}, trainer(volumeMounts=[{"name": "x", "mountPath": "/program"}])),
        [
            f"{MAIN}.volumeMounts[0].mountPath: /program is where spec.program is mounted",
        ],
    ),
    "a mount where the program works": (
        job(
            {"program": {"configMap": "x"}},
            trainer(workingDir="/app/", volumeMounts=[{"mountPath": "/program"}, {"mountPath": "/app"}]),
        ),
        [
            f"{MAIN}.volumeMounts[1].mountPath: /app is where spec.program is mounted",
        ],
    ),
    # Checkpoints.
    "a volume with a name": (
        job({"checkpoint": {"persistentVolumeClaim": None, "volume": {"name": "x", "nfs": {}}}}),
        ["spec.checkpoint.volume.name: the operator names the volume; remove it, and leave the source"],
    ),
    "a volume of nothing": (
        job({"checkpoint": {"persistentVolumeClaim": None, "volume": {}}}),
        ["spec.checkpoint.volume: name one source of a pod's volume, such as nfs or hostPath; it has none"],
    ),
    "a volume of two things": (
        job({"checkpoint": {"persistentVolumeClaim": None, "volume": {"nfs": {}, "emptyDir": {}}}}),
        ["spec.checkpoint.volume: name one source of a pod's volume, such as nfs or hostPath; it has nfs, emptyDir"],
    ),
    "a claim": (job(claim(metadata={"labels": {}}, **CLAIM)), []),
    "a claim without a spec": (
        job(claim(accessModes=[])),
        [
            "spec.checkpoint.volumeClaimTemplate.accessModes: a claim template has metadata and spec; did you mean "
            "spec.checkpoint.volumeClaimTemplate.spec.accessModes?",
            "spec.checkpoint.volumeClaimTemplate.spec: required; it has accessModes and resources",
        ],
    ),
    "a claim of nothing": (
        job(claim(metadata={"name": "x"}, spec={"resources": []})),
        [
            "spec.checkpoint.volumeClaimTemplate.metadata.name: the operator sets it",
            "spec.checkpoint.volumeClaimTemplate.spec.accessModes: required",
            "spec.checkpoint.volumeClaimTemplate.spec.resources.requests.storage: required; a size such as 10Gi",
        ],
    ),
    # The rest.
    "patterns": (
        job(
            {
                "recovery": {
                    "rules": [
                        {"action": "Fail", "messagePattern": "a+"},
                        {"action": "Fail", "messagePattern": "(a"},
                        {"action": "Fail", "messagePattern": r"(a)\1"},
                    ]
                }
            }
        ),
        [
            "spec.recovery.rules[1].messagePattern: google-re2 refuses '(a': missing ): (a",
            r"spec.recovery.rules[2].messagePattern: google-re2 refuses '(a)\\1': invalid escape sequence: \1",
        ],
    ),
    "all at once": (
        job(
            {"trainerContainer": "main", "checkpoint": {"persistentVolumeClaim": None, "volume": {}}}, pod(hostname="a")
        ),
        [
            f"{POD}.hostname: the operator gives every task its name; remove it",
            "spec.trainerContainer: 'main' is no container of worker, whose pod has trainer; name one of them",
            "spec.checkpoint.volume: name one source of a pod's volume, such as nfs or hostPath; it has none",
        ],
    ),
}


@pytest.mark.parametrize("what", FOUND)
def test_faults(what: str) -> None:
    manifest, lines = FOUND[what]
    before = copy.deepcopy(manifest)
    found = list(faults(manifest))
    # Messages with advice of their own are long; the rows give what is wrong.
    assert [line if line in lines else line.partition(";")[0] for line in found] == lines
    assert manifest == before


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("worker:1@step=60", []),
        ("worker:4@step=60", ["metadata.annotations[dtj.dev/fault]: the job has no worker-4"]),
        ("chief:0@step=60", ["metadata.annotations[dtj.dev/fault]: the job has no chief-0"]),
        ("worker:1", ["metadata.annotations[dtj.dev/fault]: 'worker:1' is no fault; expected role:index@step=N, then"]),
    ],
)
def test_the_fault_to_inject(text: str, lines: list[str]) -> None:
    manifest = job()
    manifest["metadata"]["annotations"] = {"dtj.dev/fault": text}
    assert [line.partition(" :")[0] for line in faults(manifest)] == lines


def test_addresses_that_are_too_long_together() -> None:
    manifest = job({"roles": {"worker": {"replicas": 512}}}, name="m" * 45)
    manifest["metadata"]["namespace"] = "n" * 63
    (line,) = faults(manifest)
    # An address with three digits takes 198 bytes with quotes and comma; 100 have fewer; 62 stand around them.
    assert line == (
        "spec.roles: TF_CONFIG for 512 tasks takes 101327 bytes of at most 98304; use fewer replicas with more devices "
        "each, or shorter names of job and namespace"
    )
    assert faults(job({"roles": {"worker": {"replicas": 400}}}, name="m" * 45)) == ()


def test_the_size_that_is_told_is_that_of_the_variable() -> None:
    spec = {"roles": {"chief": {}, "worker": {"replicas": 512}, "ps": {"replicas": 512}, "evaluator": {}}}
    domain = {"network": {"clusterDomain": "d" * 60}}
    s = jobs.job(spec | domain)
    t = topology(s)
    size = len(tf_config_text(t, t.tasks[-1]))
    manifest = job(spec, domain, name=s.key.name)
    manifest["metadata"]["namespace"] = s.key.namespace
    (line,) = faults(manifest)
    assert f"takes {size} bytes of at most 98304" in line


def test_one_address_that_is_too_long() -> None:
    (line,) = faults(job({"network": {"clusterDomain": "d" * 230}}))
    assert line.startswith("spec.network.clusterDomain: the address mnist-worker-0.mnist-peers.default.svc.ddd")
    assert line.endswith(
        "has 269 characters of at most 253; use shorter names of job and namespace, or a shorter domain"
    )


def spec_of(manifest: Manifest) -> JobSpec:
    spec = parse(manifest)
    assert isinstance(spec, JobSpec)
    return spec


STARTED = {"startTime": "2030-01-01T00:00:00Z", "phase": "Running", "frozen": frozen_hash(spec_of(job()))}


@pytest.mark.parametrize(
    ("change", "paths"),
    [
        ({}, []),
        (trainer(image="other"), ["spec.template"]),
        ({"roles": {"worker": {"template": {"metadata": {}}}}}, ["spec.roles.worker.template"]),
        ({"strategy": "MultiWorkerMirrored"}, ["spec.strategy"]),
        ({"roles": {"worker": {"replicas": 3}}}, ["spec.roles"]),
        ({"checkpoint": {"persistentVolumeClaim": "other"}}, ["spec.checkpoint"]),
        ({"checkpoint": {"keep": 5}, "suspend": True, "recovery": {"maxRestarts": 0}}, []),
        ({"checkpoint": {"access": "Chief"}}, ["spec.checkpoint"]),
        ({"network": {"port": 3000}}, ["spec.network"]),
        ({"checkpoint": None, "strategy": "MultiWorkerMirrored"}, ["spec.strategy", "spec.checkpoint"]),
    ],
)
def test_what_a_started_job_may_not_change(change: Manifest, paths: list[str]) -> None:
    edited = job(change)
    assert [line.partition(": can't change once")[0] for line in faults(edited | {"status": STARTED})] == paths
    for status in ({}, {**STARTED, "phase": "Suspended"}, {"frozen": STARTED["frozen"]}):
        assert faults(edited | {"status": status}) == ()


def test_a_started_job_that_waits_for_its_edit_to_be_put_back_is_not_open_for_it() -> None:
    """Its attempt has ended, and a fault bars the next one. Only a suspend takes down what was frozen."""
    edited = job(trainer(image="other"))
    assert faults(edited | {"status": {**STARTED, "phase": "Pending"}}) != ()
    resumed = {name: value for name, value in STARTED.items() if name != "frozen"} | {"phase": "Pending"}
    assert faults(edited | {"status": resumed}) == ()


def test_the_order_of_keys_changes_nothing() -> None:
    manifest = job()
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    manifest["spec"]["template"]["spec"]["containers"] = [dict(reversed(container.items()))]
    assert faults(manifest | {"status": STARTED}) == ()


def test_another_version_of_the_operator_may_know_other_parts() -> None:
    known = STARTED["frozen"].split(",")
    for frozen in (",".join(known[1:]), f"{STARTED['frozen']},spec.new=0123456789", "", "x", "spec.strategy"):
        assert faults(job() | {"status": {**STARTED, "frozen": frozen}}) in ((), faults(job() | {"status": STARTED}))


YAML = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.dictionaries(st.text(max_size=8) | st.integers() | st.booleans(), inside, max_size=3)
    ),
    max_leaves=12,
)
PLACES = [
    ("template", "spec", "containers", 0, "env", 0, "name"),
    ("template", "spec", "containers", 0, "ports", 0, "containerPort"),
    ("template", "spec", "containers", 0, "volumeMounts", 0, "mountPath"),
    ("template", "spec", "containers", 0, "command"),
    ("template", "spec", "initContainers", 0, "restartPolicy"),
    ("template", "spec", "volumes", 0, "name"),
    ("template", "spec", "schedulingGates", 0, "name"),
    ("template", "metadata", "labels"),
    ("roles", "worker", "template", "spec", "containers", 0, "name"),
    ("roles", "evaluator"),
    ("recovery", "rules", 0, "messagePattern"),
    ("checkpoint", "volume"),
    ("checkpoint", "volumeClaimTemplate", "spec", "resources", "requests"),
    ("network", "port"),
    ("trainerContainer",),
    ("program", "configMap"),
]


@st.composite
def strange(draw: st.DrawFn) -> Any:
    """The smallest manifest with anything at all in some places."""
    manifest: Any = copy.deepcopy(SMALLEST)
    for place in draw(st.lists(st.sampled_from(PLACES), max_size=3)):
        path = ("spec", *place[: draw(st.integers(1, len(place)))])
        manifest = put(manifest, path, draw(YAML))
    return manifest


def put(under: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """The value with another one at a path, and whatever it takes to have that path."""
    if not path:
        return value
    if path[0] == 0:
        return [put(under[0] if isinstance(under, list) and under else None, path[1:], value)]
    kept = under if isinstance(under, dict) else {}
    return {**kept, path[0]: put(kept.get(path[0]), path[1:], value)}


@given(strange() | YAML)
def test_nothing_that_a_file_can_hold_is_a_crash(manifest: Any) -> None:
    before = repr(manifest)
    for line in (*faults(manifest), *all_faults(manifest)):
        assert line.isprintable()
        assert ": " in line or line.startswith("a manifest is")
    assert repr(manifest) == before


def test_a_manifest_that_contains_itself_is_a_fault() -> None:
    endless: Any = job()
    endless["spec"]["template"]["spec"]["containers"][0]["env"] = endless
    looped: Any = job()
    looped["spec"]["roles"]["chief"] = looped["spec"]["roles"]
    for manifest in (endless, looped):
        assert isinstance(faults(manifest), tuple)
        assert isinstance(all_faults(manifest), tuple)
