"""Frames: how messages between nodes lie in a stream of bytes.

::

    either side:   "cortado" version  |  frame  |  frame  | ...
                    7 bytes   1 byte

    a frame:       length   kind    CRC-32C             payload
                   4 bytes  1 byte  4 bytes             length bytes, protobuf
                   of the   (Kind)  of kind and payload (docs/formats/peers.md)
                   payload

Numbers are little-endian. Each side begins with the preamble, so that a caller with another protocol is recognized by
its first bytes, and named. A reader declares the kinds that it expects, and the length of each. Another kind, or a
greater length, is refused by the header alone, and no byte of its payload is kept.

Nothing here touches a socket: bytes go in (:meth:`FrameBuffer.feed`), frames come out (:meth:`FrameBuffer.next`).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple

import google_crc32c

VERSION: Final = 1
MAGIC: Final = b"cortado"
PREAMBLE: Final = MAGIC + bytes([VERSION])
_HEADER: Final = struct.Struct("<IBI")
HEADER_BYTES: Final = _HEADER.size


class Kind(IntEnum):
    """The kind of a payload. A connection's first frame is of a kind that is a request."""

    ERROR = 1
    """google.rpc.Status: why the sender ends the connection."""
    HELLO = 2
    """Hello, from either side: the connection carries batches from then on."""
    BATCH = 3
    JOIN = 4
    JOINED = 5
    VOUCH = 6
    VOUCHED = 7
    READ_RANGE = 8
    RANGE = 9
    FETCH_SNAPSHOT = 10
    SNAPSHOT_CHUNK = 11
    SNAPSHOT_END = 12
    """Empty: the chunk before it was the last one. Without it the connection broke."""


ERROR_BYTES_MAX: Final = 16 << 10

_SEED: Final = {kind: google_crc32c.value(bytes([kind])) for kind in Kind}
_NAMES: Final = {int(kind): kind.name for kind in Kind}

# The first bytes of other protocols, and their names.
_OTHERS: Final = (
    (b"\x16\x03", "TLS, and this connection has none"),
    (b"\x15\x03", "TLS, and this connection has none"),
    (b"PRI * HT", "gRPC"),
    (b"HTTP/", "HTTP"),
    (b"GET ", "HTTP"),
    (b"HEAD ", "HTTP"),
    (b"POST ", "HTTP"),
    (b"PUT ", "HTTP"),
    (b"OPTIONS ", "HTTP"),
    (b"CONNECT ", "HTTP"),
    (b"SSH-", "SSH"),
)


class BadFrame(Exception):
    """The other side's error, as the rest of a sentence that begins with its name."""


class Frame(NamedTuple):
    kind: Kind
    payload: bytes


def encode_frame(kind: Kind, payload: bytes) -> bytes:
    """Return a frame, to be sent as it is."""
    return _HEADER.pack(len(payload), kind, google_crc32c.extend(_SEED[kind], payload)) + payload


class FrameBuffer:
    """The bytes of a stream that are not yet a whole frame, or were not asked for. Begins before the preamble."""

    def __init__(self) -> None:
        self._data: bytes | bytearray = b""
        self._at = 0
        self.is_greeted = False
        """The preamble has come."""

    def __len__(self) -> int:
        return len(self._data) - self._at

    def feed(self, data: bytes) -> None:
        """Bytes that arrived."""
        if self._at == len(self._data):
            # As a rule one read is one frame: it is not copied before it is cut.
            self._data = data
        else:
            if not isinstance(self._data, bytearray):
                self._data = bytearray(self._data)
            del self._data[: self._at]
            self._data += data
        self._at = 0

    def next(self, expected: Mapping[Kind, int]) -> Frame | None:
        """Return the next frame, None if it is not whole yet. ``expected``: the kinds that may come, and the largest
        payload of each. Raises BadFrame for anything else; the stream is of no use then."""
        if not self.is_greeted and not self._take_preamble():
            return None
        data, at = self._data, self._at
        if len(data) - at < HEADER_BYTES:
            return None
        length, code, checksum = _HEADER.unpack_from(data, at)
        bytes_max = expected.get(code)
        if bytes_max is None:
            due = " or ".join(each.name for each in expected if each is not Kind.ERROR)
            raise BadFrame(f"sent {_named(code)} where {due} was due")
        if length > bytes_max:
            raise BadFrame(f"sent {_named(code)} of {length} bytes, and it may have {bytes_max}")
        begin = at + HEADER_BYTES
        end = begin + length
        if len(data) < end:
            return None
        payload = bytes(data[begin:end])
        kind = Kind(code)
        if google_crc32c.extend(_SEED[kind], payload) != checksum:
            raise BadFrame(f"sent {_named(code)} of {length} bytes whose checksum does not match")
        if end == len(data):
            self._data, self._at = b"", 0
        else:
            self._at = end
        return Frame(kind, payload)

    def drop(self) -> None:
        """Forget the buffered bytes."""
        self._data, self._at = b"", 0

    def _take_preamble(self) -> bool:
        """Return whether the preamble has come. Raises BadFrame naming the other protocol."""
        begun = bytes(self._data[: len(PREAMBLE)])
        if len(begun) < len(PREAMBLE):
            return False
        if begun != PREAMBLE:
            raise BadFrame(f"speaks {_language(bytes(self._data[:9]))}, not the peers' protocol")
        self.is_greeted = True
        self._at = len(PREAMBLE)
        return True


def _named(code: int) -> str:
    """Return a kind from outside."""
    return f"a frame {_NAMES[code]}" if code in _NAMES else f"a frame of the unknown kind {code}"


def _language(first: bytes) -> str:
    """Return the name of the protocol that begins with these bytes."""
    if first.startswith(MAGIC):
        return f"version {first[len(MAGIC)]} of the peers' frames (this node version {VERSION})"
    for sign, name in _OTHERS:
        if first.startswith(sign):
            return name
    if first[3:4] == b"\x04" and first[5:] == bytes(len(first) - 5):
        return "gRPC"  # An HTTP/2 server's SETTINGS.
    return f"something else (its first bytes are {first.hex()})"
