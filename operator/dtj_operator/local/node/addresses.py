"""Where the names and ports of pods lie on this machine: one registry for all, and the rewriting of what names them.

A pod is known to others as `<hostname>.<subdomain>.<namespace>.svc.<domain>:<port>`, where the subdomain is a headless
Service. Here each such name and port is a loopback port of its own, the same for whoever asks.
"""

import re
from typing import Any

import msgspec

from dtj_operator.local.node.machine import ADDRESS
from dtj_operator.local.node.ports import SLOT, Ports, Slot
from dtj_operator.local.objects import Objects

Json = dict[str, Any]

_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_NAME = re.compile(
    rf"(?<![\w.-])(?P<host>{_LABEL})\.(?P<subdomain>{_LABEL})"
    rf"(?:\.(?P<namespace>{_LABEL})(?:\.svc(?:\.{_LABEL})*)?)?:(?P<port>[0-9]{{1,5}})(?![0-9])"
)


class Host(msgspec.Struct, frozen=True):
    namespace: str
    subdomain: str
    name: str


class _Place:
    """The ports of a host name. `owner` is the UID of the pod that listens there, `users` of all that know of it."""

    def __init__(self) -> None:
        self.slots: list[Slot] = []
        self.runs: dict[int, int] = {}
        self.owner: str | None = None
        self.users: set[str] = set()


class Addresses:
    """Decided at the first mention, kept while a pod that was told of them lives, and then for the next one if free."""

    def __init__(self, objects: Objects, ports: Ports) -> None:
        self._objects = objects
        self._ports = ports
        self._places: dict[Host, _Place] = {}
        self._left: list[_Place] = []
        """Places that their host has left, since a pod that the API no longer knows still listens there."""
        self._shared: dict[int, set[str]] = {}
        """Pods that listen on a port which nobody finds by a name, so that it was left as it is."""

    def rewritten(self, text: str, namespace: str, user: str) -> str:
        """The text with every address of a pod as it is here. `namespace` and UID are those of the pod it is for."""
        if ":" not in text:
            return text

        def address(found: re.Match[str]) -> str:
            host = Host(found["namespace"] or namespace, found["subdomain"], found["host"])
            here = self.address(host, int(found["port"]), user)
            return here or found[0]

        return _NAME.sub(address, text)

    def address(self, host: Host, port: int, user: str) -> str | None:
        """None where the name is none of a pod behind a headless Service."""
        ports = self._service_ports(host)
        if ports is None:
            return None
        place = self._place(host)
        place.users.add(user)
        first, count = _run(ports, port)
        if first not in place.runs:
            place.runs[first] = self._take(place, count)
        return f"{ADDRESS}:{place.runs[first] + port - first}"

    def has(self, host: Host, port: int) -> bool:
        """Whether the port is found by the host's name."""
        return port in (self._service_ports(host) or ())

    def claim(self, host: Host, owner: str) -> None:
        """The pod with this UID is the one that listens there from now on."""
        place = self._places.get(host)
        if place is not None and place.owner not in (None, owner):
            # Older pods under the same name live: whoever was told of them keeps talking to them.
            self._left.append(self._places.pop(host))
            place = None
        if self._service_ports(host) is not None:
            place = place or self._place(host)
            place.owner = owner
            place.users.add(owner)

    def shares(self, port: int, user: str) -> bool:
        """Note that this pod listens on a port as it is; whether another one that lives does so, too."""
        users = self._shared.setdefault(port, set())
        users.add(user)
        return len(users) > 1

    def release(self, user: str) -> None:
        """Nothing of the pod with this UID runs any more."""
        for users in self._shared.values():
            users.discard(user)
        for place in [*self._places.values(), *self._left]:
            place.users.discard(user)
            if place.owner == user:
                place.owner = None
        gone = [place for place in self._left if not place.users]
        self._left = [place for place in self._left if place.users]
        for host, place in list(self._places.items()):
            if not place.users and self._service_ports(host) is None:
                gone.append(self._places.pop(host))
        for place in gone:
            self._free(place)

    def close(self) -> None:
        for place in [*self._places.values(), *self._left]:
            self._free(place)

    def _place(self, host: Host) -> _Place:
        place = self._places.get(host)
        if place is not None and place.owner is not None and not self._exists(host, place.owner):
            # A zombie: its object was deleted by force and its node doesn't answer. The next round goes elsewhere.
            self._left.append(self._places.pop(host))
            place = None
        if place is not None and not place.users and not self._is_free(place):
            # Someone else listens there by now.
            self._free(self._places.pop(host))
            place = None
        return self._places.setdefault(host, place or _Place())

    def _exists(self, host: Host, uid: str) -> bool:
        return uid in self._objects.uids("pods", host.namespace)

    def _is_free(self, place: _Place) -> bool:
        return all(self._ports.are_free(slot.base + 1, slot.used - 1) for slot in place.slots)

    def _take(self, place: _Place, count: int) -> int:
        if place.slots and (first := place.slots[-1].take(count)) is not None:
            return first
        place.slots.append(self._ports.slot())
        first = place.slots[-1].take(count)
        assert first is not None
        return first

    def _free(self, place: _Place) -> None:
        for slot in place.slots:
            self._ports.release(slot)

    def _service_ports(self, host: Host) -> set[int] | None:
        service = self._objects.find("services", host.namespace, host.subdomain)
        if service is None or service["spec"].get("clusterIP") != "None":
            return None
        return {one["port"] for one in service["spec"].get("ports") or ()}


def of_pod(pod: Json) -> Host | None:
    """The name that a pod is found under, if it is."""
    spec, metadata = pod["spec"], pod["metadata"]
    if not spec.get("subdomain"):
        return None
    return Host(metadata["namespace"], spec["subdomain"], spec.get("hostname") or metadata["name"])


def _run(ports: set[int], port: int) -> tuple[int, int]:
    """The Service's ports in a row that this one belongs to: they stay a row here. The first, and how many."""
    first = last = port
    while first - 1 in ports and last - first < SLOT - 2:
        first -= 1
    while last + 1 in ports and last - first < SLOT - 2:
        last += 1
    return first, last - first + 1
