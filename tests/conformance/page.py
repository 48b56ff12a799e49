"""The part of `docs/embedded-differences.md` that is made of what is known; `python -m tests.conformance --docs`."""

from pathlib import Path

from tests.conformance.known import KNOWN

PAGE = Path(__file__).parents[2] / "docs" / "embedded-differences.md"
_HEADLINE = "## What the conformance stories show\n"


def page() -> str:
    """The whole page with this part in it."""
    return PAGE.read_text().partition(_HEADLINE)[0] + _section()


def _section() -> str:
    rows = [f"| {known.real} | {known.here} | {known.why} |" for known in KNOWN]
    told = (
        "The same requests were played against both, and their answers compared field by field (`tests/conformance`). "
        "What differed and stays:\n"
    )
    return "\n".join([_HEADLINE, told, "| kube-apiserver | here | why |", "| --- | --- | --- |", *rows, ""])
