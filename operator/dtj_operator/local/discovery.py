"""What clients read first: versions, groups and resources, as many small documents or aggregated into one."""

from typing import Any

from dtj_operator.local.kinds import Kind, Kinds

Json = dict[str, Any]

AGGREGATED = "apidiscovery.k8s.io"

# The release whose behaviour is followed; clients compare it with their own.
VERSION: Json = {
    "major": "1",
    "minor": "37",
    "gitVersion": "v1.37.2",
    "gitCommit": "embedded",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "cpython",
    "platform": "dtj/embedded",
}
_CUSTOM_ORDER = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_SUBRESOURCE_KINDS = {
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "exec": ("", "v1", "PodExecOptions"),
    "attach": ("", "v1", "PodAttachOptions"),
    "portforward": ("", "v1", "PodPortForwardOptions"),
}
_SUBRESOURCE_VERBS = {
    "binding": ["create"],
    "eviction": ["create"],
    "log": ["get"],
    "exec": ["create", "get"],
    "attach": ["create", "get"],
    "portforward": ["create", "get"],
    "finalize": ["update"],
}


def core_versions() -> Json:
    """`/api`."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def group_list(kinds: Kinds) -> Json:
    """`/apis`."""
    groups = [group(kinds, name) for name in kinds.groups() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(kinds: Kinds, name: str) -> Json:
    """`/apis/<group>`; KeyError when it isn't served."""
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in kinds.groups()[name]]
    return {
        "kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": versions, "preferredVersion": versions[0]
    }  # fmt: skip


def resource_list(kinds: Kinds, group_name: str, version: str) -> Json:
    """`/api/v1` or `/apis/<group>/<version>`; KeyError when it isn't served."""
    served = [kind for kind in kinds if (kind.group, kind.version) == (group_name, version)]
    if not served:
        raise KeyError(f"{group_name}/{version}")
    resources = []
    for kind in sorted(served, key=lambda one: one.plural):
        entry: Json = {
            "name": kind.plural,
            "singularName": kind.singular,
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": _offered(kind),
        }
        if kind.short_names:
            entry["shortNames"] = list(kind.short_names)
        if kind.categories:
            entry["categories"] = list(kind.categories)
        resources.append(entry)
        resources += [_subresource(kind, name) for name in sorted(kind.subresources)]
    # That of the core group says no version of its own, which is as old as the API.
    header = {"kind": "APIResourceList"} | ({"apiVersion": "v1"} if group_name else {})
    return {**header, "groupVersion": served[0].api_version, "resources": resources}


def aggregated(kinds: Kinds, *, core: bool) -> Json:
    """`/api` or `/apis` for clients that ask for `APIGroupDiscoveryList`."""
    items = []
    for name, versions in kinds.groups().items():
        if (name == "") is core:
            described = [_aggregated_version(kinds, name, version) for version in versions]
            items.append({"metadata": {"name": name} if name else {}, "versions": described})
    return {
        "kind": "APIGroupDiscoveryList", "apiVersion": f"{AGGREGATED}/v2", "metadata": {}, "items": items
    }  # fmt: skip


def _aggregated_version(kinds: Kinds, group_name: str, version: str) -> Json:
    resources = []
    served = [kind for kind in kinds if (kind.group, kind.version) == (group_name, version)]
    for kind in sorted(served, key=lambda one: one.plural):
        entry: Json = {
            "resource": kind.plural,
            "responseKind": _response_kind(*_answered_group(kind), kind.kind),
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "singularResource": kind.singular,
            "verbs": _offered(kind),
        }
        if kind.short_names:
            entry["shortNames"] = list(kind.short_names)
        if kind.categories:
            entry["categories"] = list(kind.categories)
        if kind.subresources:
            entry["subresources"] = [_aggregated_subresource(kind, name) for name in sorted(kind.subresources)]
        resources.append(entry)
    return {"version": version, "resources": resources, "freshness": "Current"}


def _subresource(kind: Kind, name: str) -> Json:
    group_name, version, answers = _SUBRESOURCE_KINDS.get(name, ("", "", kind.kind))
    entry: Json = {
        "name": f"{kind.plural}/{name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": answers,
        "verbs": _verbs(name),
    }
    return entry | ({"group": group_name, "version": version} if group_name else {})


def _aggregated_subresource(kind: Kind, name: str) -> Json:
    own = _answered_group(kind)
    group_name, version, answers_kind = _SUBRESOURCE_KINDS.get(name, (*own, kind.kind))
    answers = (group_name, version, answers_kind) if group_name else (*own, answers_kind)
    return {"subresource": name, "responseKind": _response_kind(*answers), "verbs": _verbs(name)}


def _answered_group(kind: Kind) -> tuple[str, str]:
    """Left empty for built-in kinds: it is that of the list around them."""
    return (kind.group, kind.version) if kind.custom else ("", "")


def _offered(kind: Kind) -> list[str]:
    """In kube-apiserver's order, which is another for custom kinds."""
    order = _CUSTOM_ORDER if kind.custom else kind.verbs
    return [verb for verb in order if verb in kind.verbs]


def _verbs(subresource: str) -> list[str]:
    return _SUBRESOURCE_VERBS.get(subresource, ["get", "patch", "update"])


def _response_kind(group_name: str, version: str, kind: str) -> Json:
    return {"group": group_name, "version": version, "kind": kind}
