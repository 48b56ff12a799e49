"""Random orders of events: invariants hold at every instant, and when peace returns every job comes to its end."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.machines.jobs import jobs
from tests.machines.machine import Jobs

KINDS = sorted(jobs(""))
USUAL = 100


@pytest.mark.timeout(1800)  # with --hypothesis-profile=deep
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_happens_in_whatever_order(kind: str) -> None:
    """A hundred orders, always the same; `--hypothesis-profile=deep` tries 2,000 that are new each time."""
    most = settings().max_examples
    per_kind = -(-most // len(KINDS))

    class Begun(Jobs):
        first = kind

    told = settings(
        max_examples=per_kind,
        stateful_step_count=25,
        database=None,
        derandomize=most <= USUAL,
        suppress_health_check=[HealthCheck.too_slow],
    )
    run_state_machine_as_test(Begun, settings=told)
