"""create, update and patch: one way from a request's body to a stored object. Deletion is `deleting.py`'s business."""

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import msgspec

from dtj_operator.local import patch as patches
from dtj_operator.local.admission import admit, advice
from dtj_operator.local.admission.metadata import IMMUTABLE
from dtj_operator.local.admission.rules import Rules
from dtj_operator.local.conversion import served_body
from dtj_operator.local.failures import (
    ApiFailure,
    already_exists,
    bad_request,
    conflict,
    invalid,
    modified,
    not_found,
    unexpected,
    unprocessable,
)
from dtj_operator.local.fieldmanager import apply, tracking
from dtj_operator.local.fieldmanager.tracking import Manager
from dtj_operator.local.kinds import Kind
from dtj_operator.local.state import Reply, Request, State
from dtj_operator.local.verbs import deleting
from dtj_operator.local.verbs import options as optional
from dtj_operator.local.verbs.bodies import Body, read_body
from dtj_operator.local.verbs.options import WriteOptions, write_options

Json = dict[str, Any]

# What the server alone sets; a client's values are overwritten, at an update by the stored ones.
_SERVER_METADATA = (
    "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation",
)  # fmt: skip
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def create(state: State, request: Request) -> Reply:
    """201 with the object. 409 for a taken name, 403 and 422 as admission and validation decide."""
    options = write_options(request)
    given = read_body(state, request, options)
    with _warned(given):
        return _insert(state, request, options, given)


def update(state: State, request: Request) -> Reply:
    """PUT: 409 when `resourceVersion` is not the stored one."""
    options = write_options(request)
    old = _current(state, request)
    body = read_body(state, request, options)
    metadata = body.content["metadata"]
    with _warned(body):
        _check_name(request, metadata)
        if request.kind.custom and not metadata.get("resourceVersion"):
            fault = invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise unprocessable(request.kind.plural, request.kind.group, request.name, [fault])
        return _replace(state, request, options, old, body)


def patch(state: State, request: Request) -> Reply:
    """PATCH of all four kinds. Server-side apply creates what is not there."""
    options = write_options(request)
    patch_type = patches.type_of(request.content_type)
    if patch_type == "apply":
        return _apply(state, request, options)
    if options.force:
        raise optional.force_needs_apply()
    old = _current(state, request)
    served = served_body(request.kind, old)
    patched = patches.patched(patch_type, served, request.body, state.rules(request.kind).shape)
    body = read_body(state, msgspec.structs.replace(request, body=patched), options, patched=served)
    with _warned(body):
        _check_name(request, body.content["metadata"])
        if (uid := body.content["metadata"].get("uid")) != old["metadata"].get("uid"):
            fault = invalid("metadata.uid", uid, IMMUTABLE)
            raise unprocessable(request.kind.kind, request.kind.group, request.name, [fault])
        return _replace(state, request, options, old, body)


def _apply(state: State, request: Request, options: WriteOptions) -> Reply:
    if not options.manager_named:
        raise optional.apply_needs_manager()
    kind, shape = request.kind, state.rules(request.kind).shape
    entry = state.read(kind, request.namespace, request.name)
    if request.body is not None and not isinstance(request.body, dict):
        raise patches.not_a_map(request.body)
    if isinstance(request.body, dict) and not request.body.get("kind"):
        raise bad_request("invalid object type: /, Kind=")
    applied = read_body(state, request, options)
    metadata = applied.content["metadata"]
    if metadata.get("name"):
        _check_name(request, metadata)
    if metadata.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    manager = _manager(state, request, options, "Apply")
    if entry is None:
        if request.subresource:
            raise not_found(kind.resource, request.name)
        metadata.setdefault("name", request.name)
        managed = apply.managed_from_scratch(shape, applied.content, manager)
        content = {**applied.content, "metadata": {**metadata, "managedFields": managed}}
        return _insert(state, request, options, applied._replace(content=content), tracked=True)
    old = entry.decode()
    wanted = metadata.get("resourceVersion")
    if wanted and wanted != old["metadata"]["resourceVersion"]:
        raise modified(kind.resource, request.name)
    if (uid := metadata.get("uid")) and uid != old["metadata"]["uid"]:
        raise unprocessable(kind.kind, kind.group, request.name, [invalid("metadata.uid", uid, IMMUTABLE)])
    content = apply.merged(shape, old, applied.content, manager, force=options.force)
    return _replace(state, request, options, old, applied._replace(content=content), tracked=True)


@contextlib.contextmanager
def _warned(given: Body) -> Iterator[None]:
    """A refusal, too, tells what was unknown in the body."""
    try:
        yield
    except ApiFailure as failure:
        failure.warnings = given.warnings
        raise


def _insert(state: State, request: Request, options: WriteOptions, given: Body, *, tracked: bool = False) -> Reply:
    kind, rules, body = request.kind, state.rules(request.kind), given.content
    metadata = body["metadata"]
    if metadata.pop("resourceVersion", None) and not tracked:
        raise unexpected("resourceVersion should not be set on objects to be created")
    for key in _SERVER_METADATA:
        if key != "generation":
            metadata.pop(key, None)
    if kind.namespaced:
        metadata["namespace"] = request.namespace
    else:
        metadata.pop("namespace", None)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = _generated_name(state, metadata["generateName"])
    metadata["uid"] = state.uid()
    metadata["creationTimestamp"] = state.timestamp()
    rules.default(body, None)
    rules.on_create(body)
    admit.check_namespace(state, kind, body)
    if kind.storage == "pods":
        admit.mutate_pod(state, kind, body)
    _refuse(kind, rules, body, None, request.subresource)
    if (there := state.read(kind, request.namespace, metadata["name"])) is not None:
        going = bool(there.decode()["metadata"].get("deletionTimestamp"))
        raise already_exists(kind.resource, metadata["name"], going=going)
    state.quotas.check(kind, body)
    if not tracked and options.manager_named and not _is_controlled(metadata):
        tracking.track_create(rules.shape, body, _manager(state, request, options, "Update"))
    if not options.dry_run:
        state.write(kind, body)
    return _reply(kind, body, 201, (*given.warnings, *advice.on_create(kind, body)))


def _replace(
    state: State, request: Request, options: WriteOptions, old: Json, given: Body, *, tracked: bool = False
) -> Reply:
    kind, rules, body = request.kind, state.rules(request.kind), given.content
    metadata = body["metadata"]
    _check_versions(kind, request.name, metadata, old["metadata"])
    for key in (*_SERVER_METADATA, "namespace", "name"):
        if key in old["metadata"]:
            metadata[key] = old["metadata"][key]
        else:
            metadata.pop(key, None)
    metadata["resourceVersion"] = old["metadata"]["resourceVersion"]
    rules.default(body, old)
    rules.on_update(body, old, request.subresource)
    _refuse(kind, rules, body, old, request.subresource)
    named = options.manager_named and not _is_controlled(old["metadata"])
    if metadata.get("managedFields") == [{}]:
        # That is how a client ends the tracking of an object.
        del metadata["managedFields"]
    elif not tracked and (named or old["metadata"].get("managedFields")):
        tracking.track_update(rules.shape, body, old, _manager(state, request, options, "Update"))
    if tracking.same_but_for_times(body, old):
        return _reply(kind, old, 200, given.warnings)
    if options.dry_run:
        return _reply(kind, body, 200, given.warnings)
    if deleting.lets_go(body):
        # As in kube-apiserver, nobody sees it without its last finalizer: the next that is told is its end.
        deleting.finish(state, kind, body)
    else:
        state.write(kind, body)
    return _reply(kind, body, 200, given.warnings)


def _is_controlled(metadata: Json) -> bool:
    """Whether a controller owns the object; those are tracked from their first apply only, which hardly ever comes."""
    return any(owner.get("controller") for owner in metadata.get("ownerReferences") or ())


def _manager(state: State, request: Request, options: WriteOptions, operation: str) -> Manager:
    return Manager(options.manager, operation, request.kind.api_version, state.timestamp(), request.subresource)


def _check_versions(kind: Kind, name: str, metadata: Json, old: Json) -> None:
    uid = metadata.get("uid")
    if uid and uid != old.get("uid"):
        told = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old.get('uid')}"
        raise conflict(kind.resource, name, told)
    version = metadata.get("resourceVersion")
    if version and not version.isdigit():
        raise unexpected(f'strconv.ParseUint: parsing "{version}": invalid syntax')
    if version and version != old["resourceVersion"]:
        raise modified(kind.resource, name)


def _check_name(request: Request, metadata: Json) -> None:
    if (given := metadata.get("name", "")) != request.name:
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({request.name})")


def _current(state: State, request: Request) -> Json:
    entry = state.read(request.kind, request.namespace, request.name)
    if entry is None:
        raise not_found(request.kind.resource, request.name)
    return entry.decode()


def _refuse(kind: Kind, rules: Rules, body: Json, old: Json | None, subresource: str) -> None:
    faults = rules.faults(body, old, subresource)
    if faults:
        raise unprocessable(kind.kind, kind.group, body["metadata"].get("name", ""), faults)


def _generated_name(state: State, stem: str) -> str:
    """Five letters more; they come from the source of uids, so that a seeded server repeats itself."""
    choice = random.Random(state.uid())
    return stem[:58] + "".join(choice.choice(_SUFFIX_LETTERS) for _ in range(5))


def _reply(kind: Kind, body: Json, code: int, warnings: tuple[str, ...]) -> Reply:
    return Reply(raw=msgspec.json.encode(served_body(kind, body)), code=code, warnings=warnings)
