"""A node's containerd and the images in it: imported once into a root that is kept, linked from there to each node."""

import contextlib
import hashlib
import io
import json
import os
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from e2e import commands
from e2e.daemon import Daemon, wait
from e2e.programs import alone, build, cache
from e2e.registry import read

PAUSE = "localhost/pause:1"
UNUSED_SECONDS = 24 * 3600
SNAPSHOTTERS = ("aufs", "btrfs", "devmapper", "zfs")


class Containerd(Daemon):
    def __init__(
        self,
        name: str,
        folder: Path,
        log: Path,
        *,
        registry: str = "",
        network: str | None = None,
        cgroup: Path | None = None,
    ) -> None:
        """Every image is pulled from the registry, whatever its name says, for nothing else is in reach."""
        self.address = folder / "containerd.sock"
        everywhere = folder / "registries" / "_default"
        everywhere.mkdir(parents=True, exist_ok=True)
        (everywhere / "hosts.toml").write_text(
            f'server = "{registry}"\n[host."{registry}"]\n  capabilities = ["pull", "resolve"]\n'
        )
        config = folder / "containerd.toml"
        config.write_text(settings(folder, self.address))
        super().__init__(name, ["containerd", "--config", config], log, network=network, cgroup=cgroup)

    def answers(self) -> bool:
        with contextlib.suppress(RuntimeError, TimeoutError):
            return bool(self._ctr("version", seconds=10))
        return False

    def load(self, archive: Path) -> None:
        self._ctr("images", "import", str(archive))

    def _ctr(self, *arguments: str, seconds: float = commands.LONGEST_SECONDS) -> str:
        client = ("ctr", "--address", str(self.address), "--namespace", "k8s.io")
        return commands.run(*client, *arguments, seconds=seconds)


def settings(folder: Path, address: Path) -> str:
    disabled = [f"io.containerd.snapshotter.v1.{name}" for name in SNAPSHOTTERS] + ["io.containerd.internal.v1.opt"]
    # runc and cgroupfs: crun and systemd are not everywhere. A score below zero takes a right that containers lack.
    return f"""version = 2
root = "{folder}/root"
state = "{folder}/state"
oom_score = 0
disabled_plugins = {json.dumps(disabled)}
[grpc]
  address = "{address}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  netns_mounts_under_state_dir = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{folder}/registries"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "runc"
      SystemdCgroup = false
"""


def fill(root: Path, images: Path) -> None:
    """Give a node a root with images in it: files are linked, for nobody writes into them, the databases copied."""
    commands.run("cp", "--archive", "--link", f"{images}/.", str(root))
    for database in images.rglob("*.db"):
        copy = root / database.relative_to(images)
        copy.unlink()
        shutil.copy(database, copy)


def root_with(archives: Sequence[Path], log: Path, say: Callable[[str], None] = print) -> Path:
    """A containerd root that holds these archives' images; each archive is imported once, on top of those before it."""
    folder = cache() / "containerd" / key(archives)
    with alone(folder):
        if folder.exists():
            os.utime(folder)
            return folder
        forget_unused(folder.parent)
        under = root_with(archives[:-1], log, say) if archives else None
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".") as scratch:
            root = Path(scratch) / "root"
            root.mkdir()
            if under:
                fill(root, under)
            containerd = Containerd("containerd for images", Path(scratch), log)
            containerd.start()
            try:
                wait("containerd answers", containerd.answers, 60, containerd)
                if archives:
                    say(f"importing {archives[-1].name}, once for all nodes")
                containerd.load(archives[-1] if archives else pause(Path(scratch) / "pause.tar"))
            finally:
                containerd.stop()
            root.rename(folder)
    return folder


def forget_unused(roots: Path) -> None:
    """Most of what a root holds is linked to others; a new one comes with every change of an image."""
    for old in roots.iterdir():
        if old.is_dir() and time.time() - old.stat().st_mtime > UNUSED_SECONDS:
            shutil.rmtree(old, ignore_errors=True)


def key(archives: Sequence[Path]) -> str:
    whole = hashlib.sha256(build("pause").name.encode())
    for archive in archives:
        whole.update(manifest(archive))
    return whole.hexdigest()[:16]


def manifest(archive: Path) -> bytes:
    """What says all of a docker-archive: its configuration and layers by digest, and its names."""
    with tarfile.open(archive) as tar:
        return read(tar, "manifest.json")


def pause(path: Path, name: str = PAUSE) -> Path:
    """The image of the process that keeps a pod's namespaces open, as a docker-archive."""
    program = next(build("pause").iterdir()).read_bytes()
    layer = tarred({"pause": (program, 0o755)})
    config = {
        "architecture": architecture(),
        "os": "linux",
        # By its name, an image is not another one: a kubelet that pulled one asks for leave to use its namesake.
        "config": {"Entrypoint": ["/pause"], "User": "65535:65535", "Labels": {"org.opencontainers.image.title": name}},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    said = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    files = {"config.json": json.dumps(config).encode(), "layer.tar": layer, "manifest.json": json.dumps(said).encode()}
    path.write_bytes(tarred({name: (data, 0o644) for name, data in files.items()}))
    return path


def architecture() -> str:
    return commands.run("go", "env", "GOARCH").strip()


def tarred(files: dict[str, tuple[bytes, int]]) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        for name, (data, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), mode
            tar.addfile(entry, io.BytesIO(data))
    return whole.getvalue()
