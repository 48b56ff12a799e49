"""What the comparison sees, and that an excuse covers what it names and nothing else."""

from typing import Any

import pytest

from tests.conformance.compare import differences
from tests.conformance.excuses import Excuse, at, code, stale, unexcused, words

Json = dict[str, Any]


def _step(code: int, answer: Any, **beside: Any) -> Json:
    return {"ask": "GET x", "code": code, **beside, "answer": answer}


def _paths(wanted: Json, found: Json) -> list[str]:
    return [one.path for one in differences("a/b", [wanted], [found])]


@pytest.mark.parametrize(("wanted", "found", "paths"), [
    pytest.param(_step(422, {"message": "no"}, warnings=["w"]), _step(201, {"kind": "Pod"}), ["code", "warnings"],
                 id="beside the answer when one refuses"),
    pytest.param(_step(429, {"message": "a", "kind": "Status"}), _step(409, {"message": "b", "kind": "Status"}),
                 ["code", "answer.message"], id="the answers when both refuse"),
    pytest.param(_step(0, {"out": ["a", "b", "c", "d"]}), _step(0, {"out": ["a", "x", "c", "e", "d"]}),
                 ["answer.out[1:2]", "answer.out[3:3]"], id="lines by what was put in"),
    pytest.param(_step(200, [{"x": 1}, {"x": 2}]), _step(200, [{"x": 1}, {"x": 3}]), ["answer[1].x"],
                 id="items without a name by their place"),
])  # fmt: skip
def test_what_differs(wanted: Json, found: Json, paths: list[str]) -> None:
    assert _paths(wanted, found) == paths


@pytest.mark.parametrize(("excuses", "covered"), [
    pytest.param(code(422, 201, "a/b", 1), True, id="this pair of codes"),
    pytest.param(code(400, 201, "a/b", 1), False, id="another code of the real server"),
    pytest.param(code(422, 200, "a/b", 1), False, id="another code of ours"),
    pytest.param(code(422, 201, "a/b", 2), False, id="another step"),
    pytest.param(code(422, 201, "a/c", 1), False, id="another story"),
])  # fmt: skip
def test_a_differing_code(excuses: tuple[Excuse, ...], covered: bool) -> None:
    found = list(differences("a/b", [_step(422, {"message": "no"})], [_step(201, {"kind": "Pod"})]))
    assert (unexcused([*excuses], found) == []) is covered
    assert (stale([*excuses], found) == []) is covered


def test_words_are_the_same_up_to_a_mark() -> None:
    wanted, found = _step(422, {"message": "no: go says"}), _step(422, {"message": "no: python says"})
    differing = list(differences("a/b", [wanted], [found]))
    assert unexcused([*words("a/b", 1, until="go")], differing) == []
    assert unexcused([*words("a/b", 1, until="says")], differing) == differing


def test_an_asterisk_stands_for_anything() -> None:
    differing = list(differences("a/b", [_step(200, {"x": {"y": 1, "z": 1}})], [_step(200, {"x": {"y": 2, "z": 2}})]))
    assert unexcused([*at("a/b", 1, "answer.x.*")], differing) == []
    assert [one.path for one in unexcused([*at("a/b", 1, "answer.*.y")], differing)] == ["answer.x.z"]
