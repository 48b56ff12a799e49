"""The CEL rules of the CRD: what each refuses, with its words up to the advice, and what it lets pass."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dtj_operator.api import names
from dtj_operator.api.crd import schema
from dtj_operator.api.schema import RuleSet, defaulted
from dtj_worker.contract import ROLES, Task
from tests.api.manifests import Manifest, job, trainer

SCHEMA = schema()
RULES = RuleSet(SCHEMA)
PS: Manifest = {"roles": {"ps": {"replicas": 2}, "chief": {}}}
NO_CHIEF: Manifest = {"roles": {"ps": {"replicas": 2}, "chief": None}}
ONE: Manifest = {"roles": {"worker": {"replicas": 1}}}
OWN: Manifest = {"template": {}}
TEMPLATE = "spec.template: required unless every role has a template of its own"
NEEDS_CHIEF = "spec.roles.chief: strategy ParameterServer needs a chief, which runs the coordinator"
IGNORED = "spec.recovery.rules: only the evaluator and the workers of strategy ParameterServer may be ignored"
PLACE = "spec.checkpoint: name exactly one place: persistentVolumeClaim, volumeClaimTemplate, volume or uri"
FOLDER = "spec.checkpoint.directory: write an absolute path below /, such as /checkpoints"
EVERY = "spec.checkpoint.every: write epoch, or a number of steps of 1 or more"
BATCH = "spec.batch: set perReplica or global, one of the two"
NAME = "metadata.name: it becomes part of DNS names: begin with a letter"


def ignore(*roles: str) -> Manifest:
    return {"recovery": {"rules": [{"action": "Fail"}, {"action": "Ignore", "roles": list(roles)}]}}


def place(**fields: Any) -> Manifest:
    return {"checkpoint": {"persistentVolumeClaim": None, **fields}}


CREATED: dict[str, tuple[Manifest, list[str]]] = {
    "the smallest": (job(), []),
    "one host, one worker": (job({"strategy": "Mirrored"}, ONE), []),
    "one host, many workers": (
        job({"strategy": "TPU"}),
        ["spec.roles.worker.replicas: strategy TPU runs on one host and takes exactly one worker"],
    ),
    "one host with a chief": (
        job({"strategy": "OneDevice", "roles": {"chief": {}}}, ONE),
        ["spec.roles.chief: strategy OneDevice runs on one host, where the worker is the chief"],
    ),
    "parameter servers": (job({"strategy": "ParameterServer"}, PS), []),
    "parameter servers by Auto": (job(PS), []),
    "parameter servers of another strategy": (
        job({"strategy": "MultiWorkerMirrored"}, PS),
        ["spec.roles.ps: strategy MultiWorkerMirrored takes no parameter servers"],
    ),
    "neither parameter server nor chief": (
        job({"strategy": "ParameterServer"}),
        ["spec.roles.ps: strategy ParameterServer needs parameter servers", NEEDS_CHIEF],
    ),
    "parameter servers by Auto, no chief": (job(NO_CHIEF), [NEEDS_CHIEF]),
    "no template": (job({"template": None}), [TEMPLATE]),
    "a template for each role": (job({"template": None, "roles": dict.fromkeys(ROLES, OWN)}), []),
    "a worker without a template": (job({"template": None, "roles": {"evaluator": OWN}}), [TEMPLATE]),
    **{
        f"a template for all but the {role}": (
            job({"template": None, "roles": dict.fromkeys(ROLES, OWN)}, {"roles": {role: {"template": None}}}),
            [TEMPLATE],
        )
        for role in ROLES
    },
    "in place without supervisors": (
        job({"supervisor": "None", "recovery": {"mode": "InPlace"}}),
        ["spec.recovery.mode: InPlace needs supervisors, and supervisor is None"],
    ),
    "a worker ignored": (job(ignore("worker")), [IGNORED]),
    "the evaluator ignored": (job(ignore("evaluator")), []),
    "a ParameterServer's worker ignored": (job(PS, ignore("worker")), []),
    "a parameter server ignored": (job(PS, ignore("worker", "ps")), [IGNORED]),
    "anyone ignored": (job(PS, ignore()), [IGNORED]),
    "cross-device operations between hosts": (
        job({"strategy": "MultiWorkerMirrored", "communication": {"crossDeviceOps": "NcclAllReduce"}}),
        ["spec.communication.crossDeviceOps: strategy MultiWorkerMirrored does not use it"],
    ),
    "collectives without hosts": (
        job({"strategy": "ParameterServer", "communication": {"implementation": "NCCL"}}, PS),
        ["spec.communication.implementation: strategy ParameterServer has no collectives between hosts"],
    ),
    "the status port among TensorFlow's": (
        job({"network": {"statusPort": 2229}}),
        ["spec.network.statusPort: it is one of the 8 ports from network.port on, which are TensorFlow's"],
    ),
    "the status port beside TensorFlow's": (job({"network": {"statusPort": 2230}}), []),
    "TensorFlow's port open to all": (
        job({"network": {"expose": [6006, 2222]}}),
        ["spec.network.expose: TensorFlow listens unauthenticated on the 8 ports from network.port on"],
    ),
    "a back-off that falls": (
        job({"recovery": {"backoff": {"initialSeconds": 301}}}),
        ["spec.recovery.backoff: initialSeconds is more than maxSeconds"],
    ),
    "two places for checkpoints": (job({"checkpoint": {"uri": "gs://bucket/x"}}), [PLACE]),
    "no place for checkpoints": (job(place(keep=3)), [PLACE]),
    "a volume": (job(place(volume={"nfs": {}})), []),
    "someone's claim to be deleted": (
        job({"checkpoint": {"reclaim": "Delete"}}),
        ["spec.checkpoint.reclaim: Delete is for a claim made from volumeClaimTemplate"],
    ),
    "the job's claim to be deleted": (job(place(volumeClaimTemplate={}, reclaim="Delete")), []),
    "s3": (job(place(uri="s3://bucket/x")), ["spec.checkpoint.uri: TensorFlow has no S3 file system"]),
    "gs": (job(place(uri="gs://my_bucket.x-1/a/b")), []),
    "gs without a bucket": (job(place(uri="gs:///a")), ["spec.checkpoint.uri: write gs://bucket/path"]),
    **{
        f"the folder {folder}": (job({"checkpoint": {"directory": folder}}), [FOLDER])
        for folder in ("checkpoints", "/", "/a/", "/a//b", "/a:b", "/a/../b", "/..", "/a/.")
    },
    "a folder with dots": (job({"checkpoint": {"directory": "/data/.cache/v1..2"}}), []),
    "save every epoch": (job({"checkpoint": {"every": "epoch"}}), []),
    "save every 100 steps": (job({"checkpoint": {"every": 100}}), []),
    **{f"save every {n!r}": (job({"checkpoint": {"every": n}}), [EVERY]) for n in (0, -1, "100", "step")},
    "resume from nowhere": (
        job({"checkpoint": {"resumeFrom": "checkpoints/1"}}),
        ["spec.checkpoint.resumeFrom: write an absolute path, or gs://bucket/path"],
    ),
    "resume from a folder": (job({"checkpoint": {"resumeFrom": "/checkpoints/ml/mnist"}}), []),
    "two batch sizes": (job({"batch": {"perReplica": 32, "global": 128}}), [BATCH]),
    "no batch size": (job({"batch": {"allowChange": True}}), [BATCH]),
    "a batch size": (job({"batch": {"global": 128}}), []),
    **{f"the name {name}": (job(name=name), [NAME]) for name in ("9m", "mnist.v1", "mnist-", "Mnist", "-")},
    "a long name": (
        job(name="m" * 48),
        [f"metadata.name: {'m' * 48} is too long: 47 characters leave room for pod names, <name>-worker-0-<round>"],
    ),
    "two faults at once": (job({"batch": {}, "checkpoint": {"every": 0}}), [BATCH, EVERY]),
    "a trainer of any shape is not looked into": (job(trainer(command=[{}], env=7)), []),
}

STARTED = {"startTime": "2030-01-01T00:00:00Z", "phase": "Running"}
QUEUED = {"phase": "Queued"}
SUSPENDED = {"startTime": "2030-01-01T00:00:00Z", "phase": "Suspended"}
RESUMED = {"startTime": "2030-01-01T00:00:00Z", "phase": "Pending"}
BARRED = {**RESUMED, "frozen": "spec.strategy=0123456789"}
"""A bad edit keeps its next attempt from starting; it was never suspended."""
CLOSED = "can't change once the job has started"
ROLES_CLOSED = f"spec.roles: roles and their replicas {CLOSED}"
PLACE_CLOSED = f"spec.checkpoint: the checkpoint's place {CLOSED}"

CHANGED: dict[str, tuple[Manifest, list[str]]] = {
    "nothing": ({}, []),
    "the strategy": ({"strategy": "ParameterServer"}, [f"spec.strategy: {CLOSED}"]),
    "workers": ({"roles": {"worker": {"replicas": 5}}}, [ROLES_CLOSED]),
    "parameter servers": ({"roles": {"ps": {"replicas": 3}}}, [ROLES_CLOSED]),
    "an evaluator": ({"roles": {"evaluator": {}}}, [ROLES_CLOSED]),
    "no chief": ({"roles": {"chief": None, "ps": None}}, [ROLES_CLOSED]),
    "no checkpoints": ({"checkpoint": None}, [PLACE_CLOSED]),
    "another claim": ({"checkpoint": {"persistentVolumeClaim": "other"}}, [PLACE_CLOSED]),
    "another kind of place": (place(volume={"nfs": {}}), [PLACE_CLOSED]),
    "another folder": ({"checkpoint": {"directory": "/other"}}, [PLACE_CLOSED]),
    "another port": ({"network": {"port": 3333}}, [f"spec.network: ports and addresses {CLOSED}"]),
    "what may change": (
        {
            "suspend": True,
            "restartRequest": "x",
            "checkpoint": {"keep": 5, "every": 10},
            "recovery": {"maxRestarts": 0},
            "network": {"expose": [6006]},
            "gang": {"timeoutSeconds": 5},
            "ttlSecondsAfterFinished": 5,
        },
        [],
    ),
}
MANAGER = "spec.managedBy: can't change"


def broken(new: Any, old: Any = None) -> list[str]:
    """The lines of the rules that are broken, each up to its advice."""
    found = list(RULES.broken(defaulted(SCHEMA, new), None if old is None else defaulted(SCHEMA, old)))
    assert not [b for b in found if b.is_error]
    return sorted(f"{b.path}: {b.message}".partition(";")[0] for b in found)


def started(*changes: Manifest) -> Manifest:
    return job(PS, *changes) | {"status": STARTED}


@pytest.mark.parametrize("what", CREATED)
def test_a_new_job(what: str) -> None:
    manifest, refused = CREATED[what]
    assert broken(manifest) == sorted(refused)


@pytest.mark.parametrize("what", CHANGED)
def test_a_started_job_keeps_what_its_pods_are_made_of(what: str) -> None:
    change, refused = CHANGED[what]
    assert broken(started(change), started()) == refused
    assert broken(started(change), started() | {"status": BARRED}) == refused


@pytest.mark.parametrize("status", [None, QUEUED, SUSPENDED, RESUMED], ids=["new", "queued", "suspended", "resumed"])
@pytest.mark.parametrize("what", CHANGED)
def test_anything_may_change_while_nothing_runs(what: str, status: Manifest | None) -> None:
    change, _ = CHANGED[what]
    old = job(PS) | ({} if status is None else {"status": status})
    assert [line for line in broken(job(PS, change), old) if CLOSED in line] == []


def test_the_manager_never_changes() -> None:
    assert broken(job({"managedBy": "kueue.x-k8s.io/multikueue"}), job()) == [MANAGER]


def test_every_rule_is_broken_by_a_row() -> None:
    rows: list[tuple[Manifest, Manifest | None]] = [(new, None) for new, _ in CREATED.values()]
    rows += [(started(change), started()) for change, _ in CHANGED.values()]
    rows += [(job({"managedBy": "x/y"}), job())]
    filled = [(defaulted(SCHEMA, new), None if old is None else defaulted(SCHEMA, old)) for new, old in rows]
    for alone, rule in each_rule_alone(SCHEMA):
        rules = RuleSet(alone)
        assert any(True for new, old in filled for _ in rules.broken(new, old)), rule


def each_rule_alone(whole: Manifest) -> Iterator[tuple[Manifest, str]]:
    """The schema with each of its rules in turn and no other."""
    count = sum(1 for _ in rules_in(whole))
    for kept in range(count):
        alone = copy.deepcopy(whole)
        found = list(rules_in(alone))
        rule = found[kept][1]["rule"]
        for place, (rules, validation) in enumerate(found):
            if place != kept:
                rules.remove(validation)
        yield alone, rule


def rules_in(node: Manifest) -> Iterator[tuple[list[Manifest], Manifest]]:
    rules = node.get("x-kubernetes-validations", [])
    yield from ((rules, rule) for rule in rules)
    for inside in (*node.get("properties", {}).values(), node.get("items"), node.get("additionalProperties")):
        if isinstance(inside, dict):
            yield from rules_in(inside)


@example(47, 10, False, False, 0)
@example(47, 11, False, False, 0)
@example(46, 100, False, False, 0)
@example(46, 101, False, False, 0)
@example(45, 101, True, False, 0)
@given(st.integers(1, 63), st.integers(1, 512), st.booleans(), st.booleans(), st.integers(0, 512))
def test_a_name_is_too_long_when_a_name_made_of_it_is_no_dns_label(
    length: int, workers: int, has_evaluator: bool, has_chief: bool, servers: int
) -> None:
    name = "m" * length
    counts = {"worker": workers, "chief": int(has_chief), "ps": servers, "evaluator": int(has_evaluator)}
    tasks = [Task(role, index) for role in ROLES for index in (0, counts[role] - 1) if counts[role]]
    made = [
        *(names.pod(name, task, 10**names.ROUND_DIGITS - 1) for task in tasks),
        names.peers_service(name),
        names.network_policy(name),
        names.token_secret(name, "12345678-1234"),
        names.checkpoint_claim(name),
        names.disruption_budget(name),
    ]
    fits = max(map(len, made)) <= names.DNS_LABEL_LENGTH
    roles = {role: {"replicas": count} for role, count in counts.items() if count}
    refused = [line for line in broken(job({"roles": roles}, name=name)) if line.startswith("metadata.name")]
    assert fits == (refused == [])
