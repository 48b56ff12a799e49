"""Kubernetes quantities as numbers."""

from fractions import Fraction
from typing import Any

import pytest

from dtj_operator.api.quantity import amounts, parse


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("0.5", Fraction(1, 2)),
        (".5", Fraction(1, 2)),
        ("1.", 1),
        ("-2", -2),
        ("500m", Fraction(1, 2)),
        ("1n", Fraction(1, 10**9)),
        ("3u", Fraction(3, 10**6)),
        ("2k", 2000),
        ("1M", 10**6),
        ("1Ki", 1024),
        ("1.5Gi", 1536 * 2**20),
        ("1E", 10**18),
        ("1Ei", 2**60),
        ("1e3", 1000),
        ("1E3", 1000),
        ("12e-1", Fraction(6, 5)),
    ],
)
def test_quantities(text: str, value: Fraction) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    "text", ["", ".", "x", "1 Gi", "1gi", "1KI", "1ee3", "--1", "1.2.3", "Gi", "\N{ARABIC-INDIC DIGIT ONE}"]
)
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="is no quantity"):
        parse(text)


@pytest.mark.parametrize(
    ("resources", "found"),
    [
        ({"cpu": "100.5m", "memory": "0.5"}, {"cpu": 0.101, "memory": 1.0}),
        ({"nvidia.com/gpu": 2, "cpu": 1.5}, {"nvidia.com/gpu": 2.0, "cpu": 1.5}),
        ({"cpu": "much", "memory": None, "x": {}}, {}),
        ({"memory": "9" * 40}, {"memory": float(2**63 - 1)}),
        ({"memory": "1e999"}, {"memory": float(2**63 - 1)}),
        (None, {}),
        ("x", {}),
    ],
)
def test_amounts_are_rounded_up_as_the_scheduler_does(resources: Any, found: dict[str, float]) -> None:
    assert amounts(resources) == found
