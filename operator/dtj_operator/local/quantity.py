"""How Kubernetes writes quantities: in the canonical form of its answers. Reading is `api/quantity.py`'s."""

import functools
from fractions import Fraction

from dtj_operator.api.quantity import parse

# How Go's decoder says that a text is none.
PATTERN = r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}


# Pods of one job ask for the same few amounts.
value_of = functools.lru_cache(maxsize=1024)(parse)


@functools.lru_cache(maxsize=1024)
def canonical(text: str) -> str:
    """The same value with the largest suffix that keeps it whole, in the same family. ValueError for what is none."""
    # `12E` is exa, `12E3` an exponent.
    if any(letter in text[:-1] for letter in "eE"):
        return _decimal(parse(text), exponent=True)
    return text_of(parse(text), text)


@functools.lru_cache(maxsize=1024)
def in_thousandths(text: str) -> str:
    """The same, rounded up where it is finer: no more is kept of what a pod asks for."""
    thousandths = value_of(text) * 1000
    return text if thousandths.denominator == 1 else text_of(Fraction(-(-thousandths // 1), 1000), text)


def text_of(value: Fraction, like: str) -> str:
    """A computed value, written in the family of suffixes of `like`."""
    if like.endswith("i") and value.denominator == 1 and abs(value) >= 1024:
        return _binary(value)
    return _decimal(value, exponent=False)


def _binary(value: Fraction) -> str:
    number, step = int(value), 0
    while number % 1024 == 0 and step < len(_BINARY) - 1:
        number //= 1024
        step += 1
    return f"{number}{_BINARY[step]}"


def _decimal(value: Fraction, *, exponent: bool) -> str:
    # Finer than nano is rounded up, as Kubernetes does.
    number, power = int(-(-value * 10**9 // 1)), -9
    while number and number % 1000 == 0 and power < 18:
        number //= 1000
        power += 3
    if not number:
        return "0"
    if exponent:
        return f"{number}e{power}" if power else str(number)
    return f"{number}{_DECIMAL[power]}"
