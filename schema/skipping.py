"""Where bodies end that stand end to end, as in Avro's container files: skippers compiled from a type.

::

    skip(data, position) -> position after the value

Nothing is decoded, and little is checked: only that no length leads backwards, and that no count makes work which the
data does not pay for. Whoever uses a body that was found so checks it when it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeAlias, assert_never

from cortado.errors import InvalidDocument
from cortado.schema.decoding import read_long
from cortado.schema.limits import FREE_ITEMS_MAX
from cortado.schema.model import NULL, Array, AvroType, Enum, Fixed, Kind, Map, Primitive, Record, Schema, Union
from cortado.schema.shape import Sizes
from cortado.schema.walk import MISTAKES, Walk, explained, too_deep

Skip: TypeAlias = Callable[[bytes, int], int]

_COMPILED_MAX: Final = 256
_WALK: Final = Walk()
"""Numbers are read by a reader that wants one, and does not look at it."""


def ends_of(schema: Schema, data: bytes, position: int, rows: int) -> list[int]:
    """Where each of ``rows`` documents ends, of which the first begins at ``position``.

    Raises InvalidDocument whose ``row`` is that of the first document, from 0, that is none of ``schema``.
    """
    skip, row_bytes_min = _skipper(schema)
    ends: list[int] = []
    size = len(data)
    if rows * row_bytes_min > size - position or (not row_bytes_min and rows > FREE_ITEMS_MAX):
        raise InvalidDocument("", f"{rows} documents with {size - position} bytes left")
    try:
        for _ in range(rows):
            position = skip(data, position)
            if position > size:
                raise InvalidDocument("", f"ends {position - size} bytes behind the data")
            ends.append(position)
    except (*MISTAKES, RecursionError) as error:
        found = too_deep() if isinstance(error, RecursionError) else explained(error)
        found.row = len(ends)
        raise found from None
    return ends


@lru_cache(_COMPILED_MAX)
def _skipper(schema: Schema) -> tuple[Skip, int]:
    """What skips a document, and the fewest bytes that one takes."""
    compiler = _Compiler(schema.root)
    return compiler.skip(schema.root), compiler.sizes.min_bytes(schema.root)


class _Compiler:
    def __init__(self, root: AvroType) -> None:
        self.sizes = Sizes(root)
        self._records: dict[str, Skip] = {}

    def skip(self, type_: AvroType) -> Skip:
        match type_:
            case Primitive(kind=kind):
                return _OF_KIND[kind]
            case Fixed(size=size):
                return _bytes_of(size)
            case Enum():
                return _long
            case Array(items=items):
                return _blocks(self.skip(items), self.sizes.min_bytes(items))
            case Map(values=values):
                return _blocks(_sequence([_sized, self.skip(values)]), 1 + self.sizes.min_bytes(values))
            case Union():
                return self._union(type_)
            case Record():
                return self._record(type_)
            case _:
                assert_never(type_)

    def _record(self, record: Record) -> Skip:
        if record.name not in self._records:
            skips: list[Skip] = []
            self._records[record.name] = _sequence(skips)
            skips += [self.skip(field.type) for field in record.fields]
        return self._records[record.name]

    def _union(self, union: Union) -> Skip:
        if union.nullable is not None:
            return _nullable(self.skip(union.nullable), 2 * union.branches.index(NULL))
        return _branch([self.skip(branch) for branch in union.branches])


def _nothing(_data: bytes, position: int) -> int:
    return position


def _long(data: bytes, position: int) -> int:
    while data[position] > 0x7F:
        position += 1
    return position + 1


def _sized(data: bytes, position: int) -> int:
    byte = data[position]
    if byte < 0x80 and not byte & 1:
        return position + 1 + (byte >> 1)
    length, position = read_long(data, position, _WALK)
    if length < 0:
        raise InvalidDocument("", f"a length of {length}")
    return position + length


def _bytes_of(size: int) -> Skip:
    return lambda _data, position: position + size


_OF_KIND: Final[dict[Kind, Skip]] = {
    Kind.NULL: _nothing,
    Kind.BOOLEAN: _bytes_of(1),
    Kind.INT: _long,
    Kind.LONG: _long,
    Kind.FLOAT: _bytes_of(4),
    Kind.DOUBLE: _bytes_of(8),
    Kind.BYTES: _sized,
    Kind.STRING: _sized,
}


def _sequence(skips: list[Skip]) -> Skip:
    def skip_all(data: bytes, position: int) -> int:
        for skip in skips:
            position = skip(data, position)
        return position

    return skip_all


def _nullable(skip: Skip, null_byte: int) -> Skip:
    value_byte = 2 - null_byte

    def skip_branch(data: bytes, position: int) -> int:
        byte = data[position]
        if byte == value_byte:
            return skip(data, position + 1)
        if byte == null_byte:
            return position + 1
        # Longer than it need be, or none of the two.
        index, position = read_long(data, position, _WALK)
        if index not in (0, 1):
            raise InvalidDocument("", f"branch {index} of a union of 2")
        return position if 2 * index == null_byte else skip(data, position)

    return skip_branch


def _branch(skips: list[Skip]) -> Skip:
    def skip_branch(data: bytes, position: int) -> int:
        index, position = read_long(data, position, _WALK)
        if not 0 <= index < len(skips):
            raise InvalidDocument("", f"branch {index} of a union of {len(skips)}")
        return skips[index](data, position)

    return skip_branch


def _blocks(skip: Skip, item_bytes_min: int) -> Skip:
    """Of an array or a map. Items without bytes are not walked: five bytes may say that there are billions of them."""

    def skip_blocks(data: bytes, position: int) -> int:
        while True:
            count, position = read_long(data, position, _WALK)
            if count == 0:
                return position
            if count < 0:
                # Its size in bytes is there for this.
                position = _sized(data, position)
                continue
            if count * item_bytes_min > len(data) - position:
                raise InvalidDocument("", f"{count} items with {len(data) - position} bytes left")
            if item_bytes_min:
                for _ in range(count):
                    position = skip(data, position)

    return skip_blocks
