"""Spec and status as types, from whatever lies in etcd or in a file."""

import copy
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtj_operator.api.parse import parse, parse_status, salvage
from dtj_operator.api.spec import JobSpec
from dtj_operator.api.status import JobStatus, Restarts, RoundOf
from tests.api.manifests import Manifest, job


def test_the_smallest() -> None:
    spec = parse(job())
    assert isinstance(spec, JobSpec)
    assert spec.roles.worker.replicas == 4
    assert spec.recovery.max_restarts == 10
    assert spec.template == job()["spec"]["template"]
    assert msgspec.convert(msgspec.to_builtins(spec), JobSpec) == spec


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        (None, "spec: required; it says which roles the job has and what they run"),
        ([], "spec: required; it says which roles the job has and what they run"),
        ({}, "spec.roles: required"),
        ({"roles": {"worker": {}}}, "spec.roles.worker.replicas: required"),
        ({"roles": {"worker": {"replicas": "4"}}}, "spec.roles.worker.replicas: expected int, got str"),
        ({"roles": {"worker": {"replicas": 1}}, 7: 8}, "spec: expected str"),
    ],
)
def test_what_is_no_spec(spec: Any, line: str) -> None:
    assert parse({"spec": spec}) == line


def test_not_even_an_object() -> None:
    manifests: tuple[Any, ...] = (None, [], "x", {})
    for manifest in manifests:
        assert parse(manifest) == "spec: required; it says which roles the job has and what they run"


def test_all_that_cannot_be_read_is_told_and_the_rest_is_read() -> None:
    wrong: Manifest = {
        "roles": {"worker": {"replicas": 0}, "chief": 7},
        "keras": 3,
        "recovery": {"rules": [{"action": "Fail"}, {}], "maxRestarts": 1},
        "checkpoint": {"every": []},
        "trainerContainer": "main",
    }
    spec, unreadable = salvage({"spec": wrong})
    assert spec is not None
    assert (spec.trainer_container, spec.recovery.max_restarts, spec.recovery.rules) == ("main", 1, [])
    assert sorted(unreadable) == [
        "spec.checkpoint.every: expected int | str, got array",
        "spec.keras: expected str, got int",
        "spec.recovery.rules[1].action: required",
        "spec.roles.chief: expected object | null, got int",
        "spec.roles.worker.replicas: expected int >= 1",
    ]


def test_nulls_of_our_fields_are_absent_and_those_of_templates_stay() -> None:
    spec = parse(job({"roles": {"worker": {"template": {"spec": {"nodeSelector": None}}}}}))
    assert isinstance(spec, JobSpec)
    assert spec.roles.worker.template == {"spec": {"nodeSelector": None}}
    nulls = job()
    nulls["spec"] |= {"strategy": None, "recovery": None, "batch": None}
    assert parse(nulls) == parse(job())


def test_unknown_fields_are_passed_over() -> None:
    assert parse(job({"tomorrow": 1, "gang": {"tomorrow": 1}})) == parse(job())


def test_a_status_survives() -> None:
    status = JobStatus(
        phase="Running",
        attempt=3,
        rounds={"worker": [RoundOf("0-3", 2)]},
        restarts=Restarts(failures=2, total=2),
        start_time=datetime(2030, 1, 1, tzinfo=UTC),
    )
    assert parse_status({"status": msgspec.json.decode(msgspec.json.encode(status))}) == status


@pytest.mark.parametrize("manifest", [None, {}, {"status": None}, {"status": []}, {"status": {}}])
def test_no_status_is_an_empty_one(manifest: Any) -> None:
    assert parse_status(manifest) == JobStatus()


def test_what_does_not_fit_a_status_is_left_out_and_the_rest_stays() -> None:
    status = {
        "phase": "Levitating",
        "attempt": 3,
        "rounds": {"worker": [{"indexes": "0-3", "round": 2}]},
        "startTime": "yesterday",
        "tomorrow": {},
        "conditions": [{"type": "Accepted"}],
    }
    found = parse_status({"status": status})
    assert found == JobStatus(attempt=3, rounds={"worker": [RoundOf("0-3", 2)]})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=5), inside, max_size=3),
)
SPEC_FIELDS = st.sampled_from([field.encode_name for field in msgspec.structs.fields(JobSpec)])
STATUS_FIELDS = st.sampled_from([field.encode_name for field in msgspec.structs.fields(JobStatus)])


@given(JSON | st.dictionaries(SPEC_FIELDS, JSON, max_size=4))
def test_no_spec_is_a_crash(spec: Any) -> None:
    before = copy.deepcopy(spec)
    found = parse({"spec": spec})
    assert isinstance(found, JobSpec) or found.startswith("spec")
    assert repr(spec) == repr(before)


@given(JSON | st.dictionaries(STATUS_FIELDS, JSON, max_size=4))
def test_no_status_is_a_crash(status: Any) -> None:
    assert isinstance(parse_status({"status": status}), JobStatus)


def test_a_spec_that_contains_itself() -> None:
    spec: Any = {"roles": {"worker": {"replicas": 1}}}
    spec["recovery"] = {"rules": [spec]}
    spec["recovery"]["rules"][0] = spec
    assert parse({"spec": spec}) == "spec: it is nested too deep, or contains itself"
