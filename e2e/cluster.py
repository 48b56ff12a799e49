"""A whole Kubernetes on this machine, for tests and for a person: brought up, hurt where it is asked for, and gone."""

import contextlib
import json
import os
import pickle
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e import programs
from e2e.controlplane import ADMIN, SERVICES, ControlPlane, Programs
from e2e.door import door, socket_file, to
from e2e.kubectl import Kubectl
from e2e.machine import ADDRESS, DOOR, PORT
from e2e.node import Node, Parts, ip
from e2e.registry import Registry
from e2e.runtime import root_with

REGISTRY_PORT = 5000
UP = "up"
"""In the folder of a run: the options of its cluster, once that is up."""


@dataclass(frozen=True)
class Options:
    version: str = "1.37"
    nodes: int = 3
    gpus: int = 4
    feature_gates: str = ""
    policy: bool = True
    """Whether NetworkPolicies are enforced."""
    images: tuple[Path, ...] = ()
    """docker-archives that every node has from the start; imported once for all nodes and later runs, so put those
    that change least first."""


class Cluster:
    """The one cluster of a namespace; whoever is inside can have it in hand, also when another process started it."""

    def __init__(self, options: Options, folder: Path, say: Callable[[str], None] = print) -> None:
        family = programs.KUBERNETES[options.version]
        kubernetes = programs.build(family, say)
        router = programs.build("kube-router", say) / "kube-router" if options.policy else None
        gates = options.feature_gates
        self.folder = folder
        self.version = programs.release(options.version)
        self.shared = folder / "shared"
        self._options = options
        self._registry = Registry(ADDRESS, REGISTRY_PORT, folder / "registry")
        (folder / "log").mkdir(parents=True, exist_ok=True)
        images = root_with(options.images, folder / "log" / "images.log", say)
        built = Programs(kubernetes, programs.build("etcd", say), programs.build("coredns", say))
        self._plane = plane = ControlPlane(folder, built, gates)
        self.kubeconfig = plane.kubeconfig
        self.kubectl = Kubectl(plane.kubeconfig)
        self.audit_log = plane.audit_log
        parts = Parts(plane, kubernetes, router, images, self._registry.url, gates, options.nodes)
        nodes = [Node(number + 1, folder, parts) for number in range(options.nodes)]
        self.nodes = {node.name: node for node in nodes}

    def start(self) -> None:
        """Return when all nodes are ready."""
        self.shared.mkdir()
        self.shared.chmod(0o777)  # a worker is any user
        self._registry.start()
        for archive in self._options.images:
            self._registry.add(archive)
        nodes = list(self.nodes.values())
        for node in nodes:
            node.start()
        self._plane.start()
        for node in nodes:
            node.join()
        for node in nodes:
            node.complete()
            node.set_gpus(self._options.gpus)
        ip("route", "add", SERVICES, "via", nodes[0].address)
        self._plane.await_first_account()

    def check(self) -> None:
        """Raise if a program of the control plane has ended by itself."""
        self._plane.check()

    def stop(self) -> None:
        for node in self.nodes.values():
            node.stop()
        self._plane.stop()
        self._registry.stop()

    def load(self, archive: Path, *nodes: str) -> None:
        """A docker-archive into the containerd of these nodes, or of all; the others can pull it."""
        self._registry.add(archive)
        for name in nodes or self.nodes:
            self.nodes[name].containerd.load(archive)

    def offer_volumes(self, count: int) -> None:
        """For claims that name no storage class: there is no provisioner. Each is a folder that all nodes have."""
        before = len(list(self.shared.glob("folder-*")))
        folders = [self.shared / f"folder-{before + number}" for number in range(count)]
        volumes = [volume(folder.name, folder) for folder in folders]
        for folder in folders:
            folder.mkdir()
            folder.chmod(0o777)  # fsGroup does nothing for a hostPath
        self.kubectl("create", "--filename=-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": volumes}))

    @contextlib.contextmanager
    def door(self) -> Iterator[Path]:
        """A kubeconfig that leads here from outside the namespace as well."""
        server = f"https://127.0.0.1:{os.environ[PORT]}"
        path = self._plane.authority.kubeconfig(self.folder / "kubeconfig", ADMIN, server=server)
        with door(socket_file(self.folder / DOOR), to(socket.AF_INET, (ADDRESS, 6443))):
            yield path

    def restart_api_server(self) -> None:
        self._plane.restart_api_server()

    def restart_etcd(self) -> None:
        self._plane.restart_etcd()


def volume(name: str, folder: Path) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": str(folder), "type": "Directory"},
        },
    }


@contextlib.contextmanager
def cluster(options: Options, folder: Path, say: Callable[[str], None]) -> Iterator[Cluster]:
    """A cluster with all nodes ready, in the namespace of `e2e.machine`."""
    started = time.monotonic()
    made = Cluster(options, folder, say)
    try:
        made.start()
        (folder / UP).write_bytes(pickle.dumps(options))
        say(f"Kubernetes {made.version}, {options.nodes} nodes: up after {time.monotonic() - started:.0f} s")
        yield made
        made.check()
    except TimeoutError:
        made.check()  # what has ended names the cause
        raise
    finally:
        made.stop()


def attached(folder: Path) -> Cluster:
    """The cluster that another process of this namespace brought up."""
    options: Options = pickle.loads((folder / UP).read_bytes())
    return Cluster(options, folder)
