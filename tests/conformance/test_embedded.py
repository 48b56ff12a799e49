"""The embedded API server answers every story as a real kube-apiserver did, but for what is known to differ."""

from pathlib import Path

import aiohttp
import pytest

from tests.conformance.compare import differences
from tests.conformance.known import unknown
from tests.conformance.play import Story, played
from tests.conformance.recordings import recorded
from tests.conformance.servers import all_stories, embedded, prepare


@pytest.mark.parametrize("told", all_stories(), ids=lambda one: f"{one.topic}/{one.name}")
async def test_it_answers_as_recorded(told: Story, tmp_path: Path) -> None:
    wanted = recorded(told.topic)["stories"][told.name]
    async with embedded(tmp_path, told.history) as server, aiohttp.ClientSession() as session:
        await prepare(session, server)
        found = await played(session, server, told)
    place = f"{told.topic}/{told.name}"
    assert "\n".join(map(str, unknown(list(differences(place, wanted, found))))) == ""
