"""A cluster as a kubeconfig names it: jobs and their pods, by the official client, which is slow to import."""

import ipaddress
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import kubernetes
import msgspec
import urllib3
import yaml
from kubernetes.client import ApiException

from dtj_operator.api import names
from dtj_operator.cli.outcome import FAILED, NO_CLUSTER, Ended

Json = dict[str, Any]

_TIMEOUT_SECONDS = 30.0
_JOBS = f"/apis/{names.GROUP}/{names.VERSION}/namespaces/{{namespace}}/{names.PLURAL}"
_PODS = "/api/v1/namespaces/{namespace}/pods"
_MERGE_PATCH = "application/merge-patch+json"


class Access(msgspec.Struct, frozen=True):
    """Which cluster, as on the command line; what isn't said, the kubeconfig says."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None


class Remote:
    """Every refusal is raised as Ended, in the API server's words."""

    def __init__(self, access: Access) -> None:
        settings = kubernetes.client.Configuration()
        # As the client looks for it. Several may be named, of which one is enough.
        named = access.kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
        try:
            kubernetes.config.load_kube_config(access.kubeconfig, access.context, client_configuration=settings)
            _, active = kubernetes.config.list_kube_config_contexts(config_file=access.kubeconfig)
        except (kubernetes.config.ConfigException, OSError) as problem:
            is_there = any(Path(file).expanduser().exists() for file in named.split(os.pathsep))
            told = f"{named}: {_sentence(problem)}" if is_there else f"there is no kubeconfig {named}"
            raise Ended(NO_CLUSTER, [f"no cluster: {told}; `dtj local` starts one on this machine"]) from None
        except (yaml.YAMLError, UnicodeError, LookupError, TypeError, AttributeError) as problem:
            # What the client stumbles over in a file that is something else.
            raise Ended(NO_CLUSTER, [f"{named}: no kubeconfig: {_sentence(problem)}"]) from None
        if _is_here(settings.host):
            # As kubectl has it: no proxy is asked for what is on this machine.
            settings.proxy = None
        wanted = access.namespace or ((active or {}).get("context") or {}).get("namespace")
        self.namespace: str = wanted or "default"
        self._client = kubernetes.client.ApiClient(settings)

    def jobs(self) -> list[Json]:
        return list(self._object("GET", _JOBS)["items"])

    def job(self, name: str) -> Json:
        return self._object("GET", f"{_JOBS}/{{name}}", name=name)

    def patch(self, name: str, changes: Json) -> None:
        """A merge patch of the job."""
        self._object("PATCH", f"{_JOBS}/{{name}}", name=name, body=changes)

    def pods(self, job: Json) -> list[Json]:
        """The job's own pods, terminating ones included, as plain JSON."""
        query = {"labelSelector": f"{names.LABEL_JOB}={job['metadata']['name']}"}
        found = self._object("GET", _PODS, query)["items"]
        uid = job["metadata"]["uid"]
        return [pod for pod in found if any(o["uid"] == uid for o in pod["metadata"].get("ownerReferences") or ())]

    def log(self, pod: str, container: str, *, follow: bool) -> Iterator[str]:
        """The lines of a container's log. ApiException where it has none."""
        query = {"container": container, "follow": "true" if follow else "false"}
        answer = self._answer("GET", f"{_PODS}/{{name}}/log", query, name=pod, timeout=None)
        rest = b""
        for chunk in answer.stream():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line.decode(errors="replace")
        if rest:
            yield rest.decode(errors="replace")

    def _object(self, method: str, path: str, query: Mapping[str, str] | None = None, **rest: Any) -> Json:
        with _refusals():
            found: Json = msgspec.json.decode(self._answer(method, path, query or {}, **rest).data)
        return found

    def _answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        name: str = "",
        body: Json | None = None,
        timeout: float | None = _TIMEOUT_SECONDS,
    ) -> urllib3.BaseHTTPResponse:
        """Its body is still to be read. ApiException for a refusal.

        Not by the client's classes for each API group: these import a class for every kind that there is, which takes
        longer than all else that a command does.
        """
        request = self._client.param_serialize(
            method,
            path,
            path_params={"namespace": self.namespace, "name": name},
            query_params=list(query.items()),
            header_params={"Accept": "application/json"} | ({"Content-Type": _MERGE_PATCH} if body else {}),
            body=body,
            auth_settings=["BearerToken"],
        )
        answer = self._client.call_api(*request, _request_timeout=timeout)
        if not 200 <= answer.status <= 299:
            raise ApiException(http_resp=answer, body=answer.read().decode(errors="replace"))
        response: urllib3.BaseHTTPResponse = answer.response
        return response


def _sentence(problem: Exception) -> str:
    """In one line, which goes on behind it."""
    told = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
    return " ".join(told.split()).removesuffix(".")


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except ApiException as refusal:
        raise Ended(*_words(refusal)) from None
    except urllib3.exceptions.HTTPError as problem:
        # Its cause alone: the URL may hold a token.
        why = problem.reason if isinstance(problem, urllib3.exceptions.MaxRetryError) else problem
        raise Ended(NO_CLUSTER, [f"the cluster can't be reached: {why}"]) from None


def _words(refusal: ApiException) -> tuple[int, list[str]]:
    try:
        status = msgspec.json.decode(refusal.body)
        told, about = str(status["message"]), status.get("details") or {}
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
        told, about = f"{refusal.status} {refusal.reason}", {}
    if refusal.status == HTTPStatus.UNAUTHORIZED:
        return NO_CLUSTER, [f"the cluster does not know who asks ({told}); log in again, or name another --context"]
    if refusal.status == HTTPStatus.NOT_FOUND and "name" not in about:
        missing = f"{names.PLURAL}.{names.GROUP}"
        return NO_CLUSTER, [f"the cluster has no {missing} ({told}); is the operator installed there?"]
    return FAILED, [told]


def _is_here(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
