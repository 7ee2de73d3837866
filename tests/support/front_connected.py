"""Connections of the native front in this process, on transports that a test looks at."""

from __future__ import annotations

import itertools
from typing import Any

from cortado.store.server.front import Front
from cortado.store.server.front_connection import FrontConnection
from support.front_calls import fields
from support.http2 import DATA, END_HEADERS, END_STREAM, HEADERS, SETTINGS, frame

_PORTS = itertools.count(1)


class Transport:
    """One that a test looks at."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.is_closed = self.is_aborted = self.is_reading = False
        self._address = ("127.0.0.1", next(_PORTS))

    def get_extra_info(self, name: str) -> Any:
        return self._address if name == "peername" else None

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_aborted = True

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0)


def connected(front: Front, clock: Clock) -> tuple[FrontConnection, Transport]:
    connection, transport = FrontConnection(front, clock), Transport()
    connection.connection_made(transport)
    return connection, transport


def call(stream: int, path: str, request: bytes) -> bytes:
    """Return a whole call."""
    message = b"\0" + len(request).to_bytes(4, "big") + request
    return frame(HEADERS, END_HEADERS, stream, fields(path)) + frame(DATA, END_STREAM, stream, message)


def new_front(connections_max: int = 100) -> Front:
    return Front("127.0.0.1", 0, None, of_clients=False, connections_max=connections_max)
