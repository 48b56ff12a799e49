"""How a node's programs are configured: the files they read and the lines that start them."""

import json
from pathlib import Path

from e2e.controlplane import DOMAIN, SERVICES
from e2e.machine import ADDRESS

PODS = "10.244.0.0/16"
Command = list[str | Path]


def pods_of(number: int) -> str:
    """The range of addresses of a node's pods."""
    return f"10.244.{number}.0/24"


def write_pod_network(folder: Path, number: int) -> None:
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "dataDir": str(folder / "addresses"),
            "ranges": [[{"subnet": pods_of(number)}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True}
    (folder / "cni").mkdir(exist_ok=True)
    config = {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge, ports]}
    (folder / "cni" / "10-pods.conflist").write_text(json.dumps(config))


def kubelet(
    program: Path, name: str, address: str, folder: Path, *, kubeconfig: Path, authority: Path, cgroup: str
) -> Command:
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup,
        "enforceNodeAllocatable": [],
        "containerRuntimeEndpoint": f"unix://{folder}/containerd.sock",
        "clusterDNS": [ADDRESS],
        "clusterDomain": DOMAIN,
        "failSwapOn": False,
        "localStorageCapacityIsolation": False,
        # The machine's disk is nobody's business here: no image and no pod goes because of it.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {
            "memory.available": "50Mi",
            **dict.fromkeys(("nodefs.available", "imagefs.available", "nodefs.inodesFree", "imagefs.inodesFree"), "0%"),
        },
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(authority)},
        },
        "authorization": {"mode": "Webhook"},
        "nodeStatusUpdateFrequency": "2s",
        "nodeLeaseDurationSeconds": 10,
        # Tests kill the operator again and again, and none of them is about how long a kubelet sulks then.
        "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},
        "featureGates": {"KubeletCrashLoopBackOffMax": True},
        "podLogsDir": str(folder / "pods"),
        "volumePluginDir": str(folder / "volume-plugins"),
    }
    file = folder / "kubelet.json"
    file.write_text(json.dumps(config, indent=1))
    return [
        *(program, "--config", file, "--kubeconfig", kubeconfig, "--hostname-override", name, "--node-ip", address),
        *("--root-dir", folder / "kubelet", "--cert-dir", folder / "kubelet-pki"),
    ]


def kube_proxy(program: Path, name: str, folder: Path, kubeconfig: Path) -> Command:
    unset = {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}
    config = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clusterCIDR": PODS,
        "hostnameOverride": name,
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "conntrack": unset,  # these are the whole machine's
    }
    file, text = folder / "kube-proxy.json", json.dumps(config, indent=1)
    # It ends when its file is written, even with the same text; who attaches to a cluster comes by here as well.
    if not file.exists() or file.read_text() != text:
        file.write_text(text)
    return [program, "--config", file]


def kube_router(program: Path, name: str, kubeconfig: Path) -> Command:
    """The firewall of NetworkPolicies alone: the bridge plugin enforces none. It reads NODE_NAME, too."""
    return [
        *(program, "--run-firewall=true", "--run-router=false", "--run-service-proxy=false"),
        *("--hostname-override", name, "--service-cluster-ip-range", SERVICES, "--kubeconfig", kubeconfig),
    ]
