"""Frames (RFC 9113 §4 and §6): their layout, and the form of each kind.

::

    +-----------------------------------------------+
    |                 Length (24)                   |
    +---------------+---------------+---------------+
    |   Type (8)    |   Flags (8)   |
    +-+-------------+---------------+-------------------------------+
    |R|                 Stream Identifier (31)                      |
    +=+=============================================================+
    |                   Frame Payload (0...)                        |
    +---------------------------------------------------------------+
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from cortado.store.h2.limits import ConnectionFault, ErrorCode

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD_BYTES: Final = 9

DATA: Final = 0
HEADERS: Final = 1
PRIORITY: Final = 2
RST_STREAM: Final = 3
SETTINGS: Final = 4
PUSH_PROMISE: Final = 5
PING: Final = 6
GOAWAY: Final = 7
WINDOW_UPDATE: Final = 8
CONTINUATION: Final = 9

END_STREAM: Final = 0x1
ACK: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
PRIORITIZED: Final = 0x20

HEADER_TABLE_SIZE: Final = 1
ENABLE_PUSH: Final = 2
MAX_CONCURRENT_STREAMS: Final = 3
INITIAL_WINDOW_SIZE: Final = 4
MAX_FRAME_SIZE: Final = 5
MAX_HEADER_LIST_SIZE: Final = 6

_PRIORITY_BYTES: Final = 5
_SETTING_BYTES: Final = 6


class Frame(NamedTuple):
    kind: int
    flags: int
    stream_id: int
    payload: bytes


class _Form(NamedTuple):
    """``on_stream``: whether the frame belongs to a stream, or to the connection; None for either. ``length`` of its
    payload: exactly, or at least that if ``least``."""

    name: str
    on_stream: bool | None
    length: int | None = None
    least: bool = False


_FORMS: Final = {
    DATA: _Form("DATA", on_stream=True),
    HEADERS: _Form("HEADERS", on_stream=True),
    PRIORITY: _Form("PRIORITY", on_stream=True),
    RST_STREAM: _Form("RST_STREAM", on_stream=True, length=4),
    SETTINGS: _Form("SETTINGS", on_stream=False),
    PUSH_PROMISE: _Form("PUSH_PROMISE", on_stream=True),
    PING: _Form("PING", on_stream=False, length=8),
    GOAWAY: _Form("GOAWAY", on_stream=False, length=8, least=True),
    WINDOW_UPDATE: _Form("WINDOW_UPDATE", on_stream=None, length=4),
    CONTINUATION: _Form("CONTINUATION", on_stream=True),
}


class FrameReader:
    """Cuts frames out of bytes that arrive in any pieces. It holds the bytes that were not asked for yet."""

    def __init__(self, frame_bytes: int) -> None:
        self._frame_bytes = frame_bytes
        self._buffer = b""
        self._at = 0

    def feed(self, data: bytes) -> None:
        rest = self._buffer[self._at :]
        self._buffer = rest + data if rest else data
        self._at = 0

    @property
    def held(self) -> int:
        """The number of bytes that are no frame yet, or were not asked for."""
        return len(self._buffer) - self._at

    def starts_with(self, expected: bytes) -> bool | None:
        """Take ``expected`` if the bytes begin with it, and return whether they do. None if that is not known yet."""
        begin = self._buffer[self._at : self._at + len(expected)]
        if begin == expected:
            self._at += len(expected)
            return True
        return None if expected.startswith(begin) else False

    def next(self) -> Frame | None:
        """Return the next whole frame. Raises ConnectionFault for one that is too large, or is not formed as its kind
        is."""
        buffer, at = self._buffer, self._at
        begin = at + HEAD_BYTES
        if begin > len(buffer):
            return None
        length = buffer[at] << 16 | buffer[at + 1] << 8 | buffer[at + 2]
        kind = buffer[at + 3]
        if length > self._frame_bytes:
            problem = f"a frame has {length} bytes, the limit is {self._frame_bytes}"
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, problem)
        end = begin + length
        if end > len(buffer):
            return None
        self._at = end
        stream_id = int.from_bytes(buffer[at + 5 : begin], "big") & 0x7FFF_FFFF
        if kind > HEADERS or not stream_id:
            _check(kind, stream_id, length)
        return Frame(kind, buffer[at + 4], stream_id, buffer[begin:end])


def _check(kind: int, stream_id: int, length: int) -> None:
    form = _FORMS.get(kind)
    if form is None:
        return  # A frame of an unknown kind is ignored, in any form (§5.5).
    if form.on_stream is not None and form.on_stream != bool(stream_id):
        where = "a stream" if stream_id else "the connection"
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"{form.name} on {where}")
    if form.length is not None and (length < form.length if form.least else length != form.length):
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, f"{form.name} of {length} bytes")


def unpadded(frame: Frame) -> bytes:
    """Return the content of DATA or HEADERS: without padding (§6.1) and priority (§6.2). Raises ConnectionFault."""
    kind, flags, stream_id, payload = frame
    if not flags & (PADDED | PRIORITIZED):
        return payload
    begin, end = 0, len(payload)
    if flags & PADDED:
        if not payload:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "a padded frame without the length of its padding")
        begin, end = 1, end - payload[0]
    if kind == HEADERS and flags & PRIORITIZED:
        check_priority(stream_id, payload[begin : begin + _PRIORITY_BYTES])
        begin += _PRIORITY_BYTES
    if begin > end:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "padding is longer than its frame")
    return payload[begin:end]


def check_priority(stream_id: int, payload: bytes) -> None:
    """Check the priority of a PRIORITY frame, or within HEADERS (§6.3). It is ignored otherwise. Raises
    ConnectionFault."""
    if len(payload) != _PRIORITY_BYTES:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, f"a priority of {len(payload)} bytes")
    if int.from_bytes(payload[:4], "big") & 0x7FFF_FFFF == stream_id:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a stream that depends on itself")


def settings_of(frame: Frame) -> list[tuple[int, int]]:
    """Return the (name, value) pairs of a SETTINGS frame, in its order (§6.5). Raises ConnectionFault."""
    payload = frame.payload
    if len(payload) % _SETTING_BYTES or (payload and frame.flags & ACK):
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, f"SETTINGS of {len(payload)} bytes")
    pieces = (payload[at : at + _SETTING_BYTES] for at in range(0, len(payload), _SETTING_BYTES))
    return [(int.from_bytes(each[:2], "big"), int.from_bytes(each[2:], "big")) for each in pieces]


# --- encoding --------------------------------------------------------------------------------------------------


def header(kind: int, flags: int, stream_id: int, length: int) -> bytes:
    return length.to_bytes(3, "big") + bytes((kind, flags)) + stream_id.to_bytes(4, "big")


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    return header(kind, flags, stream_id, len(payload)) + payload


def settings(pairs: Iterable[tuple[int, int]]) -> bytes:
    payload = b"".join(name.to_bytes(2, "big") + value.to_bytes(4, "big") for name, value in pairs)
    return frame(SETTINGS, 0, 0, payload)


def window_update(stream_id: int, increment: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, stream_id, increment.to_bytes(4, "big"))


def rst_stream(stream_id: int, code: ErrorCode) -> bytes:
    return frame(RST_STREAM, 0, stream_id, code.to_bytes(4, "big"))


def goaway(last_stream_id: int, code: ErrorCode, problem: str = "") -> bytes:
    said = problem.encode("ascii", "replace")
    return frame(GOAWAY, 0, 0, last_stream_id.to_bytes(4, "big") + code.to_bytes(4, "big") + said)
