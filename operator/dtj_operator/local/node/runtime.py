"""The container runtime: one small process that forks off a shim per container, and may live in a network of its own.

The kubelet (`process.py`) holds the other end of a stream socket and sends requests of one byte with one descriptor,
the channel on which everything else about that request is said. A fork takes two milliseconds, a new Python a hundred.
When the socket closes, the kubelet is gone, and the runtime ends; each shim notices by its own channel.
"""

import ctypes
import errno
import fcntl
import os
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import Literal, NoReturn

from dtj_operator.local.node import shim

Request = Literal[b"r", b"l", b"c"]
RUN: Request = b"r"
"""Run a container; the channel goes to its shim."""
LISTEN: Request = b"l"
"""Listen on a loopback port, which the channel names; it gets the listening socket."""
CONNECT: Request = b"c"
"""Connect to a loopback port."""

ISOLATED = "--isolated"

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1
_CAUGHT = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main() -> None:
    """Serve the socket that the first argument numbers. Its first line is empty, or says why there is no isolation."""
    kubelet = socket.socket(fileno=int(sys.argv[1]))
    for number in _CAUGHT:
        # The kubelet alone says when to end. A handler, since what is ignored stays ignored in the commands.
        signal.signal(number, lambda *_: None)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Shims are reaped by the kernel.
    try:
        if ISOLATED in sys.argv:
            _isolate()
    except OSError as why:
        kubelet.sendall(f"{why.strerror}\n".encode())
        return
    kubelet.sendall(b"\n")
    while True:
        request, channels, _, _ = socket.recv_fds(kubelet, 1, 1)
        if not request:
            return
        for descriptor in channels:
            # What comes over a socket is inherited unless it is forbidden: no command shall speak for its shim.
            os.set_inheritable(descriptor, False)
            with socket.socket(fileno=descriptor) as channel:
                if _fork(request, channel) == 0:
                    kubelet.close()
                    _serve(request, channel)


def _fork(request: bytes, channel: socket.socket) -> int:
    """As `os.fork`. Where there may be no process more, that is said of this request, and the others go on."""
    try:
        return os.fork()
    except OSError as why:
        if request == RUN:
            shim.refuse(channel, why)
        else:
            channel.sendall(str(why.errno).encode())
        return -1


def _serve(request: bytes, channel: socket.socket) -> NoReturn:
    """In a process of its own."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        if request == RUN:
            shim.serve(channel)
        else:
            _open(request, channel)
    finally:
        os._exit(0)


def _open(request: bytes, channel: socket.socket) -> None:
    port = int(channel.recv(16))
    opened = socket.socket()
    try:
        if request == LISTEN:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind(("127.0.0.1", port))
            opened.listen(128)
        else:
            opened.connect(("127.0.0.1", port))
    except OSError as why:
        channel.sendall(str(why.errno).encode())
        return
    socket.send_fds(channel, [b"0"], [opened.fileno()])


def _isolate() -> None:
    """Move into a network of its own with nothing but loopback. Without root's rights it takes a user namespace too."""
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, f"{sys.platform} has no network namespaces")
    user, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET):
        if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        # Files keep their owners: everyone is who they were.
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


if __name__ == "__main__":
    main()
