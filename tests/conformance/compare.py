"""Two servers' answers to one story, field by field. Which differences are known is `known.py`'s."""

from collections.abc import Iterator
from typing import Any

import msgspec

Json = dict[str, Any]

_ABSENT: Any = object()
_KEYS = ("name", "type", "key", "containerPort", "field", "manager", "uid", "group", "subresource", "resource")


class Difference(msgspec.Struct, frozen=True):
    """`place` is `topic/story/number of the step`, `path` leads to the field in it."""

    place: str
    ask: str
    path: str
    wanted: Any
    found: Any

    def __str__(self) -> str:
        sides = f"    recorded: {_shown(self.wanted)}\n    answered: {_shown(self.found)}"
        return f"{self.place} ({self.ask})\n  {self.path}\n{sides}"


def differences(place: str, wanted: list[Json], found: list[Json]) -> Iterator[Difference]:
    """Between the steps of a story as two servers answered them."""
    for number, (one, other) in enumerate(zip(wanted, found, strict=False), start=1):
        if one["code"] != other["code"]:
            # One sentence says it: all fields of a refusal differ from those of an object.
            yield Difference(f"{place}/{number}", one["ask"], "code", _gist(one), _gist(other))
            continue
        for path, left, right in _differing(one, other, ""):
            yield Difference(f"{place}/{number}", one["ask"], path, left, right)
    if len(wanted) != len(found):
        yield Difference(place, "the whole story", "steps", len(wanted), len(found))


def _differing(one: Any, other: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in dict.fromkeys([*one, *other]):
            below = f"{path}.{key}" if path else str(key)
            yield from _differing(one.get(key, _ABSENT), other.get(key, _ABSENT), below)
    elif isinstance(one, list) and isinstance(other, list):
        yield from _differing_lists(one, other, path)
    elif one != other or type(one) is not type(other):
        yield path, one, other


def _differing_lists(one: list[Any], other: list[Any], path: str) -> Iterator[tuple[str, Any, Any]]:
    """Items are compared with those of the same key where they have one, else with those in the same place."""
    key = next((key for key in _KEYS if _tells_apart(key, one) and _tells_apart(key, other)), None)
    if key is None:
        for index in range(max(len(one), len(other))):
            left, right = (listed[index] if index < len(listed) else _ABSENT for listed in (one, other))
            yield from _differing(left, right, f"{path}[{index}]")
        return
    left_by, right_by = ({item[key]: item for item in listed} for listed in (one, other))
    for name in dict.fromkeys([*left_by, *right_by]):
        yield from _differing(left_by.get(name, _ABSENT), right_by.get(name, _ABSENT), f"{path}[{name}]")
    shared = [name for name in left_by if name in right_by]
    if shared != (there := [name for name in right_by if name in left_by]):
        yield f"{path}[order]", shared, there


def _tells_apart(key: str, listed: list[Any]) -> bool:
    values = [item.get(key) for item in listed if isinstance(item, dict)]
    return (
        len(values) == len(listed) and all(isinstance(v, str | int) for v in values) and len({*values}) == len(values)
    )


def _gist(step: Json) -> str:
    answer = step["answer"]
    told = answer.get("message") or answer.get("err") or answer.get("kind") if isinstance(answer, dict) else answer
    return f"{step['code']}: {told}"


def _shown(value: Any) -> str:
    return "nothing" if value is _ABSENT else msgspec.json.encode(value).decode()
