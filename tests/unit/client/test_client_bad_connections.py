"""Servers that no call reaches: each failed connection is told in words for people, and no write is in doubt."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cortado.errors import CortadoError, DeadlineExceeded, Unavailable
from cortado.store.client import Tls
from cortado.store.client.runtime import Environment
from cortado.store.h2 import frames
from support.certificates import DAYS, NOW, Certifier
from support.faces import FACES
from support.ports import free_ports
from support.remains import client_that_leaves_nothing, sockets_to
from support.script_server import Peer, Script, ScriptServer, serving
from support.server_process import wait_until

pytestmark = pytest.mark.timeout(60)

ONE_ATTEMPT = Environment(random=lambda: 1e9)
"""The pause before a second one is longer than any timeout."""
NO_CORTADO = "what answers there is no Cortado server"
CLOSED = "it closed the connection: it stops, wants TLS, or does not accept the client's certificate"


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def certifier(tmp_path_factory: pytest.TempPathFactory) -> Certifier:
    return Certifier(tmp_path_factory.mktemp("certificates"))


def failures(face: str, endpoint: str, **options: Any) -> Iterator[CortadoError]:
    """Yield the errors of a read and of a write, each with a client of its own."""
    for call in (lambda client: client.kv("n").get(b"k"), lambda client: client.kv("n").put(b"k", b"v")):
        with client_that_leaves_nothing(face, endpoint, timeout_s=20, environment=ONE_ATTEMPT, **options) as client:
            with pytest.raises(CortadoError) as raised:
                call(client)
            yield raised.value


def test_nothing_listens(face: str) -> None:
    [port] = free_ports(1)
    for error in failures(face, f"127.0.0.1:{port}"):
        assert isinstance(error, Unavailable)
        assert str(error) == f"cannot reach 127.0.0.1:{port}: nothing listens there"


def test_a_host_that_is_unknown(face: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def getaddrinfo(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    for error in failures(face, "nowhere.invalid:7621"):
        assert isinstance(error, Unavailable)
        assert "there is no such host" in str(error) or "its host's name cannot be looked up" in str(error)


def test_all_addresses_of_a_host_are_tried(face: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server listens at the second one."""
    with ScriptServer(serving()) as server, client_that_leaves_nothing(face, f"localhost:{server.port}") as client:
        found = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, server.port)) for host in ("127.0.0.2", "127.0.0.1")
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        assert client.kv("n").get(b"k") is None


def silent(peer: Peer) -> None:
    while True:
        peer.receive()


def says(words: bytes) -> Script:
    def script(peer: Peer) -> None:
        peer.receive()
        peer.send(words)
        peer.until_gone()

    return script


def closes(peer: Peer) -> None:
    """End the connection at once."""


@pytest.mark.slow
def test_a_server_that_says_nothing(face: str) -> None:
    with ScriptServer(silent) as server:
        for error in failures(face, server.endpoint):
            assert isinstance(error, Unavailable)
            assert "it took the connection, and says nothing" in str(error)


def test_a_timeout_bounds_the_wait_for_a_server_that_says_nothing(face: str) -> None:
    with ScriptServer(silent) as server, client_that_leaves_nothing(face, server.endpoint, timeout_s=0.3) as client:
        with pytest.raises((DeadlineExceeded, Unavailable)):
            client.kv("n").get(b"k")
        with pytest.raises(Unavailable):
            client.kv("n").put(b"k", b"v")


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(says(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), id="http-1"),
        pytest.param(says(b"SSH-2.0-OpenSSH_9.9\r\n"), id="ssh"),
        pytest.param(says(frames.frame(frames.PING, 0, 0, bytes(8))), id="no-settings"),
        pytest.param(says(bytes(range(256)) * 8), id="garbage"),
    ],
)
def test_a_server_that_speaks_another_protocol(script: Script, face: str) -> None:
    with ScriptServer(script) as server:
        for error in failures(face, server.endpoint):
            assert isinstance(error, Unavailable)
            assert NO_CORTADO in str(error)


def test_a_server_that_ends_each_connection_at_once(face: str) -> None:
    with ScriptServer(closes) as server:
        for error in failures(face, server.endpoint):
            assert isinstance(error, Unavailable)
            assert CLOSED in str(error)


# --- TLS -------------------------------------------------------------------------------------------------------


def test_tls_between_both_works(face: str, certifier: Certifier) -> None:
    tls = Tls(certifier.ca)
    with (
        ScriptServer(serving(), tls=certifier.node("n1")) as server,
        client_that_leaves_nothing(face, server.endpoint, tls=tls) as client,
    ):
        assert client.kv("n").get(b"k") is None
        assert client.kv("n").put(b"k", bytes(1 << 20)) == "0.1000.1"


def test_a_server_that_wants_tls_of_a_client_that_does_not(face: str, certifier: Certifier) -> None:
    with ScriptServer(serving(), tls=certifier.node("n1")) as server:
        for error in failures(face, server.endpoint):
            assert isinstance(error, Unavailable)
            assert CLOSED in str(error) or NO_CORTADO in str(error)


def test_a_client_that_wants_tls_of_a_server_that_does_not(face: str, certifier: Certifier) -> None:
    with ScriptServer(serving()) as server:
        for error in failures(face, server.endpoint, tls=Tls(certifier.ca)):
            assert isinstance(error, Unavailable)
            assert "it does not speak TLS" in str(error)


def test_a_server_that_ends_tls_and_keeps_the_connection_is_left(face: str, certifier: Certifier) -> None:
    over = threading.Event()

    def script(peer: Peer) -> None:
        peer.greet()
        for asked in peer.messages():
            if asked.method == "KeyValue/Get":
                peer.close_tls()
                over.wait(60)
                return
            peer.answer(asked)

    tls = Tls(certifier.ca)
    with (
        ScriptServer(script, serving(), tls=certifier.node("n1")) as server,
        client_that_leaves_nothing(face, server.endpoint, tls=tls, coalesce=False, environment=ONE_ATTEMPT) as client,
    ):
        client.clock()
        with pytest.raises(Unavailable):
            client.kv("n").get(b"k")
        over.set()


def test_a_server_that_takes_no_http_2_under_tls(face: str, certifier: Certifier) -> None:
    with ScriptServer(serving(), tls=certifier.node("n1"), alpn=()) as server:
        for error in failures(face, server.endpoint, tls=Tls(certifier.ca)):
            assert isinstance(error, Unavailable)


Made = Callable[[Certifier, Path], Any]


@pytest.mark.parametrize(
    ("made", "told"),
    [
        pytest.param(
            lambda certifier, _: certifier.node("n1", under="old", now=NOW - timedelta(days=2 * DAYS)),
            "its certificate has expired",
            id="expired",
        ),
        pytest.param(
            lambda certifier, _: certifier.node("n1", under="elsewhere", hosts=("127.0.0.9", "db.test")),
            "its certificate is not for that host",
            id="of-another-host",
        ),
        pytest.param(
            lambda _, directory: Certifier(directory).node("n1"),
            "its certificate does not come from the authority in tls-ca",
            id="of-another-authority",
        ),
    ],
)
def test_a_certificate_that_is_wrong(made: Made, told: str, face: str, certifier: Certifier, tmp_path: Path) -> None:
    with ScriptServer(serving(), tls=made(certifier, tmp_path)) as server:
        for error in failures(face, server.endpoint, tls=Tls(certifier.ca)):
            assert isinstance(error, Unavailable)
            assert told in str(error)


def test_certificates_are_read_for_each_connection(face: str, certifier: Certifier, tmp_path: Path) -> None:
    other = Certifier(tmp_path)
    ca = tmp_path / "authorities.pem"
    ca.write_bytes(certifier.ca.read_bytes())
    once = ends_after_the_first_call()
    with ScriptServer(once, tls=certifier.node("n1")) as first, ScriptServer(serving(), tls=other.node("n1")) as second:
        with client_that_leaves_nothing(face, first.endpoint, tls=Tls(ca)) as client:
            assert client.kv("n").get(b"k") is None
        ca.write_bytes(other.ca.read_bytes())
        with client_that_leaves_nothing(face, second.endpoint, tls=Tls(ca)) as client:
            assert client.kv("n").get(b"k") is None


def ends_after_the_first_call() -> Script:
    def script(peer: Peer) -> None:
        peer.greet()
        for asked in peer.messages():
            peer.answer(asked)
            if asked.method != "Cluster/Members":
                return

    return script


# --- between calls ---------------------------------------------------------------------------------------------


def test_a_connection_that_ended_between_two_calls_is_made_again(face: str) -> None:
    at_once = Environment(random=lambda: 0.0)
    with (
        ScriptServer(ends_after_the_first_call()) as server,
        client_that_leaves_nothing(face, server.endpoint, environment=at_once) as client,
    ):
        for _ in range(3):
            client.kv("n").get(b"k")
            wait_until(lambda: sockets_to(server.endpoint) == 0, "the connection has ended")


def test_a_write_to_a_server_that_has_ended_did_not_happen(face: str) -> None:
    with (
        ScriptServer(serving()) as server,
        client_that_leaves_nothing(face, server.endpoint, environment=ONE_ATTEMPT) as client,
    ):
        client.kv("n").put(b"k", b"v")
        server.stop()
        wait_until(lambda: sockets_to(server.endpoint) == 0, "the client has closed its end")
        with pytest.raises(Unavailable, match="nothing listens there"):
            client.kv("n").put(b"k", b"v")
