"""Every claim of the scenarios' namespace gets a folder of this machine, as a provisioner of storage would do."""

from collections.abc import Awaitable, Callable

from dtj_operator.kube.client import CLAIM
from dtj_operator.local.store import Store
from e2e.cluster import Cluster, volume
from tests.worlds.mirror import storage
from tests.worlds.world import NAMESPACE, Json


async def provide(store: Store, machine: Cluster, create: Callable[[Json], Awaitable[Json]]) -> None:
    """Until cancelled."""
    known = [entry.decode() for entry in store.entries(storage(CLAIM), NAMESPACE)]
    watch = store.watch(storage(CLAIM), store.revision, lambda change: change.type == "ADDED")
    for claim in known:
        await _provide(claim, machine, create)
    async for change in watch.changes():
        await _provide(change.entry.decode(), machine, create)


async def _provide(claim: Json, machine: Cluster, create: Callable[[Json], Awaitable[Json]]) -> None:
    metadata, spec = claim["metadata"], claim["spec"]
    if spec.get("volumeName"):
        return
    folder = machine.shared / metadata["uid"]
    folder.mkdir(mode=0o777, exist_ok=True)
    folder.chmod(0o777)  # trainers are nobody in particular, and fsGroup does nothing for a hostPath
    made = volume(f"claim-{metadata['uid']}", folder)
    made["spec"] |= {"accessModes": spec["accessModes"], "capacity": spec["resources"]["requests"]}
    made["spec"]["claimRef"] = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        **{key: metadata[key] for key in ("namespace", "name", "uid")},
    }
    await create(made)
