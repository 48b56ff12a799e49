"""The form of an answer that the client accepts: the object itself, a table of it, or only its metadata."""

import datetime
from collections.abc import Callable
from typing import Any

import msgspec

from dtj_operator.local.failures import ApiFailure, bad_request
from dtj_operator.local.kinds import Kind
from dtj_operator.local.state import Reply, Request, State
from dtj_operator.local.tables import cells, rows
from dtj_operator.local.tables.columns import AGE, COLUMNS, NAME, Column
from dtj_operator.local.verbs import reading
from dtj_operator.local.verbs.reading import WatchEvent

Json = dict[str, Any]

_META = "meta.k8s.io/v1"
# Clients that ask for YAML or protobuf take JSON, too.
_MEDIA = ("", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "*/*", "application/*")
_OFFERED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
_INCLUDED = ("", "Metadata", "Object", "None")


def printed(state: State, request: Request, reply: Reply, form: str) -> Reply:
    """The reply in the form that `accepted_form` found."""
    if form == "" or request.subresource:
        return reply
    body = reply.body
    if body.get("kind") == "Status":
        return reply
    is_list = "items" in body and body["kind"].endswith("List")
    items = body["items"] if is_list else [body]
    metadata = (
        _list_metadata(body["metadata"])
        if is_list
        else {"resourceVersion": body["metadata"].get("resourceVersion", "")}
    )
    if form == "Table":
        answer = table(state, request, items, metadata)
    elif is_list:
        answer = {"kind": "PartialObjectMetadataList", "apiVersion": _META, "metadata": metadata,
                  "items": [_partial(item) for item in items]}  # fmt: skip
    else:
        answer = _partial(body)
    return msgspec.structs.replace(reply, raw=msgspec.json.encode(answer))


def watch_lines(state: State, request: Request, form: str) -> Callable[[WatchEvent], bytes]:
    """How one watch writes its events; the columns of a table are told once."""
    told = False

    def line(event: WatchEvent) -> bytes:
        nonlocal told
        if form == "" or event.status is not None:
            return reading.event_raw(request.kind, event)
        if event.entry is None:
            body, metadata = reading.bookmark(request.kind, event), {"resourceVersion": str(event.revision)}
        else:
            body, metadata = event.entry.decode(), {"resourceVersion": str(event.entry.revision)}
        if form == "Table":
            item = table(state, request, [body] if event.entry else [], metadata)
            if told:
                item["columnDefinitions"] = None
            told = True
        else:
            item = _partial(body)
        return msgspec.json.encode({"type": event.type, "object": item}) + b"\n"

    return line


def accepted_form(request: Request, accept: str) -> str:
    """`Table`, `PartialObjectMetadata`, or empty for the object as it is: the first of the header that is known.

    406 where it names none, 400 for a table with objects in no known form.
    """
    form = _form(accept)
    if form == "Table" and (include := request.params.get("includeObject", "")) not in _INCLUDED:
        told = "must be 'Metadata', 'Object', 'None', or empty"
        raise bad_request(f'Unable to convert to Table as requested: includeObject: Invalid value: "{include}": {told}')
    return form


def _form(accept: str) -> str:
    transforms = False
    for media in accept.split(","):
        name, *parameters = (part.strip() for part in media.split(";"))
        values = dict(parameter.partition("=")[::2] for parameter in parameters)
        if name not in _MEDIA:
            continue
        form = values.get("as", "")
        if not form:
            return ""
        if values.get("v", "v1") == "v1" and form in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList"):
            return form.removesuffix("List")
        transforms = True
    if transforms:
        raise ApiFailure(406, "NotAcceptable", f"only the following media types are accepted: {_OFFERED}")
    raise ApiFailure(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {_OFFERED}", {})


def table(state: State, request: Request, items: list[Json], metadata: Json) -> Json:
    columns, row = _columns_and_row(state, request.kind)
    now = state.now()
    include = request.params.get("includeObject") or "Metadata"
    return {
        "kind": "Table",
        "apiVersion": _META,
        "metadata": metadata,
        "columnDefinitions": [_described(column) for column in columns],
        "rows": [{"cells": row(item, now), **_included(request.kind, item, include)} for item in items],
    }


def _columns_and_row(state: State, kind: Kind) -> tuple[tuple[Column, ...], rows.Row]:
    if not kind.custom:
        return COLUMNS.get(kind.storage, (NAME, AGE)), rows.ROWS.get(kind.storage, rows.name_and_age)
    declared = state.custom_rules[kind.served_as].columns or [
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
    ]
    columns = tuple(
        Column(
            column["name"], bool(column.get("priority")), column.get("type", "string"), column.get("format", ""),
            column.get("description", ""),
        )
        for column in declared
    )  # fmt: skip

    def row(body: Json, now: datetime.datetime) -> list[Any]:
        return [body["metadata"]["name"], *(cells.custom_cell(column, body, now) for column in declared)]

    return (NAME, *columns), row


def _described(column: Column) -> Json:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": 1 if column.wide else 0,
    }


def _included(kind: Kind, item: Json, include: str) -> Json:
    if include == "None":
        return {"object": None}
    if include == "Object":
        return {"object": {**kind.header, **item}}
    return {"object": _partial(item)}


def _list_metadata(metadata: Json) -> Json:
    return {key: value for key, value in metadata.items() if value != ""}


def _partial(item: Json) -> Json:
    return {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": item["metadata"]}
