"""Lists in chunks and watches: consistent over writes, resumable, refused where history is lost."""

import asyncio
import contextlib
from typing import Any

import pytest

from dtj_operator.local.failures import ApiFailure
from dtj_operator.local.state import Request
from dtj_operator.local.verbs import reading
from dtj_operator.local.verbs.reading import Follower, WatchEvent
from tests.local.calls import Calls, config_map, pod, refused

MAPS = "v1/configmaps"
PODS = "v1/pods"


def follow(calls: Calls, what: str = MAPS, **params: Any) -> Follower:
    api_version, _, plural = what.rpartition("/")
    kind = calls.api.kind(api_version, plural)
    told = {key: str(value) for key, value in params.items()}
    return calls.api.watch(Request(verb="watch", kind=kind, namespace="default", params=told))


async def seen(follower: Follower, within: float = 1.0) -> list[tuple[str, str]]:
    """What comes within a span of virtual time: the type, and the object's name or the bookmark's revision."""
    found: list[tuple[str, str]] = []
    events = follower.events()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within):
            async for event in events:
                found += [(event.type, described(event))]
    return found


def described(event: WatchEvent) -> str:
    if event.entry is not None:
        return event.entry.name
    return str(event.status["reason"]) if event.status is not None else str(event.revision)


def labelled(name: str, **labels: str) -> Any:
    manifest = config_map(name)
    manifest["metadata"]["labels"] = labels
    return manifest


def test_a_list_in_chunks_shows_one_state_whatever_is_written_between() -> None:
    calls = Calls()
    for name in "abcde":
        calls.create(config_map(name))
    first = calls.call("list", MAPS, limit=2)
    assert first["metadata"]["remainingItemCount"] == 3
    calls.delete(MAPS, "d")
    calls.create(config_map("ca"))
    calls.patch(MAPS, "e", {"data": {"x": "new"}})
    rest = calls.call("list", MAPS, limit=10, **{"continue": first["metadata"]["continue"]})
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c", "d", "e"]
    assert "data" not in rest["items"][-1]
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert "continue" not in rest["metadata"]


def test_a_list_whose_state_is_forgotten_is_refused() -> None:
    calls = Calls(history=3)
    for name in "abc":
        calls.create(config_map(name))
    first = calls.call("list", MAPS, limit=1)
    for step in range(4):
        calls.patch(MAPS, "a", {"data": {"x": str(step)}})
    failure = refused(calls.call, "list", MAPS, limit=1, **{"continue": first["metadata"]["continue"]})
    assert (failure.code, failure.reason) == (410, "Expired")


def test_a_list_at_an_exact_version_shows_the_past() -> None:
    calls = Calls()
    made = calls.create(config_map("a"))
    calls.create(config_map("b"))
    version = made["metadata"]["resourceVersion"]
    assert calls.names(MAPS, resourceVersion=version, resourceVersionMatch="Exact") == ["a"]
    assert calls.names(MAPS, resourceVersion=version, resourceVersionMatch="NotOlderThan") == ["a", "b"]
    assert calls.names(MAPS, resourceVersion="0") == ["a", "b"]
    failure = refused(calls.call, "list", MAPS, resourceVersion="99999")
    assert (failure.code, failure.reason) == (504, "Timeout")
    assert "Too large resource version: 99999" in str(failure)


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"resourceVersionMatch": "Exact"}, "resourceVersionMatch is forbidden unless resourceVersion is provided"),
        ({"resourceVersionMatch": "Odd", "resourceVersion": "1"}, 'resourceVersionMatch: Unsupported value: "Odd"'),
        ({"resourceVersion": "x"}, 'Invalid value: "x"'),
        ({"sendInitialEvents": "true"}, "sendInitialEvents is forbidden for list"),
        ({"continue": "x"}, "continue key is not valid"),
        ({"labelSelector": "a in b"}, "unable to parse requirement"),
        (
            {"fieldSelector": "data.x=1"},
            '"data.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
    ],
)
def test_a_list_that_cannot_be_meant_is_refused(params: Any, told: str) -> None:
    assert told in str(refused(Calls().call, "list", MAPS, **params))


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("", ["a", "b", "c"]), ("app=x", ["a"]), ("app==x", ["a"]), ("app!=x", ["b", "c"]), ("app", ["a", "b"]),
        ("!app", ["c"]), ("app in (x, y)", ["a", "b"]), ("app notin (x)", ["b", "c"]), ("app=y,size>1", ["b"]),
        ("size<2", ["a"]), ("app in (x),!size", []),
    ],
)  # fmt: skip
def test_a_label_selector_chooses(selector: str, names: list[str]) -> None:
    calls = Calls()
    calls.create(labelled("a", app="x", size="1"))
    calls.create(labelled("b", app="y", size="2"))
    calls.create(labelled("c"))
    assert calls.names(MAPS, labelSelector=selector) == names


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("spec.nodeName=n1", ["a"]), ("spec.nodeName!=n1", ["b"]), ("status.phase=Pending", ["a", "b"]),
        ("metadata.name=b", ["b"]), ("spec.nodeName=n1,metadata.name=b", []), ("spec.hostNetwork=false", ["a", "b"]),
    ],
)  # fmt: skip
def test_a_field_selector_chooses(selector: str, names: list[str]) -> None:
    calls = Calls()
    calls.create(pod("a", nodeName="n1"))
    calls.create(pod("b"))
    assert calls.names(PODS, fieldSelector=selector) == names


def test_events_have_two_shapes_and_are_selected_by_what_they_are_about() -> None:
    calls = Calls()
    about = {"apiVersion": "v1", "kind": "Pod", "name": "a", "namespace": "default", "uid": "u"}
    calls.create({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": about, "reason": "Started",
        "message": "trainer started", "type": "Normal", "source": {"component": "kubelet"}, "count": 2,
    })  # fmt: skip
    assert calls.names("v1/events", fieldSelector="involvedObject.name=a,type=Normal,source=kubelet") == ["e"]
    assert calls.names("events.k8s.io/v1/events", fieldSelector="regarding.name=b") == []
    served = calls.get("events.k8s.io/v1/events", "e")
    assert (served["kind"], served["apiVersion"]) == ("Event", "events.k8s.io/v1")
    assert (served["regarding"], served["note"], served["deprecatedCount"]) == (about, "trainer started", 2)


@pytest.mark.looptime
async def test_a_watch_from_a_version_tells_all_that_came_after() -> None:
    calls = Calls()
    version = calls.create(config_map("a"))["metadata"]["resourceVersion"]
    calls.create(config_map("b"))
    follower = follow(calls, resourceVersion=version)
    calls.patch(MAPS, "a", {"data": {"x": "1"}})
    calls.delete(MAPS, "b")
    assert await seen(follower) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]


@pytest.mark.parametrize("version", ["", "0"])
@pytest.mark.looptime
async def test_a_watch_from_nowhere_begins_with_what_is_there(version: str) -> None:
    calls = Calls()
    calls.create(config_map("a"))
    follower = follow(calls, resourceVersion=version)
    calls.create(config_map("b"))
    assert await seen(follower) == [("ADDED", "a"), ("ADDED", "b")]


@pytest.mark.looptime
async def test_initial_events_end_in_a_bookmark() -> None:
    calls = Calls()
    calls.create(config_map("a"))
    revision = calls.api.state.store.revision
    asked = {"sendInitialEvents": "true", "allowWatchBookmarks": "true", "resourceVersionMatch": "NotOlderThan"}
    follower = follow(calls, **asked)
    events = [event async for event in _first(follower, 2)]
    assert [event.type for event in events] == ["ADDED", "BOOKMARK"]
    told = reading.bookmark(follower.kind, events[1])
    assert told["metadata"] == {
        "resourceVersion": str(revision),
        "annotations": {"k8s.io/initial-events-end": "true"},
    }
    with pytest.raises(ApiFailure, match="sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"):
        follow(calls, sendInitialEvents="true")


async def _first(follower: Follower, count: int) -> Any:
    async for event in follower.events():
        yield event
        count -= 1
        if not count:
            return


@pytest.mark.looptime
async def test_an_object_enters_and_leaves_a_selection() -> None:
    calls = Calls()
    calls.create(labelled("a", app="x"))
    version = str(calls.api.state.store.revision)
    follower = follow(calls, resourceVersion=version, labelSelector="app=y")
    calls.patch(MAPS, "a", {"metadata": {"labels": {"app": "y"}}})
    calls.patch(MAPS, "a", {"data": {"x": "1"}})
    left = calls.patch(MAPS, "a", {"metadata": {"labels": {"app": "z"}}})
    calls.delete(MAPS, "a")
    events = [event async for event in _first(follower, 3)]
    assert [event.type for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    last = events[-1].entry
    assert last is not None
    assert last.labels == {"app": "y"}
    assert last.decode()["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]


@pytest.mark.looptime
async def test_a_deletion_is_told_under_a_version_of_its_own() -> None:
    calls = Calls()
    made = calls.create(config_map("a"))
    follower = follow(calls, resourceVersion=made["metadata"]["resourceVersion"])
    calls.delete(MAPS, "a")
    (event,) = [event async for event in _first(follower, 1)]
    assert event.entry is not None
    assert event.entry.revision > int(made["metadata"]["resourceVersion"])


@pytest.mark.looptime
async def test_a_watch_from_a_forgotten_version_is_told_so() -> None:
    calls = Calls(history=3)
    version = calls.create(config_map("a"))["metadata"]["resourceVersion"]
    for step in range(5):
        calls.patch(MAPS, "a", {"data": {"x": str(step)}})
    follower = follow(calls, resourceVersion=version)
    (event,) = [event async for event in follower.events()]
    assert event.status is not None
    assert (event.type, event.status["code"], event.status["reason"]) == ("ERROR", 410, "Expired")
    assert event.status["message"].startswith(f"too old resource version: {version} (")


@pytest.mark.looptime
async def test_a_reader_that_falls_behind_is_cut_off() -> None:
    calls = Calls(backlog=2)
    follower = follow(calls, resourceVersion=str(calls.api.state.store.revision))
    for name in "abc":
        calls.create(config_map(name))
    (event,) = [event async for event in follower.events()]
    assert event.status is not None
    assert event.status["code"] == 410


@pytest.mark.looptime
async def test_a_quiet_watch_is_told_the_newest_version_and_ends_in_time() -> None:
    calls = Calls()
    follower = follow(calls, resourceVersion=str(calls.api.state.store.revision), allowWatchBookmarks="true",
                      timeoutSeconds="120")  # fmt: skip
    calls.create(pod())
    revision = str(calls.api.state.store.revision)
    before = asyncio.get_running_loop().time()
    assert await seen(follower, within=1000) == [("BOOKMARK", revision)] * 3
    assert asyncio.get_running_loop().time() - before == pytest.approx(120)


@pytest.mark.looptime
async def test_a_watch_that_is_left_is_forgotten() -> None:
    calls = Calls()
    follower = follow(calls)
    async with asyncio.timeout(1):
        calls.create(config_map("a"))
        async for _ in follower.events():
            break
    follower.close()
    assert not calls.api.state.store._watches["configmaps"]
