"""The two sides of the comparison: an embedded API server, and a real one behind a kubeconfig. Both get our kinds."""

import asyncio
import importlib
import pkgutil
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import kopf
import yaml

from dtj_operator.local.api import Api
from dtj_operator.local.apiserver import ApiServer
from tests.conformance import stories
from tests.conformance.play import STORIES, Ask, Server, Story, played
from tests.local.training import definition

Json = dict[str, Any]

_OURS = Path(__file__).parents[2] / "crds" / "distributedtrainingjobs.dtj.dev.yaml"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_AT_ONCE = 6


def all_stories() -> list[Story]:
    for module in pkgutil.iter_modules(stories.__path__):
        importlib.import_module(f"{stories.__name__}.{module.name}")
    return sorted(STORIES, key=lambda one: one.topic)


@asynccontextmanager
async def embedded(folder: Path, history: int = 8192) -> AsyncIterator[Server]:
    """A fresh server, alone: no kubelet, no scheduler."""
    serving = ApiServer(Api(history=history), token="a-token-of-the-test")
    await serving.start()
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(serving.kubeconfig()))
    try:
        yield Server(serving.url, {"Authorization": "Bearer a-token-of-the-test"}, kubeconfig=kubeconfig)
    finally:
        await serving.stop()


def real(kubeconfig: Path, folder: Path) -> Server:
    """The server that the kubeconfig's current context names; kubectl keeps what it learns of it in the folder."""
    config = yaml.safe_load(kubeconfig.read_text())
    context = next(one["context"] for one in config["contexts"] if one["name"] == config["current-context"])
    cluster = next(one["cluster"] for one in config["clusters"] if one["name"] == context["cluster"])
    user = next(one["user"] for one in config["users"] if one["name"] == context["user"])
    info = kopf.ConnectionInfo(
        server=cluster["server"], ca_path=cluster.get("certificate-authority"),
        ca_data=cluster.get("certificate-authority-data"), token=user.get("token"),
        certificate_path=user.get("client-certificate"), certificate_data=user.get("client-certificate-data"),
        private_key_path=user.get("client-key"), private_key_data=user.get("client-key-data"),
    )  # fmt: skip
    tls: ssl.SSLContext | bool = info.as_ssl_context() if info.server.startswith("https:") else True
    own = folder / "kubeconfig"
    own.write_bytes(kubeconfig.read_bytes())
    return Server(info.server, dict(info.as_http_headers()), tls, own)


@asynccontextmanager
async def prepared(session: aiohttp.ClientSession, server: Server) -> AsyncIterator[str]:
    """The server's version, while it has the kinds of the stories; those that it had not are taken away again."""
    ask = Ask(session, server, "default")
    made = []
    for manifest in (definition(), yaml.safe_load(_OURS.read_text())):
        name = manifest["metadata"]["name"]
        answer = await ask.quietly("POST", _DEFINITIONS, manifest)
        assert answer.get("reason", "AlreadyExists") == "AlreadyExists", answer["message"]
        if "reason" not in answer:
            made.append(name)
        await ask.until(_DEFINITIONS, name, _established)
    version: Json = await ask.quietly("GET", "/version")
    try:
        yield str(version["gitVersion"])
    finally:
        for name in made:
            await ask.quietly("DELETE", f"{_DEFINITIONS}/{name}")


async def all_played(
    session: aiohttp.ClientSession, server: Server, told: list[Story]
) -> dict[str, list[Json] | BaseException]:
    """The answers by the story's name, or what ended the story."""
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(about: Story) -> list[Json]:
        async with room:
            return await played(session, server, about)

    ends = await asyncio.gather(*(one(about) for about in told), return_exceptions=True)
    return {about.name: end for about, end in zip(told, ends, strict=True)}


def _established(body: Json | None) -> bool:
    conditions = (body or {}).get("status", {}).get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
