"""A server on loopback that speaks HTTP/2 by hand, and misbehaves as a script says.

A script plays one connection: it gets a :class:`Peer`, which sends any bytes and reads frames. The connection ends with
its script. :meth:`Peer.serve` is the script of a good server, with exceptions for some methods::

    with ScriptServer(serving({"KeyValue/Get": lambda peer, asked: peer.reset(asked, ErrorCode.CANCEL)})) as server:
        Client(server.endpoint)...

The first connection is played by the first script, the next one by the next; the last script plays all others.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeAlias

from hpack import Decoder

from cortado.proto.v1 import calls_pb2, cluster_pb2, common_pb2, kv_pb2
from cortado.store.h2 import frames
from cortado.store.h2.frames import Frame, FrameReader
from cortado.store.h2.grpc import OK_TRAILERS, RESPONSE_HEAD, prefixed, status_trailers
from cortado.store.peers.credentials import TlsFiles
from support.fake_server import header

END: Final = frames.END_STREAM | frames.END_HEADERS
UNIMPLEMENTED: Final = 12
_FRAME_BYTES: Final = 16_384
_PIECE_BYTES: Final = 1 << 18


class Gone(Exception):
    """The connection has ended: the client, or the test, has closed it."""


class Asked(NamedTuple):
    """A message of a request, such as ("KeyValue/Get", b"...") on stream 1."""

    stream: int
    method: str
    message: bytes
    fields: dict[str, str]


Script: TypeAlias = "Callable[[Peer], None]"
Act: TypeAlias = "Callable[[Peer, Asked], None]"

_REPLIES: Final[dict[str, Any]] = {
    "Cluster/Clock": cluster_pb2.ClockResponse(header=header(), now=common_pb2.Timestamp(wall_ms=1_000)),
    "KeyValue/Get": kv_pb2.KvGetResponse(header=header()),
    "KeyValue/Put": kv_pb2.KvPutResponse(header=header(), etag="0.1000.1"),
    "KeyValue/Scan": kv_pb2.KvScanResponse(header=header()),
}


def reply_to(method: str) -> bytes:
    """Return the encoded reply of a good server."""
    reply: bytes = _REPLIES[method].SerializeToString()
    return reply


def put_id(asked: Asked) -> str:
    """Return the request id of a put, alone or merged, as errors show it."""
    message = asked.message
    if asked.method == "Calls/Exchange":
        [call] = calls_pb2.CallBatch.FromString(message).calls
        message = call.request
    return kv_pb2.KvPutRequest.FromString(message).request_id.hex()


def headers(stream: int, fields: bytes, flags: int = frames.END_HEADERS) -> bytes:
    return frames.frame(frames.HEADERS, flags, stream, fields)


def data(stream: int, payload: bytes, flags: int = 0) -> bytes:
    return frames.frame(frames.DATA, flags, stream, payload)


def reset(stream: int, code: int) -> bytes:
    return frames.frame(frames.RST_STREAM, 0, stream, code.to_bytes(4, "big"))


def refusal(stream: int, code: int, message: str = "", details: tuple[tuple[str, bytes], ...] = ()) -> bytes:
    """Return a response that is trailers alone."""
    return headers(stream, RESPONSE_HEAD + status_trailers(code, message, details), END)


class Peer:
    """One connection. ``resets`` holds the codes by stream that the client reset; ``gone_away`` the code of its
    GOAWAY."""

    def __init__(self, sock: socket.socket, asked: list[Asked]) -> None:
        self._socket = sock
        self._all_asked = asked
        self._reader = FrameReader((1 << 24) - 1)
        self._decoder = Decoder()
        self._has_preface = False
        self._begun: dict[int, dict[str, str]] = {}
        self.bodies: dict[int, bytearray] = {}
        self._windows: dict[int, int] = {0: 65_535}
        self._initial_window = 65_535
        self.credits_streams = True
        """It gives back the bytes of requests to the windows of their streams, as always to that of the connection."""
        self.resets: dict[int, int] = {}
        self.gone_away: int | None = None
        self.received = 0
        """The number of bytes of DATA."""

    # --- sending -----------------------------------------------------------------------------------------------

    def send(self, *pieces: bytes) -> None:
        """Send bytes. Raises Gone if the client takes none any more."""
        try:
            self._socket.sendall(b"".join(pieces))
        except OSError:
            raise Gone from None

    def end(self) -> None:
        """End the connection. Raises Gone, so that its script ends, too."""
        raise Gone

    def close_tls(self) -> None:
        """Say at the layer of TLS that nothing more comes. The connection stays."""
        assert isinstance(self._socket, ssl.SSLSocket)
        with suppress(OSError):
            self._socket.settimeout(0)
            self._socket.unwrap()

    def greet(self, settings: Mapping[int, int] | None = None) -> None:
        self.send(frames.settings((settings or {}).items()))

    def answer(self, asked: Asked) -> None:
        """Reply as a good server does."""
        if asked.method == "Calls/Exchange":
            self._answer_merged(asked)
        elif asked.method in _REPLIES:
            self.reply(asked, prefixed(reply_to(asked.method)))
        else:
            self.send(refusal(asked.stream, UNIMPLEMENTED, "no such method"))

    def _answer_merged(self, asked: Asked) -> None:
        replies = calls_pb2.ReplyBatch()
        for call in calls_pb2.CallBatch.FromString(asked.message).calls:
            replies.replies.add(id=call.id, reply=reply_to(call.method.removeprefix("cortado.v1.")))
        first = b"" if "answered" in asked.fields else headers(asked.stream, RESPONSE_HEAD)
        asked.fields["answered"] = "yes"
        self.send(first, data(asked.stream, prefixed(replies.SerializeToString())))

    def reply(self, asked: Asked, body: bytes, trailers: bytes = OK_TRAILERS) -> None:
        """Send a response whose body is within a frame and the windows."""
        self.send(headers(asked.stream, RESPONSE_HEAD), data(asked.stream, body), headers(asked.stream, trailers, END))

    def send_long(self, asked: Asked, body: bytes) -> None:
        """Send DATA of any length, as the client's windows allow, until the client resets the stream. Answer requests
        that come in between."""
        view, at, stream = memoryview(body), 0, asked.stream
        while at < len(body) and stream not in self.resets:
            room = min(self._windows[0], self._windows[stream], _PIECE_BYTES)
            if room <= 0:
                for other in self.step():
                    self.answer(other)
                continue
            piece = view[at : at + room]
            parts = [piece[begin : begin + _FRAME_BYTES] for begin in range(0, len(piece), _FRAME_BYTES)]
            self.send(*(data(stream, bytes(part)) for part in parts))
            self._windows[0] -= len(piece)
            self._windows[stream] -= len(piece)
            at += len(piece)

    # --- reading -----------------------------------------------------------------------------------------------

    def frame(self) -> Frame:
        """Return the next frame. Raises Gone at the end."""
        while True:
            if not self._has_preface:
                self._has_preface = self._reader.starts_with(frames.PREFACE) is True
            found = self._reader.next() if self._has_preface else None
            if found is not None:
                return found
            self._reader.feed(self.receive())

    def receive(self) -> bytes:
        """Return some bytes as they come. Raises Gone at the end."""
        try:
            more = self._socket.recv(1 << 18)
        except OSError:
            raise Gone from None
        if not more:
            raise Gone
        return more

    def step(self) -> list[Asked]:
        """Take one frame in; return the messages of requests that are whole now. Raises Gone at the end."""
        return self._take(self.frame())

    def messages(self) -> Iterator[Asked]:
        """Yield the messages of requests as they become whole."""
        while True:
            yield from self.step()

    def until_gone(self) -> None:
        """Take frames in until the client closes the connection."""
        with suppress(Gone):
            for _ in self.messages():
                pass

    def serve(self, acts: Mapping[str, Act] | None = None) -> None:
        """Answer all requests; those of some methods by ``acts``."""
        for asked in self.messages():
            (acts or {}).get(asked.method, Peer.answer)(self, asked)

    def _take(self, frame: Frame) -> list[Asked]:
        stream, payload = frame.stream_id, frame.payload
        match frame.kind:
            case frames.HEADERS:
                fields = dict(self._decoder.decode(frames.unpadded(frame)))
                self._begun[stream], self.bodies[stream] = fields, bytearray()
                self._windows.setdefault(stream, self._initial_window)
            case frames.DATA:
                self.received += len(payload)
                if payload:
                    self.send(
                        *(frames.window_update(each, len(payload)) for each in (0, stream)[: 1 + self.credits_streams])
                    )
                self.bodies[stream] += payload
                return self._whole(stream)
            case frames.SETTINGS if not frame.flags:
                self._set(dict(frames.settings_of(frame)))
            case frames.PING if not frame.flags:
                self.send(frames.frame(frames.PING, frames.ACK, 0, payload))
            case frames.WINDOW_UPDATE:
                added = int.from_bytes(payload, "big")
                self._windows[stream] = self._windows.get(stream, self._initial_window) + added
            case frames.RST_STREAM:
                self.resets[stream] = int.from_bytes(payload, "big")
            case frames.GOAWAY:
                self.gone_away = int.from_bytes(payload[4:8], "big")
        return []

    def _set(self, settings: dict[int, int]) -> None:
        window = settings.get(frames.INITIAL_WINDOW_SIZE, self._initial_window)
        for stream in self._begun:
            self._windows[stream] += window - self._initial_window
        self._initial_window = window
        self.send(frames.frame(frames.SETTINGS, frames.ACK, 0))

    def _whole(self, stream: int) -> list[Asked]:
        body, found = self.bodies[stream], []
        while len(body) >= 5 and len(body) >= 5 + int.from_bytes(body[1:5], "big"):
            size = 5 + int.from_bytes(body[1:5], "big")
            fields = self._begun[stream]
            method = fields[":path"].removeprefix("/cortado.v1.")
            found.append(Asked(stream, method, bytes(body[5:size]), fields))
            del body[:size]
        self._all_asked += found
        return found


def serving(acts: Mapping[str, Act] | None = None, settings: Mapping[int, int] | None = None) -> Script:
    """Return the script of a good server, but for ``acts``."""

    def script(peer: Peer) -> None:
        peer.greet(settings)
        peer.serve(acts)

    return script


class ScriptServer:
    """``asked`` holds the messages of all connections, in their order, ``peers`` the connections. With ``tls`` each one
    begins with a handshake, at which it offers the protocols of ``alpn``."""

    def __init__(self, *scripts: Script, tls: TlsFiles | None = None, alpn: tuple[str, ...] = ("h2",)) -> None:
        self._scripts = scripts
        self._context = None if tls is None else _server_side(tls, alpn)
        self.asked: list[Asked] = []
        self.peers: list[Peer] = []
        self.problems: list[BaseException] = []
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.endpoint = f"127.0.0.1:{self.port}"

    def calls(self, method: str) -> list[Asked]:
        """Return the requests of one method so far."""
        return [each for each in self.asked if each.method == method]

    def stop(self) -> None:
        """Refuse further connections, and end all others. May be called again."""
        if self._listening.fileno() >= 0:
            _shut(self._listening)
            self._listening.close()
        self._threads[0].join()
        for each in self._sockets:
            _shut(each)
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> ScriptServer:
        self._start(self._accept)
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self.stop()
        if error is None:
            assert not self.problems, self.problems

    def _start(self, work: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        for number in range(1 << 30):
            try:
                accepted, _ = self._listening.accept()
            except OSError:
                return
            self._sockets.append(accepted)
            self._start(self._play, accepted, self._scripts[min(number, len(self._scripts) - 1)])

    def _play(self, sock: socket.socket, script: Script) -> None:
        try:
            if self._context is not None:
                sock = self._context.wrap_socket(sock, server_side=True)
                self._sockets.append(sock)
            peer = Peer(sock, self.asked)
            self.peers.append(peer)
            script(peer)
        except (Gone, OSError):
            pass  # Also a handshake that fails.
        except Exception as problem:
            self.problems.append(problem)
        finally:
            _shut(sock)
            sock.close()


def _shut(sock: socket.socket) -> None:
    with suppress(OSError):  # It may be over.
        sock.shutdown(socket.SHUT_RDWR)


def _server_side(tls: TlsFiles, alpn: tuple[str, ...]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls.cert, tls.key)
    if alpn:
        context.set_alpn_protocols(list(alpn))
    return context
