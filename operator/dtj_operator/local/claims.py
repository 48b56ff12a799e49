"""Claims get a volume at once: a folder of the cluster's own, for as long as the cluster runs."""

import asyncio
from pathlib import Path
from typing import Any

from dtj_operator.local.failures import ApiFailure
from dtj_operator.local.objects import Objects

Json = dict[str, Any]

_CLAIMS = "persistentvolumeclaims"
_VOLUMES = "persistentvolumes"


class Claims:
    """Binds every claim, and takes the volume away with it; the folder stays until the cluster ends."""

    def __init__(self, objects: Objects, folder: Path) -> None:
        self._objects = objects
        self._folder = folder
        self._wake = asyncio.Event()
        self._wake.set()
        objects.listen((_CLAIMS,), self._wake.set)

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            self.settle()

    def settle(self) -> None:
        claims = list(self._objects.all(_CLAIMS))
        for claim in claims:
            if (claim.get("status") or {}).get("phase") != "Bound" and not claim["metadata"].get("deletionTimestamp"):
                try:
                    self._bind(claim)
                except ApiFailure:
                    # Changed or gone meanwhile: the change has set the wake-up again.
                    continue
        wanted = {claim["metadata"]["uid"] for claim in claims}
        for volume in self._objects.all(_VOLUMES):
            owner = (volume["spec"].get("claimRef") or {}).get("uid")
            if owner and owner not in wanted and volume["metadata"]["name"] == f"pvc-{owner}":
                self._objects.delete(_VOLUMES, volume["metadata"])

    def _bind(self, claim: Json) -> None:
        metadata, spec = claim["metadata"], claim["spec"]
        name = spec.get("volumeName")
        if name is None:
            name = f"pvc-{metadata['uid']}"
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
        folder = self._folder / f"{metadata['namespace']}-{metadata['name']}-{metadata['uid'][:8]}"
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
