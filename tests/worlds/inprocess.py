"""What worlds have in common whose API server is an object of this process."""

import asyncio

from dtj_operator.local.api import Api
from dtj_operator.local.failures import ApiFailure
from dtj_operator.local.objects import Objects
from dtj_operator.local.state import Request
from tests.worlds.watched import Watched
from tests.worlds.world import NAMESPACE, Json, Refused, Verb

MERGE = "application/merge-patch+json"


class InProcess(Watched):
    """A World whose store is the API server's own."""

    def __init__(self, api: Api) -> None:
        super().__init__(api.state.store)
        self.api = api
        self.stored = Objects(api, "test")

    async def ask(self, verb: Verb, kind: str, name: str = "", body: Json | None = None, subresource: str = "") -> Json:
        asked = next(one for one in self.api.state.kinds if one.kind == kind)
        request = Request(
            verb=verb,
            kind=asked,
            namespace=NAMESPACE if asked.namespaced else "",
            name=name,
            subresource=subresource,
            body=body,
            content_type=MERGE if verb == "patch" else "application/json",
        )
        try:
            reply = self.api.request(request)
        except ApiFailure as failure:
            raise Refused(failure.code, str(failure)) from None
        await asyncio.sleep(0)
        found: Json = reply.body
        return found
