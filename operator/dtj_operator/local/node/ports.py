"""Loopback ports for tasks, in blocks that no other embedded cluster of this machine uses."""

import random
import socket
from collections.abc import Iterator

import msgspec

SLOT = 16
"""Ports are reserved in slots of so many. The first of a slot is its guard."""
LOWEST, HIGHEST = 16384, 32768
"""Below the range from which Linux and macOS take the local ports of outgoing connections."""


class NoPorts(Exception):
    """Every slot is taken, or something of it is."""


class Slot(msgspec.Struct):
    """Consecutive free ports from `base` on."""

    base: int
    guard: socket.socket | None
    used: int = 1

    def take(self, count: int) -> int | None:
        """The first of `count` ports in a row; None where there are not so many left."""
        if self.used + count > SLOT:
            return None
        first, self.used = self.base + self.used, self.used + count
        return first

    def close(self) -> None:
        if self.guard is not None:
            self.guard.close()


class Ports:
    """`is_private`: the ports are of a network that nobody else is in, so nobody has to be looked out for."""

    def __init__(self, *, is_private: bool) -> None:
        self._is_private = is_private
        self._taken: set[int] = set()

    def slot(self) -> Slot:
        """One in which every port can be listened on, for this process alone until it is released. NoPorts."""
        for base in self._bases():
            if base in self._taken:
                continue
            guard = None if self._is_private else _guarded(base)
            if not self._is_private and guard is None:
                continue
            self._taken.add(base)
            return Slot(base, guard)
        raise NoPorts(f"no {SLOT} free ports in a row are left between {LOWEST} and {HIGHEST}")

    def release(self, slot: Slot) -> None:
        slot.close()
        self._taken.discard(slot.base)

    def are_free(self, first: int, count: int) -> bool:
        """Whether the ports can be listened on now; True where that can't be seen."""
        return self._is_private or all(is_free(port) for port in range(first, first + count))

    def _bases(self) -> Iterator[int]:
        count = (HIGHEST - LOWEST) // SLOT
        # Clusters that start together don't try the same slots one after the other.
        start = 0 if self._is_private else random.randrange(count)
        for index in range(count):
            yield LOWEST + (start + index) % count * SLOT


def _guarded(base: int) -> socket.socket | None:
    """The guard of a slot whose ports are all free."""
    guard = socket.socket()
    try:
        # Without SO_REUSEADDR: a second bind of it fails, and the system closes it when we die.
        guard.bind(("127.0.0.1", base))
    except OSError:
        guard.close()
        return None
    if all(is_free(port) for port in range(base + 1, base + SLOT)):
        return guard
    guard.close()
    return None


def is_free(port: int) -> bool:
    """Whether all of this machine's addresses can be listened on; what TIME_WAIT still holds counts as free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
            probe.listen(1)
        except OSError:
            return False
    return True
