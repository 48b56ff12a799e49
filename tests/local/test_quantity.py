"""The canonical form of quantities, as kube-apiserver writes them back."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtj_operator.api.quantity import parse
from dtj_operator.local.quantity import canonical, text_of


@pytest.mark.parametrize(
    ("given_text", "written"),
    [
        ("1000m", "1"), ("0.5", "500m"), ("1.5", "1500m"), ("1024Mi", "1Gi"), ("1.5Gi", "1536Mi"), ("1500Mi", "1500Mi"),
        ("1000k", "1M"), ("1e3", "1e3"), ("1E3", "1e3"), ("12E", "12E"), ("0", "0"), ("0Gi", "0"), ("512Ki", "512Ki"),
        ("0.5Ki", "512"), ("-1", "-1"), ("0.1m", "100u"), ("100", "100"), ("4", "4"),
    ],
)  # fmt: skip
def test_a_quantity_is_written_with_its_largest_whole_suffix(given_text: str, written: str) -> None:
    assert canonical(given_text) == written


@given(st.integers(-(10**6), 10**6), st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi", "e3"]))
def test_the_written_form_has_the_same_value_and_is_stable(number: int, suffix: str) -> None:
    written = canonical(f"{number}{suffix}")
    assert parse(written) == parse(f"{number}{suffix}")
    assert canonical(written) == written


def test_a_computed_value_keeps_the_family_of_its_limit() -> None:
    assert text_of(Fraction(3 * 2**30), "8Gi") == "3Gi"
    assert text_of(Fraction(3, 2), "4") == "1500m"
