"""Deletion: grace, finalizers, preconditions, propagation, namespaces and evictions."""

from typing import Any

import pytest

from tests.local.calls import Calls, config_map, owned, pod, refused
from tests.local.training import TRAININGS, definition, training

PODS = "v1/pods"
MAPS = "v1/configmaps"
NAMESPACES = "v1/namespaces"


def bound(calls: Calls, name: str = "a", **rest: object) -> None:
    calls.create(pod(name, nodeName="n1", **rest))


def test_a_bound_pod_gets_its_grace_and_the_kubelet_ends_it() -> None:
    calls = Calls()
    bound(calls, terminationGracePeriodSeconds=20)
    going = calls.delete(PODS, "a")
    assert going["metadata"]["deletionTimestamp"] == "2026-11-30T12:00:20Z"
    assert going["metadata"]["deletionGracePeriodSeconds"] == 20
    assert going["metadata"]["generation"] == 2
    calls.wait(5)
    assert calls.delete(PODS, "a")["metadata"] == going["metadata"]
    calls.delete(PODS, "a", {"gracePeriodSeconds": 0, "preconditions": {"uid": going["metadata"]["uid"]}})
    assert refused(calls.get, PODS, "a").code == 404


def test_a_second_delete_only_ever_shortens() -> None:
    calls = Calls()
    bound(calls)
    calls.delete(PODS, "a", {"gracePeriodSeconds": 60})
    calls.wait(10)
    shorter = calls.delete(PODS, "a", {"gracePeriodSeconds": 15})
    assert shorter["metadata"]["deletionTimestamp"] == "2026-11-30T12:00:15Z"
    assert calls.delete(PODS, "a", {"gracePeriodSeconds": 50})["metadata"]["deletionGracePeriodSeconds"] == 15


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_ended_goes_at_once(phase: str) -> None:
    calls = Calls()
    bound(calls)
    calls.patch(f"{PODS}:status", "a", {"status": {"phase": phase}})
    calls.delete(PODS, "a")
    assert calls.names(PODS) == []


def test_an_unbound_pod_goes_at_once() -> None:
    calls = Calls()
    calls.create(pod())
    calls.delete(PODS, "a")
    assert calls.names(PODS) == []


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
def test_a_precondition_protects_another_object_of_the_name(field: str) -> None:
    calls = Calls()
    calls.create(config_map())
    failure = refused(calls.delete, MAPS, "a", {"preconditions": {field: "77"}})
    assert (failure.code, failure.reason) == (409, "Conflict")
    assert "in the precondition (77) does not match" in str(failure)
    assert calls.names(MAPS) == ["a"]


def test_a_finalizer_keeps_the_object_until_it_is_taken_off() -> None:
    calls = Calls()
    manifest = config_map()
    manifest["metadata"]["finalizers"] = ["x.io/hold"]
    calls.create(manifest)
    going = calls.delete(MAPS, "a")
    assert going["metadata"]["deletionTimestamp"] == "2026-11-30T12:00:00Z"
    failure = refused(calls.patch, MAPS, "a", {"metadata": {"finalizers": ["x.io/hold", "x.io/more"]}})
    assert "no new finalizers can be added if the object is being deleted" in str(failure)
    calls.patch(MAPS, "a", {"metadata": {"finalizers": None}})
    assert calls.names(MAPS) == []


def test_a_pod_with_a_finalizer_outlives_its_grace() -> None:
    calls = Calls()
    manifest = pod(nodeName="n1")
    manifest["metadata"]["finalizers"] = ["x.io/hold"]
    calls.create(manifest)
    calls.delete(PODS, "a")
    ended = calls.delete(PODS, "a", {"gracePeriodSeconds": 0})
    assert ended["metadata"]["deletionGracePeriodSeconds"] == 0
    calls.patch(PODS, "a", {"metadata": {"finalizers": None}})
    assert calls.names(PODS) == []


def test_dependents_follow_their_owner() -> None:
    calls = Calls()
    owner = calls.create(config_map("owner"))
    calls.create(owned(config_map("child"), owner))
    grandchild = owned(config_map("grandchild"), calls.get(MAPS, "child"))
    calls.create(grandchild)
    calls.create(config_map("other"))
    calls.delete(MAPS, "owner")
    assert calls.names(MAPS) == ["other"]


def test_a_dependent_with_another_owner_stays_and_forgets_the_dead_one() -> None:
    calls = Calls()
    one, two = calls.create(config_map("one")), calls.create(config_map("two"))
    calls.create(owned(owned(config_map("child"), one), two))
    calls.delete(MAPS, "one")
    child = calls.get(MAPS, "child")
    assert [owner["name"] for owner in child["metadata"]["ownerReferences"]] == ["two"]
    calls.delete(MAPS, "two")
    assert calls.names(MAPS) == []


def test_an_object_whose_owner_never_was_is_collected() -> None:
    calls = Calls()
    owner = calls.create(config_map("owner"))
    owner["metadata"]["uid"] = "an-earlier-one-of-this-name"
    calls.create(owned(config_map("child"), owner))
    assert calls.names(MAPS) == ["owner"]


def test_in_the_foreground_the_owner_waits_for_blocking_dependents() -> None:
    calls = Calls()
    calls.create(definition())
    owner = calls.create(training())
    calls.create(owned(pod("blocking", nodeName="n1"), owner, blockOwnerDeletion=True))
    calls.create(owned(pod("free", nodeName="n1"), owner))
    calls.delete(TRAININGS, "t", {"propagationPolicy": "Foreground"})
    assert calls.get(TRAININGS, "t")["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert all("deletionTimestamp" in calls.get(PODS, name)["metadata"] for name in ("blocking", "free"))
    calls.delete(PODS, "blocking", {"gracePeriodSeconds": 0})
    assert calls.names(TRAININGS) == []
    assert calls.names(PODS) == ["free"]


def test_orphans_lose_the_reference_and_stay() -> None:
    calls = Calls()
    owner = calls.create(config_map("owner"))
    calls.create(owned(config_map("child"), owner))
    calls.delete(MAPS, "owner", {"propagationPolicy": "Orphan"})
    assert calls.names(MAPS) == ["child"]
    assert "ownerReferences" not in calls.get(MAPS, "child")["metadata"]


def test_a_namespace_is_emptied_before_it_goes() -> None:
    calls = Calls()
    calls.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}})
    assert calls.names("v1/serviceaccounts", namespace="ml") == ["default"]
    calls.create(config_map(), namespace="ml")
    calls.create(pod(nodeName="n1"), namespace="ml")
    going = calls.delete(NAMESPACES, "ml")
    assert going["status"]["phase"] == "Terminating"
    assert calls.names(MAPS, namespace="ml") == []
    assert calls.names(PODS, namespace="ml") == ["a"]
    calls.delete(PODS, "a", {"gracePeriodSeconds": 0}, namespace="ml")
    assert "ml" not in calls.names(NAMESPACES)


def test_a_namespace_goes_after_a_kind_that_it_held_is_gone() -> None:
    calls = Calls()
    calls.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}})
    calls.create(definition())
    calls.create(training(), namespace="ml")
    calls.delete("apiextensions.k8s.io/v1/customresourcedefinitions", "trainings.test.dtj.dev")
    calls.delete(NAMESPACES, "ml")
    assert "ml" not in calls.names(NAMESPACES)


def test_the_default_namespace_stays() -> None:
    failure = refused(Calls().delete, NAMESPACES, "default")
    assert str(failure) == 'namespaces "default" is forbidden: this namespace may not be deleted'


def test_a_collection_is_deleted_by_selector() -> None:
    calls = Calls()
    for name, label in (("a", "x"), ("b", "y"), ("c", "x")):
        manifest = config_map(name)
        manifest["metadata"]["labels"] = {"group": label}
        calls.create(manifest)
    calls.call("deletecollection", MAPS, labelSelector="group=x")
    assert calls.names(MAPS) == ["b"]


def test_upkeep_waits_until_its_driver_runs_it() -> None:
    calls = Calls()
    due = []
    calls.api.on_upkeep = lambda: due.append(True)
    owner = calls.create(config_map("owner"))
    calls.create(owned(config_map("child"), owner))
    calls.delete(MAPS, "owner")
    assert calls.names(MAPS) == ["child"]
    assert due
    calls.api.run_upkeep()
    assert calls.names(MAPS) == []


def eviction(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def ready(calls: Calls, name: str) -> None:
    manifest = pod(name, nodeName="n1")
    manifest["metadata"]["labels"] = {"app": "x"}
    calls.create(manifest)
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    calls.patch(f"{PODS}:status", name, {"status": status})


def test_an_eviction_is_a_delete_that_says_why() -> None:
    calls = Calls()
    ready(calls, "a")
    calls.call("create", f"{PODS}:eviction", "a", body={"metadata": {"name": "a"}})
    going = calls.get(PODS, "a")
    assert going["metadata"]["deletionGracePeriodSeconds"] == 30
    target = next(one for one in going["status"]["conditions"] if one["type"] == "DisruptionTarget")
    assert (target["status"], target["reason"]) == ("True", "EvictionByEvictionAPI")


def test_a_disruption_budget_holds_evictions_back() -> None:
    calls = Calls()
    for name in ("a", "b"):
        ready(calls, name)
    calls.create({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "one"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
    })  # fmt: skip
    status = calls.get("policy/v1/poddisruptionbudgets", "one")["status"]
    assert [(one["type"], one["reason"]) for one in status.pop("conditions")] == [
        ("DisruptionAllowed", "SufficientPods")
    ]
    assert status == {
        "currentHealthy": 2,
        "desiredHealthy": 1,
        "disruptionsAllowed": 1,
        "expectedPods": 2,
        "observedGeneration": 1,
    }
    calls.call("create", f"{PODS}:eviction", "a", body=eviction("a"))
    failure = refused(calls.call, "create", f"{PODS}:eviction", "b", body=eviction("b"))
    assert (failure.code, failure.reason) == (429, "TooManyRequests")
    assert failure.status["details"]["causes"][0]["message"] == (
        "The disruption budget one needs 1 healthy pods and has 1 currently"
    )
    assert "deletionTimestamp" not in calls.get(PODS, "b")["metadata"]
