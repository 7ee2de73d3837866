"""The peer's half of HTTP/2 for tests of a connection without I/O: it sends bytes, and shows received frames as
text."""

from __future__ import annotations

from collections.abc import Iterable

from cortado.store.h2 import frames
from cortado.store.h2.client import ClientConnection
from cortado.store.h2.connection import Connection
from cortado.store.h2.events import Data, Drained, Ended, Event, Going, Opened, PingAnswered, Replied, Reset
from cortado.store.h2.frames import Frame, FrameReader
from cortado.store.h2.header_blocks import block
from cortado.store.h2.incoming import Incoming
from cortado.store.h2.limits import ErrorCode, H2Limits

PATH = b"/s/M"
REQUEST = ((b":method", b"POST"), (b":scheme", b"http"), (b":path", PATH), (b":authority", b"x"))
HELLO = frames.PREFACE + frames.settings([])
NAMES = {
    frames.DATA: "DATA",
    frames.HEADERS: "HEADERS",
    frames.RST_STREAM: "RST_STREAM",
    frames.SETTINGS: "SETTINGS",
    frames.PING: "PING",
    frames.GOAWAY: "GOAWAY",
    frames.WINDOW_UPDATE: "WINDOW_UPDATE",
}
END_BOTH = frames.END_STREAM | frames.END_HEADERS


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def connection(limits: H2Limits | None = None, clock: Clock | None = None) -> Connection:
    """Return a connection that has begun, and sent its first frames."""
    made = Connection(limits or H2Limits(), clock or Clock())
    assert events(made, HELLO) == []
    made.taken()
    return made


def client(limits: H2Limits | None = None, settings: bytes | None = None) -> ClientConnection:
    """Return a client's connection whose server has said its settings, and that has sent its first frames."""
    made = ClientConnection(limits or H2Limits(), Clock())
    assert events(made, frames.settings([]) if settings is None else settings) == []
    made.taken()
    return made


def headers(stream_id: int = 1, flags: int = END_BOTH, fields: Iterable[tuple[bytes, bytes]] = REQUEST) -> bytes:
    return frames.frame(frames.HEADERS, flags, stream_id, block(fields))


def opened(stream_id: int = 1) -> bytes:
    """Return the fields of a request. Its body follows."""
    return headers(stream_id, frames.END_HEADERS)


def data(payload: bytes = b"", stream_id: int = 1, flags: int = 0) -> bytes:
    return frames.frame(frames.DATA, flags, stream_id, payload)


def setting(name: int, value: int) -> bytes:
    return frames.settings([(name, value)])


def events(of: Incoming, sent: bytes) -> list[Event]:
    """Return all events of the bytes."""
    of.feed(sent)
    found = of.advance()
    while of.has_more:
        found += of.advance()
    return found


def shown(event: Event) -> str:
    """Return an event as a line."""
    last = " last" if isinstance(event, (Opened, Replied, Data)) and event.is_last else ""
    match event:
        case Opened():
            path = event.head.path.decode("ascii", "replace")
            return f"opened {event.stream_id} {path}{last}"
        case Replied():
            return f"replied {event.stream_id} {event.fields.status or 'trailers'}{last}"
        case Going():
            return f"going {_code(event.code)}"
        case Data():
            return f"data {event.stream_id} {event.data.hex()}{last}"
        case Reset():
            return f"reset {event.stream_id} {_code(event.code)}"
        case Drained():
            return f"drained {event.stream_id}"
        case PingAnswered():
            return f"ping answered {event.data.hex()}"
        case Ended():
            return f"ended {event.code.name}: {event.problem}"


def said(of: Incoming) -> list[str]:
    """Return the output of a connection, a line for each frame."""
    reader = FrameReader(1 << 24)
    reader.feed(of.taken())
    lines = []
    while (frame := reader.next()) is not None:
        lines.append(_line(frame))
    assert reader.held == 0
    return lines


def _line(frame: Frame) -> str:
    name, payload = NAMES[frame.kind], frame.payload
    where = f" {frame.stream_id}" if frame.stream_id else ""
    is_end = frame.kind in (frames.DATA, frames.HEADERS) and frame.flags & frames.END_STREAM
    flags = " last" if is_end else " ack" if frame.kind in (frames.SETTINGS, frames.PING) and frame.flags else ""
    match frame.kind:
        case frames.RST_STREAM:
            return f"{name}{where} {_code(int.from_bytes(payload, 'big'))}"
        case frames.GOAWAY:
            return f"{name} {int.from_bytes(payload[:4], 'big')} {_code(int.from_bytes(payload[4:8], 'big'))}"
        case frames.WINDOW_UPDATE:
            return f"{name}{where} {int.from_bytes(payload, 'big')}"
        case frames.DATA:
            return f"{name}{where} {len(payload)}{flags}"
        case _:
            return f"{name}{where}{flags}"


def _code(code: int) -> str:
    return ErrorCode(code).name if code in ErrorCode.__members__.values() else str(code)
