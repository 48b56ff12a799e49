"""Watches: where they begin, what a selector lets through, bookmarks, and history that is lost."""

from typing import Any

from tests.conformance.play import PATCHES, TABLE, Ask, short_of_history, story
from tests.conformance.stories.manifests import pod

TRAININGS = "test.dtj.dev/v1:trainings"


def secret(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}}


async def _label(ask: Ask, name: str, **labels: str | None) -> None:
    await ask.quietly("PATCH", f"secrets/{name}", {"metadata": {"labels": labels}}, media=PATCHES["merge"])


@story
async def a_watch_tells_what_happens(ask: Ask) -> None:
    await ask.quietly("POST", "secrets", secret("a"))
    async with ask.watch("secrets?watch=1") as watch:
        await watch.take(1)
        await _label(ask, "a", l="1")
        await ask.quietly("POST", "secrets", secret("b"))
        await ask.quietly("DELETE", "secrets/a")
        await watch.take(3)


@story
async def a_watch_goes_on_from_a_version(ask: Ask) -> None:
    made = await ask.quietly("POST", "secrets", secret("a"))
    await _label(ask, "a", l="1")
    await _label(ask, "a", l="2")
    async with ask.watch("secrets?watch=1", since=made) as watch:
        await watch.take(2)
        await _label(ask, "a", l="3")
        await watch.take(1)
    async with ask.watch("secrets?watch=1&timeoutSeconds=1&resourceVersion=0") as watch:
        await watch.rest()
    async with ask.watch("secrets/a?watch=1") as watch:
        await watch.take(1)
    async with ask.watch("/api/v1/watch/namespaces/{ns}/secrets?timeoutSeconds=1") as watch:
        await watch.rest()


@story
async def objects_come_into_a_selection_and_leave_it(ask: Ask) -> None:
    made = await ask.quietly("POST", "secrets", secret("a"))
    async with ask.watch("secrets?watch=1&labelSelector=in%3Dyes", since=made) as watch:
        await _label(ask, "a", **{"in": "yes"})
        await _label(ask, "a", **{"in": "yes", "other": "x"})
        await _label(ask, "a", **{"in": "no"})
        await _label(ask, "a", **{"in": "yes"})
        await ask.quietly("DELETE", "secrets/a")
        await watch.take(5)
    made = await ask.quietly("POST", "pods", pod())
    async with ask.watch("pods?watch=1&fieldSelector=status.phase%3DRunning", since=made) as watch:
        for phase in ("Running", "Succeeded"):
            await ask.quietly("PATCH", "pods/a/status", {"status": {"phase": phase}}, media=PATCHES["merge"])
        for event in await watch.take(2):
            del event["object"]["spec"]


@story
async def initial_events_end_with_a_bookmark(ask: Ask) -> None:
    await ask.quietly("POST", "secrets", secret("a"))
    await ask.quietly("POST", "secrets", secret("b"))
    asked = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with ask.watch(f"secrets?{asked}") as watch:
        await watch.take(3)
    async with ask.watch(f"secrets?{asked}&resourceVersion=0&fieldSelector=metadata.name%3Db") as watch:
        await watch.take(2)
    async with ask.watch(f"secrets?{asked}", accept=TABLE) as watch:
        await watch.take(3)
    await ask.get("secrets?watch=1&timeoutSeconds=1&sendInitialEvents=true")
    await ask.get("secrets?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=Exact")
    await ask.get("secrets?watch=1&timeoutSeconds=1&sendInitialEvents=false")
    await ask.get("secrets?watch=1&timeoutSeconds=1&resourceVersionMatch=NotOlderThan")
    await ask.get("secrets?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
    await ask.get("secrets?watch=1&timeoutSeconds=1&resourceVersion=x")
    await ask.get("secrets?watch=1&timeoutSeconds=1&limit=5&continue=x")


@story
async def a_watch_ends_in_time(ask: Ask) -> None:
    made = await ask.quietly("POST", "secrets", secret("a"))
    async with ask.watch("secrets?watch=1&timeoutSeconds=1", since=made) as watch:
        await watch.rest()
    async with ask.watch("secrets?watch=true&timeoutSeconds=1") as watch:
        await watch.rest()


@short_of_history
async def history_is_lost(ask: Ask) -> None:
    """A custom kind's watch cache begins with it, so that version 1 is lost in a real server, too."""
    for number in range(50):
        await ask.quietly("POST", "secrets", secret(f"s{number}"))
    async with ask.watch(f"{TRAININGS}?watch=1&resourceVersion=1") as watch:
        await watch.rest()
    async with ask.watch(f"{TRAININGS}?watch=1&resourceVersion=1", accept=TABLE) as watch:
        await watch.rest()
