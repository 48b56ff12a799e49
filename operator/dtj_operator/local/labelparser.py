"""The grammar of label selectors in requests, with the errors of kube-apiserver's parser (`labels.Parse`)."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(r"\s*(?P<symbol>==|!=|[=!(),<>])|\s*(?P<word>[^\s=!(),<>]+)")
_OPERATORS = {"=": "in", "==": "in", "!=": "notin", ">": ">", "<": "<", "in": "in", "notin": "notin"}
_END = ""


class Unreadable(Exception):
    """The sentence of a 400."""


class Term(NamedTuple):
    """`operator` is in, notin, exists, absent, `>` or `<`."""

    key: str
    operator: str
    values: frozenset[str]


class _Tokens:
    """Symbols and words, one ahead; the end is an empty one."""

    def __init__(self, text: str) -> None:
        found = [one["symbol"] or one["word"] for one in _TOKEN.finditer(text)]
        self._tokens = iter([*found, _END])
        self.next = next(self._tokens)

    def take(self) -> str:
        taken = self.next
        self.next = next(self._tokens, _END)
        return taken


def terms(text: str) -> Iterator[Term]:
    """Unreadable where the text is no selector."""
    tokens = _Tokens(text)
    if not (_is_word(tokens.next) or tokens.next in ("!", _END)):
        raise Unreadable(f"found '{tokens.next}', expected: !, identifier, or 'end of string'")
    while tokens.next != _END:
        yield _term(tokens)
        after = tokens.take()
        if after == _END:
            return
        if after != ",":
            raise Unreadable(f"found '{after}', expected: ',' or 'end of string'")
        if not (_is_word(tokens.next) or tokens.next == "!"):
            raise Unreadable(f"found '{tokens.next}', expected: identifier after ','")


def _term(tokens: _Tokens) -> Term:
    absent = tokens.next == "!" and bool(tokens.take())
    key = tokens.take()
    if not _is_word(key):
        raise _wrong(f"found '{key}', expected: identifier")
    if absent or tokens.next in (",", _END):
        return Term(key, "absent" if absent else "exists", frozenset())
    sign = tokens.take()
    if sign not in _OPERATORS:
        raise _wrong(f"found '{sign}', expected: in, notin, =, ==, !=, gt, lt")
    return Term(key, _OPERATORS[sign], _listed(tokens) if sign in ("in", "notin") else _single(tokens))


def _single(tokens: _Tokens) -> frozenset[str]:
    if tokens.next in (",", _END):
        return frozenset([""])
    value = tokens.take()
    if not _is_word(value):
        raise _wrong(f"found '{value}', expected: identifier")
    return frozenset([value])


def _listed(tokens: _Tokens) -> frozenset[str]:
    """In parentheses; nothing between two commas is an empty value."""
    if (opening := tokens.take()) != "(":
        raise _wrong(f"found '{opening}' expected: '('")
    values: set[str] = set()
    while True:
        values.add(tokens.take() if _is_word(tokens.next) else "")
        after = tokens.take()
        if after == ")":
            return frozenset(values)
        if after != ",":
            raise _wrong(f"found '{after}', expected: ',' or ')'")


def _is_word(token: str) -> bool:
    return bool(token) and token[0] not in "=!(),<>"


def _wrong(why: str) -> Unreadable:
    return Unreadable(f"unable to parse requirement: {why}")
