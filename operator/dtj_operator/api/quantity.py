"""Kubernetes quantities such as `500m` and `2Gi`: text to number."""

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

_FORM = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<decimals>[0-9]*))?"
    r"(?:(?P<binary>[KMGTPE])i|(?P<decimal>[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]{1,3}))?",
    re.ASCII,
)
_BINARY = "KMGTPE"
_LARGEST = Fraction(2**63 - 1)
"""Kubernetes holds no larger number."""
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def parse(text: str) -> Fraction:
    """The exact value in base units (cores, bytes, pieces); ValueError for what is no quantity."""
    found = _FORM.fullmatch(text)
    if found is None or not (found["whole"] or found["decimals"]):
        raise ValueError(f"{text!r:.40} is no quantity; expected a number with a suffix such as m, k, Mi or Gi")
    decimals = found["decimals"] or ""
    value = Fraction(int(found["whole"] + decimals), 10 ** len(decimals))
    if found["binary"]:
        value *= Fraction(1024) ** (_BINARY.index(found["binary"]) + 1)
    elif found["decimal"]:
        value *= Fraction(10) ** _DECIMAL[found["decimal"]]
    elif found["exponent"]:
        value *= Fraction(10) ** int(found["exponent"])
    return -value if found["sign"] == "-" else value


def amounts(resources: Any) -> dict[str, float]:
    """A resource list (requests, limits, allocatable) as numbers; entries that are no quantities are left out.

    Rounded up as the scheduler does: cpu to thousandths of a core, all else to whole units.
    """
    found: dict[str, float] = {}
    for name, text in (resources if isinstance(resources, Mapping) else {}).items():
        try:
            value = min(parse(str(text)), _LARGEST)
        except ValueError:
            continue
        found[str(name)] = math.ceil(value * 1000) / 1000 if name == "cpu" else float(math.ceil(value))
    return found
