"""How defaults get into an object."""

from typing import Any

Json = dict[str, Any]


def fill(given: Json, field: str, default: Any) -> None:
    """For a field that is no pointer in Go: there, an empty text is as good as none.

    A pointer's default is set by `setdefault`, and its checks refuse an empty text.
    """
    if given.get(field) in (None, ""):
        given[field] = default
