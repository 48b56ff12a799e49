"""Kubernetes quantities: exact value, and the canonical way of writing it that the API server answers with."""

import re
from fractions import Fraction

PATTERN = r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"

_FORM = re.compile(r"^([+-]?)([0-9]*)(?:\.([0-9]*))?(m|u|n|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][-+]?[0-9]+)?$")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_EXPONENTS = {suffix: exponent for exponent, suffix in _DECIMAL.items()}


def parse(text: str) -> Fraction:
    """The value in base units. ValueError for what is no quantity."""
    found = _FORM.match(text)
    if found is None or not (found[2] or found[3]):
        raise ValueError(f"quantities must match the regular expression '{PATTERN}'")
    sign, whole, decimals, suffix = found.groups()
    digits = (whole or "") + (decimals or "")
    value = Fraction(int(digits or "0"), 10 ** len(decimals or ""))
    return (-value if sign == "-" else value) * _scale(suffix or "")


def canonical(text: str) -> str:
    """The same value with the largest suffix that keeps it whole, in the same family of suffixes."""
    value = parse(text)
    suffix = _FORM.match(text)[4] or ""  # type: ignore[index]  # parse has matched it
    if suffix in _BINARY[1:] and abs(value) >= 1024 and value.denominator == 1:
        return _binary(value)
    return _decimal(value, exponent=suffix[:1] in ("e", "E") and suffix != "E")


def text_of(value: Fraction, like: str) -> str:
    """A computed value, written in the family of suffixes of `like`."""
    if like.endswith("i") and value.denominator == 1 and abs(value) >= 1024:
        return _binary(value)
    return _decimal(value, exponent=False)


def _scale(suffix: str) -> Fraction:
    if suffix in _BINARY:
        return Fraction(1024 ** _BINARY.index(suffix))
    if suffix in _EXPONENTS:
        return Fraction(10) ** _EXPONENTS[suffix]
    return Fraction(10) ** int(suffix[1:])


def _binary(value: Fraction) -> str:
    number, step = int(value), 0
    while number and number % 1024 == 0 and step < len(_BINARY) - 1:
        number //= 1024
        step += 1
    return f"{number}{_BINARY[step]}"


def _decimal(value: Fraction, *, exponent: bool) -> str:
    # Finer than nano is rounded up, as Kubernetes does.
    nano = -((-value * 10**9) // 1)
    number, power = int(nano), -9
    while number and number % 1000 == 0 and power < 18:
        number //= 1000
        power += 3
    if not number:
        return "0"
    if exponent:
        return f"{number}e{power}" if power else str(number)
    return f"{number}{_DECIMAL[power]}"
