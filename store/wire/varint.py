"""Protobuf's numbers: seven bits a byte, the lowest first, and a high bit on each byte but the last.

For messages that are put together by hand, field by field, in half the time of protobuf's own way. Source: *Protocol
Buffers, Encoding* (protobuf.dev).
"""

from __future__ import annotations

from typing import Final

_LAST: Final = [bytes((low,)) for low in range(0x80)]
_MORE: Final = [bytes((low | 0x80,)) for low in range(0x80)]


def varint(number: int) -> bytes:
    """Encode a field's length, or its value if that is not negative."""
    if number < 0x80:
        return _LAST[number]
    if number < 0x4000:
        return _MORE[number & 0x7F] + _LAST[number >> 7]
    return _MORE[number & 0x7F] + varint(number >> 7)
