"""A server at the other end of the world: its answers take their time to come."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from cortado import Client
from support.fake_server import FakeServer

FAR_S = 0.9
"""TCP, TLS and HTTP/2 each greet once or twice; at 150 ms a greeting it takes about this long to a first call."""


@contextmanager
def far_away(address: str) -> Iterator[str]:
    """Yield the address of a relay to ``address``. The server's first word is late on each connection."""
    host, _, port = address.rpartition(":")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        over = threading.Event()

        def relay() -> None:
            while not over.is_set():
                try:
                    near, _ = listening.accept()
                except OSError:
                    return
                far = socket.create_connection((host, int(port)))
                threading.Thread(target=_copy, args=(near, far), daemon=True).start()
                threading.Thread(target=_copy, args=(far, near, over), daemon=True).start()

        threading.Thread(target=relay, daemon=True).start()
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            over.set()
            listening.shutdown(socket.SHUT_RDWR)


def _copy(source: socket.socket, target: socket.socket, over: threading.Event | None = None) -> None:
    try:
        if over is not None:
            first = source.recv(65_536)
            over.wait(FAR_S)
            target.sendall(first)
        while data := source.recv(65_536):
            target.sendall(data)
    except OSError:
        pass
    finally:
        target.close()


def test_a_server_that_greets_late_is_reached() -> None:
    with FakeServer().running() as server, far_away(server.endpoint) as address, Client(address) as client:
        assert client.clock().now.wall_ms == 1_000
