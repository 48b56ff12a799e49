"""Which request a URL means, and the documents that belong to no resource: health, version, discovery, OpenAPI."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web

from dtj_operator.local import discovery, openapi
from dtj_operator.local.failures import ApiFailure, method_not_allowed, no_such_group, no_such_path
from dtj_operator.local.state import Request

if TYPE_CHECKING:
    from dtj_operator.local.api import Api

Json = dict[str, Any]

HEALTH = frozenset({"/healthz", "/readyz", "/livez"})
_NOT_OFFERED = frozenset({"exec", "attach", "portforward"})
_OPENAPI_V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


class Document(msgspec.Struct, frozen=True):
    raw: bytes
    content_type: str = "application/json"
    code: int = 200

    def response(self) -> web.Response:
        return web.Response(body=self.raw, status=self.code, headers={"Content-Type": self.content_type})


def document(api: "Api", path: str, accept: str) -> Document | None:
    """The answer to a URL that names no resource; None for all others."""
    kinds = api.state.kinds
    parts = [part for part in path.split("/") if part]
    match parts:
        case ["healthz" | "readyz" | "livez", *_]:
            return Document(b"ok", "text/plain; charset=utf-8")
        case ["version"]:
            return _document(discovery.VERSION)
        case ["openapi", "v2"]:
            return _openapi_v2(accept)
        case ["openapi", "v3"]:
            return _document(openapi.index(api.state))
        case ["openapi", "v3", "api", version]:
            return _described(lambda: openapi.document(api.state, "", version))
        case ["openapi", "v3", "apis", group, version]:
            return _described(lambda: openapi.document(api.state, group, version))
        case ["api" | "apis" as root]:
            if discovery.AGGREGATED in accept:
                found = discovery.aggregated(kinds, core=root == "api")
                return Document(
                    msgspec.json.encode(found),
                    f"application/json;g={discovery.AGGREGATED};v=v2;as=APIGroupDiscoveryList",
                )
            return _document(discovery.core_versions() if root == "api" else discovery.group_list(kinds))
        case ["api", version]:
            return _found(lambda: discovery.resource_list(kinds, "", version), _missing(api, ""))
        case ["apis", group]:
            return _found(lambda: discovery.group(kinds, group), _missing(api, group))
        case ["apis", group, version]:
            return _found(lambda: discovery.resource_list(kinds, group, version), _missing(api, group))
        case _:
            return None


def target(api: "Api", method: str, path: str, params: Mapping[str, str]) -> Request:
    """The request without its body. 404 for what is not served, 405 for a verb the resource does not have."""
    parts = [part for part in path.split("/") if part]
    match parts:
        case ["api", version, *rest]:
            group, api_version = "", version
        case ["apis", group, version, *rest]:
            api_version = f"{group}/{version}"
        case _:
            raise no_such_group()
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) >= 3 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest, "", "", "")[:3]
    if len(rest) > 3:
        raise no_such_path()
    if not any(served.api_version == api_version for served in api.state.kinds):
        raise _missing(api, group)
    kind = api.kind(api_version, plural)
    if subresource and subresource not in kind.subresources:
        raise no_such_path()
    if subresource in _NOT_OFFERED:
        raise _not_offered(subresource)
    verb = _verb(method, name, params)
    if (verb == "create" and name and not subresource) or (verb in ("update", "patch") and not name):
        raise method_not_allowed()
    if kind.namespaced and not namespace and verb not in ("list", "watch"):
        raise no_such_path() if name else method_not_allowed()
    if not subresource and verb not in kind.verbs:
        raise method_not_allowed()
    return Request(
        verb=verb, kind=kind, namespace=namespace if kind.namespaced else "", name=name, subresource=subresource,
        params=dict(params),
    )  # fmt: skip


def _verb(method: str, name: str, params: Mapping[str, str]) -> str:
    if method in ("GET", "HEAD"):
        # Go's conversion takes every value but these for true; one object is not watched but read.
        if not name and params.get("watch", "0").lower() not in ("0", "false"):
            return "watch"
        return "get" if name else "list"
    if method == "DELETE":
        return "delete" if name else "deletecollection"
    if method not in _VERBS:
        raise method_not_allowed()
    return _VERBS[method]


def _not_offered(subresource: str) -> ApiFailure:
    told = f"the embedded cluster runs containers as local processes and does not offer {subresource}"
    return ApiFailure(501, "NotImplemented", f"{told}; attach a debugger to the process, or use a real cluster")


def _openapi_v2(accept: str) -> Document:
    """An empty document, which in protobuf has no bytes.

    kubectl asks for it where v3 lacks a kind, and says that there is no such kind only if it gets one.
    """
    if "protobuf" in accept:
        return Document(b"", _OPENAPI_V2_PROTOBUF)
    info = {"title": "Kubernetes", "version": discovery.VERSION["gitVersion"]}
    return _document({"swagger": "2.0", "info": info, "paths": {}})


def _document(content: Json) -> Document:
    return Document(msgspec.json.encode(content))


def _found(build: Callable[[], Json], missing: ApiFailure) -> Document:
    try:
        return _document(build())
    except KeyError:
        raise missing from None


def _missing(api: "Api", group: str) -> ApiFailure:
    """Of a version that is not served: a group that is known says so in a Status."""
    return no_such_path() if group in api.state.kinds.groups() else no_such_group()


def _described(build: Callable[[], Json]) -> Document:
    """A 404 without a word where there is no document."""
    try:
        return _document(build())
    except KeyError:
        return Document(b"", "text/plain; charset=utf-8", 404)
