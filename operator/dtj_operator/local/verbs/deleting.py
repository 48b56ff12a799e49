"""delete and deletecollection: grace, finalizers and propagation.

What happens to dependents afterwards is `garbage.py`'s business.
"""

import datetime
from typing import Any

import msgspec

from dtj_operator.local.conversion import served_body
from dtj_operator.local.failures import ApiFailure, not_found, refused
from dtj_operator.local.kinds import Kind
from dtj_operator.local.state import Reply, Request, State
from dtj_operator.local.store import Entry
from dtj_operator.local.verbs.options import DeleteOptions, delete_options
from dtj_operator.local.verbs.reading import list_page, page_raw

Json = dict[str, Any]

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"

# These answer with the object they deleted, the others with a Status.
_ANSWER_OBJECT = frozenset({
    "persistentvolumeclaims", "persistentvolumes", "pods", "resourcequotas", "serviceaccounts", "services",
})  # fmt: skip
_MIGHT_HAVE = {"UID": "deleted and then recreated", "ResourceVersion": "modified"}
_LASTING_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})


def delete(state: State, request: Request) -> Reply:
    """200 with the object while it lingers, with a Status once it is gone.

    409 for a precondition that does not hold.
    """
    entry = state.read(request.kind, request.namespace, request.name)
    if entry is None:
        raise not_found(request.kind.resource, request.name)
    return delete_entry(state, request.kind, entry, delete_options(request))


def delete_collection(state: State, request: Request) -> Reply:
    """Everything the selectors choose; answers with the list of it as it was."""
    page = list_page(state, request)
    options = delete_options(request)
    for entry in page.entries:
        delete_entry(state, request.kind, entry, options)
    return Reply(raw=page_raw(request.kind, page))


def delete_entry(state: State, kind: Kind, entry: Entry, options: DeleteOptions) -> Reply:
    body = entry.decode()
    metadata = body["metadata"]
    check_preconditions(kind, metadata, options)
    if kind.storage == "namespaces":
        return _delete_namespace(state, kind, body, options)
    before = dict(metadata)
    _mark_finalizers(metadata, options)
    grace = _grace(kind, body, options)
    lingers = bool(metadata.get("finalizers")) or grace > 0
    if not lingers:
        if not options.dry_run:
            last = state.store.remove(kind.storage, entry)
            body = last.decode()
        if kind.storage == "pods":
            # What has a grace is marked even where it goes at once.
            _mark_deleted(state, body["metadata"], 0)
        return _gone(kind, body)
    _mark_deleted(state, metadata, grace)
    if metadata != before and not options.dry_run:
        state.write(kind, body)
    return Reply(raw=msgspec.json.encode(served_body(kind, body)))


def finish(state: State, kind: Kind, body: Json) -> None:
    """Take away an object whose deletion waited for nothing but the finalizers that this write removed."""
    if not lets_go(body):
        return
    metadata = body["metadata"]
    entry = state.read(kind, metadata.get("namespace", ""), metadata["name"])
    if entry is not None:
        state.store.remove(kind.storage, entry)


def lets_go(body: Json) -> bool:
    """Whether a deletion waited for nothing but the finalizers that this write has removed."""
    metadata = body["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    return not (metadata.get("deletionGracePeriodSeconds") or (body.get("spec") or {}).get("finalizers"))


def check_preconditions(kind: Kind, metadata: Json, options: DeleteOptions) -> None:
    """409 where the object is another than the one that was meant."""
    for what, wanted, found in (
        ("UID", options.uid, metadata.get("uid")),
        ("ResourceVersion", options.resource_version, metadata.get("resourceVersion")),
    ):
        if wanted is not None and wanted != found:
            told = (
                f"the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). "
                f"The object might have been {_MIGHT_HAVE[what]}"
            )
            about = {"name": metadata["name"], "group": kind.group, "kind": kind.kind}
            named = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
            sentence = f'Operation cannot be fulfilled on {named} "{metadata["name"]}": {told}'
            raise ApiFailure(409, "Conflict", sentence, about)


def _mark_finalizers(metadata: Json, options: DeleteOptions) -> None:
    kept = [one for one in metadata.get("finalizers") or [] if one not in (FOREGROUND, ORPHAN)]
    if options.propagation == "Foreground":
        kept.append(FOREGROUND)
    elif options.propagation == "Orphan":
        kept.append(ORPHAN)
    elif options.propagation is None:
        kept = list(metadata.get("finalizers") or [])
    if kept:
        metadata["finalizers"] = kept
    else:
        metadata.pop("finalizers", None)


def _grace(kind: Kind, body: Json, options: DeleteOptions) -> int:
    """Only pods have one, and only those that a node may be running."""
    if kind.storage != "pods":
        return 0
    spec, phase = body.get("spec") or {}, (body.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in ("Succeeded", "Failed"):
        return 0
    asked = options.grace_seconds
    if asked is None:
        asked = spec.get("terminationGracePeriodSeconds", 30)
    asked = max(asked, 1) if asked < 0 else asked
    if "deletionTimestamp" not in body["metadata"]:
        return int(asked)
    # A pod already going only ever goes sooner.
    return int(min(asked, body["metadata"].get("deletionGracePeriodSeconds") or 0))


def _mark_deleted(state: State, metadata: Json, grace: int) -> None:
    if "deletionTimestamp" in metadata:
        given = metadata.get("deletionGracePeriodSeconds") or 0
        if grace >= given:
            return
        asked_at = _parsed(metadata["deletionTimestamp"]) - datetime.timedelta(seconds=given)
        metadata["deletionTimestamp"] = _written(asked_at + datetime.timedelta(seconds=grace))
    else:
        metadata["deletionTimestamp"] = _written(state.now() + datetime.timedelta(seconds=grace))
        if "generation" in metadata:
            metadata["generation"] += 1
    metadata["deletionGracePeriodSeconds"] = grace


def _delete_namespace(state: State, kind: Kind, body: Json, options: DeleteOptions) -> Reply:
    metadata = body["metadata"]
    if metadata["name"] in _LASTING_NAMESPACES:
        raise refused(kind.resource, metadata["name"], "this namespace may not be deleted")
    if "deletionTimestamp" not in metadata:
        metadata["deletionTimestamp"] = state.timestamp()
        body["status"] = {**(body.get("status") or {}), "phase": "Terminating"}
        if not options.dry_run:
            state.write(kind, body)
    return Reply(raw=msgspec.json.encode(served_body(kind, body)))


def _gone(kind: Kind, body: Json) -> Reply:
    metadata = body["metadata"]
    if kind.storage in _ANSWER_OBJECT:
        return Reply(raw=msgspec.json.encode(served_body(kind, body)))
    details = {"name": metadata["name"], "group": kind.group, "kind": kind.plural, "uid": metadata["uid"]}
    told = {key: value for key, value in details.items() if value}
    return Reply(raw=msgspec.json.encode(
        {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": told}
    ))  # fmt: skip


def _parsed(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


def _written(at: datetime.datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
