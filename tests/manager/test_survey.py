"""What the operator finds out before it starts, and in which words it says that it can't."""

import asyncio
import base64

import pytest

from dtj_operator.api.observed import Facts
from dtj_operator.kube.client import JOB, SECRET, ApiError
from dtj_operator.kube.http import Credentials, HttpClient
from dtj_operator.local.api import Api
from dtj_operator.local.apiserver import ApiServer
from dtj_operator.manager.survey import KEY_BYTES, KEY_SECRET, BadConfiguration, survey
from tests.kube.conftest import TOKEN, Script, says

ASKED = Facts(namespace="default", has_autoscaler=True)


async def test_all_processes_of_an_operator_share_one_key(client: HttpClient) -> None:
    facts = await asyncio.gather(*(survey(client, ASKED, (None,)) for _ in range(3)))
    assert len({one.token_key for one in facts}) == 1
    assert len(facts[0].token_key) == KEY_BYTES
    assert (facts[0].has_node_rights, facts[0].has_autoscaler) == (True, True)


async def test_a_missing_crd_is_named() -> None:
    server = ApiServer(Api(), token=TOKEN)
    await server.start()
    async with HttpClient(lambda: Credentials(server.url, {"Authorization": f"Bearer {TOKEN}"})) as client:
        with pytest.raises(BadConfiguration, match=r"knows no distributedtrainingjobs.dtj.dev; install the CRD"):
            await survey(client, ASKED, (None,))
    await server.stop()


NO_KEY = "holds no 'key' of 32 bytes; delete it"
FORBIDDEN = says(403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "you may not"})
LIST = says(200, {"metadata": {"resourceVersion": "1"}, "items": []})
KEY = says(200, {"data": {"key": base64.b64encode(b"k" * KEY_BYTES).decode()}})


async def test_without_the_right_to_nodes_it_works_and_says_so(script: Script) -> None:
    script.answers = [LIST, FORBIDDEN, KEY]
    async with script.client() as client:
        facts = await survey(client, ASKED, ("ml",))
    assert (facts.has_node_rights, facts.token_key) == (False, b"k" * KEY_BYTES)
    assert script.requests[0][1] == JOB.path("ml")


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        pytest.param([FORBIDDEN], "may not list jobs in namespace ml: you may not; grant it", id="no right to jobs"),
        pytest.param([LIST, LIST, LIST, FORBIDDEN], "dtj-operator-token-key can't be read or made", id="no secrets"),
        pytest.param([LIST, LIST, LIST, says(200, {})], NO_KEY, id="a Secret of something else"),
        pytest.param([LIST, LIST, LIST, says(200, {"data": {"key": "%"}})], NO_KEY, id="a broken Secret"),
        pytest.param([LIST, LIST, LIST, says(200, {"data": {"key": ""}})], NO_KEY, id="a Secret that is none"),
        pytest.param([LIST, LIST, LIST, says(200, {"data": None})], NO_KEY, id="an empty Secret"),
    ],
)
async def test_what_is_missing_is_named(script: Script, answers: list[object], words: str) -> None:
    script.answers = answers  # type: ignore[assignment]
    async with script.client() as client:
        with pytest.raises(BadConfiguration, match=words):
            await survey(client, ASKED, ("ml",))


async def test_an_api_server_that_is_away_is_no_fault_of_the_configuration(script: Script) -> None:
    script.answers = [says(500)]
    async with script.client() as client:
        with pytest.raises(ApiError):
            await survey(client, ASKED, (None,))
    assert SECRET.path("default", KEY_SECRET) not in [path for _, path, _ in script.requests]
