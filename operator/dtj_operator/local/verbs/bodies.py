"""The body of a write, read as its kind: header, place, unknown fields and types, as kube-apiserver decodes it."""

from typing import Any, NamedTuple

import msgspec

from dtj_operator.local.conversion import stored_body
from dtj_operator.local.failures import bad_request, invalid, unprocessable
from dtj_operator.local.kinds import Kind
from dtj_operator.local.patch import is_apply
from dtj_operator.local.shapes.decoding import Decoder, Undecodable
from dtj_operator.local.state import Request, State
from dtj_operator.local.verbs.options import WriteOptions

Json = dict[str, Any]


class Body(NamedTuple):
    """`content` is in stored form; `warnings` is what a client that did not ask for strictness is told."""

    content: Json
    warnings: tuple[str, ...]


def read_body(state: State, request: Request, options: WriteOptions, *, patched: Json | None = None) -> Body:
    """400 for what is no such object; 422 where a patch of `patched` brought in what the kind does not know."""
    kind, body = request.kind, request.body
    if not isinstance(body, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {kind.kind}): it is no JSON object")
    _check_header(kind, body)
    decoder = Decoder(partial=is_apply(request.content_type))
    title = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
    try:
        read = decoder.read(state.rules(kind).shape, body, stored=patched)
    except Undecodable as why:
        raise bad_request(f"{title}: {why}") from None
    told = tuple(f'unknown field "{path}"' for path in decoder.unknown)
    if told and options.field_validation == "Strict":
        sentence = f"strict decoding error: {', '.join(told)}"
        if patched is not None:
            shown = msgspec.json.encode(body).decode()
            raise unprocessable("", "", "", [invalid("patch", shown, sentence)])
        raise bad_request(f"{title}: {sentence}")
    # A copy, since metadata is written into and a patch may have left it to be shared with what is stored.
    metadata = read["metadata"] = dict(read.get("metadata") or {})
    namespace = metadata.get("namespace")
    if kind.namespaced and namespace and namespace != request.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    return Body(stored_body(kind, read), told if options.field_validation == "Warn" else ())


def _check_header(kind: Kind, body: Json) -> None:
    given = body.get("apiVersion", kind.api_version), body.get("kind", kind.kind)
    if given == (kind.api_version, kind.kind):
        return
    if given[1] == kind.kind:
        told = f"the API version in the data ({given[0]}) does not match the expected API version ({kind.api_version})"
        raise bad_request(told)
    raise bad_request(f'{given[1]} in version "{given[0]}" cannot be handled as a {kind.kind}')
