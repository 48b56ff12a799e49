"""What an excuse is: one field of one step that may differ, and how. Which there are is `known.py`'s."""

import functools
import re

import msgspec

from tests.conformance.compare import Difference


class Excuse(msgspec.Struct, frozen=True):
    """In the path an asterisk stands for anything.

    `codes`: the real one and ours, and no others. `until`: up to the first of these in the real text, ours is the same.
    """

    story: str
    step: int
    path: str
    codes: tuple[int, int] | None = None
    until: str = ""

    def __str__(self) -> str:
        return f"{self.story}/{self.step}: {self.path}"

    def covers(self, one: Difference) -> bool:
        return (
            (self.story, self.step) == (one.story, one.step)
            and _pattern(self.path).fullmatch(one.path) is not None
            and (self.codes is None or self.codes == (one.wanted, one.found))
            and (not self.until or _begin_alike(self.until, one.wanted, one.found))
        )


def at(story: str, steps: int | tuple[int, ...], *paths: str, until: str = "") -> tuple[Excuse, ...]:
    return tuple(Excuse(story, step, path, until=until) for step in _numbers(steps) for path in paths)


def code(real: int, ours: int, story: str, *steps: int) -> tuple[Excuse, ...]:
    return tuple(Excuse(story, step, "code", codes=(real, ours)) for step in steps)


def words(story: str, steps: int | tuple[int, ...], until: str = "") -> tuple[Excuse, ...]:
    """A refusal's sentence."""
    return at(story, steps, "answer.message", until=until)


def faults(story: str, steps: int | tuple[int, ...], until: str = "") -> tuple[Excuse, ...]:
    """A refusal's sentence, and each fault's of which it is made."""
    return at(story, steps, "answer.message", "answer.details.causes[*].message", until=until)


def of_story(excuses: tuple[Excuse, ...], story: str) -> list[Excuse]:
    return [excuse for excuse in excuses if excuse.story == story]


def unexcused(excuses: list[Excuse], found: list[Difference]) -> list[Difference]:
    return [one for one in found if not any(excuse.covers(one) for excuse in excuses)]


def stale(excuses: list[Excuse], found: list[Difference]) -> list[Excuse]:
    """Those that cover none of a story's differences: what they excused is gone."""
    return [excuse for excuse in excuses if not any(excuse.covers(one) for one in found)]


def _numbers(steps: int | tuple[int, ...]) -> tuple[int, ...]:
    return (steps,) if isinstance(steps, int) else steps


def _begin_alike(mark: str, wanted: object, found: object) -> bool:
    if not isinstance(wanted, str) or not isinstance(found, str):
        return False
    beginning, there, _ = wanted.partition(mark)
    return bool(there) and found.startswith(beginning)


@functools.cache
def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in path.split("*")))
