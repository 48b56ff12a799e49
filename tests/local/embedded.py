"""A running embedded cluster as tests see it: objects in, objects out, waiting for what becomes true, and kubectl."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from dtj_operator.local.cluster import Cluster, Options, cluster
from dtj_operator.local.logs import LogQuery
from dtj_operator.local.objects import Objects

Json = dict[str, Any]

PATIENCE_SECONDS = 60
"""Long enough for a loaded machine; what never comes true fails the test then, with the object as it stands."""
STORAGES = {
    "ConfigMap": "configmaps",
    "Pod": "pods",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Secret": "secrets",
    "Service": "services",
}


class Embedded:
    def __init__(self, cluster: Cluster, said: list[str]) -> None:
        self.cluster = cluster
        self.said = said
        self.objects = Objects(cluster.api, "test")

    def create(self, body: Json) -> Json:
        return self.objects.create(STORAGES[body["kind"]], body)

    def pod(self, name: str) -> Json:
        found = self.objects.find("pods", "default", name)
        assert found is not None, f"pod {name} is gone"
        return found

    async def until(
        self, name: str, holds: Callable[[Json], bool], storage: str = "pods", namespace: str = "default"
    ) -> Json:
        """The object, as soon as this holds for it."""
        body: Json | None = None
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                with self.objects.watch(storage) as watch:
                    body = self.objects.find(storage, namespace, name)
                    if body is not None and holds(body):
                        return body
                    # One by one: what comes in one turn of the loop with the next state would pass unseen.
                    while True:
                        await watch.arrival()
                        for change in watch.take():
                            if (change.entry.namespace, change.entry.name) == (namespace, name):
                                body = change.entry.decode()
                                if change.type != "DELETED" and holds(body):
                                    return body
        except TimeoutError:
            raise AssertionError(
                f"{name} never came so far: {msgspec.json.format(msgspec.json.encode(body)).decode()}"
            ) from None

    async def ended(self, name: str) -> Json:
        return await self.until(name, lambda pod: pod["status"]["phase"] in ("Succeeded", "Failed"))

    async def runs(self, name: str) -> Json:
        return await self.until(name, lambda pod: pod["status"]["phase"] == "Running")

    async def until_gone(self, storage: str, namespace: str, name: str) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            with self.objects.watch(storage) as watch:
                while self.objects.find(storage, namespace, name):
                    await watch.arrival()
                    watch.take()

    async def gone(self, name: str) -> None:
        await self.until_gone("pods", "default", name)

    async def until_event(self, name: str, reason: str) -> str:
        """The first Event for this reason about an object: its message."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            with self.objects.watch("events") as watch:
                while True:
                    found = [message for why, message in self.events(name) if why == reason]
                    if found:
                        return found[0]
                    await watch.arrival()
                    watch.take()

    async def says(self, name: str, text: str, container: str = "main") -> str:
        """The container's log, as soon as this stands in it."""
        log = ""
        await self.until(name, lambda pod: bool(state(pod, container).keys() & {"running", "terminated"}))
        async with asyncio.timeout(PATIENCE_SECONDS):
            query = LogQuery(namespace="default", pod=name, container=container, follow=True)
            async for chunk in self.cluster.kubelet.logs(query):
                log += chunk.decode()
                if text in log:
                    return log
        raise AssertionError(f"{name} ended and never said {text!r}: {log}")

    async def log(self, name: str, container: str = "main", **asked: Any) -> str:
        query = LogQuery(namespace="default", pod=name, container=container, **asked)
        return b"".join([chunk async for chunk in self.cluster.kubelet.logs(query)]).decode()

    def events(self, name: str) -> list[tuple[str, str]]:
        """Reason and message of all about an object, in their order."""
        about = [one for one in self.objects.all("events") if one["involvedObject"]["name"] == name]
        about.sort(key=lambda one: int(one["metadata"]["resourceVersion"]))
        return [(one["reason"], one["message"]) for one in about]

    async def kubectl(self, *words: str) -> str:
        """Its standard output; the test fails when it fails."""
        program = Path(sys.executable).parent / "kubectl"
        process = await asyncio.create_subprocess_exec(
            program, "--kubeconfig", self.cluster.kubeconfig, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        out, err = await process.communicate()
        assert process.returncode == 0, f"kubectl {' '.join(words)}: {err.decode()}"
        return out.decode()


@asynccontextmanager
async def embedded(folder: Path, **options: Any) -> AsyncIterator[Embedded]:
    """Without an operator and in a network of its own, unless the options say otherwise."""
    said: list[str] = []
    told: dict[str, Any] = {"folder": folder, "operator": False, "isolate": can_isolate()}
    asked = Options(**(told | options))
    async with cluster(asked, said.append) as running:
        yield Embedded(running, said)


def can_isolate() -> bool:
    """Whether this machine lets us have a network of our own."""
    if shutil.which("unshare") is None:
        return False
    return (
        subprocess.run(["unshare", "--map-root-user", "--net", "true"], check=False, capture_output=True).returncode
        == 0
    )


def pod(name: str, *command: str, script: str = "", spec: Json | None = None, **container: Any) -> Json:
    """A pod of one container, `main`, that runs the command or the shell script and is not restarted."""
    words = list(command) or ["sh", "-c", script]
    main = {"name": "main", "image": "some/image", "command": words, **container}
    metadata = {"name": name, "namespace": "default", "labels": {"app": name}}
    return {
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"restartPolicy": "Never", "containers": [main], **(spec or {})},
    }


def state(body: Json, container: str = "main") -> Json:
    """The state of a container, as `{"running": …}`; empty while there is none."""
    return next((dict(one["state"]) for one in containers(body) if one["name"] == container), {})


def containers(body: Json) -> Iterator[Json]:
    yield from body["status"].get("initContainerStatuses") or ()
    yield from body["status"].get("containerStatuses") or ()


def condition(body: Json, type_: str) -> Json:
    return next((one for one in body["status"].get("conditions") or () if one["type"] == type_), {})


def lives(pid: int) -> bool:
    """Whether the process runs; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def death(pid: int) -> None:
    """Wait until the process has ended."""
    try:
        watching = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(watching, ended.set)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await ended.wait()
    finally:
        loop.remove_reader(watching)
        os.close(watching)
