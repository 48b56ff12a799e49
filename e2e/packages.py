"""What a cluster needs of Debian: the container runtime, the tools of network and firewall."""

import os
import shutil
import subprocess
from collections.abc import Callable

PROGRAMS = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "nft": "nftables",
    "iptables": "iptables",
    "ipset": "ipset",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "openssl": "openssl",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "sysctl": "procps",
    "mount": "mount",
    "modprobe": "kmod",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
}
"""A program that shows that a package is there."""


def install(say: Callable[[str], None] = print, programs: dict[str, str] = PROGRAMS) -> None:
    """Install the packages of which a program is missing."""
    missing = sorted({package for program, package in programs.items() if not shutil.which(program, path=PATH)})
    if not missing:
        return
    if not shutil.which("apt-get") or os.geteuid() != 0:
        raise RuntimeError(f"the cluster needs what Debian calls {', '.join(missing)}: install them, as root")
    say(f"installing {', '.join(missing)}")
    apt("update")
    # Recommended packages would bring services that start by themselves.
    apt("install", "--yes", "--no-install-recommends", *missing)


PATH = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"


def apt(*arguments: str) -> None:
    command = ["apt-get", "--quiet", "--option", "DPkg::Lock::Timeout=300", *arguments]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, env=environment, text=True, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-2000:]}")
