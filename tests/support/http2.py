"""HTTP/2 by hand, for frames that no library sends: frames, and a connection that sends and reads them."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass

from cortado.store.peers.credentials import TlsFiles

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
ACK, END_STREAM, END_HEADERS = 1, 1, 4
MAX_CONCURRENT_STREAMS, MAX_HEADER_LIST_SIZE = 3, 6
CHECK = b"/grpc.health.v1.Health/Check"

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEAD_BYTES = 9


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def field(name: bytes, value: bytes, *, is_indexed: bool = False) -> bytes:
    """Return a header, literally; both texts have less than 127 bytes. An indexed one is 62 from then on."""
    return (b"\x40" if is_indexed else b"\x00") + bytes([len(name)]) + name + bytes([len(value)]) + value


def request(path: bytes) -> bytes:
    """Return the headers of a call."""
    pseudo = ((b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b":authority", b"x"))
    return b"".join(field(*each) for each in (*pseudo, (b"te", b"trailers"), (b"content-type", b"application/grpc")))


@dataclass(frozen=True, slots=True)
class Frame:
    kind: int
    flags: int
    stream: int
    payload: bytes


class Connection:
    """``acknowledges``: whether it says that it knows the server's settings, as clients do."""

    def __init__(
        self, endpoint: str, tls: TlsFiles | None = None, *, acknowledges: bool = True, source: str = ""
    ) -> None:
        host, _, port = endpoint.rpartition(":")
        plain = socket.create_connection((host, int(port)), timeout=60, source_address=(source, 0))
        self._socket = plain if tls is None else _with_tls(plain, tls)
        self._buffer = b""
        self.send(_PREFACE + frame(SETTINGS, 0, 0))
        if acknowledges:
            self.settings = self.settings_of_the_server()
            self.send(frame(SETTINGS, ACK, 0))

    def send(self, frames: bytes) -> None:
        self._socket.sendall(frames)

    def settings_of_the_server(self) -> dict[int, int]:
        payload = next(each for each in self.frames() if each.kind == SETTINGS and not each.flags).payload
        pairs = (payload[at : at + 6] for at in range(0, len(payload), 6))
        return {int.from_bytes(each[:2], "big"): int.from_bytes(each[2:], "big") for each in pairs}

    def frames(self) -> Iterator[Frame]:
        """Yield all frames to the end of the connection. Raises TimeoutError after a minute of nothing."""
        while True:
            size = int.from_bytes(self._buffer[:3], "big")
            if len(self._buffer) < _HEAD_BYTES or len(self._buffer) < _HEAD_BYTES + size:
                try:
                    more = self._socket.recv(1 << 16)
                except (ConnectionError, ssl.SSLError):
                    return
                if not more:
                    return
                self._buffer += more
                continue
            head, payload = self._buffer[:_HEAD_BYTES], self._buffer[_HEAD_BYTES : _HEAD_BYTES + size]
            self._buffer = self._buffer[_HEAD_BYTES + size :]
            yield Frame(head[3], head[4], int.from_bytes(head[5:], "big"), payload)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _with_tls(plain: socket.socket, tls: TlsFiles) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=str(tls.ca))
    context.check_hostname = False
    context.load_cert_chain(tls.cert, tls.key)
    context.set_alpn_protocols(["h2"])
    return context.wrap_socket(plain)
