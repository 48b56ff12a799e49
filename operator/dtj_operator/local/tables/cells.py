"""What stands in the cells of a table: ages as kubectl writes them, and values found by a JSON path."""

import datetime
import re
from typing import Any

Json = dict[str, Any]

NONE = "<none>"
UNKNOWN = "<unknown>"
UNSET = "<unset>"

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 86400 * 365
_STEP = re.compile(
    r"""\.(?P<name>[\w$/-]+(?:\\.[\w/-]+)*)
      | \[\?\(@\.(?P<key>[\w.]+)\s*==\s*["'](?P<value>[^"']*)["']\)\]
      | \[(?P<index>-?\d+|\*)\]
      | \[["'](?P<quoted>[^"']+)["']\]""",
    re.VERBOSE,
)


def age(since: str | None, now: datetime.datetime) -> str:
    """How long ago, with one or two units: `45s`, `3m20s`, `5h`, `12d`."""
    if not since:
        return UNKNOWN
    try:
        then = datetime.datetime.fromisoformat(since)
    except ValueError:
        return "<invalid>"
    return duration(int((now - then).total_seconds()))


def duration(seconds: int) -> str:
    """A span as `kubectl get` writes it; up to a second of clock difference counts as now."""
    if seconds < -1:
        return "<invalid>"
    if seconds < 2 * _MINUTE:
        return f"{max(seconds, 0)}s"
    steps = (
        (10 * _MINUTE, _MINUTE, "m", 1, "s"),
        (3 * _HOUR, _MINUTE, "m", 0, ""),
        (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
        (2 * _DAY, _HOUR, "h", 0, ""),
        (8 * _DAY, _DAY, "d", _HOUR, "h"),
        (2 * _YEAR, _DAY, "d", 0, ""),
        (8 * _YEAR, _YEAR, "y", _DAY, "d"),
    )
    for limit, unit, letter, minor, minor_letter in steps:
        if seconds < limit:
            rest = seconds % unit // minor if minor else 0
            return f"{seconds // unit}{letter}" + (f"{rest}{minor_letter}" if rest else "")
    return f"{seconds // _YEAR}y"


def at_path(body: Json, path: str) -> Any:
    """The first value that a column's `jsonPath` finds, or None."""
    values: list[Any] = [body]
    position = 0
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            return None
        values = [found for value in values for found in _step(value, step)]
        position = step.end()
    return values[0] if values else None


def custom_cell(column: Json, body: Json, now: datetime.datetime) -> Any:
    """The cell of a custom resource's printer column."""
    value = at_path(body, column["jsonPath"])
    if value is None:
        return None
    match column.get("type"):
        case "integer":
            return int(value) if isinstance(value, int | float) else None
        case "number":
            return float(value) if isinstance(value, int | float) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return age(value, now) if isinstance(value, str) else None
        case _:
            return value if isinstance(value, str) else _shown(value)


def labels_text(labels: dict[str, str] | None) -> str:
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) if labels else NONE


def selector_text(selector: Json | None) -> str:
    """A label selector as `kubectl get networkpolicy` shows it."""
    if not selector:
        return NONE
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    signs = {"In": "in", "NotIn": "notin"}
    for one in selector.get("matchExpressions") or []:
        if one["operator"] in signs:
            parts.append(f"{one['key']} {signs[one['operator']]} ({','.join(one.get('values') or [])})")
        else:
            parts.append(one["key"] if one["operator"] == "Exists" else f"!{one['key']}")
    return ",".join(parts) or NONE


def _step(value: Any, step: re.Match[str]) -> list[Any]:
    if step["name"] or step["quoted"]:
        name = (step["name"] or step["quoted"]).replace("\\.", ".")
        return [value[name]] if isinstance(value, dict) and name in value else []
    if not isinstance(value, list):
        return []
    if step["key"]:
        return [item for item in value if str(at_path(item, f".{step['key']}")) == step["value"]]
    if step["index"] == "*":
        return value
    index = int(step["index"])
    return [value[index]] if -len(value) <= index < len(value) else []


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{' '.join(_shown(item) for item in value)}]"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{_shown(value[key])}' for key in sorted(value))}]"
    return str(value)
