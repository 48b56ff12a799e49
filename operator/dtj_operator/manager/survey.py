"""What the operator finds out once, before it starts: is its CRD there, what may it do, what key signs its tokens."""

import base64
import secrets
from contextlib import aclosing
from http import HTTPStatus

import msgspec

from dtj_operator.api import names
from dtj_operator.api.observed import Facts
from dtj_operator.kube.client import JOB, NODE, POD, SECRET, ApiError, Client, Json, Kind

KEY_SECRET = "dtj-operator-token-key"
KEY_FIELD = "key"
KEY_BYTES = 32


class BadConfiguration(Exception):
    """The operator can't work here; the message says what is missing and what to do."""


async def survey(client: Client, asked: Facts, namespaces: tuple[str | None, ...]) -> Facts:
    """What was asked for and what the API server says; BadConfiguration, or ApiError while there is no telling."""
    for namespace in namespaces:
        await _check_jobs(client, namespace)
    return msgspec.structs.replace(
        asked,
        has_node_rights=await _may_list(client, NODE) and await _may_list(client, POD),
        token_key=await _token_key(client, asked.namespace),
    )


async def _check_jobs(client: Client, namespace: str | None) -> None:
    try:
        await _list(client, JOB, namespace)
    except ApiError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            crd = f"{names.PLURAL}.{names.GROUP}"
            raise BadConfiguration(
                f"the API server knows no {crd}; install the CRD (kubectl apply --server-side -f crds/) and start again"
            ) from error
        if error.code == HTTPStatus.FORBIDDEN:
            where = f"in namespace {namespace}" if namespace else "in all namespaces"
            raise BadConfiguration(
                f"this account may not list jobs {where}: {error.message}; grant it the chart's role or name namespaces"
            ) from error
        raise


async def _may_list(client: Client, kind: Kind) -> bool:
    try:
        await _list(client, kind, None)
    except ApiError as error:
        if error.code == HTTPStatus.FORBIDDEN:
            return False
        raise
    return True


async def _list(client: Client, kind: Kind, namespace: str | None) -> None:
    async with aclosing(client.pages(kind, namespace, limit=1)) as pages:
        await anext(pages)


async def _token_key(client: Client, namespace: str) -> bytes:
    """The key that all processes of this operator share."""
    try:
        secret = await _key_secret(client, namespace)
        key = base64.b64decode(secret["data"][KEY_FIELD], validate=True)
        if len(key) < KEY_BYTES:
            raise ValueError("anyone could guess it")
        return key
    except ApiError as error:
        if error.code not in (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND):
            raise
        raise BadConfiguration(
            f"the Secret {namespace}/{KEY_SECRET} can't be read or made: {error.message}; is {namespace} the "
            "operator's own namespace, and has it the chart's role there?"
        ) from error
    except (KeyError, TypeError, ValueError) as error:
        raise BadConfiguration(
            f"the Secret {namespace}/{KEY_SECRET} holds no {KEY_FIELD!r} of {KEY_BYTES} bytes; delete it, and a "
            "new one is made"
        ) from error


async def _key_secret(client: Client, namespace: str) -> Json:
    """The Secret with the key; the first process makes it, and of two at once the slower one takes the other's."""
    key = base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()
    manifest = {
        "apiVersion": SECRET.api_version,
        "kind": SECRET.kind,
        "metadata": {"name": KEY_SECRET, "namespace": namespace},
        "immutable": True,
        "data": {KEY_FIELD: key},
    }
    try:
        return await client.get(SECRET, namespace, KEY_SECRET)
    except ApiError as error:
        if error.code != HTTPStatus.NOT_FOUND:
            raise
    try:
        return await client.create(manifest)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
        return await client.get(SECRET, namespace, KEY_SECRET)
