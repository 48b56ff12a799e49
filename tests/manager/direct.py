"""The client without HTTP, with a memory of its calls, and with calls that are refused on demand."""

from typing import Any

from dtj_operator.kube.client import ApiError, Json, Kind, Verb
from dtj_operator.local import direct
from dtj_operator.local.api import Api


class DirectClient(direct.DirectClient):
    """Each call is remembered in `calls`, as `create Pod`; `fails` names those that are refused."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        self.calls: list[str] = []
        self.fails: dict[str, ApiError] = {}

    async def _answer(self, verb: Verb, kind: Kind, namespace: str | None, name: str = "", **rest: Any) -> Json:
        call = f"{verb} {kind.kind}"
        self.calls.append(call)
        if call in self.fails:
            raise self.fails[call]
        return await super()._answer(verb, kind, namespace, name, **rest)
