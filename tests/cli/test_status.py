"""What `dtj status` says of a job, line by line."""

from datetime import UTC, datetime
from typing import Any

import pytest

from dtj_operator.cli.status import described

NOW = datetime(2026, 1, 1, 12, 1, tzinfo=UTC)


def lines(status: dict[str, Any] | None) -> list[str]:
    job = {"metadata": {"namespace": "team", "name": "mnist"}} | ({} if status is None else {"status": status})
    return list(described(job, NOW))


def test_a_job_that_nobody_serves() -> None:
    assert lines(None) == [
        "team/mnist: Pending",
        "  no operator has looked at it yet; does one run here, and for this namespace?",
    ]


@pytest.mark.parametrize(
    ("attempt", "told"),
    [
        (
            {"firstStep": "2026-01-01T12:00:10Z"},
            ["  attempt 0 has run for 60 s"],
        ),
        (
            {"firstStep": "2026-01-01T12:00:10Z", "resumedFromStep": 50},
            ["  attempt 0 resumed (step 50)", "  attempt 0 has run for 60 s"],
        ),
        (
            {"end": "2026-01-01T12:00:12Z", "outcome": "Disruption"},
            ["  after 12 s attempt 0 failed: Disruption"],
        ),
    ],
)
def test_the_attempts(attempt: dict[str, Any], told: list[str]) -> None:
    status = {"phase": "Running", "timeline": [{"attempt": 0, "start": "2026-01-01T12:00:00Z", **attempt}]}
    assert lines(status)[1:] == told
