"""How an address answers, in people's words; and the addresses this process listens on."""

import contextlib
import errno
import socket
import threading
import time
from collections.abc import Mapping

from dtj_worker.supervisor.loop import Loop

PROBE_SECONDS = 3.0
PROBERS = 32
"""So many addresses are tried at once."""


class Probe:
    """Tries addresses once, in the background; `found` then holds those that failed."""

    def __init__(self, loop: Loop) -> None:
        self.found: dict[str, str] | None = None
        self._loop = loop
        self._is_asked = False

    def ask(self, addresses: Mapping[str, str]) -> None:
        """Only the first call does anything."""
        if not self._is_asked:
            self._is_asked = True
            self._loop.in_thread(lambda: unreachable(addresses), self._answered)

    def _answered(self, result: dict[str, str] | Exception) -> None:
        self.found = result if isinstance(result, dict) else None


def split(address: str) -> tuple[str, int]:
    """Host and port of `host:port` or `[v6]:port`; ValueError for anything else."""
    host, _, port = address.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not host or not port.isdecimal() or not 0 < int(port) < 65536 or (":" in host) != address.startswith("["):
        raise ValueError(f"{address!r} is no address: expected host:port")
    return host, int(port)


def shifted(address: str, by: int) -> str:
    """The same host, `by` ports higher."""
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) + by}"


def failure(error: OSError) -> str:
    """What kept a connection from being made."""
    if isinstance(error, socket.gaierror):
        return "its name does not resolve"
    if isinstance(error, ConnectionRefusedError):
        return "it refused the connection"
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    return error.strerror or str(error)


def unreachable(addresses: Mapping[str, str]) -> dict[str, str]:
    """Those of the addresses, by name, that take no TCP connection, and how they fail. Blocks for seconds."""
    found: dict[str, str] = {}
    waiting = list(addresses.items())

    def probe() -> None:
        with contextlib.suppress(IndexError):
            while True:
                name, address = waiting.pop()
                found[name] = "its name does not resolve yet"  # Resolvers may take longer than we wait.
                try:
                    socket.create_connection(split(address), PROBE_SECONDS).close()
                    del found[name]
                except OSError as error:
                    found[name] = failure(error)

    probers = [threading.Thread(target=probe, daemon=True) for _ in range(min(PROBERS, len(waiting)))]
    end = time.monotonic() + 2 * PROBE_SECONDS
    for prober in probers:
        prober.start()
    for prober in probers:
        prober.join(max(0.0, end - time.monotonic()))
    untried = {name: "it was not tried in time" for name, _ in waiting}
    return {name: found.get(name) or untried[name] for name in addresses if name in found or name in untried}


def listens(port: int) -> bool:
    """Whether something on this machine takes connections on the port."""
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def listener(address: str) -> socket.socket:
    """A listening socket for an own address: on its host if that is a loopback address, else on all of the pod's."""
    host, port = split(address)
    if host in ("localhost", "::1") or host.startswith("127."):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=512)
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=512)
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:  # A kernel that knows IPv6 and has it switched off.
                raise
    return socket.create_server(("", port), backlog=512)
