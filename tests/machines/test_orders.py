"""Random orders of events: invariants hold at every instant, and when peace returns every job comes to its end."""

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.machines.jobs import jobs
from tests.machines.machine import Jobs

KINDS = sorted(jobs(""))


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_happens_in_whatever_order(kind: str) -> None:
    """The more of them, the surer: `--hypothesis-profile=deep` tries 2,000 orders that are new each time."""
    orders = -(-settings().max_examples // len(KINDS))

    class Begun(Jobs):
        first = kind

    run_state_machine_as_test(Begun, settings=settings(max_examples=orders, stateful_step_count=25, database=None))
