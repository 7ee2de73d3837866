"""Avro's numbers: zigzag, so that small negatives are small, seven bits a byte, the lowest first."""

from __future__ import annotations


def append_long(out: bytearray, value: int) -> None:
    """Append ``value``, which has at most 64 bits."""
    rest = value << 1 if value >= 0 else ~(value << 1)
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)


def encoded_long(value: int) -> bytes:
    """Return the bytes of ``value``, which has at most 64 bits."""
    out = bytearray()
    append_long(out, value)
    return bytes(out)
