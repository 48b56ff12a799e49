"""The objects of a manifest, put into an embedded cluster that is still empty: namespaces first, the job last."""

from collections.abc import Sequence
from typing import Any

from dtj_operator.cli.manifest import Document
from dtj_operator.cli.outcome import BAD_MANIFEST, Ended
from dtj_operator.local.api import Api
from dtj_operator.local.failures import ApiFailure
from dtj_operator.local.kinds import Kind
from dtj_operator.local.state import Request

Json = dict[str, Any]


def create(api: Api, documents: Sequence[Document]) -> list[str]:
    """What the API server warned of. Ended with BAD_MANIFEST, and a line for each object that it refuses."""
    refusals: list[str] = []
    warnings: list[str] = []
    for document in sorted(documents, key=lambda one: (one.is_job, one.body.get("kind") != "Namespace")):
        if refusals and document.is_job:
            break
        try:
            kind = _kind(api, document.body)
            if kind.namespaced:
                _make_namespace(api, document.namespace)
            warnings += _create(api, kind, document.namespace if kind.namespaced else "", document.body)
        except ApiFailure as failure:
            refusals.append(f"{document.place}: {failure}")
    if refusals:
        raise Ended(BAD_MANIFEST, refusals)
    return warnings


def _create(api: Api, kind: Kind, namespace: str, body: Json) -> tuple[str, ...]:
    name = str((body.get("metadata") or {}).get("name") or "")
    # A typo in a field's name is a fault, not something to pass over.
    params = {"fieldValidation": "Strict"}
    reply = api.request(
        Request(verb="create", kind=kind, namespace=namespace, name=name, body=body, params=params, agent="dtj")
    )
    return reply.warnings


def _kind(api: Api, body: Json) -> Kind:
    found = api.state.kinds.named(str(body.get("apiVersion")), str(body.get("kind")))
    if found is None:
        what = f"{body.get('apiVersion')} {body.get('kind')}"
        raise ApiFailure(404, "NotFound", f"the embedded cluster serves no {what}; it has what a job's file may need")
    return found


def _make_namespace(api: Api, name: str) -> None:
    """Whoever runs a job on a real cluster finds its namespace there; here nobody has made it."""
    kind = api.kind("v1", "namespaces")
    if api.state.read(kind, "", name) is None:
        api.request(Request(verb="create", kind=kind, body={"metadata": {"name": name}}, agent="dtj"))
