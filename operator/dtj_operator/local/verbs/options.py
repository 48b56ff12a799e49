"""The parameters of requests, read and refused as kube-apiserver does."""

from collections.abc import Mapping
from typing import Any

import msgspec

from dtj_operator.local.failures import (
    FieldFault,
    bad_request,
    invalid,
    not_supported,
    required,
    too_long,
    unexpected,
    unprocessable,
)
from dtj_operator.local.state import Request

Json = dict[str, Any]

_DELETE_OPTIONS = "DeleteOptions"
_MANAGER_BYTES = 128


class WriteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`manager_named`: the client gave `fieldManager`, it isn't just derived from its user agent."""

    dry_run: bool
    field_validation: str
    manager: str
    manager_named: bool
    force: bool


class DeleteOptions(msgspec.Struct, frozen=True, kw_only=True):
    dry_run: bool = False
    grace_seconds: int | None = None
    propagation: str | None = None
    uid: str | None = None
    resource_version: str | None = None


def write_options(request: Request) -> WriteOptions:
    params = request.params
    validation = params.get("fieldValidation") or "Warn"
    if validation not in ("Ignore", "Warn", "Strict"):
        raise _refused(
            "CreateOptions", [not_supported("fieldValidation", validation, ("", "Ignore", "Strict", "Warn"))]
        )
    manager = params.get("fieldManager", "")
    if len(manager) > _MANAGER_BYTES:
        raise _refused("PatchOptions" if request.verb == "patch" else "CreateOptions",
                       [too_long("fieldManager", _MANAGER_BYTES)])  # fmt: skip
    return WriteOptions(
        dry_run=_dry_run([params["dryRun"]] if "dryRun" in params else []),
        field_validation=validation,
        manager=manager or request.agent.partition("/")[0] or "unknown",
        manager_named=bool(manager),
        force=_flag(params, "force"),
    )


def delete_options(request: Request) -> DeleteOptions:
    """From the body, or where there is none from the parameters."""
    given: Json = request.body if isinstance(request.body, dict) else {}
    if (kind := given.get("kind", _DELETE_OPTIONS)) != _DELETE_OPTIONS:
        version = given.get("apiVersion", "")
        told = f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        raise bad_request(told)
    params = request.params
    preconditions = given.get("preconditions") or {}
    grace = given.get("gracePeriodSeconds")
    if grace is None and "gracePeriodSeconds" in params:
        grace = _number(params, "gracePeriodSeconds")
    if not isinstance(grace, int | None):
        told = "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64"
        raise bad_request(told)
    propagation = given.get("propagationPolicy") or params.get("propagationPolicy")
    if propagation not in (None, "Background", "Foreground", "Orphan"):
        supported = ("Foreground", "Background", "Orphan", "nil")
        raise _refused(_DELETE_OPTIONS, [not_supported("propagationPolicy", propagation, supported)])
    if propagation is not None and "orphanDependents" in given:
        told = "orphanDependents and deletionPropagation cannot be both set"
        raise _refused(_DELETE_OPTIONS, [invalid("propagationPolicy", propagation, told)])
    if propagation is None and "orphanDependents" in given:
        propagation = "Orphan" if given["orphanDependents"] else "Background"
    return DeleteOptions(
        dry_run=_dry_run(given.get("dryRun") or ([params["dryRun"]] if "dryRun" in params else []), _DELETE_OPTIONS),
        grace_seconds=grace,
        propagation=propagation,
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
    )


class ListOptions(msgspec.Struct, frozen=True, kw_only=True):
    labels: str
    fields: str
    limit: int
    continues: str
    resource_version: str
    match: str
    bookmarks: bool
    initial_events: bool
    timeout_seconds: int | None


def list_options(request: Request) -> ListOptions:
    params = request.params
    version = params.get("resourceVersion", "")
    if version and not version.isdigit():
        told = f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing "{version}": invalid syntax'
        raise unexpected(told) if request.verb == "watch" else bad_request(f"invalid resource version: {told}")
    options = ListOptions(
        labels=params.get("labelSelector", ""),
        fields=params.get("fieldSelector", ""),
        limit=max(_number(params, "limit") or 0, 0),
        continues=params.get("continue", ""),
        resource_version=version,
        match=params.get("resourceVersionMatch", ""),
        bookmarks=_flag(params, "allowWatchBookmarks"),
        initial_events=_flag(params, "sendInitialEvents"),
        timeout_seconds=_number(params, "timeoutSeconds"),
    )
    faults = _match_faults(options, request.verb == "watch", "sendInitialEvents" in params)
    if faults:
        raise _refused("ListOptions", faults)
    return options


def _match_faults(options: ListOptions, watches: bool, says_initial: bool) -> list[FieldFault]:
    match = options.match
    if watches and options.continues:
        told = "resourceVersionMatch is forbidden when continue is provided"
        return [FieldFault("FieldValueForbidden", "resourceVersionMatch", f"Forbidden: {told}")]
    if watches:
        if not says_initial:
            told = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            return [FieldFault("FieldValueForbidden", "resourceVersionMatch", f"Forbidden: {told}")] if match else []
        found = []
        if match != "NotOlderThan":
            told = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            found.append(FieldFault("FieldValueForbidden", "resourceVersionMatch", f"Forbidden: {told}"))
            if match:
                found.append(not_supported("resourceVersionMatch", match, ("NotOlderThan",)))
        return found
    if says_initial:
        told = "sendInitialEvents is forbidden for list"
        return [FieldFault("FieldValueForbidden", "sendInitialEvents", f"Forbidden: {told}")]
    if not match:
        return []
    if options.continues:
        told = "resourceVersionMatch is forbidden when continue is provided"
        return [FieldFault("FieldValueForbidden", "resourceVersionMatch", f"Forbidden: {told}")]
    if not options.resource_version:
        told = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        return [FieldFault("FieldValueForbidden", "resourceVersionMatch", f"Forbidden: {told}")]
    if match not in ("Exact", "NotOlderThan"):
        return [not_supported("resourceVersionMatch", match, ("Exact", "NotOlderThan", ""))]
    if match == "Exact" and options.resource_version == "0":
        told = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        return [FieldFault("FieldValueForbidden", "resourceVersionMatch", f"Forbidden: {told}")]
    return []


def apply_needs_manager() -> Exception:
    return _refused("PatchOptions", [required("fieldManager", "is required for apply patch")])


def force_needs_apply() -> Exception:
    fault = FieldFault("FieldValueForbidden", "force", "Forbidden: may not be specified for non-apply patch")
    return _refused("PatchOptions", [fault])


def _refused(kind: str, faults: list[FieldFault]) -> Exception:
    return unprocessable(kind, "meta.k8s.io", "", faults)


def _dry_run(values: list[str], options: str = "CreateOptions") -> bool:
    if any(value != "All" for value in values):
        raise _refused(options, [not_supported("dryRun", values, ("All",))])
    return bool(values)


def _flag(params: Mapping[str, str], name: str) -> bool:
    return params.get(name, "").lower() in ("1", "t", "true")


def _number(params: Mapping[str, str], name: str) -> int | None:
    value = params.get(name)
    if not value:
        return None
    try:
        return int(value)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{value}": invalid syntax') from None
