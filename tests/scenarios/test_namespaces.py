"""What the namespace allows: a job obeys it, or says what it is kept from."""

import pytest

from dtj_operator.api.status import Restarts
from dtj_worker.contract import Task
from tests.worlds.world import NAMESPACE, RESTRICTED, Json, World, counting, in_phase, is_over

LIMITS: Json = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "usual", "namespace": NAMESPACE},
    "spec": {"limits": [{"type": "Container", "default": {"memory": "256Mi"}, "defaultRequest": {"memory": "64Mi"}}]},
}
ROOMY: Json = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "team", "namespace": NAMESPACE},
    "spec": {"hard": {"limits.memory": "600Mi", "pods": "2"}},
}
TO_DNS: Json = {"ports": [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]}


@pytest.mark.core
@pytest.mark.needs("PodSecurity")
async def test_a_restricted_namespace_takes_a_job_as_it_is(world: World) -> None:
    await world.change("Namespace", NAMESPACE, RESTRICTED)
    job = await world.submit(counting(steps=10))
    end = await world.until(job, is_over)
    assert (end.status.phase, end.status.restarts) == ("Succeeded", Restarts())


@pytest.mark.core
async def test_a_limit_range_and_a_quota_count_for_pods_that_say_nothing(world: World) -> None:
    """The quota asks for limits; the limit range gives them; so the gang fits, and all of it."""
    await world.create(LIMITS)
    await world.create(ROOMY)
    job = await world.submit(counting(steps=10))
    end = await world.until(job, is_over)
    assert (end.status.phase, end.status.restarts) == ("Succeeded", Restarts())


@pytest.mark.needs("Policies")
async def test_a_closed_way_out_is_named_and_hangs_nothing(world: World) -> None:
    """Not even names are resolved."""
    await world.create(ways_out())
    await ends_for_want_of_peers(world, "its name does not resolve")


@pytest.mark.needs("Policies")
async def test_a_closed_way_to_peers_is_not_taken_for_a_missing_name(world: World) -> None:
    """A firewall may refuse a connection as well as drop it."""
    await world.create(ways_out(TO_DNS))
    await ends_for_want_of_peers(world, "it (refused the connection|did not answer in time)")


async def ends_for_want_of_peers(world: World, cause: str) -> None:
    """The job names who is missing; the log of that one tells what keeps it from whom."""
    job = await world.submit(counting(steps=10, preflight={"timeoutSeconds": 30}, recovery={"maxRestarts": 0}))
    await world.until(job, in_phase("Starting"))
    await world.prints(job, Task("worker", 1), f"waiting for worker-0: {cause}")
    end = await world.until(job, is_over, within=120)
    failure = end.status.last_failure
    assert failure is not None
    assert (end.status.phase, failure.failure_class, failure.role, failure.index) == (
        "Failed",
        "Rendezvous",
        "worker",
        1,
    )
    why = "worker-1 did not register: 1 of 2 tasks registered within 30 s; missing: worker-1; DNS and worker-0 must be"
    assert why in (end.status.reason or "")


def ways_out(*ways: Json) -> Json:
    """No pod of the namespace gets out but by these."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "ways-out", "namespace": NAMESPACE},
        "spec": {"podSelector": {}, "policyTypes": ["Egress"], "egress": list(ways)},
    }
