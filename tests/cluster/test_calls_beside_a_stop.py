"""Calls on connections of raw HTTP/2 while a node stops in order. The last GOAWAY names a stream: each call up to it is
answered, and no call behind it is done. So a client may send those again, even without request ids, as gRPC does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cortado.proto.v1 import kv_pb2
from cortado.store.client import Client
from cortado.store.peers.credentials import TlsFiles
from support.certificates import Certifier
from support.http2 import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    WINDOW_UPDATE,
    Connection,
    frame,
    request,
)
from support.server_process import ServerProcess, wait_until
from support.tls_nodes import client_tls, node_process

pytestmark = pytest.mark.process

OPEN_MAX = 400
"""The calls of one connection that wait for their answers."""
ENOUGH = 500
"""The answers of each connection before the node stops."""


@pytest.fixture(params=["plain", "TLS"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[ServerProcess, TlsFiles | None]]:
    if request.param == "plain":
        server, tls = ServerProcess(tmp_path / "n1"), None
    else:
        certifier = Certifier(tmp_path / "ca")
        server, tls = node_process(tmp_path, certifier.node("n1"), "n1"), certifier.client("c")
    try:
        yield server.start(), tls
    finally:
        server.kill()


class Putter:
    """Puts a key of its own with each stream, one after another, until the connection ends."""

    def __init__(self, endpoint: str, tls: TlsFiles | None, name: int) -> None:
        self._connection = Connection(endpoint, tls)
        self._name = name
        self._lock = threading.Lock()
        self.sent = 0
        """The last stream."""
        self.answered: set[int] = set()
        self.failed: set[int] = set()
        self.last: list[int] = []
        """The streams that the GOAWAYs named."""
        self._is_over = False
        self._send(frame(WINDOW_UPDATE, 0, 0, (1 << 30).to_bytes(4)))
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._read, self._write)]
        for thread in self._threads:
            thread.start()

    def key(self, stream: int) -> bytes:
        return b"%d-%d" % (self._name, stream)

    def _send(self, frames: bytes) -> None:
        with self._lock:
            self._connection.send(frames)

    def _write(self) -> None:
        while not self._is_over and len(self.last) < 2:
            wait_until(lambda: self._is_over or self._open < OPEN_MAX, "calls are answered")
            stream = self.sent + 2 if self.sent else 1
            put = kv_pb2.KvPutRequest(namespace="n", key=self.key(stream), value=b"v").SerializeToString()
            head = frame(HEADERS, END_HEADERS, stream, request(b"/cortado.v1.KeyValue/Put"))
            self.sent = stream
            try:
                self._send(head + frame(DATA, END_STREAM, stream, bytes(1) + len(put).to_bytes(4) + put))
            except OSError:
                return

    @property
    def _open(self) -> int:
        return (self.sent + 1) // 2 - len(self.answered) - len(self.failed)

    def _read(self) -> None:
        for each in self._connection.frames():
            if each.kind == GOAWAY:
                self.last.append(int.from_bytes(each.payload[:4]))
            elif each.kind == PING and not each.flags & ACK:
                self._send(frame(PING, ACK, 0, each.payload))
            elif each.kind == HEADERS and each.flags & END_STREAM:
                is_ok = b"grpc-status\x010" in each.payload
                (self.answered if is_ok else self.failed).add(each.stream)
        self._is_over = True

    def join(self) -> None:
        for thread in self._threads:
            thread.join(60)
        self._connection.close()


def test_calls_are_answered_up_to_the_stream_that_is_named_and_not_done_behind_it(
    node: tuple[ServerProcess, TlsFiles | None],
) -> None:
    server, tls = node
    putters = [Putter(server.endpoint, tls, name) for name in range(3)]
    wait_until(lambda: all(len(each.answered) >= ENOUGH for each in putters), "puts are answered")
    assert server.stop() == 0
    for each in putters:
        each.join()
    server.start()
    with Client(server.endpoint, tls=None if tls is None else client_tls(tls)) as client:
        stored = {pair.key for pair in client.kv("n").scan(keys_only=True)}
    for each in putters:
        named = set(range(1, each.last[-1] + 1, 2))
        assert {each.key(stream) for stream in each.answered} <= stored
        assert not {each.key(stream) for stream in range(each.last[-1] + 2, each.sent + 1, 2)} & stored
        assert named == each.answered | each.failed
