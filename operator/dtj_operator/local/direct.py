"""The operator's client on an Api in the same process: the questions and answers of HTTP, without a connection.

Simulations use it, where time is virtual and each call is a place at which the operator may be killed: before the
server has done what was asked, or after it has and before the answer is read.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

from dtj_operator.kube.client import (
    FIELD_MANAGER,
    PAGE,
    ApiError,
    Kind,
    Page,
    PatchType,
    Propagation,
    Verb,
    WatchEvent,
    kind_of,
)
from dtj_operator.kube.http import PATCH_TYPES, WATCH_SECONDS
from dtj_operator.local.api import Api
from dtj_operator.local.conversion import served_body
from dtj_operator.local.failures import ApiFailure
from dtj_operator.local.state import Request
from dtj_operator.local.verbs import reading

Json = dict[str, Any]


class DirectClient:
    """Implements `kube.client.Client`. `observe` is told of every request, as `HttpClient`'s is."""

    def __init__(self, api: Api, observe: Callable[[Verb, int], None] = lambda verb, code: None) -> None:
        self._api = api
        self._observe = observe

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Json:
        return await self._answer("get", kind, namespace, name)

    async def pages(
        self, kind: Kind, namespace: str | None = None, *, labels: str = "", fields: str = "", limit: int = PAGE
    ) -> AsyncGenerator[Page, None]:
        params = {"labelSelector": labels, "fieldSelector": fields, "limit": str(limit)}
        while True:
            answer = await self._answer("list", kind, namespace, params=params)
            metadata = answer["metadata"]
            yield Page(items=answer["items"], resource_version=metadata["resourceVersion"])
            if not metadata.get("continue"):
                return
            params = params | {"continue": metadata["continue"]}

    async def watch(
        self, kind: Kind, namespace: str | None, since: str, *, labels: str = "", fields: str = ""
    ) -> AsyncGenerator[WatchEvent, None]:
        params = {
            "labelSelector": labels,
            "fieldSelector": fields,
            "resourceVersion": since,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        await asyncio.sleep(0)
        self._observe("watch", 200)
        follower = self._api.watch(self._request("watch", kind, namespace, params=params))
        try:
            async for event in follower.events():
                match event.type:
                    case "ERROR":
                        raise ApiError.of_status(event.status or {}, what=f"watch {kind.path(namespace)}")
                    case "BOOKMARK":
                        yield WatchEvent("BOOKMARK", reading.bookmark(follower.kind, event))
                    case change:
                        assert event.entry is not None
                        yield WatchEvent(change, served_body(follower.kind, event.entry.decode()))
        finally:
            follower.close()

    async def create(self, manifest: Json, *, dry_run: bool = False, strict: bool = False) -> Json:
        params = {"fieldManager": FIELD_MANAGER}
        if dry_run:
            params["dryRun"] = "All"
        if strict:
            params["fieldValidation"] = "Strict"
        namespace = manifest["metadata"].get("namespace")
        return await self._answer("create", kind_of(manifest), namespace, params=params, body=manifest)

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
        return await self._answer(
            "patch", kind, namespace, name, subresource=subresource, params={"fieldManager": FIELD_MANAGER}, body=patch,
            content_type=PATCH_TYPES[type],
        )  # fmt: skip

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
        options: Json = {"propagationPolicy": propagation, "preconditions": {"uid": uid}}
        if force:
            options["gracePeriodSeconds"] = 0
        await self._answer("delete", kind, namespace, name, body=options)

    async def _answer(self, verb: Verb, kind: Kind, namespace: str | None, name: str = "", **rest: Any) -> Json:
        await asyncio.sleep(0)
        code = 0
        try:
            reply = self._api.request(self._request(verb, kind, namespace, name, **rest))
            code = reply.code
        except ApiFailure as failure:
            code = failure.code
            what = f"{verb} {kind.path(namespace, name, rest.get('subresource', ''))}"
            raise ApiError.of_status(failure.status, what=what) from None
        finally:
            self._observe(verb, code)
        await asyncio.sleep(0)
        answer: Json = reply.body
        return answer

    def _request(self, verb: Verb, kind: Kind, namespace: str | None, name: str = "", **rest: Any) -> Request:
        # The body is passed on as it is: a request never changes it.
        try:
            served = self._api.kind(kind.api_version, kind.plural)
        except ApiFailure as failure:
            raise ApiError.of_status(failure.status, what=f"{verb} {kind.path(namespace, name)}") from None
        scope = (namespace or "") if served.namespaced else ""
        return Request(verb=verb, kind=served, namespace=scope, name=name, agent=FIELD_MANAGER, **rest)
