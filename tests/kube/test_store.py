"""What the store believes when lists, watches and answers reach it in any order."""

from datetime import UTC, datetime
from typing import Any

import pytest

from dtj_operator.api.observed import Facts, JobKey, ProbeResult
from dtj_operator.kube.client import JOB, NODE, POD, SECRET, kind_named
from dtj_operator.kube.fleet import Fleet
from dtj_operator.kube.store import GONE, PROBES, Store
from dtj_worker.contract import Task

KEY = JobKey("ml", "mnist")
SERVICE = kind_named("Service")
CLAIM = kind_named("PersistentVolumeClaim")


def job(version: int, uid: str = "job", **changes: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "mnist",
            "namespace": "ml",
            "uid": uid,
            "resourceVersion": str(version),
            "generation": 1,
            "creationTimestamp": "2026-11-30T10:00:00Z",
            "annotations": {"dtj.dev/fault": "worker:0@step=3", "kubectl.kubernetes.io/last-applied": "x" * 1000},
        },
        "spec": {
            "roles": {"worker": {"replicas": 2}},
            "template": {"spec": {"containers": [{"name": "trainer", "image": "a"}]}},
        },
        **changes,
    }


def child(name: str, version: int, *, owner: str | None = "job", uid: str = "", **labels: str) -> dict[str, Any]:
    owners = [{"controller": True, "uid": owner, "kind": "K", "name": "mnist"}] if owner else []
    return {
        "metadata": {
            "name": name,
            "namespace": "ml",
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
            "labels": {"dtj.dev/job-name": "mnist", **labels},
            "ownerReferences": owners,
        }
    }


def pod(index: int, version: int, node: str | None = None, **how: Any) -> dict[str, Any]:
    labels = {"dtj.dev/role": "worker", "dtj.dev/index": str(index), "dtj.dev/round": "0"}
    made = child(f"mnist-worker-{index}-0", version, **labels, **how)
    return {**made, "spec": {"containers": [{"name": "trainer"}], **({"nodeName": node} if node else {})}}


@pytest.fixture
def store() -> Store:
    return Store(Facts(), Fleet())


def test_a_situation_holds_the_job_and_its_own_children(store: Store) -> None:
    assert store.put(POD, pod(1, 3)) == KEY
    assert store.situation(KEY) is None
    assert store.put(JOB, job(2, status={"phase": "Queued"})) == KEY
    store.put(POD, pod(0, 4))
    store.put(POD, pod(7, 4, owner="predecessor"))
    store.put(SERVICE, child("mnist-peers", 5))
    claim = child("mnist-checkpoints", 5, owner=None)
    store.put(CLAIM, {**claim, "metadata": {**claim["metadata"], "annotations": {"dtj.dev/made-of": "abc"}}})
    store.put(SECRET, child("mnist-token", 5, owner="somebody else"))
    s = store.situation(KEY)
    assert s is not None
    assert (s.uid, s.resource_version, s.status.phase, s.faults) == ("job", "2", "Queued", ())
    assert s.spec is not None
    assert s.spec.roles.worker.replicas == 2
    assert [pod.task for pod in s.pods] == [Task("worker", 0), Task("worker", 1)]
    assert s.children == {
        ("Service", "mnist-peers", "uid-mnist-peers", ""),
        ("PersistentVolumeClaim", "mnist-checkpoints", "uid-mnist-checkpoints", "abc"),
    }
    assert s.annotations == {"dtj.dev/fault": "worker:0@step=3"}
    assert s.nodes is None
    assert [pod.name for pod in s.predecessors] == ["mnist-worker-7-0"]


@pytest.mark.parametrize("name", ["mnist-peers", "mnist-tensorboard"])
def test_what_has_our_label_and_no_owner_is_not_ours(store: Store, name: str) -> None:
    """A person's own Service, or one that was orphaned: what counts as a child is deleted in the end."""
    store.put(JOB, job(1))
    store.put(SERVICE, child(name, 2, owner=None))
    s = store.situation(KEY)
    assert s is not None
    assert s.children == frozenset()


@pytest.mark.parametrize(
    ("known", "told", "is_news"),
    [
        pytest.param(pod(0, 5), pod(0, 5), False, id="the event of what an answer told already"),
        pytest.param(pod(0, 5, node="n1"), pod(0, 4), False, id="an event older than the answer"),
        pytest.param(pod(0, 5), pod(0, 6), False, id="nothing that a decision reads has changed"),
        pytest.param(pod(0, 5), pod(0, 6, node="n1"), True, id="a change"),
        pytest.param(pod(0, 5), pod(0, 6, uid="other"), True, id="another incarnation"),
    ],
)
def test_the_newer_state_holds(store: Store, known: dict[str, Any], told: dict[str, Any], *, is_news: bool) -> None:
    store.put(JOB, job(1))
    store.put(POD, known)
    assert (store.put(POD, told) == KEY) is is_news
    newest = max(known, told, key=lambda manifest: int(manifest["metadata"]["resourceVersion"]))
    s = store.situation(KEY)
    assert s is not None
    assert [(view.uid, view.node) for view in s.pods] == [(newest["metadata"]["uid"], newest["spec"].get("nodeName"))]


def test_our_own_status_is_never_covered_by_an_older_event(store: Store) -> None:
    store.put(JOB, job(5))
    store.put(JOB, job(9, status={"phase": "Starting"}))
    assert store.put(JOB, job(7, status={"phase": "Queued"})) is None
    s = store.situation(KEY)
    assert s is not None
    assert (s.status.phase, s.resource_version) == ("Starting", "9")


def test_what_was_deleted_does_not_come_back_by_a_late_answer(store: Store) -> None:
    store.put(JOB, job(1))
    assert store.remove(POD, pod(0, 6)) is None
    assert store.put(POD, pod(0, 5)) is None
    store.put(POD, pod(1, 5))
    assert store.remove(POD, pod(1, 6)) == KEY
    assert store.put(POD, pod(1, 5)) is None
    s = store.situation(KEY)
    assert s is not None
    assert s.pods == ()


def test_deleted_ones_are_not_remembered_for_ever(store: Store) -> None:
    for number in range(GONE + 10):
        store.remove(POD, pod(0, 1, uid=str(number)))
    assert len(store._gone) == GONE


def test_a_deletion_of_an_older_incarnation_removes_nothing(store: Store) -> None:
    store.put(JOB, job(8, uid="second"))
    assert store.remove(JOB, job(7, uid="first")) is None
    assert store.has_job(KEY, "second")
    assert not store.has_job(KEY, "first")


def test_a_full_list_heals_what_a_watch_has_missed(store: Store) -> None:
    store.put(JOB, job(1))
    for index in (0, 1, 2):
        store.put(POD, pod(index, 3 + index))
    store.put(SERVICE, child("mnist-peers", 3))
    # Pod 0 was deleted unseen; pod 2 is newer than the list, so the list can't know of it.
    assert store.retain(POD, None, {"uid-mnist-worker-1-0"}, "4") == {KEY}
    s = store.situation(KEY)
    assert s is not None
    assert [view.task.index for view in s.pods] == [1, 2]
    assert len(s.children) == 1
    assert store.retain(POD, "elsewhere", set(), "99") == set()
    assert store.retain(JOB, "ml", set(), "99") == {KEY}
    assert store.situation(KEY) is None
    # Its children go with it: nobody may list secrets, so of them no list would tell. Pods are watched to their end.
    assert store.keys() == (KEY,)
    assert store.retain(POD, "ml", set(), "99") == {KEY}
    assert store.keys() == ()


def test_notes_belong_to_one_incarnation(store: Store) -> None:
    store.notes(KEY).refusals.append("written into the air")
    store.put(JOB, job(1))
    store.notes(KEY).refusals.append("exceeded quota")
    s = store.situation(KEY)
    assert s is not None
    assert s.refusals == ("exceeded quota",)
    store.put(JOB, job(5, uid="second"))
    s = store.situation(KEY)
    assert s is not None
    assert s.refusals == ()


def test_the_newest_answers_to_probes_are_kept(store: Store) -> None:
    store.put(JOB, job(1))
    for number in range(PROBES + 2):
        store.note_probe(KEY, f"hash-{number}", ProbeResult(201))
    store.note_probe(KEY, "hash-2", ProbeResult(403))
    s = store.situation(KEY)
    assert s is not None
    assert len(s.probes) == PROBES
    assert s.probes["hash-2"].code == 403
    assert "hash-0" not in s.probes


def test_nobody_asks_twice_for_a_deletion(store: Store) -> None:
    now = datetime(2026, 11, 30, tzinfo=UTC)
    store.put(JOB, job(1))
    store.put(POD, pod(0, 3))
    store.deletion_asked(KEY, "mnist-worker-0-0", "another", now)
    assert _deleting(store) == [None]
    store.deletion_asked(KEY, "mnist-worker-0-0", "uid-mnist-worker-0-0", now)
    assert _deleting(store) == [now]


def test_a_manifest_with_faults_or_none_at_all_is_a_situation_too(store: Store) -> None:
    store.put(JOB, job(1, spec={"roles": {"worker": {"replicas": "many"}}}))
    s = store.situation(KEY)
    assert s is not None
    assert s.spec is None
    assert "spec.roles.worker.replicas" in s.faults[0]


def test_an_edit_of_an_annotation_raises_no_generation_and_is_news(store: Store) -> None:
    store.put(JOB, job(1))
    edited = job(2)
    edited["metadata"]["annotations"]["dtj.dev/fault"] = "nobody"
    assert store.put(JOB, edited) == KEY
    s = store.situation(KEY)
    assert s is not None
    assert "nobody" in s.faults[0]


def test_nodes_are_unknown_until_they_were_listed(store: Store) -> None:
    fleet = store.fleet
    node: dict[str, Any] = {"metadata": {"name": "n1", "uid": "n1", "resourceVersion": "3"}}
    bound = {**pod(0, 4, node="n1"), "status": {"phase": "Running"}}
    fleet.put(NODE, node)
    fleet.put(POD, bound)
    assert (fleet.nodes(), fleet.loads()) == (None, None)
    fleet.retain(NODE, None, {"n1"}, "5")
    assert [node.name for node in fleet.nodes() or ()] == ["n1"]
    assert fleet.loads() is None
    fleet.retain(POD, None, {bound["metadata"]["uid"]}, "5")
    assert [load.node for load in fleet.loads() or ()] == ["n1"]
    fleet.changed.clear()
    fleet.put(NODE, {**node, "metadata": {**node["metadata"], "resourceVersion": "6"}})
    assert not fleet.changed.is_set()
    fleet.put(POD, {**bound, "metadata": {**bound["metadata"], "resourceVersion": "7"}, "status": {"phase": "Failed"}})
    assert fleet.changed.is_set()
    assert fleet.loads() == ()
    fleet.clear()
    assert fleet.nodes() is None


def _deleting(store: Store) -> list[Any]:
    s = store.situation(KEY)
    assert s is not None
    return [view.deleting_since for view in s.pods]
