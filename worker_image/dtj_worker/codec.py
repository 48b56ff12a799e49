"""Records as JSON and back: a strict decoder for frozen dataclasses. What they mean is `contract.py`'s business."""

import dataclasses
import functools
import json
import types
import typing
from typing import Any, Literal, TypeVar

Record = TypeVar("Record")

INTEGERS = 2**63
"""What Kubernetes' API takes as a number, and what can be divided without a second thought."""


class ContractError(ValueError):
    """A record that does not fit its type; the message names the field."""


def encode(record: Any) -> str:
    """A record as one line of JSON; fields that have their default are left out."""
    return json.dumps(_plain(record), separators=(",", ":"), sort_keys=True)


def decode(kind: type[Record], text: str | bytes) -> Record:
    """The record in a text; ContractError names what is wrong. Unknown fields, of a newer side, are ignored."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ContractError(f"{kind.__name__}: not JSON: {error}") from None
    try:
        return typing.cast(Record, _typed(kind, document, kind.__name__))
    except OverflowError:
        raise ContractError(f"{kind.__name__}: a number too large") from None
    except RecursionError:  # What could just be parsed may still be too deep to be shown in a message.
        raise ContractError(f"{kind.__name__}: nested too deep") from None


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        fields = ((f, getattr(value, f.name)) for f in dataclasses.fields(value))
        return {f.name: _plain(v) for f, v in fields if f.name == "contract" or not _is_default(f, v)}
    return {k: _plain(v) for k, v in value.items()} if isinstance(value, dict) else value


def _is_default(spec: dataclasses.Field[Any], value: Any) -> bool:
    made = spec.default_factory() if spec.default_factory is not dataclasses.MISSING else spec.default
    return bool(value == made and type(value) is type(made))


def _typed(kind: Any, value: Any, where: str) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return _expect(value in arguments, value, where, f"one of {', '.join(map(str, arguments))}")
    if origin in (types.UnionType, typing.Union):
        return _any_of(arguments, value, where)
    if origin is dict:
        _expect(isinstance(value, dict), value, where, "an object")
        return {str(k): _typed(arguments[1], v, f"{where}.{k}") for k, v in value.items()}
    if dataclasses.is_dataclass(kind):
        return _record(typing.cast(Any, kind), value, where)
    if kind is float:
        return float(_expect(isinstance(value, int | float) and not isinstance(value, bool), value, where, "a number"))
    exact = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    _expect(exact, value, where, f"a value of type {getattr(kind, '__name__', kind)}")
    return _expect(kind is not int or abs(value) < INTEGERS, value, where, "an integer of 64 bits")


def _any_of(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    problems = []
    for kind in kinds:
        if kind is not type(None):
            try:
                return _typed(kind, value, where)
            except ContractError as problem:
                problems.append(str(problem))
    raise ContractError("; or ".join(problems))


def _record(kind: Any, value: Any, where: str) -> Any:
    _expect(isinstance(value, dict), value, where, "an object")
    hints, required = _fields(kind)
    missing = [name for name in required if name not in value]
    if missing:
        raise ContractError(f"{where}: missing {', '.join(missing)}")
    return kind(**{n: _typed(hint, value[n], f"{where}.{n}") for n, hint in hints.items() if n in value})


@functools.cache
def _fields(kind: Any) -> tuple[dict[str, Any], list[str]]:
    """The types of a record's fields, and which have no default: finding that out takes longer than all the rest."""
    hints, fields = typing.get_type_hints(kind), dataclasses.fields(kind)
    required = [f.name for f in fields if f.default is f.default_factory is dataclasses.MISSING]
    return {f.name: hints[f.name] for f in fields}, required


def _expect(holds: bool, value: Any, where: str, expected: str) -> Any:
    if not holds:
        raise ContractError(f"{where}: expected {expected}, got {value!r:.80}")
    return value
