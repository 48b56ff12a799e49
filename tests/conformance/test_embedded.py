"""The embedded API server answers every story as a real kube-apiserver did, but for what is known to differ."""

from pathlib import Path

import aiohttp
import pytest

from tests.conformance.compare import differences
from tests.conformance.excuses import of_story, stale, unexcused
from tests.conformance.known import EXCUSES
from tests.conformance.page import PAGE, page
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
        answered = await played(session, server, told)
    excuses = of_story(EXCUSES, told.place)
    found = list(differences(told.place, wanted, answered))
    differing = unexcused(excuses, found)
    assert not differing, "\n".join(map(str, differing))
    needless = stale(excuses, found)
    assert not needless, "these excuses cover no difference any more:\n" + "\n".join(map(str, needless))


def test_the_docs_tell_what_is_known_to_differ() -> None:
    assert PAGE.read_text() == page(), "run `python -m tests.conformance --docs`"


def test_what_is_known_is_about_stories_that_are_told() -> None:
    told = {one.place for one in all_stories()}
    assert [str(excuse) for excuse in EXCUSES if excuse.story not in told] == []
