"""What the namespace allows: a job obeys it, or says what it is kept from."""

import pytest

from dtj_operator.api.status import Restarts
from tests.worlds.world import NAMESPACE, RESTRICTED, Json, World, counting, is_over

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
NO_WAY_OUT: Json = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "nothing-out", "namespace": NAMESPACE},
    "spec": {"podSelector": {}, "policyTypes": ["Egress"], "egress": []},
}


@pytest.mark.core
@pytest.mark.needs("Policies")
async def test_a_restricted_namespace_takes_a_job_as_it_is(world: World) -> None:
    await world.change("Namespace", NAMESPACE, RESTRICTED)
    job = await world.submit(counting(steps=10))
    end = await world.until(job, is_over)
    assert (end.status.phase, end.status.restarts) == ("Succeeded", Restarts())


@pytest.mark.core
@pytest.mark.needs("Policies")
async def test_a_limit_range_and_a_quota_count_for_pods_that_say_nothing(world: World) -> None:
    """The quota asks for limits; the limit range gives them; so the gang fits, and all of it."""
    await world.create(LIMITS)
    await world.create(ROOMY)
    job = await world.submit(counting(steps=10))
    end = await world.until(job, is_over)
    assert (end.status.phase, end.status.restarts) == ("Succeeded", Restarts())


@pytest.mark.core
@pytest.mark.needs("Policies")
async def test_a_closed_way_out_is_named_and_hangs_nothing(world: World) -> None:
    await world.create(NO_WAY_OUT)
    job = await world.submit(counting(steps=10, preflight={"timeoutSeconds": 20}, recovery={"maxRestarts": 0}))
    end = await world.until(job, is_over, within=120)
    assert end.status.phase == "Failed"
    assert end.status.last_failure is not None
    assert end.status.last_failure.failure_class == "Rendezvous"
    assert "worker" in (end.status.reason or "")
