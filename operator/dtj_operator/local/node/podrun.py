"""The life of one pod on its node: volumes, init containers, containers with their restarts, and its end."""

import asyncio
import shutil
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import msgspec

from dtj_operator.api import names
from dtj_operator.local.events import Recorder
from dtj_operator.local.failures import ApiFailure
from dtj_operator.local.node import addresses, volumes
from dtj_operator.local.node.container import Container, Machine, NoCommand, containers, home
from dtj_operator.local.node.ports import NoPorts
from dtj_operator.local.node.status import Terminated, Waiting, status
from dtj_operator.local.node.volumes import NotMounted
from dtj_operator.local.podenv import ConfigError, Place
from dtj_operator.local.process import NotStarted

Json = dict[str, Any]

STATUS_PORT = "dtj-status"
"""The name of the container port on which a supervisor answers."""


class Pace(msgspec.Struct, frozen=True):
    """Seconds between restarts of a container: the kubelet's own figures, shorter in tests."""

    first: float = 10.0
    longest: float = 300.0
    forgotten: float = 600.0
    """A container that ran so long starts anew at the first."""


USUAL = Pace()


class PodRun:
    """One incarnation of a pod, from its binding until nothing of it is left."""

    def __init__(
        self, machine: Machine, pod: Json, place: Place, *, pace: Pace, changed: Callable[[], Awaitable[None]]
    ) -> None:
        self._machine = machine
        self._pod = pod
        self._metadata: Json = pod["metadata"]
        self._place = place
        self._recorder = Recorder(machine.objects, "kubelet")
        self._pace = pace
        self._changed = changed
        """Waits until an object that was missing may be there."""
        self._policy: str = pod["spec"].get("restartPolicy", "Always")
        self._started_at = machine.objects.timestamp()
        self._keepers: list[asyncio.Task[None]] = []
        self._asked = asyncio.Event()
        self._sooner = asyncio.Event()
        self._kill_at: float | None = None
        self._reason: tuple[str, str] | None = None
        self.containers = containers(machine, pod)
        self.is_heard = True
        """Whether the API server hears of it; not when its node is lost."""

    async def run(self) -> None:
        """Until it has ended by itself, or was asked to and nothing of it runs any more."""
        either = self._keep_up(self._live()), self._keep_up(self._asked.wait())
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for keeper in self._keepers:
                keeper.cancel()
            results = await asyncio.gather(*self._keepers, return_exceptions=True)
            await self._end()
        for result in results:
            if isinstance(result, Exception):
                raise result

    def stop(self, grace_seconds: float) -> None:
        """End it: SIGTERM, after the grace SIGKILL. Asked again, it may only become sooner."""
        kill_at = time.monotonic() + grace_seconds
        self._kill_at = kill_at if self._kill_at is None else min(self._kill_at, kill_at)
        self._asked.set()
        self._sooner.set()

    @property
    def was_asked(self) -> bool:
        return self._asked.is_set()

    @property
    def node(self) -> str:
        return self._place.node

    def forget(self) -> None:
        """Take away what was kept of it: volumes of its own, logs."""
        shutil.rmtree(home(self._machine.state, self._pod), ignore_errors=True)

    async def _live(self) -> None:
        try:
            async with asyncio.timeout(self._pod["spec"].get("activeDeadlineSeconds")):
                await self._run_containers()
        except TimeoutError:
            self._reason = "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"

    async def _run_containers(self) -> None:
        inits = [container for container in self.containers if container.record.kind != "main"]
        for container in self.containers if inits else ():
            container.record.state = Waiting("PodInitializing")
        self._publish()
        mounts = await self._mount()
        self._settle_addresses()
        for container in inits:
            keeping = self._keep_up(self._keep(container, mounts))
            if container.record.kind == "sidecar":
                # The next one may rely on it, so it has to run; whether it is ready no probe asks here.
                await container.started.wait()
                continue
            await keeping
            if not container.record.is_done:
                return
        mains = [container for container in self.containers if container.record.kind == "main"]
        await asyncio.gather(*(self._keep_up(self._keep(container, mounts)) for container in mains))

    async def _mount(self) -> dict[str, str]:
        folder = home(self._machine.state, self._pod) / "volumes"
        while True:
            try:
                return volumes.prepare(self._pod, folder, self._place, self._machine.objects, self._machine.mapped)
            except NotMounted as why:
                self._post("Warning", "FailedMount", str(why))
                self._machine.say(f"{self._metadata['name']}: {why}")
                await self._changed()

    def _settle_addresses(self) -> None:
        """Take the pod's ports, and write down where its supervisor will answer."""
        host, uid, known = addresses.of_pod(self._pod), self._metadata["uid"], self._machine.addresses
        if host is not None:
            known.claim(host, uid)
        for port in (port for spec in self._pod["spec"]["containers"] for port in spec.get("ports") or ()):
            number = port["containerPort"]
            if host is not None and known.has(host, number):
                if port.get("name") == STATUS_PORT:
                    self._annotate_status_address(host, number)
            elif known.shares(number, uid):
                self._machine.say(
                    f"{self._metadata['name']}: port {number} is one that several pods listen on; here they share this "
                    "machine's ports, so all but the first will find it taken"
                )

    def _annotate_status_address(self, host: addresses.Host, port: int) -> None:
        try:
            address = self._machine.addresses.address(host, port, self._metadata["uid"])
            written = {"annotations": {names.ANNOTATION_STATUS_ADDRESS: address}}
            self._machine.objects.patch("pods", self._metadata, {"metadata": written})
        except (ApiFailure, NoPorts):
            # The pod is gone; or its containers will say that there are no ports.
            return

    async def _keep(self, container: Container, mounts: dict[str, str]) -> None:
        """Start it, and again as the restart policy says, until it is over."""
        pause, record = 0.0, container.record
        while True:
            began = time.monotonic()
            await self._start(container, mounts)
            container.started.set()
            if container.runs:
                await container.ended()
                self._publish()
            if not self._comes_again(container):
                return
            assert isinstance(record.state, Terminated)
            record.last = record.state
            if time.monotonic() - began > self._pace.forgotten:
                pause = 0.0
            if pause:
                await self._back_off(container, pause)
            record.restarts += 1
            pause = min(max(self._pace.first, 2 * pause), self._pace.longest)

    async def _start(self, container: Container, mounts: dict[str, str]) -> None:
        """Have it run, or ended because it can't; wait for what it refers to."""
        name = container.record.name
        while True:
            try:
                await container.start(mounts, self._place)
            except (ConfigError, NoCommand, NoPorts, OSError) as why:
                # OSError: what it is to find on this machine's disk can't be written there.
                is_config = isinstance(why, ConfigError | OSError)
                reason = "CreateContainerConfigError" if is_config else "CreateContainerError"
                container.record.state = Waiting(reason, str(why))
                self._post("Warning", "Failed", f"Error: {why}", container)
                self._publish()
                await self._changed()
            except NotStarted as why:
                told = container.refused(why)
                self._post("Normal", "Created", f"Created container: {name}", container)
                self._post("Warning", "Failed", f"Error: {told}", container)
                self._publish()
                return
            else:
                self._post("Normal", "Created", f"Created container: {name}", container)
                self._post("Normal", "Started", f"Started container {name}", container)
                self._publish()
                return

    def _comes_again(self, container: Container) -> bool:
        record = container.record
        if record.kind == "sidecar" or (self._policy == "Always" and record.kind == "main"):
            return True
        return not record.is_done and self._policy != "Never"

    async def _back_off(self, container: Container, seconds: float) -> None:
        name, pod = container.record.name, f"{self._metadata['name']}_{self._metadata['namespace']}"
        about = f"restarting failed container={name} pod={pod}({self._metadata['uid']})"
        container.record.state = Waiting("CrashLoopBackOff", f"back-off {seconds:g}s {about}")
        told = f"Back-off restarting failed container {name} in pod {pod}({self._metadata['uid']})"
        self._post("Warning", "BackOff", told, container)
        self._publish()
        await asyncio.sleep(seconds)

    async def _end(self) -> None:
        """Stop whatever runs, sidecars last and in reverse order; write down that it is over."""
        if self._kill_at is None:
            self._kill_at = time.monotonic() + self._pod["spec"].get("terminationGracePeriodSeconds", 30)
        await asyncio.gather(*(self._terminate(c) for c in self.containers if c.record.kind != "sidecar"))
        for container in reversed(self.containers):
            await self._terminate(container)
        self._publish(is_over=True)

    async def _terminate(self, container: Container) -> None:
        if container.process is None or not container.runs:
            return
        self._post("Normal", "Killing", f"Stopping container {container.record.name}", container)
        container.process.send(signal.SIGTERM)
        ending = asyncio.create_task(container.ended())
        while not ending.done():
            assert self._kill_at is not None
            left = self._kill_at - time.monotonic()
            if left <= 0:
                container.process.send(signal.SIGKILL)
                await ending
                break
            self._sooner.clear()
            hurry = asyncio.create_task(self._sooner.wait())
            await asyncio.wait((ending, hurry), timeout=left, return_when=asyncio.FIRST_COMPLETED)
            hurry.cancel()
        self._publish()

    def _publish(self, *, is_over: bool = False) -> None:
        """Bring the pod's status up to date, unless nobody would hear of it."""
        objects, metadata = self._machine.objects, self._metadata
        pod = objects.find("pods", metadata["namespace"], metadata["name"])
        if pod is None or pod["metadata"]["uid"] != metadata["uid"] or not self.is_heard:
            return
        records = [container.record for container in self.containers]
        before, now = pod.get("status") or {}, objects.timestamp()
        after = status(before, records, self._policy, self._started_at, now, is_over=is_over)
        if self._reason:
            after |= dict(zip(("reason", "message"), self._reason, strict=True))
        if after != before:
            objects.update("pods", {**pod, "status": after}, "status")

    def _post(self, type_: str, reason: str, message: str, container: Container | None = None) -> None:
        path = container.path if container else ""
        if self.is_heard:
            self._recorder.post(self._metadata, type_, reason, message, container=path, host=self._place.node)

    def _keep_up(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._keepers.append(task)
        return task
