"""What the operator asks of a Kubernetes API: kinds, verbs, errors; objects are plain dicts. HTTP is in `http.py`."""

from collections.abc import AsyncGenerator
from typing import Any, Literal, Protocol

from msgspec import Struct

from dtj_operator.api import names

Json = dict[str, Any]
PatchType = Literal["merge", "json", "apply"]
Propagation = Literal["Background", "Foreground", "Orphan"]
Verb = Literal["get", "list", "watch", "create", "patch", "delete"]

FIELD_MANAGER = "dtj-operator"
PAGE = 500
"""Objects of one page of a list."""


class Kind(Struct, frozen=True):
    """Where objects of a kind live in the API. `group` is empty for the core group."""

    kind: str
    group: str
    version: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None, name: str = "", subresource: str = "") -> str:
        """The URL path of an object, or of all of them in a namespace or (None) in the cluster."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        return "/" + "/".join(part for part in (*parts, self.plural, name, subresource) if part)


JOB = Kind(names.KIND, names.GROUP, names.VERSION, names.PLURAL)
POD = Kind("Pod", "", "v1", "pods")
NODE = Kind("Node", "", "v1", "nodes", namespaced=False)
SECRET = Kind("Secret", "", "v1", "secrets")
LEASE = Kind("Lease", "coordination.k8s.io", "v1", "leases")
EVENT = Kind("Event", "", "v1", "events")
CLAIM = Kind("PersistentVolumeClaim", "", "v1", "persistentvolumeclaims")

KINDS: tuple[Kind, ...] = (
    JOB,
    POD,
    NODE,
    SECRET,
    LEASE,
    EVENT,
    Kind("Service", "", "v1", "services"),
    CLAIM,
    Kind("NetworkPolicy", "networking.k8s.io", "v1", "networkpolicies"),
    Kind("PodDisruptionBudget", "policy", "v1", "poddisruptionbudgets"),
)
"""Every kind the operator touches. A gang backend with a group object of its own adds its row."""


def kind_of(manifest: Json) -> Kind:
    """The kind of a manifest; KeyError for one that isn't in KINDS."""
    for kind in KINDS:
        if (kind.kind, kind.api_version) == (manifest["kind"], manifest["apiVersion"]):
            return kind
    raise KeyError(f"{manifest['apiVersion']} {manifest['kind']}")


def kind_named(name: str) -> Kind:
    """The kind that an action names: `Service`, or `PodGroup.scheduling.volcano.sh` where several groups have it."""
    plain, _, group = name.partition(".")
    for kind in KINDS:
        if kind.kind == plain and group in ("", kind.group):
            return kind
    raise KeyError(name)


class ApiError(Exception):
    """What the API server answered instead of what was asked for. `code` is 0 where no answer came at all.

    `reason` is Kubernetes' own (`Conflict`, `NotFound`, `Expired`), `message` the server's own words, `retry_after` the
    seconds it asked to wait.
    """

    def __init__(self, code: int, reason: str, message: str, what: str = "", retry_after: float | None = None) -> None:
        super().__init__(code, reason, message, what)
        self.code = code
        self.reason = reason
        self.message = message
        self.what = what
        self.retry_after = retry_after

    def __str__(self) -> str:
        told = f"{self.code} {self.reason}: {self.message}" if self.code else self.message
        return f"{self.what}: {told}" if self.what else told

    @property
    def is_transient(self) -> bool:
        """The same call may succeed later although nobody changes anything."""
        return self.code in (0, 408, 429) or self.code >= 500

    @classmethod
    def of_status(cls, status: Json, code: int = 0, what: str = "", retry_after: float | None = None) -> "ApiError":
        """The error that a Kubernetes Status object tells."""
        number = status.get("code") or code
        reason = status.get("reason") or "Unknown"
        return cls(int(number), str(reason), str(status.get("message") or reason), what, retry_after)


class Page(Struct, frozen=True):
    """A part of a list; all pages of one list show the state of the same `resource_version`."""

    items: list[Json]
    resource_version: str


class WatchEvent(Struct, frozen=True):
    """A change of one object. A BOOKMARK's object carries a resourceVersion and nothing else."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    object: Json

    @property
    def resource_version(self) -> str:
        return str(self.object["metadata"]["resourceVersion"])


class Client(Protocol):
    """A Kubernetes API. Each call raises ApiError; what may be repeated safely has been repeated by then."""

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Json: ...

    def pages(
        self, kind: Kind, namespace: str | None = None, *, labels: str = "", fields: str = "", limit: int = PAGE
    ) -> AsyncGenerator[Page, None]:
        """All objects that match the selectors, `limit` at a time; ApiError 410 when the list got too old half-way."""

    def watch(
        self, kind: Kind, namespace: str | None, since: str, *, labels: str = "", fields: str = ""
    ) -> AsyncGenerator[WatchEvent, None]:
        """Changes after the resourceVersion `since`, bookmarks included, until the stream ends (every few minutes).

        ApiError 410 when the server no longer knows that version; the caller has to list again.
        """

    async def create(self, manifest: Json, *, dry_run: bool = False, strict: bool = False) -> Json:
        """Create the object in its own namespace. `strict` refuses fields that the API doesn't know."""

    async def patch(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        patch: Json | list[Json],
        *,
        type: PatchType = "merge",  # noqa: A002 - Kubernetes' own word
        subresource: str = "",
    ) -> Json: ...

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
        """Delete this one incarnation (409 if the name has another one by now), by `force` without any grace period."""
