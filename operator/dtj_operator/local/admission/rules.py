"""The interface behind which kinds differ: what is defaulted, what a write may not touch, what is refused."""

from typing import Any, Protocol

from dtj_operator.local.failures import FieldFault
from dtj_operator.local.shapes.shape import Shape

Json = dict[str, Any]


class Rules(Protocol):
    """Of one kind. All but `faults` change the body they are given, which belongs to the request."""

    @property
    def shape(self) -> Shape: ...

    def default(self, body: Json, old: Json | None) -> None:
        """Fill what was left out, in what a client sent and in what a patch made of the old object."""

    def on_create(self, body: Json) -> None:
        """Set what only the server may set, such as a fresh status."""

    def on_update(self, body: Json, old: Json, subresource: str) -> None:
        """Carry over what this write may not touch, and count the generation."""

    def faults(self, body: Json, old: Json | None, subresource: str) -> list[FieldFault]:
        """Everything wrong with the object; `old` is None at creation."""
