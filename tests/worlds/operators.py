"""The operator as it is installed in a real cluster: how it is killed and upgraded there, and what it has logged."""

import asyncio
import json
import os
import signal
from contextlib import suppress
from datetime import UTC, datetime

from dtj_operator.kube.client import Json
from e2e.cluster import Cluster
from tests.worlds.admin import Admin, kind_of
from tests.worlds.world import KillOperator, Refused, UpgradeOperator

NAMESPACE, DEPLOYMENT, CONTAINER = "dtj-system", "dtj-operator", "operator"
PODS = {"labelSelector": f"app.kubernetes.io/name={DEPLOYMENT}"}
WRONG = ("error", "critical")
UPGRADE_SECONDS = 180


class Installed:
    """By the chart, under its names. `machine`: a cluster on this machine, whose processes are in reach."""

    def __init__(self, machine: Cluster | None) -> None:
        self._machine = machine
        self._read: dict[tuple[str, int], int] = {}
        """Lines of which pod's container, counted by its restarts."""
        self._wrong: list[str] = []

    async def hurt(self, admin: Admin, what: KillOperator | UpgradeOperator) -> None:
        await self._read_all(admin)  # what is deleted takes its log along
        if isinstance(what, UpgradeOperator):
            await self._upgrade(admin)
            return
        for pod in await self._pods(admin):
            await self._kill(admin, pod)

    async def _upgrade(self, admin: Admin) -> None:
        """Roll out a change of the pods' template, as `kubectl rollout restart` does; return when a new pod leads."""
        old = {pod["metadata"]["name"] for pod in await self._pods(admin)}
        noted = {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": datetime.now(UTC).isoformat()}}}
        await admin.ask("patch", kind_of("Deployment"), NAMESPACE, DEPLOYMENT, body={"spec": {"template": noted}})
        async with asyncio.timeout(UPGRADE_SECONDS):
            while not await self._is_rolled_out(admin) or not await self._is_led_anew(admin, old):
                await self._read_all(admin)
                await asyncio.sleep(0.5)

    async def _is_rolled_out(self, admin: Admin) -> bool:
        found = await admin.get(kind_of("Deployment"), NAMESPACE, DEPLOYMENT)
        status, wanted = found.get("status", {}), found["spec"]["replicas"]
        seen = status.get("observedGeneration") == found["metadata"]["generation"]
        counts = [status.get(field, 0) for field in ("replicas", "updatedReplicas", "availableReplicas")]
        return seen and counts == [wanted] * 3

    async def _is_led_anew(self, admin: Admin, old: set[str]) -> bool:
        leader = (await admin.get(kind_of("Lease"), NAMESPACE, DEPLOYMENT))["spec"].get("holderIdentity")
        return leader in {pod["metadata"]["name"] for pod in await self._pods(admin)} - old

    async def errors(self, admin: Admin) -> list[str]:
        await self._read_all(admin)
        wrong, self._wrong = self._wrong, []
        return wrong

    async def _kill(self, admin: Admin, pod: Json) -> None:
        status = next(iter(pod["status"].get("containerStatuses") or ()), None)
        if status is None or "running" not in status["state"]:
            return
        if self._machine is not None:
            node = self._machine.nodes[pod["spec"]["nodeName"]]
            for pid in node.processes(pod["metadata"]["uid"], status["containerID"])[:1]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        else:
            await admin.ask(
                "delete", kind_of("Pod"), NAMESPACE, pod["metadata"]["name"], body={"gracePeriodSeconds": 0}
            )

    async def _pods(self, admin: Admin) -> list[Json]:
        found: list[Json] = (await admin.ask("list", kind_of("Pod"), NAMESPACE, params=PODS))["items"]
        return found

    async def _read_all(self, admin: Admin) -> None:
        for pod in await self._pods(admin):
            for status in pod["status"].get("containerStatuses") or ():
                await self._read_one(admin, pod, status["restartCount"])

    async def _read_one(self, admin: Admin, pod: Json, restarts: int) -> None:
        """The newest lines of a container, and of the one before it in the same pod."""
        metadata = pod["metadata"]
        for count, previous in ((restarts - 1, True), (restarts, False)):
            if count < 0:
                continue
            with suppress(Refused):  # it has not begun, or is gone
                text = await admin.log(NAMESPACE, metadata["name"], CONTAINER, previous=previous)
                lines = text.splitlines()
                known = self._read.get((metadata["uid"], count), 0)
                if len(lines) < known:  # the kubelet has begun a new file
                    known = 0
                self._read[metadata["uid"], count] = len(lines)
                self._wrong += [line for line in lines[known:] if is_wrong(line)]


def is_wrong(line: str) -> bool:
    """An exception that nobody foresaw."""
    try:
        return json.loads(line).get("level") in WRONG
    except ValueError:
        return any(f" {level} " in line[:30] for level in WRONG)
