"""What operator, supervisor and program say to each other survives the way, and nothing else comes through."""

import dataclasses
import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtj_worker.codec import ContractError, decode, encode
from dtj_worker.contract import (
    TERMINATION_BYTES,
    CheckpointPlan,
    Death,
    Task,
    TaskSpec,
    TrainingStatus,
    Verdict,
    one_line,
    parse_verdict,
)
from dtj_worker.reports import Report, Restore
from dtj_worker.supervisor.peers import Join, Order, Word

RECORDS = (TaskSpec, TrainingStatus, Verdict, Report, Restore, Death, CheckpointPlan, Join, Word, Order)

st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))
st.register_type_strategy(int, st.integers(1 - 2**63, 2**63 - 1))

records: st.SearchStrategy[Any] = st.sampled_from(RECORDS).flatmap(st.from_type)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(records)
def test_a_record_survives_the_way(record: Any) -> None:
    text = encode(record)

    assert decode(type(record), text) == record
    assert "\n" not in text


@given(records)
def test_a_newer_side_may_send_more(record: Any) -> None:
    document = json.loads(encode(record)) | {"of_a_later_version": [1]}

    assert decode(type(record), json.dumps(document)) == record


@given(st.sampled_from(RECORDS), st.one_of(st.binary(), json_values.map(lambda value: json.dumps(value).encode())))
def test_whatever_else_comes_is_refused_by_one_error(kind: Any, text: bytes) -> None:
    try:
        found = decode(kind, text)
    except ContractError:
        return
    assert isinstance(found, kind)


@given(records, st.data())
def test_a_field_of_another_type_is_named(record: Any, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([field.name for field in dataclasses.fields(record)]))
    document = json.loads(encode(record)) | {name: [[]]}

    with pytest.raises(ContractError, match=rf"\.{name}: "):
        decode(type(record), json.dumps(document))


@pytest.mark.parametrize(
    "number",
    [
        pytest.param("1" + "0" * 400, id="no float"),
        pytest.param(str(2**63), id="64 bits and one more"),
        pytest.param(str(-(2**63)), id="negative"),
        pytest.param("9" * 5000, id="not even an int of Python"),
    ],
)
def test_a_number_that_no_counter_reaches_is_refused(number: str) -> None:
    with pytest.raises(ContractError):
        decode(Report, f'{{"kind": "Step", "step": {number}}}')


def test_nothing_is_nested_too_deep_for_an_error() -> None:
    """Some depths can be parsed, but not be shown."""
    for depth in range(sys.getrecursionlimit() - 200, sys.getrecursionlimit() + 10):
        with pytest.raises(ContractError):
            decode(Report, f'{{"kind": "Step", "message": {"[" * depth}{"]" * depth}}}')


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ContractError, match="missing by, kind, task"):
        decode(Verdict, '{"attempt": 0}')


@given(st.builds(Verdict, task=st.from_type(Task).map(str), signal=st.none() | st.just("SIGKILL"), message=st.text()))
def test_a_verdict_fits_into_a_termination_message(verdict: Verdict) -> None:
    message = verdict.termination_message()
    found = parse_verdict(message)

    assert len(message.encode()) <= TERMINATION_BYTES
    assert found is not None
    assert found.message == one_line(verdict.message)
    assert dataclasses.replace(found, message=verdict.message) == verdict


def test_a_verdict_may_name_a_file_whose_name_is_no_text() -> None:
    found = parse_verdict(
        Verdict(0, "child", "Program", "worker-0", message="no file tr\udcffin.py").termination_message()
    )

    assert found is not None
    assert found.message == "no file tr in.py"


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("no\n  file\r\n", "no file"),
        ("\x1b[31mred\x1b[0m \x07", "[31mred [0m"),
        ("half of it \ud83d", "half of it"),
        ("é" * 1000, "é" * 512),
    ],
    ids=["lines", "a terminal's commands", "no text", "long"],
)
def test_a_message_is_one_line(message: str, line: str) -> None:
    assert one_line(message) == line


@pytest.mark.parametrize(
    "message",
    [
        pytest.param("", id="none at all"),
        pytest.param("Traceback (most recent call last):\n  File x\nValueError: no\n", id="a program's own"),
        pytest.param('done\n{"attempt": 0, "by": "child", "kind": "Do', id="cut"),
        pytest.param('done\n{"attempt": 0, "by": "me", "kind": "Done", "task": "worker-0"}', id="of no one we know"),
    ],
)
def test_what_is_no_verdict_is_none(message: str) -> None:
    assert parse_verdict(message) is None


@given(st.from_type(Task).filter(lambda task: task.index >= 0))
def test_a_task_is_read_as_it_is_written(task: Task) -> None:
    assert Task.parse(str(task)) == task
    assert Task.parse(f"{task.role}:{task.index}") == task


@pytest.mark.parametrize(
    "text",
    [
        "",
        "worker",
        "worker-",
        "worker--1",
        "worker-x",
        "master-0",
        "0",
        "worker-1.5",
        "worker-٣",
        pytest.param("worker-" + "9" * 5000, id="endless"),
    ],
)
def test_what_is_no_task_is_refused(text: str) -> None:
    with pytest.raises(ContractError, match="is no task"):
        Task.parse(text)


def test_tasks_sort_by_role_and_index() -> None:
    names = ["worker-10", "worker-2", "chief-0", "ps-1"]

    assert [str(task) for task in sorted(map(Task.parse, names))] == ["chief-0", "ps-1", "worker-2", "worker-10"]
