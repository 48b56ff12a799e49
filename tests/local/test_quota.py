"""Quotas and limit ranges: what a namespace lets in."""

from typing import Any

import pytest

from tests.local.calls import Calls, config_map, pod, refused

PODS = "v1/pods"


def quota(**hard: str) -> dict[str, Any]:
    spec = {"hard": {key.replace("__", "/").replace("_", "."): value for key, value in hard.items()}}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": spec}


def limit_range(**item: Any) -> dict[str, Any]:
    spec = {"limits": [{"type": "Container", **item}]}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": spec}


def asking(name: str, **limits: str) -> dict[str, Any]:
    container = {"name": "trainer", "image": "a:1", "resources": {"limits": limits}}
    return pod(name, containers=[container])


def used(calls: Calls) -> Any:
    return calls.get("v1/resourcequotas", "q")["status"]["used"]


def test_a_pod_over_the_quota_is_forbidden_with_the_numbers() -> None:
    calls = Calls()
    calls.create({**quota(pods="5"), "spec": {"hard": {"pods": "5", "requests.nvidia.com/gpu": "3"}}})
    calls.create(asking("a", **{"nvidia.com/gpu": "2"}))
    failure = refused(calls.create, asking("b", **{"nvidia.com/gpu": "2"}))
    assert (failure.code, failure.reason) == (403, "Forbidden")
    assert str(failure) == (
        'pods "b" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=2, '
        "used: requests.nvidia.com/gpu=2, limited: requests.nvidia.com/gpu=3"
    )
    assert used(calls) == {"pods": "1", "requests.nvidia.com/gpu": "2"}


def test_what_ends_or_goes_gives_its_share_back() -> None:
    calls = Calls()
    calls.create(quota(pods="1", requests_cpu="2"))
    calls.create(asking("a", cpu="2"))
    assert used(calls) == {"pods": "1", "requests.cpu": "2"}
    calls.patch(f"{PODS}:status", "a", {"status": {"phase": "Succeeded"}})
    assert used(calls) == {"pods": "0", "requests.cpu": "0"}
    calls.create(asking("b", cpu="500m"))
    assert used(calls) == {"pods": "1", "requests.cpu": "500m"}
    calls.delete(PODS, "b")
    assert used(calls) == {"pods": "0", "requests.cpu": "0"}


def test_a_dry_run_is_counted_against_the_quota_and_not_into_it() -> None:
    calls = Calls()
    calls.create(quota(pods="1"))
    calls.create(pod("a"), dryRun="All")
    assert used(calls) == {"pods": "0"}
    calls.create(pod("a"))
    assert refused(calls.create, pod("b"), dryRun="All").code == 403


def test_a_quota_on_cpu_makes_pods_say_what_they_want() -> None:
    calls = Calls()
    calls.create(quota(limits_cpu="4"))
    failure = refused(calls.create, pod())
    assert str(failure) == 'pods "a" is forbidden: failed quota: q: must specify limits.cpu for: trainer'


@pytest.mark.parametrize(("key", "limit"), [("configmaps", "1"), ("count/configmaps", "1")])
def test_other_objects_are_counted(key: str, limit: str) -> None:
    calls = Calls()
    calls.create({**quota(), "spec": {"hard": {key: limit}}})
    calls.create(config_map("a"))
    failure = refused(calls.create, config_map("b"))
    assert f"exceeded quota: q, requested: {key}=1, used: {key}=1, limited: {key}=1" in str(failure)


def test_init_containers_count_by_their_peak_and_sidecars_with_the_rest() -> None:
    calls = Calls()
    calls.create(quota(requests_cpu="10"))

    def cpu(name: str, amount: str, **rest: Any) -> dict[str, Any]:
        return {"name": name, "image": "a:1", "resources": {"requests": {"cpu": amount}}, **rest}

    calls.create(pod(
        initContainers=[cpu("side", "1", restartPolicy="Always"), cpu("big", "4")], containers=[cpu("trainer", "2")],
    ))  # fmt: skip
    assert used(calls) == {"requests.cpu": "5"}


def test_a_limit_range_fills_in_and_refuses() -> None:
    calls = Calls()
    calls.create(limit_range(default={"cpu": "2"}, defaultRequest={"cpu": "1"}, max={"cpu": "3"}))
    made = calls.create(pod())
    assert made["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}
    assert made["status"]["qosClass"] == "Burstable"
    failure = refused(calls.create, asking("b", cpu="4"))
    assert str(failure) == 'pods "b" is forbidden: maximum cpu usage per Container is 3, but limit is 4'
