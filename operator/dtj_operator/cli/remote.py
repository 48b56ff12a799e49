"""A cluster as a kubeconfig names it: jobs and their pods, by the official client, which is slow to import."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import kubernetes
import msgspec
import urllib3
from kubernetes.client import ApiException

from dtj_operator.api import names
from dtj_operator.cli.outcome import FAILED, NO_CLUSTER, Ended

Json = dict[str, Any]

_TIMEOUT_SECONDS = 30


class Access(msgspec.Struct, frozen=True):
    """Which cluster, as on the command line; what isn't said, the kubeconfig says."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None


class Remote:
    """Every refusal is raised as Ended, in the API server's words."""

    def __init__(self, access: Access) -> None:
        try:
            kubernetes.config.load_kube_config(config_file=access.kubeconfig, context=access.context)
            _, active = kubernetes.config.list_kube_config_contexts(config_file=access.kubeconfig)
        except (kubernetes.config.ConfigException, OSError) as problem:
            raise Ended(NO_CLUSTER, [f"no cluster: {problem}; `dtj local` starts one on this machine"]) from None
        wanted = access.namespace or ((active or {}).get("context") or {}).get("namespace")
        self.namespace: str = wanted or "default"
        self._objects = kubernetes.client.CustomObjectsApi()
        self._core = kubernetes.client.CoreV1Api()

    def jobs(self) -> list[Json]:
        with _refusals():
            found: Json = self._objects.list_namespaced_custom_object(
                names.GROUP, names.VERSION, self.namespace, names.PLURAL, _request_timeout=_TIMEOUT_SECONDS
            )
        return list(found["items"])

    def job(self, name: str) -> Json:
        with _refusals():
            found: Json = self._objects.get_namespaced_custom_object(
                names.GROUP, names.VERSION, self.namespace, names.PLURAL, name, _request_timeout=_TIMEOUT_SECONDS
            )
        return found

    def patch(self, name: str, changes: Json) -> None:
        """A merge patch of the job."""
        with _refusals():
            self._objects.patch_namespaced_custom_object(
                names.GROUP,
                names.VERSION,
                self.namespace,
                names.PLURAL,
                name,
                changes,
                _request_timeout=_TIMEOUT_SECONDS,
            )

    def pods(self, job: Json) -> list[Json]:
        """The job's own pods, terminating ones included, as plain JSON."""
        with _refusals():
            answer = self._core.list_namespaced_pod(
                self.namespace,
                label_selector=f"{names.LABEL_JOB}={job['metadata']['name']}",
                _preload_content=False,
                _request_timeout=_TIMEOUT_SECONDS,
            )
            found = msgspec.json.decode(answer.data)["items"]
        uid = job["metadata"]["uid"]
        return [pod for pod in found if any(o["uid"] == uid for o in pod["metadata"].get("ownerReferences") or ())]

    def log(self, pod: str, container: str, *, follow: bool) -> Iterator[str]:
        """The lines of a container's log. ApiException where it has none."""
        answer = self._core.read_namespaced_pod_log(
            pod, self.namespace, container=container, follow=follow, _preload_content=False
        )
        rest = b""
        for chunk in answer.stream():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line.decode(errors="replace")
        if rest:
            yield rest.decode(errors="replace")


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except ApiException as refusal:
        raise Ended(FAILED, [_words(refusal)]) from None
    except urllib3.exceptions.HTTPError as problem:
        raise Ended(NO_CLUSTER, [f"the cluster can't be reached: {problem}"]) from None


def _words(refusal: ApiException) -> str:
    try:
        return str(msgspec.json.decode(refusal.body)["message"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return f"{refusal.status} {refusal.reason}"
