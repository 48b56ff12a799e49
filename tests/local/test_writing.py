"""Creating, replacing and patching objects: what the server sets, keeps, counts and refuses."""

from typing import Any

import pytest

from tests.local.calls import Calls, config_map, pod, refused

PODS = "v1/pods"
MAPS = "v1/configmaps"


def test_what_the_server_sets_is_not_the_clients_to_say() -> None:
    calls = Calls()
    manifest = pod()
    manifest["metadata"] |= {"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 7}
    made = calls.create(manifest)
    assert made["metadata"]["uid"].startswith("uid-")
    assert made["metadata"]["creationTimestamp"] == "2026-11-30T12:00:00Z"
    assert made["metadata"]["generation"] == 1
    assert made["metadata"]["namespace"] == "default"
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_a_name_is_taken_once() -> None:
    calls = Calls()
    calls.create(config_map())
    failure = refused(calls.create, config_map())
    assert (failure.code, failure.reason) == (409, "AlreadyExists")
    assert str(failure) == 'configmaps "a" already exists'
    assert failure.status["details"] == {"name": "a", "kind": "configmaps"}


def test_a_generated_name_has_five_letters_more() -> None:
    calls = Calls()
    manifest = config_map()
    manifest["metadata"] = {"generateName": "run-"}
    one, two = calls.create(manifest), calls.create(manifest)
    assert one["metadata"]["name"] != two["metadata"]["name"]
    assert len(one["metadata"]["name"]) == len("run-") + 5


def test_every_write_has_a_version_of_its_own_and_an_empty_one_none() -> None:
    calls = Calls()
    first = calls.create(config_map(x="1"))
    second = calls.patch(MAPS, "a", {"data": {"x": "2"}})
    third = calls.patch(MAPS, "a", {"data": {"x": "2"}})
    versions = [int(one["metadata"]["resourceVersion"]) for one in (first, second, third)]
    assert versions[0] < versions[1] == versions[2]


def test_a_replace_needs_the_version_it_read() -> None:
    calls = Calls()
    read = calls.create(config_map(x="1"))
    calls.patch(MAPS, "a", {"data": {"x": "2"}})
    failure = refused(calls.call, "update", MAPS, "a", body={**read, "data": {"x": "3"}})
    assert (failure.code, failure.reason) == (409, "Conflict")
    assert str(failure) == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )


def test_an_object_to_be_created_has_no_version() -> None:
    failure = refused(Calls().create, {**config_map(), "metadata": {"name": "a", "resourceVersion": "3"}})
    assert (failure.code, str(failure)) == (500, "resourceVersion should not be set on objects to be created")


def test_a_patch_does_not_change_a_uid() -> None:
    calls = Calls()
    calls.create(config_map())
    failure = refused(calls.patch, MAPS, "a", {"metadata": {"uid": "another"}})
    assert failure.code == 422
    assert 'metadata.uid: Invalid value: "another": field is immutable' in str(failure)


def test_a_dry_run_answers_like_the_write_and_leaves_nothing() -> None:
    calls = Calls()
    revision = calls.api.state.store.revision
    made = calls.create(pod(), dryRun="All")
    assert made["spec"]["restartPolicy"] == "Always"
    assert calls.names(PODS) == []
    assert calls.api.state.store.revision == revision


def test_status_and_spec_are_written_apart() -> None:
    calls = Calls()
    calls.create(pod())
    both = {"spec": {"activeDeadlineSeconds": 5}, "status": {"phase": "Running"}}
    after_status = calls.patch(f"{PODS}:status", "a", both)
    assert after_status["status"]["phase"] == "Running"
    assert "activeDeadlineSeconds" not in after_status["spec"]
    assert after_status["metadata"]["generation"] == 1
    after_spec = calls.patch(PODS, "a", {"spec": {"activeDeadlineSeconds": 5}, "status": {"phase": "Failed"}})
    assert after_spec["spec"]["activeDeadlineSeconds"] == 5
    assert after_spec["status"]["phase"] == "Running"
    assert after_spec["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("validation", "told"),
    [
        ("Strict", 'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field '
                   '"spec.containers[0].imagee", unknown field "spec.foo"'),
        ("Warn", None),
        ("Ignore", None),
    ],
)  # fmt: skip
def test_unknown_fields_are_refused_only_where_strictness_is_asked_for(validation: str, told: str | None) -> None:
    calls = Calls()
    manifest = pod(foo=1)
    manifest["spec"]["containers"][0]["imagee"] = "x"
    if told is None:
        made = calls.create(manifest, fieldValidation=validation)
        assert "foo" not in made["spec"]
    else:
        failure = refused(calls.create, manifest, fieldValidation=validation)
        assert (failure.code, str(failure)) == (400, told)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"spec": {"containers": 5}}, "cannot unmarshal number into Go struct field PodSpec.spec.containers of type"),
        ({"spec": {"hostNetwork": "yes"}}, "cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork"),
        (
            {"metadata": {"name": 5}},
            "cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string",
        ),
        ({"spec": {"overhead": {"cpu": "a lot"}}}, "quantities must match the regular expression"),
        ({"kind": "Service"}, 'Service in version "v1" cannot be handled as a Pod'),
        ({"apiVersion": "v2"}, 'no kind "Pod" is registered for version "v2"'),
        ({"metadata": {"namespace": "other"}}, "the namespace of the provided object does not match"),
    ],
)
def test_a_body_of_the_wrong_form_is_a_bad_request(change: Any, told: str) -> None:
    calls = Calls()
    failure = refused(calls.call, "create", PODS, body=pod() | change)
    assert failure.code == 400
    assert told in str(failure)


def test_quantities_come_back_in_canonical_form() -> None:
    calls = Calls()
    manifest = pod()
    manifest["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1000m", "memory": "1024Mi", "x.io/gpu": 2}}
    made = calls.create(manifest)
    assert made["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1", "memory": "1Gi", "x.io/gpu": "2"}


def test_a_namespace_must_be_there_and_stay() -> None:
    calls = Calls()
    assert str(refused(calls.create, pod(), namespace="gone")) == 'namespaces "gone" not found'
    calls.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}})
    calls.create(pod(nodeName="n1"), namespace="ml")
    calls.delete("v1/namespaces", "ml")
    failure = refused(calls.create, pod("b"), namespace="ml")
    assert failure.code == 403
    assert "unable to create new content in namespace ml because it is being terminated" in str(failure)
