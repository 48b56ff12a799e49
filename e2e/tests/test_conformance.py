"""A real kube-apiserver still answers the conformance stories as recorded; the embedded one is held to the same."""

from pathlib import Path

import aiohttp
import pytest

from e2e.cluster import Cluster
from e2e.given import Given
from tests.conformance.compare import differences
from tests.conformance.recordings import recorded
from tests.conformance.servers import all_played, all_stories, prepared, real

PATIENCE = aiohttp.ClientTimeout(total=300)


@pytest.mark.timeout(900)
async def test_it_answers_as_recorded(cluster: Cluster | Given, tmp_path: Path) -> None:
    told = all_stories()
    wanted = {one.topic: recorded(one.topic) for one in told}
    release = wanted["creating"]["server"].rpartition(".")[0]
    if not f"v{cluster.version.removeprefix('v')}".startswith(f"{release}."):
        pytest.skip(f"the recordings are of {release}, and this is {cluster.version}")
    server = real(Path(cluster.kubeconfig), tmp_path)
    async with aiohttp.ClientSession(timeout=PATIENCE) as session, prepared(session, server):
        ends = await all_played(session, server, told)
    found: list[object] = []
    for one in told:
        end = ends[one.name]
        if isinstance(end, BaseException):
            found.append(f"{one.topic}/{one.name} could not be told: {end!r}")
        else:
            found += differences(f"{one.topic}/{one.name}", wanted[one.topic]["stories"][one.name], end)
    assert not found, "\n".join(map(str, found))
