"""Events about pods, as scheduler and kubelet post them: the same words again count up instead of piling up."""

import time
from typing import Any

from dtj_operator.local.failures import ApiFailure
from dtj_operator.local.objects import Objects

Json = dict[str, Any]

KEPT = 4096
"""How many different Events are remembered to be counted up."""


class Recorder:
    """Posts in the name of one component, on a node or for the whole cluster."""

    def __init__(self, objects: Objects, component: str) -> None:
        self._objects = objects
        self._component = component
        self._known: dict[tuple[str, ...], Json] = {}
        self._newest = 0

    def post(
        self,
        metadata: Json,
        type_: str,
        reason: str,
        message: str,
        *,
        container: str = "",
        host: str = "",
    ) -> None:
        """About the pod with this metadata. `container` is a path in its spec, as in `spec.containers{trainer}`."""
        now, namespace = self._objects.timestamp(), metadata["namespace"]
        key = (metadata["uid"], type_, reason, message, container)
        try:
            known = self._known.get(key)
            if known is not None:
                self._known[key] = self._objects.patch(
                    "events", known["metadata"], {"count": known["count"] + 1, "lastTimestamp": now}
                )
                return
            about = {"apiVersion": "v1", "kind": "Pod", "namespace": namespace}
            about |= {key: metadata[key] for key in ("name", "uid")}
            source = {"component": self._component} | ({"host": host} if host else {})
            posted = self._objects.create("events", {
                "metadata": {"name": self._name(metadata), "namespace": namespace},
                "involvedObject": about | ({"fieldPath": container} if container else {}),
                "type": type_,
                "reason": reason,
                "message": message,
                "source": source,
                "reportingComponent": self._component,
                "reportingInstance": host,
                "firstTimestamp": now,
                "lastTimestamp": now,
                "count": 1,
            })  # fmt: skip
        except ApiFailure:
            # A courtesy: the namespace may be going, or someone has deleted the Event that was to be counted up.
            self._known.pop(key, None)
            return
        self._known[key] = posted
        while len(self._known) > KEPT:
            del self._known[next(iter(self._known))]

    def _name(self, metadata: Json) -> str:
        """As Kubernetes' own: `kubectl describe` puts Events of the same second in the order of their names."""
        # Never the same nanosecond twice, also where the clock is coarse or was set back.
        self._newest = max(time.time_ns(), self._newest + 1)
        return f"{metadata['name']}.{self._newest:016x}"
