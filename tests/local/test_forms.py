"""Which form of an answer an Accept header asks for, and in which version."""

import aiohttp
import pytest

from dtj_operator.local.api import Api
from dtj_operator.local.apiserver import ApiServer
from tests.local.calls import config_map

MAPS = "/api/v1/namespaces/default/configmaps"
TOKEN = "a-token-of-the-test"


@pytest.mark.parametrize(
    ("accept", "kind", "version"),
    [
        ("application/json;as=Table;v=v1;g=meta.k8s.io", "Table", "meta.k8s.io/v1"),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io", "Table", "meta.k8s.io/v1beta1"),
        ("application/json;as=PartialObjectMetadataList;v=v1beta1;g=meta.k8s.io", "PartialObjectMetadataList",
         "meta.k8s.io/v1beta1"),
        ("application/json;as=Table;v=v2;g=meta.k8s.io, application/json;as=Table;v=v1beta1;g=meta.k8s.io", "Table",
         "meta.k8s.io/v1beta1"),
        ("Application/JSON; As=Table; V=v1; G=meta.k8s.io", "Table", "meta.k8s.io/v1"),
        ("APPLICATION/JSON", "ConfigMapList", "v1"),
        ("application/json;as=Table;v=v2;g=meta.k8s.io", "Status", "v1"),
        ("text/html", "Status", "v1"),
    ],
)  # fmt: skip
async def test_the_form_is_the_first_of_the_header_that_is_known(accept: str, kind: str, version: str) -> None:
    server = ApiServer(Api(), token=TOKEN)
    await server.start()
    try:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with aiohttp.ClientSession(server.url, headers=headers) as http:
            async with http.post(MAPS, json=config_map()) as response:
                assert response.status == 201
            async with http.get(MAPS, headers={"Accept": accept}) as response:
                answer = await response.json()
                assert (response.status == 406) is (kind == "Status")
    finally:
        await server.stop()
    assert (answer["kind"], answer["apiVersion"]) == (kind, version)
    inner = [row["object"] for row in answer.get("rows", ())] or answer.get("items", ()) if "meta" in version else ()
    assert [one["apiVersion"] for one in inner] == [version] * len(inner)
