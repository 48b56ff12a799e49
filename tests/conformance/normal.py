"""What has to differ between two servers, made the same: uids, times, resource versions, generated names, addresses.

Resource versions become their order: `v1`, `v2` … are the versions of objects in one story, `v2 or later` is that of a
list which may also have counted the writes of others.
"""

import bisect
import re
from typing import Any

Json = dict[str, Any]

_UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_SAID = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"), "<time with microseconds>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "<time>"),
    (re.compile(r"(?<![\d.])10\.\d+\.\d+\.\d+(?![\d.])"), "<address>"),
    (re.compile(r"(too old resource version: )\d+ \(\d+\)"), r"\1<asked> (<oldest>)"),
    (re.compile(r"(Too large resource version: )\d+, current: \d+"), r"\1<asked>, current: <newest>"),
    (re.compile(r"(generated-|Not Valid-|kube-api-access-)[bcdfghjklmnpqrstvwxz2456789]{5}\b"), r"\1<five letters>"),
    (re.compile(r'(resourceVersion(=|\\*":\\*"))\d+'), r"\1<version>"),
    (re.compile(r'(Invalid value: )"\{\\"apiVersion.*\}":'), r"\1<object>:"),
    (re.compile(r"(\bcontinue=)[\w=-]+"), r"\1<continue>"),
)
_VERSIONS_SAID = re.compile(r"(ResourceVersion in the precondition \()(\d+)(\) does not match .* record \()(\d+)")
_PRINTED = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? \+0000( UTC)?"), "<time>"),
    (re.compile(r"(Resource Version:\s+)\d+"), r"\1<version>"),
    (re.compile(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}"), "<time>"),
    (re.compile(r"(?<![\w.:/-])(\d+[ydhms]){1,2}( ago)?(?=[\s)]|$)"), "<age>"),
    (re.compile(r"(/tmp|\b(LIVE|MERGED))[-/\w.]*\d+(?=/)"), "<folder>"),
    (re.compile(r"(resourceVersion: ?)\"?\d+\"?"), r"\1<version>"),
    # The width of a column follows from what else stands in it.
    (re.compile(r"(?<=\S)\s{2,}"), "  "),
)
_ASKED = ("managed", "see", "lines")
_AGO = re.compile(r"\(\w+ ago\)")
_AGE = re.compile(r"(<invalid>|(\d+y)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?)")
_TOKENS = {"continue": "<continue>", "selfLink": "<link>"}


def normal(steps: list[Json], suffix: str) -> list[Json]:
    """The steps of one story as they are compared and recorded; its namespace's name loses its suffix."""
    seen = sorted({int(version) for step in steps for version in _object_versions(step["answer"])})
    names = _Names(seen, suffix)
    told = []
    for step in steps:
        managed, see = step.get("managed", False), step.get("see", "")
        answer = _part(names.of(step["answer"], managed=managed), see)
        if step.get("lines"):
            answer = {key: [_line(line) for line in lines] for key, lines in answer.items()}
        if isinstance(answer, dict) and answer.get("reason") in ("Invalid", "Conflict"):
            answer = _without_order(answer)
        kept = {key: value for key, value in step.items() if key not in _ASKED}
        told.append({**kept, "ask": names.said(step["ask"]), "answer": answer})
    return told


class _Names:
    """One name for one value, through a whole story."""

    def __init__(self, versions: list[int], suffix: str) -> None:
        self._versions = versions
        self._suffix = suffix
        self._uids: dict[str, str] = {}

    def of(self, value: Any, *, managed: bool) -> Any:
        if isinstance(value, dict):
            return self._object(value, managed=managed)
        if isinstance(value, list):
            return [self.of(item, managed=managed) for item in value]
        return self.said(value) if isinstance(value, str) else value

    def _object(self, value: Json, *, managed: bool) -> Json:
        found: Json = {}
        for key, inner in value.items():
            if key == "managedFields" and not managed:
                continue
            if key == "resourceVersion" and isinstance(inner, str) and inner.isdigit():
                found[key] = self._order(int(inner), exact="name" in value)
            elif key in _TOKENS and isinstance(inner, str) and inner:
                found[key] = _TOKENS[key]
            elif key == "cells":
                found[key] = [_age(self.of(cell, managed=managed)) for cell in inner]
            elif key == "managedFields" and isinstance(inner, list):
                # Their order goes by seconds of time.
                found[key] = sorted((self.of(one, managed=managed) for one in inner), key=_manager)
            else:
                found[self.said(key)] = self.of(inner, managed=managed)
        return found

    def _order(self, version: int, *, exact: bool = True) -> str:
        place = bisect.bisect_right(self._versions, version)
        exact = exact and place > 0 and self._versions[place - 1] == version
        return f"v{place}" if exact else f"v{place} or later"

    def said(self, text: str) -> str:
        text = text.replace(self._suffix, "")
        text = _UID.sub(lambda found: self._uids.setdefault(found[0], f"<uid {len(self._uids) + 1}>"), text)
        text = _VERSIONS_SAID.sub(
            lambda found: f"{found[1]}{self._order(int(found[2]))}{found[3]}{self._order(int(found[4]))}", text
        )
        for pattern, instead in _SAID:
            text = pattern.sub(instead, text)
        return text


def _object_versions(answer: Any) -> list[str]:
    """Of the objects in an answer, not of the lists and bookmarks around them."""
    if isinstance(answer, list):
        return [version for item in answer for version in _object_versions(item)]
    if not isinstance(answer, dict):
        return []
    metadata = answer.get("metadata")
    own = metadata.get("resourceVersion", "") if isinstance(metadata, dict) and "name" in metadata else ""
    inner = [
        version for value in answer.values() if isinstance(value, dict | list) for version in _object_versions(value)
    ]
    return [*inner, own] if own.isdigit() else inner


def _part(answer: Any, see: str) -> Any:
    for key in see.split(".") if see else ():
        answer = answer[int(key)] if isinstance(answer, list) else answer.get(key)
        if answer is None:
            return None
    return answer


def _age(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    return "<age>" if cell and _AGE.fullmatch(cell) else _AGO.sub("(<age> ago)", cell)


def _without_order(status: Json) -> Json:
    """The faults in a fixed order: kube-apiserver goes through a schema's properties in a random one."""
    causes = sorted((status.get("details") or {}).get("causes") or (), key=lambda one: (one["field"], one["message"]))
    if len(causes) < 2:
        return status
    message = status["message"]
    if status["reason"] == "Invalid":
        told = ", ".join(f"{one['field']}: {one['message']}" for one in causes)
        message = f"{message.partition(' is invalid: ')[0]} is invalid: [{told}]"
    return {**status, "message": message, "details": {**status["details"], "causes": causes}}


def _manager(entry: Json) -> str:
    return " ".join(str(entry.get(key, "")) for key in ("manager", "operation", "subresource", "time"))


def _line(line: str) -> str:
    for pattern, instead in _PRINTED:
        line = pattern.sub(instead, line)
    return line.rstrip()
