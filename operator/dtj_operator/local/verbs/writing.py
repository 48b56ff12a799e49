"""create, update and patch: one way from a request's body to a stored object. Deletion is `deleting.py`'s business."""

import copy
import random
from typing import Any

import msgspec

from dtj_operator.local import patch as patches
from dtj_operator.local.admission import admit
from dtj_operator.local.admission.rules import Rules
from dtj_operator.local.conversion import served_body, stored_body
from dtj_operator.local.failures import (
    ApiFailure,
    already_exists,
    bad_request,
    invalid,
    modified,
    not_found,
    unprocessable,
)  # fmt: skip
from dtj_operator.local.fieldmanager import apply, tracking
from dtj_operator.local.kinds import Kind
from dtj_operator.local.state import Reply, Request, State
from dtj_operator.local.types.decoding import Decoder, Undecodable
from dtj_operator.local.verbs import deleting
from dtj_operator.local.verbs import options as optional
from dtj_operator.local.verbs.options import WriteOptions, write_options

Json = dict[str, Any]

# What the server alone sets; a client's values are overwritten, at an update by the stored ones.
_SERVER_METADATA = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "generation",
)
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def create(state: State, request: Request) -> Reply:
    """201 with the object. 409 for a taken name, 403 and 422 as admission and validation decide."""
    options = write_options(request)
    body, warnings = _decoded(state, request, options)
    return _insert(state, request, options, body, warnings)


def update(state: State, request: Request) -> Reply:
    """PUT: 409 when `resourceVersion` is not the stored one."""
    options = write_options(request)
    old = _current(state, request)
    body, warnings = _decoded(state, request, options)
    if body["metadata"].get("name") != request.name:
        told = f"the name of the object ({body['metadata'].get('name', '')}) does not match the name on the URL ({request.name})"
        raise bad_request(told)
    if request.kind.custom and not body["metadata"].get("resourceVersion"):
        fault = invalid("metadata.resourceVersion", 0, "must be specified for an update")
        raise unprocessable(request.kind.kind, request.kind.group, request.name, [fault])
    return _replace(state, request, options, old, body, warnings)


def patch(state: State, request: Request) -> Reply:
    """PATCH of all four kinds. Server-side apply creates what is not there."""
    options = write_options(request)
    patch_type = patches.type_of(request.content_type)
    if patch_type == "apply":
        return _apply(state, request, options)
    if options.force:
        raise optional.force_needs_apply()
    old = _current(state, request)
    shape = state.rules(request.kind).shape
    current = served_body(request.kind, copy.deepcopy(old))
    patched = patches.patched(patch_type, current, request.body, shape)
    body, warnings = _decoded(state, msgspec.structs.replace(request, body=patched), options, patched=True)
    return _replace(state, request, options, old, body, warnings)


def _apply(state: State, request: Request, options: WriteOptions) -> Reply:
    if not options.manager_named:
        raise optional.apply_needs_manager()
    entry = state.read(request.kind, request.namespace, request.name)
    applied, warnings = _decoded(state, request, options)
    rules = state.rules(request.kind)
    manager = tracking.Manager(
        options.manager, "Apply", request.kind.api_version, state.timestamp(), request.subresource
    )
    if entry is None:
        if request.subresource:
            raise not_found(request.kind.resource, request.name)
        if applied["metadata"].get("uid"):
            raise ApiFailure(
                409,
                "Conflict",
                f"Precondition failed: UID in precondition: {applied['metadata']['uid']}, UID in object meta: ",
            )
        managed = apply.managed_from_scratch(rules.shape, applied, manager)
        applied["metadata"].setdefault("name", request.name)
        body = {**applied, "metadata": {**applied["metadata"], "managedFields": managed}}
        return _insert(state, request, options, body, warnings, tracked=True)
    old = entry.decode()
    wanted = applied["metadata"].get("resourceVersion")
    if wanted and wanted != old["metadata"]["resourceVersion"]:
        raise modified(request.kind.resource, request.name)
    body = apply.merged(rules.shape, old, applied, manager, force=options.force)
    return _replace(state, request, options, old, body, warnings, tracked=True)


def _insert(
    state: State,
    request: Request,
    options: WriteOptions,
    body: Json,
    warnings: tuple[str, ...],
    *,
    tracked: bool = False,
) -> Reply:
    kind, rules = request.kind, state.rules(request.kind)
    metadata = body["metadata"]
    if metadata.pop("resourceVersion", None):
        raise bad_request("resourceVersion should not be set on objects to be created")
    for key in _SERVER_METADATA:
        metadata.pop(key, None)
    if kind.namespaced:
        metadata["namespace"] = request.namespace
    else:
        metadata.pop("namespace", None)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = _generated_name(state, metadata["generateName"])
    metadata["uid"] = state.uid()
    metadata["creationTimestamp"] = state.timestamp()
    rules.default(body)
    rules.on_create(body)
    admit.mutate(state, kind, body)
    _refuse(kind, metadata.get("name", ""), rules, body, None, request.subresource)
    if state.read(kind, request.namespace, metadata["name"]) is not None:
        raise already_exists(kind.resource, metadata["name"])
    admit.check_quota(state, kind, body, None, dry_run=options.dry_run)
    if not tracked and options.manager_named:
        manager = tracking.Manager(options.manager, "Update", kind.api_version, state.timestamp(), "")
        tracking.track_create(rules.shape, body, manager)
    if not options.dry_run:
        state.write(kind, body)
    return _reply(kind, body, 201, warnings)


def _replace(
    state: State,
    request: Request,
    options: WriteOptions,
    old: Json,
    body: Json,
    warnings: tuple[str, ...],
    *,
    tracked: bool = False,
) -> Reply:
    kind, rules = request.kind, state.rules(request.kind)
    metadata = body["metadata"]
    _check_versions(kind, request.name, metadata, old["metadata"])
    for key in (*_SERVER_METADATA, "namespace", "name"):
        if key in old["metadata"]:
            metadata[key] = old["metadata"][key]
        else:
            metadata.pop(key, None)
    metadata["resourceVersion"] = old["metadata"]["resourceVersion"]
    rules.default(body)
    rules.on_update(body, old, request.subresource)
    _refuse(kind, request.name, rules, body, old, request.subresource)
    admit.check_quota(state, kind, body, old, dry_run=options.dry_run)
    if not tracked and (options.manager_named or old["metadata"].get("managedFields")):
        manager = tracking.Manager(options.manager, "Update", kind.api_version, state.timestamp(), request.subresource)
        tracking.track_update(rules.shape, body, old, manager)
    if tracking.same_but_for_times(body, old):
        return _reply(kind, old, 200, warnings)
    if not options.dry_run:
        state.write(kind, body)
        deleting.finish(state, kind, body)
    return _reply(kind, body, 200, warnings)


def _decoded(
    state: State, request: Request, options: WriteOptions, *, patched: bool = False
) -> tuple[Json, tuple[str, ...]]:
    """The body in its stored form, and what a client that asked for warnings is told about it."""
    kind, body = request.kind, request.body
    if not isinstance(body, dict):
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind.kind}): couldn't get version/kind; json parse error"
        )
    _check_header(kind, body)
    decoder = Decoder()
    title = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
    try:
        read = decoder.read(state.rules(kind).shape, body)
    except Undecodable as why:
        raise bad_request(f"{title}: {why}") from None
    told = tuple(f'unknown field "{path}"' for path in decoder.unknown)
    if told and options.field_validation == "Strict":
        sentence = f"strict decoding error: {', '.join(told)}"
        if patched:
            shown = msgspec.json.encode(body).decode()
            raise unprocessable("", "", "", [invalid("patch", shown, sentence)])
        raise bad_request(f"{title}: {sentence}")
    read.setdefault("metadata", {})
    _check_place(request, read["metadata"])
    return stored_body(kind, read), told if options.field_validation == "Warn" else ()


def _check_header(kind: Kind, body: Json) -> None:
    given = body.get("apiVersion", kind.api_version), body.get("kind", kind.kind)
    if given != (kind.api_version, kind.kind):
        told = f"{kind.kind} in version {kind.version!r} cannot be handled as a {given[1]}: converting {given[0]}/{given[1]}"
        if given[1] == kind.kind:
            told = (
                f"the API version in the data ({given[0]}) does not match the expected API version ({kind.api_version})"
            )
        raise bad_request(told)


def _check_place(request: Request, metadata: Json) -> None:
    namespace = metadata.get("namespace")
    if request.kind.namespaced and namespace and namespace != request.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def _check_versions(kind: Kind, name: str, metadata: Json, old: Json) -> None:
    uid = metadata.get("uid")
    if uid and uid != old.get("uid"):
        told = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old.get('uid')}"
        raise ApiFailure(409, "Conflict", f'Operation cannot be fulfilled on {kind.resource} "{name}": {told}')
    version = metadata.get("resourceVersion")
    if version and version != old["resourceVersion"]:
        raise modified(kind.resource, name)


def _current(state: State, request: Request) -> Json:
    entry = state.read(request.kind, request.namespace, request.name)
    if entry is None:
        raise not_found(request.kind.resource, request.name)
    return entry.decode()


def _refuse(kind: Kind, name: str, rules: Rules, body: Json, old: Json | None, subresource: str) -> None:
    faults = rules.faults(body, old, subresource)
    if faults:
        raise unprocessable(kind.kind, kind.group, name, faults)


def _generated_name(state: State, stem: str) -> str:
    """Five letters more, cut where the whole would pass 63; they come from the uid source, so a seeded server repeats itself."""
    choice = random.Random(state.uid())  # names, not secrets
    return stem[:58] + "".join(choice.choice(_SUFFIX_LETTERS) for _ in range(5))


def _reply(kind: Kind, body: Json, code: int, warnings: tuple[str, ...]) -> Reply:
    return Reply(raw=msgspec.json.encode(served_body(kind, body)), code=code, warnings=warnings)
