"""The embedded API server answers every story as a real kube-apiserver did, but for what is known to differ."""

from pathlib import Path

import aiohttp
import pytest

from tests.conformance.compare import differences
from tests.conformance.known import KNOWN, PAGE, page, unknown
from tests.conformance.play import Story, played
from tests.conformance.recordings import recorded
from tests.conformance.servers import all_stories, embedded, prepared


@pytest.mark.parametrize("told", all_stories(), ids=lambda one: f"{one.topic}/{one.name}")
async def test_it_answers_as_recorded(told: Story, tmp_path: Path) -> None:
    wanted = recorded(told.topic)["stories"][told.name]
    async with (
        embedded(tmp_path, told.history) as server,
        aiohttp.ClientSession() as session,
        prepared(session, server),
    ):
        found = await played(session, server, told)
    place = f"{told.topic}/{told.name}"
    differing = unknown(list(differences(place, wanted, found)))
    assert not differing, "\n".join(map(str, differing))


def test_the_docs_tell_what_is_known_to_differ() -> None:
    assert PAGE.read_text() == page(), "run `python -m tests.conformance --docs`"


def test_what_is_known_is_about_stories_that_are_told() -> None:
    told = {f"{one.topic}/{one.name}" for one in all_stories()}
    places = {place for known in KNOWN for place in known.places}
    names = {"/".join(place.split("/")[:2]).rstrip("*") for place in places}
    assert [name for name in names if not any(one.startswith(name) for one in told)] == []
