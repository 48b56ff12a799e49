"""The way from the machine to the API server inside the namespace: a port of the loopback, a socket file between."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

Connect = Callable[[], socket.socket]


@contextlib.contextmanager
def door(listener: socket.socket, connect: Connect) -> Iterator[None]:
    """While this lasts, whoever connects to the listener is connected through."""

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:  # the listener is closed: the door is shut
                return
            try:
                server = connect()
            except OSError:  # nobody there yet: the client sees its connection closed
                client.close()
                continue
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=pump, args=(source, sink), daemon=True).start()

    listener.listen()
    thread = threading.Thread(target=serve, name="door", daemon=True)
    thread.start()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def pump(source: socket.socket, sink: socket.socket) -> None:
    """All that comes from one side goes to the other; its end as well."""
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    for end, how in ((sink, socket.SHUT_WR), (source, socket.SHUT_RD)):
        with contextlib.suppress(OSError):
            end.shutdown(how)


def loopback() -> socket.socket:
    """A free port of this machine's loopback."""
    listener = socket.socket(socket.AF_INET)
    listener.bind(("127.0.0.1", 0))
    return listener


def socket_file(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    return listener


def to(family: socket.AddressFamily, address: str | tuple[str, int]) -> Connect:
    def connect() -> socket.socket:
        end = socket.socket(family)
        try:
            end.connect(address)
        except OSError:
            end.close()
            raise
        return end

    return connect
