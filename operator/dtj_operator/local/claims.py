"""Claims get a volume at once: a folder by their name, which goes with them."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

from dtj_operator.local.failures import ApiFailure
from dtj_operator.local.objects import Objects

Json = dict[str, Any]

_CLAIMS = "persistentvolumeclaims"
_VOLUMES = "persistentvolumes"


class Claims:
    """Binds every claim; when it is deleted, takes volume and folder away once no pod uses them any more."""

    def __init__(self, objects: Objects, folder: Path) -> None:
        self._objects = objects
        self._folder = folder
        self._wake = asyncio.Event()
        self._wake.set()
        objects.listen((_CLAIMS, "pods"), self._wake.set)

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            self.settle()
            # A burst of changes is one look.
            await asyncio.sleep(0)

    def settle(self) -> None:
        claims = list(self._objects.all(_CLAIMS))
        for claim in claims:
            if (claim.get("status") or {}).get("phase") != "Bound" and not claim["metadata"].get("deletionTimestamp"):
                try:
                    self._bind(claim)
                except ApiFailure:
                    # Changed or gone meanwhile: the change has set the wake-up again.
                    continue
        for volume in self._objects.all(_VOLUMES):
            claim = volume["spec"].get("claimRef") or {}
            if volume["metadata"]["name"] != _name(claim):
                continue
            live = self._objects.find(_CLAIMS, claim["namespace"], claim["name"])
            if live is None and not self._is_used(claim):
                shutil.rmtree(volume["spec"]["hostPath"]["path"], ignore_errors=True)
            elif live is None or live["metadata"]["uid"] == claim["uid"]:
                continue
            self._objects.delete(_VOLUMES, volume["metadata"])

    def _is_used(self, claim: Json) -> bool:
        """Whether a pod may still write there: the claim of a real cluster would not go before it."""
        return any(
            (volume.get("persistentVolumeClaim") or {}).get("claimName") == claim["name"]
            for pod in self._objects.all("pods", claim["namespace"])
            for volume in pod["spec"].get("volumes") or ()
        )

    def _bind(self, claim: Json) -> None:
        metadata, spec = claim["metadata"], claim["spec"]
        name = spec.get("volumeName")
        if name is None:
            name = _name(metadata)
            self._make(name, claim)
            claim = self._objects.update(_CLAIMS, {**claim, "spec": {**spec, "volumeName": name}})
        volume = self._objects.find(_VOLUMES, "", name)
        if volume is None:
            # Someone names a volume that is still to come.
            return
        if (volume.get("status") or {}).get("phase") != "Bound":
            self._objects.update(_VOLUMES, {**volume, "status": {"phase": "Bound"}}, "status")
        status = {
            "phase": "Bound",
            "accessModes": spec.get("accessModes") or [],
            "capacity": volume["spec"].get("capacity") or {},
        }
        self._objects.update(_CLAIMS, {**claim, "status": status}, "status")

    def _make(self, name: str, claim: Json) -> None:
        metadata, spec = claim["metadata"], claim["spec"]
        # By name alone: in a folder that the user keeps, the same claim of the next cluster finds its files again.
        folder = self._folder / metadata["namespace"] / metadata["name"]
        folder.mkdir(parents=True, exist_ok=True)
        reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"} | {
            key: metadata[key] for key in ("namespace", "name", "uid")
        }
        if self._objects.find(_VOLUMES, "", name) is None:
            self._objects.create(_VOLUMES, {
                "metadata": {"name": name},
                "spec": {
                    "capacity": (spec.get("resources") or {}).get("requests") or {},
                    "accessModes": spec.get("accessModes") or [],
                    "persistentVolumeReclaimPolicy": "Delete",
                    "storageClassName": spec.get("storageClassName") or "",
                    "claimRef": reference,
                    "hostPath": {"path": str(folder)},
                },
            })  # fmt: skip


def _name(claim: Json) -> str:
    """Of the volume that is made for this claim."""
    return f"pvc-{claim.get('uid')}"
