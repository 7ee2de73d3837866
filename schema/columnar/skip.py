"""Skips from a value's position to the one behind it, one value at a time.

The vectorised reader needs this when lanes are few: a lone array of a million strings is a million steps for either,
and a step costs a fifth of a microsecond here. A skip looks at no more bytes than it must to find the next value; the
reader of the skipped value checks it. Each type is compiled once to a closure, records by reference, so that recursive
types end. A skip never passes ``end``, and is bounded by the bytes it passes and by DEPTH_MAX.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from cortado.schema.fold import Fields, Fold
from cortado.schema.limits import DEPTH_MAX, FREE_ITEMS_MAX
from cortado.schema.model import NULL, Array, AvroType, Enum, Fixed, Kind, Map, Primitive, Record, Union
from cortado.schema.shape import Sizes

Skip: TypeAlias = Callable[[bytes, int, int, int], int]
"""``skip(buffer, pos, end, depth)`` gives the position after one value, or raises Malformed."""

SkipItems: TypeAlias = Callable[[bytes, int, int, int, "list[int] | None"], int]
"""As Skip, over an array's or map's blocks: a list is given every item's position (none of empty items)."""

_FIXED_BYTES = {Kind.NULL: 0, Kind.BOOLEAN: 1, Kind.FLOAT: 4, Kind.DOUBLE: 8}


class Malformed(Exception):
    """There is no next value: the bytes end, or a number leads out of them."""


class Skips(Fold[Skip]):
    """The skips of the types within ``root``."""

    def __init__(self, root: AvroType) -> None:
        super().__init__()
        self._sizes = Sizes(root)
        self._fixed: dict[Record, int | None] = {}

    def fixed_bytes(self, type_: AvroType) -> int | None:
        """Return the bytes of every value of a type; None if they differ."""
        match type_:
            case Primitive(kind=kind):
                return _FIXED_BYTES.get(kind)
            case Fixed(size=size):
                return size
            case Record():
                if type_ not in self._fixed:
                    self._fixed[type_] = None  # met again inside itself, it has no one size
                    sizes = [self.fixed_bytes(each.type) for each in type_.fields]
                    known = [size for size in sizes if size is not None]
                    self._fixed[type_] = sum(known) if len(known) == len(sizes) else None
                return self._fixed[type_]
            case _:
                return None

    def items(self, item: AvroType) -> SkipItems:
        """Return the skip over the blocks of an array."""
        return self._items(item, self.of(item))

    def entries(self, value: AvroType) -> SkipItems:
        """Return the skip over the blocks of a map."""
        return self._entries(value, self.of(value))

    def leaf(self, leaf: Primitive | Fixed | Enum) -> Skip:
        size = self.fixed_bytes(leaf)
        if size is not None:
            return _skip_bytes(size)
        is_sized = isinstance(leaf, Primitive) and leaf.kind in (Kind.BYTES, Kind.STRING)
        return _skip_sized if is_sized else _skip_number

    def array(self, array: Array, item: Skip) -> Skip:
        return _skip_all(self._items(array.items, item))

    def map(self, map_: Map, value: Skip) -> Skip:
        return _skip_all(self._entries(map_.values, value))

    def union(self, union: Union, branches: list[Skip]) -> Skip:
        return _skip_union(branches) if union.nullable is None else _skip_nullable(branches, union.branches.index(NULL))

    def record(self, record: Record, fields: Fields[Skip]) -> Skip:
        size = self.fixed_bytes(record)
        return _skip_record(fields.parts) if size is None else _skip_bytes(size)

    def _items(self, item: AvroType, skip_item: Skip) -> SkipItems:
        return _skip_items(skip_item, self._sizes.min_bytes(item), self.fixed_bytes(item))

    def _entries(self, value: AvroType, skip_value: Skip) -> SkipItems:
        return _skip_items(entry(skip_value), self._sizes.min_bytes(value) + 1, None)


def entry(skip_value: Skip) -> Skip:
    """Return the skip of a map's entry, a key and a value."""

    def skip(buffer: bytes, pos: int, end: int, depth: int) -> int:
        return skip_value(buffer, _skip_sized(buffer, pos, end, depth), end, depth)

    return skip


def read_number(buffer: bytes, pos: int, end: int) -> tuple[int, int]:
    """Return a zigzag varint and the position after it."""
    unsigned = shift = 0
    while pos < end:
        byte = buffer[pos]
        pos += 1
        unsigned |= (byte & 0x7F) << shift
        if byte < 0x80:
            if unsigned >> 64:
                raise Malformed
            return (unsigned >> 1) ^ -(unsigned & 1), pos
        shift += 7
        if shift > 63:
            break
    raise Malformed


def _skip_number(buffer: bytes, pos: int, end: int, _depth: int) -> int:
    # Nine bytes hold 63 bits; a tenth holds the last one.
    last = min(pos + 9, end)
    while pos < last:
        if buffer[pos] < 0x80:
            return pos + 1
        pos += 1
    if pos < end and buffer[pos] <= 1:
        return pos + 1
    raise Malformed


def _skip_sized(buffer: bytes, pos: int, end: int, _depth: int) -> int:
    # Most lengths are one byte, zigzag: even for a number that is not negative.
    if pos < end and (byte := buffer[pos]) < 0x80 and not byte & 1:
        after = pos + 1 + (byte >> 1)
    else:
        length, pos = read_number(buffer, pos, end)
        after = pos + length
        if length < 0:
            raise Malformed
    if after > end:
        raise Malformed
    return after


def _skip_bytes(size: int) -> Skip:
    def skip(_buffer: bytes, pos: int, end: int, _depth: int) -> int:
        if pos + size > end:
            raise Malformed
        return pos + size

    return skip


def _skip_record(fields: list[Skip]) -> Skip:
    def skip(buffer: bytes, pos: int, end: int, depth: int) -> int:
        if depth >= DEPTH_MAX:
            raise Malformed
        for step in fields:
            pos = step(buffer, pos, end, depth + 1)
        return pos

    return skip


def _skip_union(branches: list[Skip]) -> Skip:
    count = len(branches)

    def skip(buffer: bytes, pos: int, end: int, depth: int) -> int:
        # Most branches are one byte, zigzag: even for a number that is not negative.
        if pos < end and (byte := buffer[pos]) < 0x80 and not byte & 1:
            branch = byte >> 1
            pos += 1
        else:
            branch, pos = read_number(buffer, pos, end)
        if not 0 <= branch < count:
            raise Malformed
        return branches[branch](buffer, pos, end, depth)

    return skip


def _skip_nullable(skips: list[Skip], null: int) -> Skip:
    skip_any, skip_value = _skip_union(skips), skips[1 - null]
    null_byte, value_byte = 2 * null, 2 - 2 * null

    def skip(buffer: bytes, pos: int, end: int, depth: int) -> int:
        byte = buffer[pos] if pos < end else -1
        if byte == value_byte:
            return skip_value(buffer, pos + 1, end, depth)
        # Longer than it need be, or none of the two.
        return pos + 1 if byte == null_byte else skip_any(buffer, pos, end, depth)

    return skip


def _skip_all(skip_items: SkipItems) -> Skip:
    def skip(buffer: bytes, pos: int, end: int, depth: int) -> int:
        return skip_items(buffer, pos, end, depth, None)

    return skip


def _skip_items(skip_item: Skip, least: int, fixed: int | None) -> SkipItems:
    def skip(buffer: bytes, pos: int, end: int, depth: int, starts: list[int] | None) -> int:
        if depth >= DEPTH_MAX:
            raise Malformed
        while True:
            count, size, pos = read_block(buffer, pos, end)
            if count == 0:
                return pos
            begun = pos
            if count * least > end - pos:
                raise Malformed
            if fixed:
                after = pos + count * fixed
                if starts is not None:
                    starts.extend(range(pos, after, fixed))
                pos = after
            elif least:
                for _ in range(count):
                    if starts is not None:
                        starts.append(pos)
                    pos = skip_item(buffer, pos, end, depth + 1)
            if size not in (None, pos - begun):
                raise Malformed

    return skip


def read_block(buffer: bytes, pos: int, end: int) -> tuple[int, int | None, int]:
    """Read a block's head: (items, bytes if it says so, position after)."""
    count, pos = read_number(buffer, pos, end)
    if count >= 0:
        return count, None, pos
    size, pos = read_number(buffer, pos, end)
    return -count, size, pos


def count_empty_items(buffer: bytes, pos: int, end: int, seen: int) -> tuple[int, int]:
    """Read the blocks of an array of items without bytes, after ``seen`` of them: (position after, items)."""
    while True:
        count, size, pos = read_block(buffer, pos, end)
        if count == 0:
            return pos, seen
        seen += count
        if size or seen > FREE_ITEMS_MAX:
            raise Malformed
