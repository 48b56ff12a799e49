"""The embedded cluster's scheduler: a pod without gates gets a node by the operator's placement, or hears why not."""

import asyncio
from typing import Any

from dtj_operator.gang.demand import Demand, Load, demand, load
from dtj_operator.gang.placement import place
from dtj_operator.kube import views
from dtj_operator.local.events import Recorder
from dtj_operator.local.failures import ApiFailure
from dtj_operator.local.objects import Objects
from dtj_operator.local.verbs.subresources import with_condition

Json = dict[str, Any]

NAME = "default-scheduler"
UNBOUND = {"spec.nodeName": ""}


class Scheduler:
    """Looks at all pods again whenever something has changed that may let one of them go."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._recorder = Recorder(objects, NAME)
        self._wake = asyncio.Event()
        self._wake.set()
        objects.listen(("pods", "nodes", "persistentvolumeclaims"), self._wake.set)

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            self.schedule()
            # A burst of changes is one look.
            await asyncio.sleep(0)

    def schedule(self) -> None:
        """Place what waits, oldest first, each pod by itself."""
        # Most changes are of pods that have a node: nothing of them is decoded for nothing.
        waiting = [pod for pod in self._objects.all("pods", **UNBOUND) if _waits(pod)]
        if not waiting:
            return
        nodes = [views.node(body) for body in self._objects.all("nodes")]
        loads = [taken for pod in self._objects.all("pods") if (taken := load(pod)) is not None]
        for pod in sorted(waiting, key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["name"])):
            wanted = demand(pod)
            why = self._claim_fault(pod)
            if why is None:
                placed = place({pod["metadata"]["name"]: wanted}, nodes, loads)
                if isinstance(placed, dict):
                    loads += self._bind(pod, placed[pod["metadata"]["name"]], wanted)
                    continue
                why = placed.words
            self._explain(pod, f"0/{len(nodes)} nodes are available: {why}.")

    def _bind(self, pod: Json, node: str, wanted: Demand) -> list[Load]:
        metadata = pod["metadata"]
        try:
            self._objects.bind(metadata, node)
        except ApiFailure as failure:
            self._recorder.post(metadata, "Warning", "FailedScheduling", str(failure))
            return []
        told = f"Successfully assigned {metadata['namespace']}/{metadata['name']} to {node}"
        self._recorder.post(metadata, "Normal", "Scheduled", told)
        return [Load(node, wanted.requests, wanted.host_ports)]

    def _claim_fault(self, pod: Json) -> str | None:
        for volume in pod["spec"].get("volumes") or ():
            name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
            if name is None:
                continue
            claim = self._objects.find("persistentvolumeclaims", pod["metadata"]["namespace"], name)
            if claim is None:
                return f'persistentvolumeclaim "{name}" not found'
            if claim["metadata"].get("deletionTimestamp"):
                return f'persistentvolumeclaim "{name}" is being deleted'
            if (claim.get("status") or {}).get("phase") != "Bound":
                return "pod has unbound immediate PersistentVolumeClaims"
        return None

    def _explain(self, pod: Json, why: str) -> None:
        conditions = (pod.get("status") or {}).get("conditions") or []
        told: Json = next((one for one in conditions if one["type"] == "PodScheduled"), {})
        if told.get("message") == why:
            return
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": why,
            "lastProbeTime": None,
            "lastTransitionTime": self._objects.timestamp(),
        }
        pod["status"] = {**(pod.get("status") or {}), "conditions": with_condition(conditions, condition)}
        try:
            self._objects.update("pods", pod, "status")
        except ApiFailure:
            # It has gone, or been changed: that wakes us again. One pod's trouble is not the others'.
            return
        self._recorder.post(pod["metadata"], "Warning", "FailedScheduling", why)


def _waits(pod: Json) -> bool:
    spec, metadata = pod["spec"], pod["metadata"]
    is_ours = spec.get("schedulerName", NAME) == NAME
    is_free = not spec.get("nodeName") and not spec.get("schedulingGates") and not metadata.get("deletionTimestamp")
    return is_ours and is_free and (pod.get("status") or {}).get("phase", "Pending") == "Pending"
