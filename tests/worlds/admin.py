"""What people ask of a real cluster and the operator does not: kinds of all sorts, evictions, logs."""

import asyncio

import aiohttp
import msgspec

from dtj_operator.kube.client import KINDS, ApiError, Json, Kind
from dtj_operator.kube.http import PATCH_TYPES, REQUEST, Call, HttpClient
from tests.worlds.world import Refused, Verb

OTHERS = (
    Kind("ConfigMap", "", "v1", "configmaps"),
    Kind("ResourceQuota", "", "v1", "resourcequotas"),
    Kind("LimitRange", "", "v1", "limitranges"),
    Kind("Namespace", "", "v1", "namespaces", namespaced=False),
    Kind("PersistentVolume", "", "v1", "persistentvolumes", namespaced=False),
    Kind("Deployment", "apps", "v1", "deployments"),
)


class Admin(HttpClient):
    """Our own client, and one way more to make each call."""

    async def cut(self) -> None:
        """Before those who watch are cancelled: an orderly end of their TLS would outlive the test's loop."""
        if self._session is not None and self._session.connector is not None:
            await self._session.connector.close(abort_ssl=True)
            await asyncio.sleep(0.1)  # until the last of their sockets is closed, of which nobody tells

    async def ask(
        self,
        verb: Verb,
        kind: Kind,
        namespace: str | None,
        name: str = "",
        *,
        body: Json | None = None,
        subresource: str = "",
        params: dict[str, str] | None = None,
    ) -> Json:
        """Patches are merge patches; a refusal is raised as Refused, in the server's words."""
        content_type = PATCH_TYPES["merge"] if verb == "patch" else "application/json"
        path = kind.path(namespace if kind.namespaced else None, name, subresource)
        call = Call(
            verb,
            path,
            params or {},
            None if body is None else msgspec.json.encode(body),
            content_type,
            is_safe=verb == "list",
        )
        try:
            return await self._answer(call)
        except ApiError as error:
            raise Refused(error.code, error.message) from None

    async def log(self, namespace: str, pod: str, container: str, *, previous: bool = False) -> str:
        params = {"container": container, "previous": str(previous).lower()}
        call = Call("get", kind_of("Pod").path(namespace, pod, "log"), params, is_safe=True)
        try:
            async with await self._response(call, REQUEST) as response:
                return await response.text()
        except ApiError as error:
            raise Refused(error.code, error.message) from None
        except (TimeoutError, aiohttp.ClientError) as error:
            raise Refused(0, f"the kubelet of {pod} tells nothing: {error!r}") from None  # its node may be lost


def kind_of(name: str) -> Kind:
    return next(kind for kind in (*KINDS, *OTHERS) if kind.kind == name)
