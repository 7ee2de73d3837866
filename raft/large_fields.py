"""A large field of a protobuf message, written beside the message and not by it.

A message copies the bytes that it is given, again when it is serialized, and a third time into the result: for some MiB
that takes milliseconds. Bytes that lie in pieces anyway are joined once instead. The bytes are the same, since fields
are written in the order of their numbers, each behind its tag and its length::

    message of the fields before | tag | length | content | ... | message of the fields behind

Source: *Protocol Buffers, Encoding* (protobuf.dev).
"""

from __future__ import annotations

from typing import Final, TypeAlias

Piece: TypeAlias = bytes | bytearray

_LENGTH_DELIMITED: Final = 2
_CONTINUES: Final = 0x80


def large_field(number: int, content: Piece) -> tuple[Piece, ...]:
    """Return the pieces of a field of the type ``bytes``; no pieces if it is empty."""
    if not content:
        return ()
    return bytes([number << 3 | _LENGTH_DELIMITED]) + _varint(len(content)), content


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= _CONTINUES:
        encoded.append(value & (_CONTINUES - 1) | _CONTINUES)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
