"""An Api with a clock and uids of its own, and short verbs to call it by. No test lives here."""

import datetime
import itertools
from typing import Any

from dtj_operator.local.api import Api
from dtj_operator.local.failures import ApiFailure
from dtj_operator.local.state import Request

Json = dict[str, Any]

START = datetime.datetime(2026, 11, 30, 12, 0, 0, tzinfo=datetime.UTC)
PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class Calls:
    """Calls return the decoded answer; `refused` returns what they raise."""

    def __init__(self, **limits: int) -> None:
        self.now = START
        uids = itertools.count(1)
        self.api = Api(now=lambda: self.now, uid=lambda: f"uid-{next(uids)}", **limits)

    def wait(self, seconds: float) -> None:
        self.now += datetime.timedelta(seconds=seconds)

    def call(self, verb: str, what: str, name: str = "", *, body: Any = None, **rest: Any) -> Any:
        """`what` is `v1/pods`, `apps.io/v1/things`, with `/status` behind it for a subresource."""
        resource, _, subresource = what.partition(":")
        api_version, _, plural = resource.rpartition("/")
        kind = self.api.kind(api_version, plural)
        namespace = rest.pop("namespace", "default") if kind.namespaced else ""
        content_type = rest.pop("content_type", "application/json")
        params = {key: str(value) for key, value in rest.items()}
        request = Request(
            verb=verb, kind=kind, namespace=namespace, name=name, subresource=subresource, body=body, params=params,
            content_type=content_type, agent="test/1",
        )  # fmt: skip
        return self.api.request(request).body

    def create(self, manifest: Json, **rest: Any) -> Any:
        kind = self.api.state.kinds.named(manifest["apiVersion"], manifest["kind"])
        assert kind is not None
        return self.call("create", f"{kind.api_version}/{kind.plural}", body=manifest, **rest)

    def get(self, what: str, name: str, **rest: Any) -> Any:
        return self.call("get", what, name, **rest)

    def names(self, what: str, **rest: Any) -> list[str]:
        return [item["metadata"]["name"] for item in self.call("list", what, **rest)["items"]]

    def patch(self, what: str, name: str, patch: Any, *, how: str = "merge", **rest: Any) -> Any:
        return self.call("patch", what, name, body=patch, content_type=PATCHES[how], **rest)

    def apply(self, what: str, manifest: Json, *, manager: str, **rest: Any) -> Any:
        return self.patch(what, manifest["metadata"]["name"], manifest, how="apply", fieldManager=manager, **rest)

    def delete(self, what: str, name: str, body: Any = None, **rest: Any) -> Any:
        return self.call("delete", what, name, body=body, **rest)


def refused(call: Any, *args: Any, **rest: Any) -> ApiFailure:
    try:
        answer = call(*args, **rest)
    except ApiFailure as failure:
        return failure
    raise AssertionError(f"granted: {answer}")


def pod(name: str = "a", **spec: Any) -> Json:
    containers = [{"name": "trainer", "image": "trainer:1"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": containers, **spec},
    }


def config_map(name: str = "a", **data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def owned(manifest: Json, owner: Json, **rest: Any) -> Json:
    """The manifest with the owner's reference on it."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        **rest,
    }
    owners = [*manifest["metadata"].get("ownerReferences", []), reference]
    return {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": owners}}
