"""The body of a write, read as its kind: header, place, unknown fields and types, as kube-apiserver decodes it."""

import json
from typing import Any, NamedTuple

import msgspec

from dtj_operator.local.conversion import stored_body
from dtj_operator.local.failures import ApiFailure, bad_request, invalid, unexpected, unprocessable
from dtj_operator.local.kinds import Kind
from dtj_operator.local.patch import is_apply
from dtj_operator.local.shapes.decoding import Decoder, Undecodable
from dtj_operator.local.state import Request, State
from dtj_operator.local.verbs.options import WriteOptions

Json = dict[str, Any]


_GO_HEADER = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'


class Body(NamedTuple):
    """`content` is in stored form; `warnings` is what a client that did not ask for strictness is told."""

    content: Json
    warnings: tuple[str, ...]


def read_body(state: State, request: Request, options: WriteOptions, *, patched: Json | None = None) -> Body:
    """400 for what is no such object; 422 where a patch of `patched` brought in what the kind does not know."""
    kind, body = request.kind, {} if request.body is None else request.body
    if not isinstance(body, dict):
        raise _no_object(kind, body)
    _check_header(state, kind, body, patched)
    applies = is_apply(request.content_type)
    decoder = Decoder(partial=applies)
    title = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
    try:
        read = decoder.read(state.rules(kind).shape, body, stored=patched)
    except Undecodable as error:
        why = str(error).replace("ObjectMeta.metadata.", "ObjectMeta.") if kind.custom else str(error)
        raise _refused_patch(body, str(why)) if patched is not None else bad_request(f"{title}: {why}") from None
    # Within a custom kind, metadata is read before the rest.
    unknown = sorted(decoder.unknown, key=lambda path: (not path.startswith("metadata"), path))
    if unknown and applies:
        raise _not_in_schema(kind, body, unknown)
    told = tuple(f'unknown field "{path}"' for path in unknown)
    if told and options.field_validation == "Strict":
        sentence = f"strict decoding error: {', '.join(told)}"
        raise _refused_patch(body, sentence) if patched is not None else bad_request(f"{title}: {sentence}")
    # A copy, since metadata is written into and a patch may have left it to be shared with what is stored.
    metadata = read["metadata"] = dict(read.get("metadata") or {})
    namespace = metadata.get("namespace")
    if kind.namespaced and namespace and namespace != request.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    warnings = told if options.field_validation == "Warn" else ()
    return Body(stored_body(kind, read), (*warnings, *_without_duplicates(metadata)))


def _without_duplicates(metadata: Json) -> tuple[str, ...]:
    """Takes owners out that are named twice, and says so."""
    owners: list[Json] = metadata.get("ownerReferences") or []
    once = [owner for index, owner in enumerate(owners) if owner not in owners[:index]]
    if len(once) == len(owners):
        return ()
    metadata["ownerReferences"] = once
    twice = dict.fromkeys(str(owner.get("uid", "")) for index, owner in enumerate(owners) if owner in owners[:index])
    told = "API server dedups owner references in 1.20+, and may reject such requests as early as 1.24"
    found = f".metadata.ownerReferences contains duplicate entries; {told}; please fix your requests"
    return (f"{found}; duplicate UID(s) observed: {', '.join(twice)}",)


def summary(text: bytes) -> str:
    """The beginning of a body as messages show it."""
    if not text:
        return "<empty>"
    if not text.startswith(b"{"):
        return text[:30].hex() + (" ..." if len(text) > 30 else "")
    return text.decode(errors="replace") if len(text) <= 30 else f"{text[:30].decode(errors='replace')} ..."


def _check_header(state: State, kind: Kind, body: Json, patched: Json | None) -> None:
    if kind.custom:
        _check_custom_header(kind, body)
        return
    version, name = body.get("apiVersion") or kind.api_version, body.get("kind") or kind.kind
    if (version, name) == (kind.api_version, kind.kind):
        return
    if not isinstance(name, str) or not isinstance(version, str):
        raise _no_object(kind, body)
    short = version.rpartition("/")[2]
    if state.kinds.named(version, name) is not None:
        into = f"{(kind.group or 'core').partition('.')[0]}.{kind.kind}"
        why = f"converting ({short}.{name}) to ({into}): unknown conversion"
    else:
        why = f'no kind "{name}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
    if patched is not None:
        raise _refused_patch(body, why)
    raise bad_request(f'{name} in version "{short}" cannot be handled as a {kind.kind}: {why}')


def _check_custom_header(kind: Kind, body: Json) -> None:
    version, name = body.get("apiVersion") or "", body.get("kind") or ""
    if not isinstance(name, str):
        raise _no_object(kind, body)
    if not name:
        text = json.dumps(body, ensure_ascii=False)
        told = f"Object 'Kind' is missing in '{text}' ({summary(text.encode())})"
        raise bad_request(f"the object provided is unrecognized (must be of type {kind.kind}): {told}")
    if version != kind.api_version:
        told = f"the API version in the data ({version}) does not match the expected API version ({kind.api_version})"
        raise bad_request(told)
    if name != kind.kind:
        metadata = body.get("metadata")
        about = metadata.get("name", "") if isinstance(metadata, dict) else ""
        raise unprocessable(name, kind.group, str(about), [invalid("kind", name, f"must be {kind.kind}")])


def _no_object(kind: Kind, body: Any) -> ApiFailure:
    """A body that is JSON, but cannot be asked for its kind; in the words of Go's decoder."""
    if isinstance(body, dict):
        why, text = "number into Go struct field .kind of type string", json.dumps(body).encode()
    else:
        given = "array" if isinstance(body, list) else "string" if isinstance(body, str) else "number"
        why, text = f"{given} into Go value of type {_GO_HEADER}", msgspec.json.encode(body)
    told = f"couldn't get version/kind; json parse error: json: cannot unmarshal {why} ({summary(text)})"
    return bad_request(f"the object provided is unrecognized (must be of type {kind.kind}): {told}")


def _refused_patch(body: Json, why: str) -> ApiFailure:
    shown = msgspec.json.encode(dict(sorted(body.items()))).decode()
    return unprocessable("", "", "", [invalid("patch", shown, why)])


def _not_in_schema(kind: Kind, body: Json, unknown: list[str]) -> ApiFailure:
    """Apply merges by the schema, and so cannot leave out what the schema does not know."""
    metadata = body.get("metadata") or {}
    about = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {kind.group}/{kind.version}, Kind={kind.kind}"
    faults = [f".{path}: field not declared in schema" for path in unknown]
    listed = faults[0] if len(faults) == 1 else "errors:\n" + "\n".join(f"  {fault}" for fault in faults)
    return unexpected(f"failed to create typed patch object ({about}): {listed}")
