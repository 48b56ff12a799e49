"""What a cluster needs of Debian: the container runtime, the tools of network and firewall."""

import os
import shutil
from collections.abc import Callable

from e2e import commands

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
    missing = sorted(
        {package for program, package in programs.items() if not shutil.which(program, path=commands.PATH)}
    )
    if not missing:
        return
    if not shutil.which("apt-get") or os.geteuid() != 0:
        raise RuntimeError(f"the cluster needs what Debian calls {', '.join(missing)}: install them, as root")
    say(f"installing {', '.join(missing)}")
    apt("update")
    # Recommended packages would bring services that start by themselves.
    apt("install", "--yes", "--no-install-recommends", *missing)


def apt(*arguments: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    commands.run(*("apt-get", "--quiet", "--option", "DPkg::Lock::Timeout=300", *arguments), environment=environment)
