"""The reasons of conditions are a list that people and scripts rely on."""

import re
from typing import get_args

from dtj_operator.api.reasons import REASONS, Reason
from dtj_operator.api.status import ConditionType


def test_every_type_has_reasons() -> None:
    assert set(REASONS) == set(get_args(ConditionType))


def test_every_reason_has_a_meaning() -> None:
    assert {reason for known in REASONS.values() for reason in known} == set(get_args(Reason))


def test_reasons_and_meanings_have_their_form() -> None:
    for known in REASONS.values():
        for reason, meaning in known.items():
            # Kubernetes' own form for a condition's reason.
            assert re.fullmatch(r"[A-Z][A-Za-z]{2,63}", reason)
            assert re.fullmatch(r"(True|False|Unknown): .+\.", meaning), meaning
