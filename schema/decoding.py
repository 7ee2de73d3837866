"""Readers from a body to values, compiled from a type, which check every byte as they go.

::

    read(body, position, walk) -> (value, position after it)

There is no second pass that validates: each value is checked as it is read. A reader trusts no number from the body
before it is bounded by the bytes that are left. So the memory that a body can ask for is in proportion to its length.
One pass of closures takes less time than a general decoder that checks nothing (docs/formats/avro.md has numbers).

Accepted, as every Avro reader does: varints longer than they need be (up to ten bytes); array and map blocks with their
size in bytes, which must be true; a map's key twice: the last value counts.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeAlias

from cortado.errors import InvalidDocument
from cortado.schema.fold import Fields, Fold
from cortado.schema.limits import DEPTH_MAX, INT_MAX, INT_MIN
from cortado.schema.logical_values import FromStored, from_stored
from cortado.schema.model import NULL, Array, AvroType, Enum, Fixed, Kind, Map, Primitive, Record, Union
from cortado.schema.names import branch_name
from cortado.schema.shape import Sizes
from cortado.schema.union_branches import ambiguous_branches
from cortado.schema.values import Branch
from cortado.schema.walk import MISTAKES, Walk, located, too_deep

Read: TypeAlias = Callable[[bytes, int, Walk], tuple[Any, int]]

_unpack_float = struct.Struct("<f").unpack_from
_unpack_double = struct.Struct("<d").unpack_from


def read_null(_body: bytes, position: int, _walk: Walk) -> tuple[None, int]:
    return None, position


def read_boolean(body: bytes, position: int, _walk: Walk) -> tuple[bool, int]:
    byte = body[position]
    if byte > 1:
        raise InvalidDocument("", "a boolean is the byte 0 or 1", str(byte))
    return byte == 1, position + 1


def read_long(body: bytes, position: int, _walk: Walk) -> tuple[int, int]:
    byte = body[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    return _read_varint(body, position)


def read_int(body: bytes, position: int, _walk: Walk) -> tuple[int, int]:
    byte = body[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    value, position = _read_varint(body, position)
    if not INT_MIN <= value <= INT_MAX:
        raise InvalidDocument("", "an int has 32 bits", str(value))
    return value, position


def _read_varint(body: bytes, position: int) -> tuple[int, int]:
    byte = body[position]
    value = byte & 0x7F
    shift = 7
    while byte >= 0x80:
        if shift > 63:
            raise InvalidDocument("", "a number takes more than ten bytes")
        position += 1
        byte = body[position]
        value |= (byte & 0x7F) << shift
        shift += 7
    if value >> 64:
        raise InvalidDocument("", "a long has 64 bits")
    return (value >> 1) ^ -(value & 1), position + 1


def read_float(body: bytes, position: int, _walk: Walk) -> tuple[float, int]:
    return _unpack_float(body, position)[0], position + 4


def read_double(body: bytes, position: int, _walk: Walk) -> tuple[float, int]:
    return _unpack_double(body, position)[0], position + 8


def read_bytes(body: bytes, position: int, walk: Walk) -> tuple[bytes, int]:
    length, position = read_long(body, position, walk)
    end = position + length
    if length < 0 or end > len(body):
        raise _bad_length(length, len(body) - position)
    return body[position:end], end


def read_string(body: bytes, position: int, walk: Walk) -> tuple[str, int]:
    length, position = read_long(body, position, walk)
    end = position + length
    if length < 0 or end > len(body):
        raise _bad_length(length, len(body) - position)
    return body[position:end].decode(), end


def _bad_length(length: int, left: int) -> InvalidDocument:
    return InvalidDocument("", f"a length of {length} with {left} bytes left")


PRIMITIVE_READERS: dict[Kind, Read] = {
    Kind.NULL: read_null,
    Kind.BOOLEAN: read_boolean,
    Kind.INT: read_int,
    Kind.LONG: read_long,
    Kind.FLOAT: read_float,
    Kind.DOUBLE: read_double,
    Kind.BYTES: read_bytes,
    Kind.STRING: read_string,
}


def compile_reader(root: AvroType) -> Read:
    """Return the reader of ``root``'s values as they were written."""
    return Readers(root).of(root)


class Readers(Fold[Read]):
    """The readers of the types within ``root``."""

    def __init__(self, root: AvroType) -> None:
        super().__init__()
        self.sizes = Sizes(root)

    def leaf(self, leaf: Primitive | Fixed | Enum) -> Read:
        if isinstance(leaf, Enum):
            return enum_reader(leaf.symbols)
        read = fixed_reader(leaf.size) if isinstance(leaf, Fixed) else PRIMITIVE_READERS[leaf.kind]
        return read if leaf.logical is None else logical_reader(from_stored(leaf.logical), read)

    def array(self, array: Array, item: Read) -> Read:
        return array_reader(item, self.sizes.min_bytes(array.items), array.items == NULL)

    def map(self, map_: Map, value: Read) -> Read:
        return map_reader(value, self.sizes.min_bytes(map_.values))

    def record(self, record: Record, fields: Fields[Read]) -> Read:
        return record_reader(fields.pairs, free_items_of(record))

    def union(self, union: Union, branches: list[Read]) -> Read:
        ambiguous = ambiguous_branches(union)
        readers = [
            named_reader(branch_name(branch), read) if position in ambiguous else read
            for position, (branch, read) in enumerate(zip(union.branches, branches, strict=True))
        ]
        if union.nullable is None:
            return union_reader(readers)
        null_byte = 2 * union.branches.index(NULL)
        return nullable_reader(readers[1 - null_byte // 2], null_byte)


def free_items_of(record: Record) -> int:
    """Return how many values without bytes a record brings by itself: its direct nulls, or itself if it has no
    fields."""
    return sum(field.type == NULL for field in record.fields) if record.fields else 1


def logical_reader(convert: FromStored, read_stored: Read) -> Read:
    def read(body: bytes, position: int, walk: Walk) -> tuple[Any, int]:
        stored, position = read_stored(body, position, walk)
        return convert(stored), position

    return read


def fixed_reader(size: int) -> Read:
    def read(body: bytes, position: int, _walk: Walk) -> tuple[bytes, int]:
        end = position + size
        if end > len(body):
            raise InvalidDocument("", f"a fixed of {size} bytes with {len(body) - position} bytes left")
        return body[position:end], end

    return read


def enum_reader(symbols: tuple[str, ...]) -> Read:
    def read(body: bytes, position: int, walk: Walk) -> tuple[str, int]:
        index, position = read_long(body, position, walk)
        if not 0 <= index < len(symbols):
            raise InvalidDocument("", f"symbol {index} of an enum of {len(symbols)} symbols")
        return symbols[index], position

    return read


def nullable_reader(read_value: Read, null_byte: int) -> Read:
    """Return the reader of a union of null and one other type; ``null_byte`` is the encoded number of the null branch,
    0 or 2."""
    value_byte = 2 - null_byte

    def read(body: bytes, position: int, walk: Walk) -> tuple[Any, int]:
        byte = body[position]
        if byte == value_byte:
            return read_value(body, position + 1, walk)
        if byte == null_byte:
            return None, position + 1
        branch, position = read_branch(body, position, walk, 2)
        return read_value(body, position, walk) if 2 * branch == value_byte else (None, position)

    return read


def union_reader(readers: list[Read]) -> Read:
    count = len(readers)

    def read(body: bytes, position: int, walk: Walk) -> tuple[Any, int]:
        branch, position = read_branch(body, position, walk, count)
        return readers[branch](body, position, walk)

    return read


def read_branch(body: bytes, position: int, walk: Walk, count: int) -> tuple[int, int]:
    branch, position = read_long(body, position, walk)
    if not 0 <= branch < count:
        raise InvalidDocument("", f"branch {branch} of a union of {count} branches")
    return branch, position


def named_reader(name: str, read_value: Read) -> Read:
    def read(body: bytes, position: int, walk: Walk) -> tuple[Branch, int]:
        value, position = read_value(body, position, walk)
        return Branch(name, value), position

    return read


def record_reader(fields: list[tuple[str, Read]], free_items: int) -> Read:
    """``fields`` may be filled in later, before the first read: that is how a record can hold itself."""

    def read(body: bytes, position: int, walk: Walk) -> tuple[dict[str, Any], int]:
        walk.depth += 1
        if walk.depth > DEPTH_MAX:
            raise too_deep()
        if free_items:
            walk.take_free(free_items)
        values: dict[str, Any] = {}
        name = ""
        try:
            for name, read_field in fields:
                values[name], position = read_field(body, position, walk)
        except MISTAKES as error:
            raise located(error, name) from None
        walk.depth -= 1
        return values, position

    return read


def read_block_header(body: bytes, position: int, walk: Walk, item_bytes_min: int) -> tuple[int, int, int]:
    """Return (items in the block, position of the first, the block's stated end or -1); no items: the last one."""
    count, position = read_long(body, position, walk)
    end = -1
    if count < 0:
        count = -count
        size, position = read_long(body, position, walk)
        end = position + size
        if size < 0 or end > len(body):
            raise _bad_length(size, len(body) - position)
    left = len(body) - position
    if item_bytes_min and count * item_bytes_min > left:
        raise InvalidDocument("", f"{count} items of at least {item_bytes_min} bytes with {left} bytes left")
    return count, position, end


def _check_block_end(position: int, end: int) -> None:
    if end not in (-1, position):
        raise InvalidDocument("", f"a block's size is wrong by {position - end} bytes")


def array_reader(read_item: Read, item_bytes_min: int, of_nulls: bool) -> Read:
    def read(body: bytes, position: int, walk: Walk) -> tuple[list[Any], int]:
        walk.enter()
        items: list[Any] = []
        try:
            while True:
                count, position, end = read_block_header(body, position, walk, item_bytes_min)
                if count == 0:
                    _check_block_end(position, end)
                    break
                if of_nulls:
                    walk.take_free(count)
                for _ in range(count):
                    item, position = read_item(body, position, walk)
                    items.append(item)
                _check_block_end(position, end)
        except MISTAKES as error:
            raise located(error, f"[{len(items)}]") from None
        walk.depth -= 1
        return items, position

    return read


def map_reader(read_value: Read, value_bytes_min: int) -> Read:
    def read(body: bytes, position: int, walk: Walk) -> tuple[dict[str, Any], int]:
        walk.enter()
        entries: dict[str, Any] = {}
        key: str | None = None
        try:
            while True:
                count, position, end = read_block_header(body, position, walk, 1 + value_bytes_min)
                if count == 0:
                    _check_block_end(position, end)
                    break
                for _ in range(count):
                    key = None
                    key, position = read_string(body, position, walk)
                    entries[key], position = read_value(body, position, walk)
                key = None
                _check_block_end(position, end)
        except MISTAKES as error:
            raise located(error, f"[{len(entries) if key is None else repr(key)}]") from None
        walk.depth -= 1
        return entries, position

    return read
