"""The job's spec and status as types, from whatever the API or a file holds. Nothing here raises."""

import copy
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from dtj_operator.api.spec import JobSpec
from dtj_operator.api.status import JobStatus

_PASSED_THROUGH = frozenset({"template", "volumeClaimTemplate", "volume"})
"""Fields that hold objects of other kinds, in which a null means something."""
_MOST_FAULTS = 64
_STAND_INS: Mapping[str, Any] = {"roles": {"worker": {"replicas": 1}}, "worker": {"replicas": 1}, "replicas": 1}
_MISSING = re.compile(r"^Object missing required field `(\w+)`")
_AT = re.compile(r"`\$(.*)`")


def parse(manifest: Any) -> JobSpec | str:
    """The spec of a job, or its first fault in a line. Unknown fields are passed over, as from another CRD."""
    spec, unreadable = salvage(manifest)
    return unreadable[0] if unreadable or spec is None else spec


def salvage(manifest: Any) -> tuple[JobSpec | None, tuple[str, ...]]:
    """What can be read of a spec, and a line for each field that can't and counts as absent; None where nothing can."""
    spec = manifest.get("spec") if isinstance(manifest, dict) else None
    if not isinstance(spec, dict):
        return None, ("spec: required; it says which roles the job has and what they run",)
    found: dict[str, str] = {}
    try:
        spec = _without_nulls(spec)
        for _ in range(_MOST_FAULTS):
            try:
                return msgspec.convert(spec, JobSpec), tuple(f"{path}: {what}" for path, what in found.items())
            except msgspec.ValidationError as problem:
                what, _, where = str(problem).partition(" - at ")
                at = _AT.search(where)
                path = at[1] if at else ""
                missing = _MISSING.match(what)
                # What was taken out is missing next, and has its line already.
                if missing is None:
                    found.setdefault(f"spec{path}", f"{what[:1].lower()}{what[1:].replace('`', '')}")
                else:
                    found.setdefault(f"spec{path}.{missing[1]}", "required")
                if not _make_readable(spec, path, missing[1] if missing else ""):
                    break
    except RecursionError:
        return None, ("spec: it is nested too deep, or contains itself",)
    return None, tuple(f"{path}: {what}" for path, what in found.items())


def parse_status(manifest: Any) -> JobStatus:
    """The status of a job. Fields that don't fit their type, such as a newer operator's, count as absent."""
    status = manifest.get("status") if isinstance(manifest, dict) else None
    if not isinstance(status, dict):
        return JobStatus()
    try:
        return msgspec.convert(status, JobStatus)
    except (msgspec.ValidationError, RecursionError):
        return msgspec.convert({k: v for k, v in status.items() if _fits(k, v)}, JobStatus)


def _fits(name: Any, value: Any) -> bool:
    try:
        msgspec.convert({name: value}, JobStatus)
    except (msgspec.ValidationError, RecursionError):
        return False
    return True


def _without_nulls(value: Any) -> Any:
    """The spec without nulls: an API server drops them where null isn't allowed, and so must who reads a file."""
    if isinstance(value, dict):
        return {k: v if k in _PASSED_THROUGH else _without_nulls(v) for k, v in value.items() if v is not None}
    return [_without_nulls(v) for v in value] if isinstance(value, list) else value


def _make_readable(spec: Any, path: str, missing: str) -> bool:
    """Put a stand-in where something required is missing, else take out what is wrong; False where neither can be."""
    # Up to the first list: with an entry taken out, the places of the others would no longer be right.
    names = [name for name in path.partition("[")[0].split(".") if name]
    if missing in _STAND_INS:
        for name in names:
            spec = spec[name]
        spec[missing] = copy.deepcopy(_STAND_INS[missing])
    elif names:
        for name in names[:-1]:
            spec = spec[name]
        del spec[names[-1]]
    return bool(names) or missing in _STAND_INS
