"""Admission of what is written: namespaces, limits, service accounts, tolerations, priorities and quotas, in kube-apiserver's order."""

from typing import TYPE_CHECKING, Any

from dtj_operator.local.kinds import Kind

if TYPE_CHECKING:
    from dtj_operator.local.state import State

Json = dict[str, Any]


def mutate(state: "State", kind: Kind, body: Json) -> None:
    """Before the checks of a create: refuse where the namespace says no."""
    metadata = body["metadata"]
    if not kind.namespaced:
        return
    namespace = state.store.read("namespaces", "", metadata["namespace"])
    if namespace is None:
        from dtj_operator.local.failures import not_found

        raise not_found("namespaces", metadata["namespace"])


def check_quota(state: "State", kind: Kind, body: Json, old: Json | None, *, dry_run: bool) -> None:
    """Refuse what would exceed a quota of the namespace."""
