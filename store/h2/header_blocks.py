"""Header blocks (RFC 7541): the ``hpack`` library reads them, within bounds, and ours are written literally.

A client sends the same block for most of its calls, as soon as both sides have its fields in their tables. So a block
that was seen in the same state of the table is looked up by its bytes, without being decoded again.

Caveat: if the library refuses a block, it stops in the middle, and its table is wrong from then on. So each refusal
ends the connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar, cast

from hpack import Decoder, OversizedHeaderListError
from hpack.exceptions import HPACKError

from cortado.store.h2.fields import Field, Head, ResponseFields
from cortado.store.h2.limits import ConnectionFault, ErrorCode

_KNOWN_MAX: Final = 64
_KNOWN_BYTES_MAX: Final = 1_024
"""The size limit of a block that is remembered."""
_FIELD_BYTES: Final = 32
_MULTIPLE: Final = 7
"""Bits of each further byte of an integer."""

H = TypeVar("H", Head, ResponseFields)


class HeaderBlocks:
    """The header blocks that one connection receives: all of requests, or all of responses."""

    def __init__(self, list_bytes_max: int) -> None:
        self._decoder = Decoder(max_header_list_size=list_bytes_max)
        self._known: dict[bytes, Any] = {}

    def knows(self, block: bytes) -> bool:
        """Return whether the block is looked up, and not decoded."""
        return block in self._known

    def request(self, block: bytes) -> Head:
        """Return the fields of a request's block. Raises ConnectionFault for a block that cannot be decoded or is too
        large, StreamFault for malformed fields."""
        known: Head | None = self._known.get(block)
        return self._made(block, Head) if known is None else known

    def response(self, block: bytes) -> ResponseFields:
        """Return the fields of a response, or its trailers. Raises as :meth:`request`."""
        known: ResponseFields | None = self._known.get(block)
        return self._made(block, ResponseFields) if known is None else known

    def _made(self, block: bytes, make: Callable[[Sequence[Field], int], H]) -> H:
        fields = self.fields(block)
        head = make(fields, sum(len(name) + len(value) + _FIELD_BYTES for name, value in fields))
        # A block that has changed the table means something else the next time.
        if len(block) <= _KNOWN_BYTES_MAX and len(self._known) < _KNOWN_MAX and not self._has_changed:
            self._known[block] = head
        return head

    def fields(self, block: bytes) -> list[Field]:
        """Decode a block that is no request's: if for nothing else, to keep the table right. Raises ConnectionFault."""
        before = self._state()
        try:
            fields = cast("list[Field]", self._decoder.decode(block, raw=True))
        except OversizedHeaderListError as refusal:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, str(refusal)) from None
        except HPACKError as refusal:
            raise ConnectionFault(ErrorCode.COMPRESSION_ERROR, str(refusal)[:100]) from None
        after = self._state()
        self._has_changed = before[0] is not after[0] or before[1:] != after[1:]
        if self._has_changed:
            self._known.clear()
        return fields

    def _state(self) -> tuple[object, int, int]:
        """Return the table's newest entry, which is another object after each insertion, its length and its bound."""
        table = self._decoder.header_table
        entries = table.dynamic_entries
        return (entries[0] if entries else None), len(entries), table.maxsize


def integer(value: int, prefix_bits: int, first: int = 0) -> bytes:
    """Encode an integer (§5.1), in the last bits of a byte that begins with those of ``first``."""
    most = (1 << prefix_bits) - 1
    if value < most:
        return bytes((first | value,))
    encoded = bytearray((first | most,))
    value -= most
    while value >= 1 << _MULTIPLE:
        encoded.append(value & 0x7F | 0x80)
        value >>= _MULTIPLE
    encoded.append(value)
    return bytes(encoded)


def literal(name: bytes, value: bytes) -> bytes:
    """Encode a field that no table keeps (§6.2.2), without Huffman's code."""
    return b"\x00" + integer(len(name), 7) + name + integer(len(value), 7) + value


def block(fields: Iterable[Field]) -> bytes:
    return b"".join(literal(*each) for each in fields)
