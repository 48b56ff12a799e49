"""One node: a network namespace of its own with containerd, kubelet, kube-proxy and the firewall of NetworkPolicies."""

import contextlib
import json
import os
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

from e2e import commands, nodeconfig
from e2e.controlplane import ControlPlane
from e2e.daemon import Daemon, wait
from e2e.machine import ADDRESS, BRIDGE, cgroups
from e2e.runtime import Containerd, fill

GPU = "nvidia.com/gpu"
READY_SECONDS = 120


@dataclass(frozen=True)
class Parts:
    """What all nodes have in common; without `kube_router`, NetworkPolicies are words."""

    plane: ControlPlane
    kubernetes: Path
    kube_router: Path | None
    images: Path
    registry: str
    feature_gates: str
    nodes: int


class Node:
    def __init__(self, number: int, folder: Path, parts: Parts) -> None:
        self.name = name = f"n{number}"
        self.address = address_of(number)
        self.folder = folder / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self._number = number
        self._parts = parts
        self._gpus = 0
        self._heard_at: str | None = None
        self._cgroups = cgroups()
        self._log = folder / "log"
        authority = parts.plane.authority
        own = authority.kubeconfig(folder / f"{name}.kubeconfig", f"/O=system:nodes/CN=system:node:{name}")
        proxies = authority.kubeconfig(folder / f"{name}-proxy.kubeconfig", "/CN=system:kube-proxy")
        self.containerd = Containerd(
            f"containerd of {name}",
            self.folder,
            self._log / f"{name}-containerd.log",
            registry=parts.registry,
            network=name,
            cgroup=self._system,
        )
        gates = ["--feature-gates", parts.feature_gates] if parts.feature_gates else []
        command = nodeconfig.kubelet(
            *(parts.kubernetes / "kubelet", name, self.address, self.folder),
            kubeconfig=own,
            authority=authority.certificate,
            cgroup=f"/{self._cgroups.name}/{name}",
        )
        self._kubelet = self._daemon("kubelet", [*command, *gates])
        program = parts.kubernetes / "kube-proxy"
        self._proxy = self._daemon("kube-proxy", nodeconfig.kube_proxy(program, name, self.folder, proxies))
        self._router: list[Daemon] = []
        if parts.kube_router:
            admin = authority.kubeconfig(folder / f"{name}-router.kubeconfig", "/O=system:masters/CN=kube-router")
            self._router = [self._daemon("kube-router", nodeconfig.kube_router(parts.kube_router, name, admin))]

    def start(self) -> None:
        """Begin: network, cgroups, and a runtime with the images in it."""
        self._make_network()
        self._cgroups.create(f"{self.name}/system")
        for name in ("root", "state", "kubelet", "pods"):
            (self.folder / name).mkdir(exist_ok=True)
        nodeconfig.write_pod_network(self.folder, self._number)
        fill(self.folder / "root", self._parts.images)
        self.containerd.start()

    def join(self) -> None:
        """Begin to be a node, as soon as the runtime answers."""
        wait(f"containerd of {self.name} answers", self.containerd.answers, 60, self.containerd)
        self._proxy.start()
        self._heard_at = self._heartbeat()[0]
        self._kubelet.start()

    def complete(self) -> None:
        """Ready, and its firewall told to start, which ends where the API server knows no such node."""
        self.await_ready()
        for daemon in self._router:
            daemon.start()

    def await_ready(self) -> None:
        """Until the kubelet that was started last, not one before it, has said that the node is ready."""

        def is_ready() -> bool:
            heard_at, ready = self._heartbeat()
            return ready and heard_at != self._heard_at

        wait(f"{self.name} is ready", is_ready, READY_SECONDS, *self._daemons())
        if self._gpus:
            self.set_gpus(self._gpus)  # a kubelet that is new here takes back what no plugin offers it

    def set_gpus(self, count: int) -> None:
        """Devices that are not there; scheduler and kubelet treat them as the real thing."""
        self._gpus = count
        api, path = self._parts.plane.api, f"/api/v1/nodes/{self.name}"
        place = f"/status/capacity/{GPU.replace('/', '~1')}"

        def is_offered() -> bool:
            try:
                status = api.get(path)["status"]
                if status["capacity"].get(GPU) != str(count):  # at first, or taken back by the kubelet
                    api.patch(f"{path}/status", [{"op": "add", "path": place, "value": str(count)}])
            except OSError:  # the API server is away, or others write the status as well
                return False
            return bool(status["allocatable"].get(GPU) == str(count))

        wait(f"{self.name} offers {count} GPUs", is_offered, 60, self._kubelet)

    def stop_kubelet(self) -> None:
        """Its containers run on, and nobody tells of them."""
        self._kubelet.stop()

    def start_kubelet(self) -> None:
        self._heard_at = self._heartbeat()[0]
        self._kubelet.start()
        self.await_ready()

    def cut(self) -> None:
        """The cable is out: nothing reaches the node, and it reaches nothing."""
        commands.run("ip", "link", "set", self._link, "down")

    def mend(self) -> None:
        commands.run("ip", "link", "set", self._link, "up")

    def kill(self) -> None:
        """As when its power fails: cut off, and every process of it gone."""
        if self._is_wired():
            self.cut()

        def is_dead() -> bool:
            running = self._cgroups.processes(self.name)
            for pid in running:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not running

        for daemon in self._daemons():
            daemon.kill()
        wait(f"every process of {self.name} has ended", is_dead, 60)

    def restore(self) -> None:
        """The node, whatever became of it, comes back under its name as new, with only the images on its disk."""
        self.kill()
        mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        for path in reversed([path for path in mounts if path.startswith(f"{self.folder}/")]):
            commands.run("umount", "--lazy", path)
        if self._is_wired():
            ip("link", "delete", self._link)  # the kernel takes its time with a namespace, and the name is wanted
        if Path("/run/netns", self.name).exists():
            ip("netns", "delete", self.name)
        for name in ("root", "state", "kubelet", "pods", "addresses"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        self._cgroups.remove(self.name)
        self.start()
        self.join()
        self.complete()

    def stop(self) -> None:
        """Nobody needs it any more; what of its containers still runs ends with the namespace."""
        for daemon in self._daemons():
            daemon.kill()

    def processes(self, pod_uid: str, container_id: str) -> list[int]:
        """Those of a container, as this namespace numbers them; the container's own process 1 is the first."""
        container = container_id.removeprefix("containerd://")
        pids = self._cgroups.processes(self.name, f"/pod{pod_uid}/{container}")
        return sorted(pids, key=lambda pid: (number_inside(pid), pid))

    def _is_wired(self) -> bool:
        return self._link in {link["ifname"] for link in json.loads(commands.run("ip", "-json", "link"))}

    @property
    def _link(self) -> str:
        return f"v{self._number}"

    @property
    def _system(self) -> Path:
        """Where its own programs are, so that all of it can be found when it is to die."""
        return self._cgroups.entry(f"{self.name}/system")

    def _daemons(self) -> list[Daemon]:
        return [self._kubelet, self._proxy, *self._router, self.containerd]

    def _daemon(self, name: str, command: nodeconfig.Command) -> Daemon:
        return Daemon(
            f"{name} of {self.name}",
            command,
            self._log / f"{self.name}-{name}.log",
            network=self.name,
            cgroup=self._system,
            environment={"NODE_NAME": self.name},
        )

    def _heartbeat(self) -> tuple[str | None, bool]:
        """When its kubelet was heard last, and whether it called the node ready."""
        try:
            status = self._parts.plane.api.get(f"/api/v1/nodes/{self.name}")["status"]
        except OSError:  # not there yet, or the API server is away
            return None, False
        for condition in status.get("conditions", []):
            if condition["type"] == "Ready":
                return condition["lastHeartbeatTime"], condition["status"] == "True"
        return None, False

    def _make_network(self) -> None:
        name, link = self.name, self._link
        ip("netns", "add", name)
        ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("link", "set", link, "master", BRIDGE, "up")
        for words in (
            "link set lo up",
            f"address add {self.address}/24 dev eth0",
            "link set eth0 up",
            f"route add default via {ADDRESS}",
        ):
            ip("-netns", name, *words.split())
        commands.run("nsenter", f"--net=/run/netns/{name}", "sysctl", "-qw", "net.ipv4.ip_forward=1")
        ip("route", "replace", nodeconfig.pods_of(self._number), "via", self.address)
        for other in range(1, self._parts.nodes + 1):
            if other != self._number:
                ip("-netns", name, "route", "add", nodeconfig.pods_of(other), "via", address_of(other))


def address_of(number: int) -> str:
    return f"10.89.0.{10 + number}"


def ip(*words: str) -> None:
    commands.run("ip", *words)


def number_inside(pid: int) -> int:
    """A process's number in the innermost process namespace that it is in; a large one where it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 1 << 31
    return next(int(line.split()[-1]) for line in lines if line.startswith("NSpid:"))
