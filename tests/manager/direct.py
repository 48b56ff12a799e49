"""A Client that speaks to the embedded API without HTTP, so that a test's time can be virtual."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import msgspec

from dtj_operator.kube.client import (
    FIELD_MANAGER,
    PAGE,
    ApiError,
    Json,
    Kind,
    Page,
    PatchType,
    Propagation,
    WatchEvent,
    kind_of,
)
from dtj_operator.kube.http import PATCH_TYPES
from dtj_operator.local.api import Api
from dtj_operator.local.failures import ApiFailure
from dtj_operator.local.state import Request
from dtj_operator.local.verbs.reading import event_raw


class DirectClient:
    """Each call takes one turn of the loop, and is remembered in `calls`; `fails` names those that are refused."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.calls: list[str] = []
        self.fails: dict[str, ApiError] = {}

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Json:
        return await self._request("get", kind, namespace, name)

    async def pages(
        self, kind: Kind, namespace: str | None = None, *, labels: str = "", fields: str = "", limit: int = PAGE
    ) -> AsyncGenerator[Page, None]:
        params = {"labelSelector": labels, "fieldSelector": fields}
        answer = await self._request("list", kind, namespace, params=params)
        yield Page(answer["items"], answer["metadata"]["resourceVersion"])

    async def watch(
        self, kind: Kind, namespace: str | None, since: str, *, labels: str = "", fields: str = ""
    ) -> AsyncGenerator[WatchEvent, None]:
        params = {"resourceVersion": since, "labelSelector": labels, "fieldSelector": fields}
        params["allowWatchBookmarks"] = "true"
        follower = self._api.watch(self._made("watch", kind, namespace, params=params))
        try:
            async for event in follower.events():
                told = msgspec.json.decode(event_raw(follower.kind, event))
                if told["type"] == "ERROR":
                    raise ApiError.of_status(told["object"])
                yield WatchEvent(told["type"], told["object"])
        finally:
            follower.close()

    async def create(self, manifest: Json, *, dry_run: bool = False, strict: bool = False) -> Json:
        params = {"dryRun": "All"} if dry_run else {}
        params |= {"fieldValidation": "Strict"} if strict else {}
        kind, namespace = kind_of(manifest), manifest["metadata"].get("namespace")
        return await self._request("create", kind, namespace, body=manifest, params=params)

    async def patch(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        patch: Json | list[Json],
        *,
        type: PatchType = "merge",  # noqa: A002 - Kubernetes' own word
        subresource: str = "",
    ) -> Json:
        how = {"subresource": subresource, "content_type": PATCH_TYPES[type]}
        return await self._request("patch", kind, namespace, name, body=patch, **how)

    async def delete(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        *,
        uid: str,
        force: bool = False,
        propagation: Propagation = "Background",
    ) -> None:
        body: Json = {"preconditions": {"uid": uid}, "propagationPolicy": propagation}
        if force:
            body["gracePeriodSeconds"] = 0
        await self._request("delete", kind, namespace, name, body=body)

    async def _request(self, verb: str, kind: Kind, namespace: str | None, name: str = "", **how: Any) -> Json:
        call = f"{verb} {kind.kind}"
        self.calls.append(call)
        await asyncio.sleep(0)
        if call in self.fails:
            raise self.fails[call]
        try:
            answer: Json = self._api.request(self._made(verb, kind, namespace, name, **how)).body
        except ApiFailure as failure:
            raise ApiError.of_status(failure.status, failure.code, call) from failure
        return answer

    def _made(self, verb: str, kind: Kind, namespace: str | None, name: str = "", **how: Any) -> Request:
        served = self._api.kind(kind.api_version, kind.plural)
        how["params"] = {k: v for k, v in {"fieldManager": FIELD_MANAGER, **how.get("params", {})}.items() if v}
        return Request(verb=verb, kind=served, namespace=namespace or "", name=name, agent="test", **how)
