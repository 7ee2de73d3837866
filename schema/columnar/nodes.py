"""The nodes that a schema is compiled to (by :mod:`.compiler`): how each type is read in many lanes at once.

``want`` is the purpose of a read: ``SKIP`` finds the positions after the values and no more, ``CHECK`` also refuses
malformed values, ``KEEP`` also makes a column, and a mapping keeps some fields of a record and checks the others.

A lane is the bytes of one document, or of one item in it, in a buffer of many. ``pos`` and ``end`` are int64 offsets
into the buffer, one for each lane that is read. A malformed lane is marked, parked, and read on as zeros: one bad
document costs the others nothing. :class:`Node` documents the methods once, for all types::

    NullNode     no bytes                         RecordNode    its fields, one after the other
    NumberNode   a varint                         NullableNode  a branch, then T or nothing
    BooleanNode  a byte                           UnionNode     a branch, then that branch's value
    FloatNode    4 or 8 bytes                     ArrayNode     blocks of items
    BytesNode    a length, then so many bytes     MapNode       blocks of keys and values
    FixedNode    as many bytes as the type says   OpaqueNode    a record within itself
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

import numpy as np

from cortado.schema.columnar.blocks import ItemShape, find_items
from cortado.schema.columnar.checks import wrong_decimals, wrong_uuids
from cortado.schema.columnar.column import (
    BytesColumn,
    Column,
    FlatColumn,
    Ints,
    ListColumn,
    MapColumn,
    NullColumn,
    OpaqueColumn,
    RecordColumn,
    UnionColumn,
    offsets_of,
)
from cortado.schema.columnar.columns import expand
from cortado.schema.columnar.lanes import Lanes, malformed_utf8
from cortado.schema.columnar.ranges import decimal_bound, is_uuid_text, range_of
from cortado.schema.columnar.skip import Malformed, Skip
from cortado.schema.decoding import compile_reader, free_items_of
from cortado.schema.limits import FREE_ITEMS_MAX
from cortado.schema.model import Array, Enum, Fixed, Kind, Map, Primitive, Record, Union
from cortado.schema.walk import MISTAKES, Walk

SKIP: Final = 0
CHECK: Final = 1
KEEP: Final = 2
WantFields: TypeAlias = "Mapping[str, Want]"
Want: TypeAlias = "int | WantFields"
Read: TypeAlias = tuple[Column | None, Ints]


class Node:
    """One type at one place in the schema."""

    least: int
    """The fewest bytes of a value."""
    checked = True
    """Whether a value can be refused although its length is right."""
    free_items = 0
    """For how many free items a value without bytes counts."""

    def read(self, lanes: Lanes, pos: Ints, end: Ints, want: Want) -> Read:
        """Return the column (None unless kept) of the values at ``pos``, and the positions after them."""
        raise NotImplementedError

    def empty(self) -> Column:
        """Return a column of no rows."""
        raise NotImplementedError

    def blank(self, length: int) -> Column:
        """Return a column of ``length`` values that take no bytes. Only if ``least`` is 0."""
        raise NotImplementedError


class NullNode(Node):
    """null: values without bytes, which count as free items, so that a few bytes cannot stand for millions of them."""

    least = 0
    checked = False
    free_items = 1

    def __init__(self, type_: Primitive) -> None:
        self.type = type_

    def read(self, lanes: Lanes, pos: Ints, end: Ints, want: Want) -> Read:  # noqa: ARG002
        return NullColumn(self.type, len(pos)) if want == KEEP else None, pos

    def empty(self) -> Column:
        return NullColumn(self.type, 0)

    def blank(self, length: int) -> Column:
        return NullColumn(self.type, length)


class NumberNode(Node):
    """int, long and enum: a varint within a range."""

    least = 1

    def __init__(self, type_: Primitive | Enum) -> None:
        self.type = type_
        self.range = range_of(type_)
        is_long = isinstance(type_, Primitive) and type_.kind is Kind.LONG
        self.dtype = np.dtype(np.int64 if is_long else np.int32)

    def read(self, lanes: Lanes, pos: Ints, end: Ints, want: Want) -> Read:
        values, after = lanes.varint(pos, end)
        if want == SKIP:
            return None, after
        if self.range is not None and len(values):
            low, high = self.range
            if values.min() < low or values.max() > high:
                lanes.mark((values < low) | (values > high), end)
        if want == CHECK:
            return None, after
        return FlatColumn(self.type, len(values), values.astype(self.dtype, copy=False)), after

    def empty(self) -> Column:
        return FlatColumn(self.type, 0, np.zeros(0, self.dtype))


class BooleanNode(Node):
    """boolean: one byte, 0 or 1."""

    least = 1

    def __init__(self, type_: Primitive) -> None:
        self.type = type_

    def read(self, lanes: Lanes, pos: Ints, end: Ints, want: Want) -> Read:
        after = lanes.advance(pos, 1, end)
        if want == SKIP:
            return None, after
        values = lanes.buffer[pos]
        if values.max(initial=0) > 1:
            lanes.mark(values > 1, end)
        return FlatColumn(self.type, len(values), values.astype(np.bool_)), after

    def empty(self) -> Column:
        return FlatColumn(self.type, 0, np.zeros(0, np.bool_))


class FloatNode(Node):
    """float and double: any bits are a value."""

    checked = False

    def __init__(self, type_: Primitive) -> None:
        self.type = type_
        self.dtype = np.dtype("<f4" if type_.kind is Kind.FLOAT else "<f8")
        self.least = self.dtype.itemsize

    def read(self, lanes: Lanes, pos: Ints, end: Ints, want: Want) -> Read:
        after = lanes.advance(pos, self.least, end)
        if want != KEEP:
            return None, after
        return FlatColumn(self.type, len(pos), lanes.view(self.dtype.str)[pos]), after

    def empty(self) -> Column:
        return FlatColumn(self.type, 0, np.zeros(0, self.dtype))


class BytesNode(Node):
    """bytes and string: a length, and that many bytes."""

    least = 1

    def __init__(self, type_: Primitive) -> None:
        self.type = type_
        self.is_text = type_.kind is Kind.STRING
        self.is_uuid = is_uuid_text(type_)
        self.bound = decimal_bound(type_)
        self.checked = self.is_text or self.bound is not None

    def read(self, lanes: Lanes, pos: Ints, end: Ints, want: Want) -> Read:
        starts, lengths, after = lanes.ranges(pos, end)
        if want == SKIP or (want == CHECK and self._is_plain(lanes, starts, lengths)):
            return None, after
        data, offsets = lanes.gather(starts, lengths)
        if self.is_text:
            wrong = malformed_utf8(data, offsets)
            if wrong is not None:
                lanes.mark(wrong, end)
        if self.is_uuid:
            lanes.mark(wrong_uuids(data, offsets), end)
        if self.bound is not None:
            lanes.mark(wrong_decimals(data, offsets, self.bound), end)
        return BytesColumn(self.type, len(pos), offsets, data), after

    def _is_plain(self, lanes: Lanes, starts: Ints, lengths: Ints) -> bool:
        """Return whether there is nothing to check that needs the bytes behind each other."""
        return not self.checked or (not self.is_uuid and self.bound is None and lanes.all_ascii(starts, lengths))

    def empty(self) -> Column:
        return BytesColumn(self.type, 0, np.zeros(1, np.int32), np.zeros(0, np.uint8))


class FixedNode(Node):
    """fixed, and decimals in it: ``type.size`` bytes."""

    def __init__(self, type_: Fixed) -> None:
        self.type = type_
        self.least = type_.size
        self.bound = decimal_bound(type_)
        self.checked = self.bound is not None

    def read(self, lanes: Lanes, pos: Ints, end: Ints, want: Want) -> Read:
        after = lanes.advance(pos, self.least, end)
        if want == SKIP or (want == CHECK and not self.checked):
            return None, after
        # A lane that was rejected has no bytes to copy.
        data, offsets = lanes.gather(pos, np.where(after > end, 0, self.least))
        if self.bound is not None:
            lanes.mark(wrong_decimals(data, offsets, self.bound), end)
        return BytesColumn(self.type, len(pos), offsets, data), after

    def empty(self) -> Column:
        return BytesColumn(self.type, 0, np.zeros(1, np.int32), np.zeros(0, np.uint8))

    def blank(self, length: int) -> Column:
        # A view of one zero, since millions of nothings should take nothing.
        return BytesColumn(self.type, length, np.broadcast_to(np.int32(0), length + 1), np.zeros(0, np.uint8))


class RecordNode(Node):
    """A record: its fields in the schema's order. A mapping in ``want`` names those that are kept."""

    def __init__(self, type_: Record, fields: list[tuple[str, Node]]) -> None:
        self.type = type_
        self.fields = fields
        self.least = sum(node.least for _, node in fields)
        self.own_free_items = free_items_of(type_)
        self.free_items = self.own_free_items + sum(
            node.free_items for _, node in fields if node.least == 0 and isinstance(node, RecordNode)
        )
        self.checked = self.free_items > 0 or any(node.checked for _, node in fields)

    def read(self, lanes: Lanes, pos: Ints, end: Ints, want: Want) -> Read:
        if self.own_free_items and want != SKIP:
            lanes.charge(end, self.own_free_items)
        kept: dict[str, Column] = {}
        for name, node in self.fields:
            column, pos_after = node.read(lanes, pos, end, want if isinstance(want, int) else want.get(name, CHECK))
            pos = pos_after
            if column is not None:
                kept[name] = column
        if want in (SKIP, CHECK):
            return None, pos
        return RecordColumn(self.type, len(pos), kept), pos

    def empty(self) -> Column:
        return RecordColumn(self.type, 0, {name: node.empty() for name, node in self.fields})

    def blank(self, length: int) -> Column:
        return RecordColumn(self.type, length, {name: node.blank(length) for name, node in self.fields})


class NullableNode(Node):
    """``[null, T]`` and ``[T, null]``: a column of T with a validity."""

    least = 1

    def __init__(self, present_branch: int, inner: Node) -> None:
        self.present_branch = present_branch
        self.inner = inner

    def read(self, lanes: Lanes, pos: Ints, end: Ints, want: Want) -> Read:
        branch, after = lanes.branch(pos, end, 2)
        present = branch == self.present_branch
        count = int(np.count_nonzero(present))
        if count == len(present):
            return self.inner.read(lanes, after, end, want)
        if count == 0:
            return (None if want in (SKIP, CHECK) else expand(self.empty(), present)), after
        where = present.nonzero()[0]
        column, stop = self.inner.read(lanes, after[where], end[where], want)
        after[where] = stop
        return (None if column is None or want in (SKIP, CHECK) else expand(column, present)), after

    def empty(self) -> Column:
        return self.inner.empty()


class UnionNode(Node):
    """A union other than a type and null: dense, a child column for each branch, in the order of the rows."""

    least = 1

    def __init__(self, type_: Union, inner: list[Node]) -> None:
        self.type = type_
        self.inner = inner

    def read(self, lanes: Lanes, pos: Ints, end: Ints, want: Want) -> Read:
        branches, after = lanes.branch(pos, end, len(self.inner))
        children: list[Column] = []
        for number, node in enumerate(self.inner):
            where = np.flatnonzero(branches == number)
            if not where.size:
                children.append(node.empty())
                continue
            column, stop = node.read(lanes, after[where], end[where], want)
            after[where] = stop
            if column is not None:
                children.append(column)
        if want != KEEP:
            return None, after
        return UnionColumn(self.type, len(pos), branches.astype(np.int32), tuple(children)), after

    def empty(self) -> Column:
        return UnionColumn(self.type, 0, np.zeros(0, np.int32), tuple(node.empty() for node in self.inner))


class ArrayNode(Node):
    """An array: the items of all lanes are read at once, as lanes of their own."""

    least = 1

    def __init__(self, type_: Array, inner: Node, shape: ItemShape) -> None:
        self.type = type_
        self.inner = inner
        self.shape = shape
        self.checked = inner.checked or inner.least == 0

    def read(self, lanes: Lanes, pos: Ints, end: Ints, want: Want) -> Read:
        counts, starts, after = find_items(lanes, self.shape, pos, end)
        if want == SKIP or (want == CHECK and not self.checked):
            return None, after
        if self.shape.least == 0:
            lanes.charge(end, counts * self.inner.free_items)
            items: Column | None = self.inner.blank(int(counts.sum()))
        elif not starts.size:
            items = self.inner.empty()
        else:
            items, _ = self.inner.read(lanes, starts, np.repeat(end, counts), want)
        if items is None or want != KEEP:
            return None, after
        return ListColumn(self.type, len(pos), offsets_of(counts), items), after

    def empty(self) -> Column:
        return ListColumn(self.type, 0, np.zeros(1, np.int32), self.inner.empty())


class MapNode(Node):
    """A map: keys and values of all lanes are read at once, as lanes of their own."""

    least = 1

    def __init__(self, type_: Map, key: BytesNode, inner: Node, shape: ItemShape) -> None:
        self.type = type_
        self.key = key
        self.inner = inner
        self.shape = shape

    def read(self, lanes: Lanes, pos: Ints, end: Ints, want: Want) -> Read:
        counts, starts, after = find_items(lanes, self.shape, pos, end)
        if want == SKIP:
            return None, after
        if not starts.size:
            return expand_empty_map(self, len(pos)) if want == KEEP else None, after
        ends = np.repeat(end, counts)
        keys, stop = self.key.read(lanes, starts, ends, want)
        values, _ = self.inner.read(lanes, stop, ends, want)
        if want != KEEP or values is None or not isinstance(keys, BytesColumn):
            return None, after
        return MapColumn(self.type, len(pos), offsets_of(counts), keys, values), after

    def empty(self) -> Column:
        return expand_empty_map(self, 0)


def expand_empty_map(node: MapNode, length: int) -> Column:
    """Return a column of ``length`` empty maps."""
    keys = node.key.empty()
    assert isinstance(keys, BytesColumn)
    return MapColumn(node.type, length, np.zeros(length + 1, np.int32), keys, node.inner.empty())


class OpaqueNode(Node):
    """A record within itself: read value by value, and kept as its bytes."""

    def __init__(self, type_: Record, least: int, skip: Skip, depth: int) -> None:
        self.type = type_
        self.least = least
        self.skip = skip
        self.read_one = compile_reader(type_)
        self.depth = depth

    def read(self, lanes: Lanes, pos: Ints, end: Ints, want: Want) -> Read:
        after = pos.copy() if want == SKIP else self._read_each(lanes, pos, end)
        if want == SKIP:
            for lane, (start, stop) in enumerate(zip(pos.tolist(), end.tolist(), strict=True)):
                try:
                    after[lane] = self.skip(lanes.raw, start, stop, self.depth)
                except Malformed:
                    after[lane] = stop + 1
        over = after > end
        if over.any():
            lanes.reject(over, after, end)
        if want != KEEP:
            return None, after
        data, offsets = lanes.gather(pos, np.where(over, 0, after - pos))
        return OpaqueColumn(self.type, len(pos), offsets, data), after

    def _read_each(self, lanes: Lanes, pos: Ints, end: Ints) -> Ints:
        """Return the positions after the values, which are read for no other reason than to check them."""
        after = pos.copy()
        rows = lanes.rows(end)
        body, body_start, body_end = b"", 0, -1
        for lane, (start, stop, row) in enumerate(zip(pos.tolist(), end.tolist(), rows.tolist(), strict=True)):
            if stop != body_end:
                body_start, body_end = int(lanes.row_ends[row - 1]) if row else 0, stop
                body = lanes.raw[body_start:body_end]
            walk = Walk()
            walk.depth = self.depth
            walk.free_items = FREE_ITEMS_MAX - int(lanes.free_items[row])
            try:
                after[lane] = body_start + self.read_one(body, start - body_start, walk)[1]
            except MISTAKES:
                after[lane] = stop + 1
            lanes.free_items[row] = FREE_ITEMS_MAX - walk.free_items
        return after

    def empty(self) -> Column:
        return OpaqueColumn(self.type, 0, np.zeros(1, np.int32), np.zeros(0, np.uint8))
