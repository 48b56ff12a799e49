"""What the types of spec and status are made of: their base, descriptions, and the bounds that occur more than once."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from dtj_worker import contract


def about(text: str) -> Meta:
    """The description of a field, for kubectl explain and the reference page."""
    return Meta(description=text)


DictTemplate = Annotated[
    dict[str, Any], Meta(extra_json_schema={"type": "object", "x-kubernetes-preserve-unknown-fields": True})
]
"""A Kubernetes object of another kind, passed through; checked by a server-side dry run, not by our schema."""

Count = Annotated[int, Meta(ge=0, le=1_000_000)]
Positive = Annotated[int, Meta(ge=1)]
Seconds = Annotated[int, Meta(ge=0, le=31_536_000)]
PositiveSeconds = Annotated[int, Meta(ge=1, le=31_536_000)]
Port = Annotated[int, Meta(ge=1, le=65535)]
Replicas = Annotated[int, Meta(ge=1, le=512)]
FirstPort = Annotated[int, Meta(ge=1, le=65536 - contract.PORTS_PER_TASK)]
Path = Annotated[str, Meta(min_length=1, max_length=1024)]
Pattern = Annotated[str, Meta(min_length=1, max_length=256)]
Name = Annotated[str, Meta(min_length=1, max_length=253)]
Label = Annotated[str, Meta(min_length=1, max_length=63)]


class Fields(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base of every record: camelCase in YAML, snake_case in Python; a field that has its default is not written."""
