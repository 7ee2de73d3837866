"""The cost of one connection to a node before any of its calls is known: bounds of HTTP/2, over plain TCP and over
TLS."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import suppress

import pytest

from cortado.store.peers.credentials import TlsFiles
from support.certificates import Certifier
from support.fronts import FRONTS
from support.http2 import (
    ACK,
    CHECK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    MAX_CONCURRENT_STREAMS,
    MAX_HEADER_LIST_SIZE,
    PING,
    RST_STREAM,
    SETTINGS,
    Connection,
    field,
    frame,
    request,
)
from support.server_process import ServerProcess, wait_until
from support.tls_nodes import node_process

pytestmark = pytest.mark.process

PINGS = 50
ENHANCE_YOUR_CALM = (11).to_bytes(4, "big")
PUT = b"/cortado.v1.KeyValue/Put"


@pytest.fixture(params=[(front, how) for front in FRONTS for how in ("plain", "TLS")], ids="-".join, scope="module")
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    front, how = request.param
    folder = tmp_path_factory.mktemp("node")
    if how == "plain":
        server, tls = ServerProcess(folder / "n1", "--front", front), None
    else:
        certifier = Certifier(folder)
        server = node_process(folder, certifier.node("n1"), "n1", "--front", front)
        tls = certifier.client("c")
    try:
        server.start()
        yield Node(server, tls, front)
    finally:
        server.kill()


def is_answered_on(connection: Connection) -> bool:
    """Return whether a first call of the health service is answered there."""
    connection.send(frame(HEADERS, END_HEADERS, 1, request(CHECK)) + frame(DATA, END_STREAM, 1, bytes(5)))
    return any(each.kind == HEADERS and each.stream == 1 for each in connection.frames())


class Node:
    """A server, and what its clients show."""

    def __init__(self, server: ServerProcess, tls: TlsFiles | None, front: str) -> None:
        self.server = server
        self.is_native = front == "native"
        self._tls = tls

    def connection(self, *, acknowledges: bool = True) -> Connection:
        return Connection(self.server.endpoint, self._tls, acknowledges=acknowledges)

    def is_answered(self) -> bool:
        """Whether a call of the health service is."""
        with self.connection() as connection:
            return is_answered_on(connection)


def test_a_client_is_told_the_bounds_of_streams_and_of_metadata(node: Node) -> None:
    with node.connection() as connection:
        assert connection.settings[MAX_CONCURRENT_STREAMS] == (4_096 if node.is_native else 8_192)
        assert connection.settings[MAX_HEADER_LIST_SIZE] == 16 << 10


def test_pings_are_answered_and_not_counted(node: Node) -> None:
    # A connection that is closed for its pings reads on until its answers are read, at 70 us for each further one.
    with node.connection() as connection:
        connection.send(b"".join(frame(PING, 0, 0, number.to_bytes(8, "big")) for number in range(PINGS)))
        answered = []
        for each in connection.frames():
            assert each.kind != GOAWAY, each
            if each.kind == PING and each.flags == ACK:
                answered.append(int.from_bytes(each.payload, "big"))
            if len(answered) == PINGS:
                break
        assert answered == list(range(PINGS))


def test_a_name_that_is_repeated_in_metadata_is_bounded_before_a_client_acknowledges_the_bound(node: Node) -> None:
    repeated = field(b"authorization", b"x" * 100, is_indexed=True) + b"\xbe" * 200

    def refusal() -> bytes:
        with node.connection(acknowledges=False) as connection:
            connection.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, request(PUT) + repeated))
            return next(each for each in connection.frames() if each.kind == HEADERS and each.stream == 1).payload

    # gRPC refuses one of a thousand itself, at random.
    refusals = [refusal() for _ in range(5)]
    assert any(b"metadata" in each and b"16384" in each for each in refusals)


def test_a_call_with_much_metadata_that_nobody_looks_at_is_answered_or_ends_its_connection(node: Node) -> None:
    repeated = field(b"a", b"x" * 100, is_indexed=True) + b"\xbe" * 2_000
    with node.connection(acknowledges=False) as connection:
        connection.send(frame(HEADERS, END_HEADERS, 1, request(CHECK) + repeated))
        connection.send(frame(DATA, END_STREAM, 1, bytes(5)))
        if node.is_native:
            assert calm_is_asked_for(connection)
        else:
            assert next(each for each in connection.frames() if each.kind == HEADERS and each.stream == 1)
    assert node.is_answered()


def test_metadata_that_is_no_text_fills_no_log(node: Node) -> None:
    """gRPC logs each such value three times, and a value that was sent before comes as one byte."""
    value = b"Bearer ctd_0123456789abcdef_" + b"\xff" * 90
    before = len(node.server.log)
    with node.connection() as connection:
        for number in range(500):
            again = field(b"authorization", value, is_indexed=True) if not number else b"\xbe"
            stream = 2 * number + 1
            connection.send(frame(HEADERS, END_HEADERS, stream, request(CHECK) + again))
            connection.send(frame(DATA, END_STREAM, stream, bytes(5)))
            assert any(each.kind == HEADERS and each.stream == stream for each in connection.frames())
    written = node.server.log[before:]
    assert len(written) < 50_000
    assert "ctd_" not in written


def test_a_path_that_is_no_text_ends_the_port_for_no_other(node: Node) -> None:
    pid, hostile = node.server.pid, []
    for _ in range(3):
        # It stays open, so that the end that it caused waits for it.
        hostile.append(node.connection())
        hostile[-1].send(frame(HEADERS, END_HEADERS | END_STREAM, 1, request(b"/\xff")))
        if not node.is_native:
            wait_until(lambda: node.server.log.count("is served again") == len(hostile), "the port is served again")
        assert node.is_answered()
    for each in hostile:
        each.close()
    assert node.server.pid == pid
    assert node.server.is_running


def calm_is_asked_for(connection: Connection) -> bool:
    """Whether the connection ends, and says that it was too much."""
    return any(each.kind == GOAWAY and each.payload[4:8] == ENHANCE_YOUR_CALM for each in connection.frames())


FLOODS = {
    "streams that are reset": lambda n: (
        frame(HEADERS, END_HEADERS, 2 * n + 1, request(CHECK)) + frame(RST_STREAM, 0, 2 * n + 1, bytes(4))
    ),
    "pings": lambda n: frame(PING, 0, 0, n.to_bytes(8, "big")),
    "settings": lambda n: frame(SETTINGS, 0, 0),
    "fields without an end": lambda n: frame(CONTINUATION if n else HEADERS, 0, 1, b"" if n else request(CHECK)),
    "frames without a byte": lambda n: frame(DATA, 0, 1) if n else frame(HEADERS, END_HEADERS, 1, request(CHECK)),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_ends_no_connection_but_its_own(node: Node, flood: str) -> None:
    """The gRPC library takes floods; the native front has a bound for each."""
    with node.connection() as connection, node.connection() as other:
        with suppress(ConnectionError, ssl.SSLError):
            for begin in range(0, 20_000, 500):
                connection.send(b"".join(FLOODS[flood](n) for n in range(begin, begin + 500)))
        assert not node.is_native or calm_is_asked_for(connection)
        assert is_answered_on(other)
    assert node.is_answered()
