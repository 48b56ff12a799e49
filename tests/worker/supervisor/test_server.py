"""The status port: who may ask what, and that no client can hang or crash it."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dtj_worker.codec import decode
from dtj_worker.contract import HEARTBEAT_SECONDS, TrainingStatus
from dtj_worker.supervisor import server as module
from dtj_worker.supervisor.loop import Loop, Stream
from dtj_worker.supervisor.server import Answers, Refusal, Server

TOKEN = "secret"
AUTHORIZED = f"Authorization: Bearer {TOKEN}\r\n"
READ = f"GET /v1/training HTTP/1.1\r\n{AUTHORIZED}\r\n".encode()


@dataclass
class Port:
    """A server in a thread of its own, as it is in a supervisor's loop."""

    address: tuple[str, int]
    status: TrainingStatus = field(default_factory=lambda: TrainingStatus(attempt=0, stage="Program"))
    joined: list[bytes] = field(default_factory=list)
    ahead: float = 0.0
    """How far the server's clock is ahead of ours."""

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=60)

    def ask(self, head: str, body: bytes = b"") -> tuple[int, str]:
        """Status and text of the answer; the request's last line ends follow by themselves."""
        with self.connect() as connection:
            connection.sendall(f"{head}\r\n".encode() + body)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        first, _, rest = answer.partition(b"\r\n")
        return int(first.split()[1]), rest.partition(b"\r\n\r\n")[2].decode()

    def is_well(self) -> bool:
        return self.ask("GET /healthz HTTP/1.1\r\n") == (200, "ok\n")

    def join(self, body: bytes, stream: Stream) -> None:
        if body == b"no":
            raise Refusal(409, "not now")
        if body == b"odd":
            raise Refusal(422, "worker-\ud800 is no peer")
        if body == b"bug":
            raise KeyError("a bug of ours")
        self.joined.append(body)
        stream.send(b"HTTP/1.1 101 Switching Protocols\r\n\r\nwelcome\n")


@pytest.fixture
def port() -> Iterator[Port]:
    stop = threading.Event()
    listening = socket.create_server(("127.0.0.1", 0))
    made = Port(listening.getsockname())
    loop = Loop(lambda: time.monotonic() + made.ahead)
    answers = Answers(metrics=lambda: "dtj_trainer_step 7\n", training=lambda: made.status, join=made.join)
    server = Server(loop, listening, TOKEN, answers)

    def serve() -> None:
        while not stop.is_set():
            loop.wait()
            server.look()

    thread = threading.Thread(target=serve)
    thread.start()
    yield made
    stop.set()
    thread.join()
    server.close()
    loop.close()


@pytest.mark.parametrize(
    ("request_", "status", "says"),
    [
        pytest.param("GET /healthz HTTP/1.1\r\n", 200, "ok", id="health needs no token"),
        pytest.param(f"GET /metrics HTTP/1.1\r\n{AUTHORIZED}", 200, "dtj_trainer_step 7", id="metrics"),
        pytest.param(f"GET /metrics?x=1 HTTP/1.0\r\n{AUTHORIZED}", 200, "dtj_trainer_step 7", id="a query is ignored"),
        pytest.param("GET /metrics HTTP/1.1\r\n", 401, "token", id="metrics without a token"),
        pytest.param("GET /v1/training HTTP/1.1\r\nAuthorization: Bearer x\r\n", 401, "token", id="another token"),
        pytest.param("POST /v1/join HTTP/1.1\r\nAuthorization: secret\r\n", 401, "token", id="no bearer"),
        pytest.param("GET /nothing HTTP/1.1\r\n", 401, "token", id="who has no token learns nothing"),
        pytest.param(f"GET /nothing HTTP/1.1\r\n{AUTHORIZED}", 404, "nothing at /nothing", id="another path"),
        pytest.param(f"POST /v1/training HTTP/1.1\r\n{AUTHORIZED}", 405, "POST is not for", id="another method"),
        pytest.param(f"GET /v1/join HTTP/1.1\r\n{AUTHORIZED}", 405, "GET is not for", id="join is a POST"),
        pytest.param("hello\r\n", 400, "not a request", id="no HTTP"),
        pytest.param("GET /healthz HTTP/2\r\n", 400, "not a request", id="another version"),
        pytest.param("POST /v1/join HTTP/1.1\r\nContent-Length: -1\r\n", 400, "Content-Length", id="a negative length"),
        pytest.param("POST /v1/join HTTP/1.1\r\nTransfer-Encoding: chunked\r\n", 400, "Content-Length", id="chunks"),
        pytest.param("POST /v1/join HTTP/1.1\r\nContent-Length: 5000\r\n", 413, "body", id="a long body"),
        pytest.param(f"POST /v1/join HTTP/1.1\r\nContent-Length: {'9' * 99}\r\n", 413, "body", id="an endless body"),
        pytest.param(f"GET /healthz HTTP/1.1\r\nX: {'x' * 9000}\r\n", 431, "headers", id="long headers"),
    ],
)
def test_answers(port: Port, request_: str, status: int, says: str) -> None:
    found, text = port.ask(request_)

    assert (found, says in text) == (status, True), text


def test_a_join_takes_the_connection_over(port: Port) -> None:
    head = f"POST /v1/join HTTP/1.1\r\n{AUTHORIZED}Content-Length: 5\r\n"
    with port.connect() as connection:
        connection.sendall(f"{head}\r\nhe".encode())
        connection.sendall(b"llo")
        answer = connection.recv(4096)

    assert port.joined == [b"hello"]
    assert answer.endswith(b"welcome\n")


def test_a_refused_join_says_why(port: Port) -> None:
    assert port.ask(f"POST /v1/join HTTP/1.1\r\n{AUTHORIZED}Content-Length: 2\r\n", b"no") == (409, "not now\n")


def test_a_refusal_may_quote_what_is_no_text(port: Port) -> None:
    head = f"POST /v1/join HTTP/1.1\r\n{AUTHORIZED}Content-Length: 3\r\n"

    assert port.ask(head, b"odd") == (422, "worker-? is no peer\n")
    assert port.is_well()


def test_a_bug_breaks_one_request_alone(port: Port, capsys: pytest.CaptureFixture[str]) -> None:
    status, text = port.ask(f"POST /v1/join HTTP/1.1\r\n{AUTHORIZED}Content-Length: 3\r\n", b"bug")

    assert (status, text) == (500, "the supervisor's log has the reason\n")
    assert "a bug of ours" in capsys.readouterr().err
    assert port.is_well()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=400))
@example(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
@example(b"GET / HTTP/1.1\r\n\x00: \xff\r\n\r\n")
@example(b"\r\n\r\n")
def test_garbage_does_no_harm(port: Port, garbage: bytes) -> None:
    with port.connect() as connection:
        connection.sendall(garbage + b"\r\n\r\n")
    assert port.is_well()


def test_a_flood_without_an_end_is_cut(port: Port) -> None:
    with port.connect() as connection:
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            connection.sendall(b"x" * 40_000_000)
        assert port.is_well()


def test_slow_clients_make_room_for_others(port: Port) -> None:
    with contextlib.ExitStack() as clients:
        slow = [clients.enter_context(port.connect()) for _ in range(module.MAX_REQUESTS + 20)]
        for connection in slow:
            connection.sendall(b"GET /hea")

        assert port.is_well()
        with contextlib.suppress(ConnectionResetError):
            assert slow[0].recv(100) == b""
        port.ahead = module.REQUEST_SECONDS + 1
        assert slow[-1].recv(4096).startswith(b"HTTP/1.1 408 ")


def test_the_stream_says_what_changes(port: Port) -> None:
    with port.connect() as connection:
        connection.sendall(READ)
        lines = connection.makefile("rb")
        while lines.readline() != b"\r\n":
            pass
        assert decode(TrainingStatus, lines.readline()) == port.status
        port.status = TrainingStatus(attempt=0, stage="Training", step=4, seconds_since_step=0.5)
        assert decode(TrainingStatus, lines.readline()) == port.status


def test_an_age_alone_is_no_news(port: Port) -> None:
    with port.connect() as connection:
        connection.sendall(READ)
        lines = connection.makefile("rb")
        while lines.readline() != b"\r\n":
            pass
        lines.readline()
        port.status = TrainingStatus(attempt=0, stage="Program", seconds_since_step=3)
        connection.settimeout(2 * module.CHANGE_SECONDS)
        with pytest.raises(TimeoutError):
            lines.readline()


def test_a_stream_beats_without_news(port: Port) -> None:
    with port.connect() as connection:
        connection.sendall(READ)
        lines = connection.makefile("rb")
        while lines.readline() != b"\r\n":
            pass
        lines.readline()
        port.ahead = HEARTBEAT_SECONDS
        assert decode(TrainingStatus, lines.readline()) == port.status


def test_readers_are_few(port: Port) -> None:
    with contextlib.ExitStack() as clients:
        for _ in range(module.MAX_READERS):
            reader = clients.enter_context(port.connect())
            reader.sendall(READ)
            assert reader.recv(20).startswith(b"HTTP/1.1 200")

        assert port.ask(f"GET /v1/training HTTP/1.1\r\n{AUTHORIZED}") == (503, "8 clients read this already\n")


def test_a_reader_that_does_not_read_loses_its_place(port: Port) -> None:
    port.status = TrainingStatus(attempt=0, stage="Training", tasks={f"worker-{i}": "Training" for i in range(2000)})
    with contextlib.ExitStack() as clients:
        for _ in range(module.MAX_READERS):
            reader = clients.enter_context(socket.socket())
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            reader.connect(port.address)
            reader.sendall(READ)
            assert reader.recv(20).startswith(b"HTTP/1.1 200")
        answer, end = b"503", time.monotonic() + 30
        while answer == b"503" and time.monotonic() < end:
            port.ahead += HEARTBEAT_SECONDS
            with port.connect() as connection:
                connection.sendall(READ)
                answer = connection.recv(12).split()[1]
        assert answer == b"200"
