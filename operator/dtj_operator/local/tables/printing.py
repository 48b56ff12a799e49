"""The form of an answer that the client accepts: the object itself, a table of it, or only its metadata."""

import datetime
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from dtj_operator.local.failures import ApiFailure, bad_request
from dtj_operator.local.kinds import Kind
from dtj_operator.local.state import Reply, Request, State
from dtj_operator.local.tables import cells, rows
from dtj_operator.local.tables.columns import AGE, COLUMNS, NAME, Column
from dtj_operator.local.verbs import reading
from dtj_operator.local.verbs.reading import WatchEvent

Json = dict[str, Any]

_GROUP = "meta.k8s.io"
_VERSIONS = ("v1", "v1beta1")
_FORMS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
# Clients that ask for YAML or protobuf take JSON, too.
_MEDIA = ("", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "*/*", "application/*")
_OFFERED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
_INCLUDED = ("", "Metadata", "Object", "None")


class Form(NamedTuple):
    """`Table`, `PartialObjectMetadata`, or no name for the object as it is."""

    name: str = ""
    version: str = "v1"

    @property
    def api_version(self) -> str:
        return f"{_GROUP}/{self.version}"


def printed(state: State, request: Request, reply: Reply, form: Form) -> Reply:
    """The reply in the form that `accepted_form` found."""
    if not form.name or request.subresource:
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
    if form.name == "Table":
        answer = _table(state, request, items, metadata, form)
    elif is_list:
        answer = {"kind": "PartialObjectMetadataList", "apiVersion": form.api_version,
                  "metadata": metadata, "items": [_partial(item, form) for item in items]}  # fmt: skip
    else:
        answer = _partial(body, form)
    return msgspec.structs.replace(reply, raw=msgspec.json.encode(answer))


def watch_lines(state: State, request: Request, form: Form) -> Callable[[WatchEvent], bytes]:
    """How one watch writes its events; the columns of a table are told once."""
    told = False

    def line(event: WatchEvent) -> bytes:
        nonlocal told
        if not form.name or event.status is not None:
            return reading.event_raw(request.kind, event)
        if event.entry is None:
            body, metadata = reading.bookmark(request.kind, event), {"resourceVersion": str(event.revision)}
        else:
            body, metadata = event.entry.decode(), {"resourceVersion": str(event.entry.revision)}
        if form.name == "Table":
            item = _table(state, request, [body] if event.entry else [], metadata, form)
            if told:
                item["columnDefinitions"] = None
            told = True
        else:
            item = _partial(body, form)
        return msgspec.json.encode({"type": event.type, "object": item}) + b"\n"

    return line


def accepted_form(request: Request, accept: str) -> Form:
    """The first of the header that is known.

    406 where it names none, 400 for a table with objects in no known form.
    """
    form = _form(accept)
    if form.name == "Table" and (include := request.params.get("includeObject", "")) not in _INCLUDED:
        told = "must be 'Metadata', 'Object', 'None', or empty"
        raise bad_request(f'Unable to convert to Table as requested: includeObject: Invalid value: "{include}": {told}')
    return form


def _form(accept: str) -> Form:
    transforms = False
    for media in accept.split(","):
        name, *parameters = (part.strip() for part in media.split(";"))
        if name.lower() not in _MEDIA:
            continue
        values = {key.lower(): value for key, _, value in (parameter.partition("=") for parameter in parameters)}
        form, version = values.get("as", ""), values.get("v", "v1")
        if not form:
            return Form()
        if version in _VERSIONS and form in _FORMS:
            return Form(form.removesuffix("List"), version)
        transforms = True
    if transforms:
        raise ApiFailure(406, "NotAcceptable", f"only the following media types are accepted: {_OFFERED}")
    raise ApiFailure(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {_OFFERED}", {})


def _table(state: State, request: Request, items: list[Json], metadata: Json, form: Form) -> Json:
    columns, row = _columns_and_row(state, request.kind)
    now = state.now()
    include = request.params.get("includeObject") or "Metadata"
    return {
        "kind": "Table",
        "apiVersion": form.api_version,
        "metadata": metadata,
        "columnDefinitions": [_described(column) for column in columns],
        "rows": [{"cells": row(item, now), **_included(request.kind, item, include, form)} for item in items],
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


def _included(kind: Kind, item: Json, include: str, form: Form) -> Json:
    if include == "None":
        return {"object": None}
    if include == "Object":
        return {"object": {**kind.header, **item}}
    return {"object": _partial(item, form)}


def _list_metadata(metadata: Json) -> Json:
    return {key: value for key, value in metadata.items() if value != ""}


def _partial(item: Json, form: Form) -> Json:
    return {"kind": "PartialObjectMetadata", "apiVersion": form.api_version, "metadata": item["metadata"]}
