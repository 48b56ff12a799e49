"""The operations of a JSON patch (RFC 6902), as kube-apiserver's library does them."""

import copy
from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]


def operated(document: Any, operations: Iterable[Json]) -> Any:
    """The document after all of them. KeyError, IndexError, ValueError or TypeError where one can't be done."""
    document = copy.deepcopy(document)
    for operation in operations:
        document = _operated(document, operation)
    return document


def _operated(document: Any, operation: Json) -> Any:
    path = operation["path"]
    if not all(isinstance(one, str) for one in (path, operation.get("from", ""))):
        raise ValueError(operation)
    match operation["op"]:
        case "add":
            return _added(document, path, copy.deepcopy(operation["value"]))
        case "remove":
            return _removed(document, path)
        case "replace":
            return _replaced(document, path, copy.deepcopy(operation["value"]))
        case "move":
            value = _found(document, operation["from"])
            return _added(_removed(document, operation["from"]), path, value)
        case "copy":
            return _added(document, path, copy.deepcopy(_found(document, operation["from"])))
        case "test":
            if _found_or_none(document, path) != operation.get("value"):
                raise ValueError(path)
            return document
        case unknown:
            raise ValueError(unknown)


def _steps(path: str) -> list[str]:
    if path and not path.startswith("/"):
        raise ValueError(path)
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]


def _found(document: Any, path: str) -> Any:
    for step in _steps(path):
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document


def _found_or_none(document: Any, path: str) -> Any:
    try:
        return _found(document, path)
    except (KeyError, IndexError):
        return None


def _added(document: Any, path: str, value: Any) -> Any:
    steps = _steps(path)
    if not steps:
        return value
    parent = _found(document, path.rpartition("/")[0])
    if isinstance(parent, list):
        at = len(parent) if steps[-1] == "-" else int(steps[-1])
        if not 0 <= at <= len(parent):
            raise IndexError(at)
        parent.insert(at, value)
    else:
        parent[steps[-1]] = value
    return document


def _replaced(document: Any, path: str, value: Any) -> Any:
    """As kube-apiserver's library does it: what an object does not have yet is added."""
    steps = _steps(path)
    parent = _found(document, path.rpartition("/")[0]) if steps else None
    if isinstance(parent, dict):
        parent[steps[-1]] = value
        return document
    return _added(_removed(document, path) if steps else None, path, value)


def _removed(document: Any, path: str) -> Any:
    parent, last = _found(document, path.rpartition("/")[0]), _steps(path)[-1]
    del parent[int(last) if isinstance(parent, list) else last]
    return document
