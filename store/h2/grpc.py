"""gRPC over HTTP/2: messages in the bytes of a stream, status and deadline in its fields.

A message is a byte (0: as it is, 1: compressed), four bytes of its length, and itself. A response ends with trailers
that hold a status; one without a message is the trailers alone.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterable
from enum import IntEnum
from typing import ClassVar, Final

from cortado.errors import InvalidArgument, TooLarge, Unsupported
from cortado.store.h2.header_blocks import block

PREFIX_BYTES: Final = 5
CONTENT_TYPE: Final = b"application/grpc"
_SMALL_BYTES: Final = 1_024
"""A piece of fewer bytes is joined to those before it."""

_TIMEOUT: Final = re.compile(rb"([0-9]{1,8})([HMSmun])")
_TIMEOUT_MAX: Final = 99_999_999
_UNIT_S: Final = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}
_ESCAPED: Final = re.compile(rb"[^\x20-\x24\x26-\x7e]")

RESPONSE_HEAD: Final = b"\x88" + block([(b"content-type", CONTENT_TYPE)])
"""``:status`` 200, which stands in the static table."""
OK_TRAILERS: Final = block([(b"grpc-status", b"0")])
ACCEPTED_ENCODINGS: Final = block([(b"grpc-accept-encoding", b"identity")])
"""Stands in the refusal of a compressed message."""


class Code(IntEnum):
    """The codes of ``grpc-status``."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class MessageTooLarge(TooLarge):
    """A message is over the limit. The call ends with the code that the gRPC libraries give it, and with the details of
    :class:`~cortado.errors.TooLarge`: without a delay, since no repetition of the message can pass."""

    code: ClassVar[str] = "RESOURCE_EXHAUSTED"


def prefixed(message: bytes) -> bytes:
    return b"\x00" + len(message).to_bytes(4, "big") + message


class Messages:
    """Cuts messages out of the bytes of a stream."""

    __slots__ = ("_bytes_max", "_held", "_pieces", "is_compressed", "is_last")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._pieces: list[bytes | bytearray] = []
        self._held = 0
        self.is_last = False
        """No more bytes come."""
        self.is_compressed = False
        """The next message is, and is refused."""

    def add(self, data: bytes) -> None:
        if not data:
            return
        self._held += len(data)
        # If a message arrives two bytes at a time, an object for each piece would hold thirty times its bytes.
        if len(data) < _SMALL_BYTES and self._pieces:
            last = self._pieces[-1]
            if not isinstance(last, bytearray):
                last = bytearray()
                self._pieces.append(last)
            last += data
        else:
            self._pieces.append(data)

    @property
    def missing(self) -> int:
        """The number of bytes that have to come before there is a message; the next one's prefix at least. Raises
        Unsupported for a compressed message, MessageTooLarge."""
        if self._held < PREFIX_BYTES:
            return PREFIX_BYTES - self._held
        return PREFIX_BYTES + self._length() - self._held

    def next(self) -> bytes | None:
        """Return the next whole message. Raises as :attr:`missing`, and InvalidArgument if the bytes end within one."""
        if self._held >= PREFIX_BYTES and (size := PREFIX_BYTES + self._length()) <= self._held:
            whole = self._joined()
            message = whole[PREFIX_BYTES:size]
            self._pieces = [whole[size:]] if size < self._held else []
            self._held -= size
            return message
        if self.is_last and self._held:
            raise InvalidArgument("request", "ends within a message")
        return None

    def _length(self) -> int:
        if len(self._pieces[0]) < PREFIX_BYTES:
            self._pieces = [self._joined()]
        first = self._pieces[0]
        if first[0]:
            self.is_compressed = True
            raise Unsupported("a compressed message", "send it as it is")
        length = int.from_bytes(first[1:PREFIX_BYTES], "big")
        if length > self._bytes_max:
            problem = f"has {length} bytes, a message may have {self._bytes_max}: send less at a time"
            raise MessageTooLarge("request", problem, length=length, limit=self._bytes_max)
        return length

    def _joined(self) -> bytes:
        first = self._pieces[0]
        return first if len(self._pieces) == 1 and isinstance(first, bytes) else b"".join(self._pieces)


def timeout_s(value: bytes) -> float:
    """Return the seconds of a ``grpc-timeout``. Raises InvalidArgument."""
    found = _TIMEOUT.fullmatch(value)
    if found is None:
        raise InvalidArgument("metadata.grpc-timeout", "is no duration, such as 10S or 250m", repr(value[:20]))
    return int(found[1]) * _UNIT_S[found[2]]


def timeout_text(seconds: float) -> bytes:
    """Return a ``grpc-timeout`` of at least ``seconds``. It is rounded up to three digits, so that calls repeat it."""
    number, unit = max(1, math.ceil(seconds * 1e3)), b"m"
    if number > _TIMEOUT_MAX:
        number, unit = min(math.ceil(seconds), _TIMEOUT_MAX), b"S"
    step = 10 ** max(0, len(str(number)) - 3)
    return b"%d%b" % (min(-(-number // step) * step, _TIMEOUT_MAX), unit)


def status_trailers(code: int, message: str, metadata: Iterable[tuple[str, str | bytes]] = ()) -> bytes:
    """Return the trailers of a response with this status. Bytes are sent in base 64 (names end with ``-bin``)."""
    fields = [(b"grpc-status", str(code).encode())]
    if message:
        fields.append((b"grpc-message", percent_encoded(message)))
    for name, value in metadata:
        encoded = value.encode() if isinstance(value, str) else base64.b64encode(value).rstrip(b"=")
        fields.append((name.encode(), encoded))
    return block(fields)


def percent_encoded(message: str) -> bytes:
    return _ESCAPED.sub(lambda found: b"%%%02X" % found[0][0], message.encode(errors="replace"))
