"""Two servers' answers to one story, field by field. Which differences are known is `known.py`'s."""

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any

import msgspec

Json = dict[str, Any]

_ABSENT: Any = object()
_KEYS = ("name", "type", "key", "containerPort", "field", "manager", "uid", "group", "subresource", "resource")


class Difference(msgspec.Struct, frozen=True):
    """`story` is `topic/name`, `step` counts from 1, `path` leads to the field in it; `note` is for people alone."""

    story: str
    step: int
    ask: str
    path: str
    wanted: Any
    found: Any
    note: str = ""

    def __str__(self) -> str:
        sides = f"    recorded: {_shown(self.wanted)}\n    answered: {_shown(self.found)}"
        return f"{self.story}/{self.step} ({self.ask})\n  {self.path}{self.note}\n{sides}"


def differences(story: str, wanted: list[Json], found: list[Json]) -> Iterator[Difference]:
    """Between the steps of a story as two servers answered them."""
    for number, (one, other) in enumerate(zip(wanted, found, strict=False), start=1):
        if one["code"] != other["code"]:
            note = f" ({_gist(one)} / {_gist(other)})"
            yield Difference(story, number, one["ask"], "code", one["code"], other["code"], note)
        # The pair of codes says that one did and one refused: no field of a refusal is one of an object. What stands
        # beside the answer is compared all the same.
        apart = {"code", "answer"} if _refuses(one) != _refuses(other) else {"code"}
        here, there = ({key: value for key, value in step.items() if key not in apart} for step in (one, other))
        for path, left, right in _differing(here, there, ""):
            yield Difference(story, number, one["ask"], path, left, right)
    if len(wanted) != len(found):
        yield Difference(story, 0, "the whole story", "steps", len(wanted), len(found))


def _refuses(step: Json) -> bool:
    """By a server with an HTTP status, by kubectl with an exit code."""
    return bool(step["code"] >= 400 or 0 < step["code"] < 100)


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
    """Items are compared with those of the same key where they have one, else by what was put in or left out."""
    key = next((key for key in _KEYS if _tells_apart(key, one) and _tells_apart(key, other)), None)
    if key is None:
        yield from _edits(one, other, path)
        return
    left_by, right_by = ({item[key]: item for item in listed} for listed in (one, other))
    for name in dict.fromkeys([*left_by, *right_by]):
        yield from _differing(left_by.get(name, _ABSENT), right_by.get(name, _ABSENT), f"{path}[{name}]")
    shared = [name for name in left_by if name in right_by]
    if shared != (there := [name for name in right_by if name in left_by]):
        yield f"{path}[order]", shared, there


def _edits(one: list[Any], other: list[Any], path: str) -> Iterator[tuple[str, Any, Any]]:
    """`out[3:5]` are those of the recorded items that others stand for; `out[3:3]`: more stand before that one."""
    written, instead = ([msgspec.json.encode(item, order="sorted") for item in listed] for listed in (one, other))
    for edit, start, end, here, there in SequenceMatcher(None, written, instead, autojunk=False).get_opcodes():
        left, right = one[start:end], other[here:there]
        if edit == "replace" and len(left) == len(right) and isinstance(left[0], dict | list):
            for index, (item, its_other) in enumerate(zip(left, right, strict=True), start):
                yield from _differing(item, its_other, f"{path}[{index}]")
        elif edit != "equal":
            yield f"{path}[{start}:{end}]", left, right


def _tells_apart(key: str, listed: list[Any]) -> bool:
    values = [item.get(key) for item in listed if isinstance(item, dict)]
    return (
        len(values) == len(listed) and all(isinstance(v, str | int) for v in values) and len({*values}) == len(values)
    )


def _gist(step: Json) -> str:
    answer = step["answer"]
    told = answer.get("message") or answer.get("err") or answer.get("kind") if isinstance(answer, dict) else answer
    return str(told)


def _shown(value: Any) -> str:
    return "nothing" if value is _ABSENT else msgspec.json.encode(value).decode()
