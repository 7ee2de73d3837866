"""Resolving readers, compiled from a pair of schemas: from a body of the writer's to a document of the reader's.

A resolving reader walks the writer's bytes and checks each of them, those of fields that the reader lacks too. Fields
come out in the reader's order; a field that the writer does not have takes the reader's default. Numbers are promoted,
symbols that the reader lacks become its enum's default, branches of unions are matched by
:meth:`~cortado.schema.reader_writer.ReaderWriter.choose_branch`.

With an incompatible pair (a subject may ask for no compatibility), a part that cannot be read raises only in documents
that hold it. Source: Apache Avro specification 1.12, *Schema Resolution*.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from cortado.errors import InvalidDocument
from cortado.schema.decoding import (
    PRIMITIVE_READERS,
    Read,
    Readers,
    array_reader,
    enum_reader,
    fixed_reader,
    free_items_of,
    logical_reader,
    map_reader,
    named_reader,
    union_reader,
)
from cortado.schema.defaults import default_bytes
from cortado.schema.limits import DEPTH_MAX
from cortado.schema.logical_values import from_stored
from cortado.schema.model import (
    NO_DEFAULT,
    NULL,
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Kind,
    Logical,
    Map,
    Primitive,
    Record,
    Union,
)
from cortado.schema.names import branch_name, describe_type
from cortado.schema.reader_writer import PROMOTIONS, ReaderWriter, logical_differences, sources_of
from cortado.schema.shape import Sizes
from cortado.schema.union_branches import ambiguous_branches
from cortado.schema.values import Branch
from cortado.schema.walk import MISTAKES, Walk, located, too_deep

_FLOAT: Final = struct.Struct("<f")
_FLOAT_BITS: Final = 24


def compile_resolver(writer: AvroType, reader: AvroType) -> Read:
    """Return the reader of ``writer``'s bytes as values of ``reader``."""
    return _Resolver(writer, reader).resolve(writer, reader)


def float_of(value: int) -> float:
    """Return the 32-bit float nearest to an integer, ties to even, rounded once (by way of a double it would be
    twice)."""
    excess = abs(value).bit_length() - _FLOAT_BITS
    if excess > 0:
        low = value & ((1 << excess) - 1)
        value -= low
        half = 1 << (excess - 1)
        if low > half or (low == half and value >> excess & 1):
            value += 1 << excess
    return float(value)


class _Resolver:
    """Compiles each pair of records once; a recursive one is reached through the lists that its fields are put into."""

    def __init__(self, writer: AvroType, reader: AvroType) -> None:
        self.sizes = Sizes(writer)
        self.rules = ReaderWriter()
        self.as_written = Readers(writer)
        self.as_read = Readers(reader)
        self.records: dict[tuple[str, str], Read] = {}

    def resolve(self, writer: AvroType, reader: AvroType) -> Read:
        if isinstance(writer, Union):
            return union_reader([self.resolve(branch, reader) for branch in writer.branches])
        if isinstance(reader, Union):
            return self._into_union(writer, reader)
        match writer, reader:
            case Primitive(), Primitive():
                return _primitive(writer, reader)
            case Array(), Array():
                read_item = self.resolve(writer.items, reader.items)
                return array_reader(read_item, self.sizes.min_bytes(writer.items), writer.items == NULL)
            case Map(), Map():
                return map_reader(self.resolve(writer.values, reader.values), self.sizes.min_bytes(writer.values))
            case Fixed(), Fixed() if writer.size == reader.size:
                return _with_logical(fixed_reader(writer.size), writer, reader)
            case Enum(), Enum():
                return _enum(writer, reader)
            case Record(), Record():
                return self._record(writer, reader)
            case _:
                return _unreadable(writer, reader)

    def _into_union(self, writer: AvroType, reader: Union) -> Read:
        chosen = self.rules.choose_branch(reader, writer)
        if chosen is None:
            return _unreadable(writer, reader)
        read = self.resolve(writer, chosen)
        is_ambiguous = reader.branches.index(chosen) in ambiguous_branches(reader)
        return named_reader(branch_name(chosen), read) if is_ambiguous else read

    def _record(self, writer: Record, reader: Record) -> Read:
        pair = (writer.name, reader.name)
        if pair in self.records:
            return self.records[pair]
        steps: list[tuple[str, Read, str | None]] = []
        defaults: list[tuple[str, bytes, Read]] = []
        template: dict[str, Any] = dict.fromkeys(field.name for field in reader.fields)
        read = self.records[pair] = _record_reader(steps, template, defaults, free_items_of(writer))
        # At most one field of the reader per field of the writer: names and aliases of a record are all distinct.
        targets: dict[str, Field] = {}
        for field, source in zip(reader.fields, sources_of(reader, writer), strict=True):
            if source is not None:
                targets[source.name] = field
            elif field.default is NO_DEFAULT:
                problem = "the document has no such field, and the reader has no default for it"
                defaults.append((field.name, b"", _refusing(problem)))
            else:
                default, read_default = default_bytes(field.type, field.default), self.as_read.of(field.type)
                template[field.name], _ = read_default(default, 0, Walk())
                if isinstance(template[field.name], list | dict | Branch):
                    # Read again for each document: a list that two documents share would change in both.
                    defaults.append((field.name, default, read_default))
        for source in writer.fields:
            target = targets.get(source.name)
            if target is None:
                steps.append((source.name, self.as_written.of(source.type), None))
            else:
                steps.append((source.name, self.resolve(source.type, target.type), target.name))
        return read


def _record_reader(
    steps: list[tuple[str, Read, str | None]],
    template: dict[str, Any],
    defaults: list[tuple[str, bytes, Read]],
    free_items: int,
) -> Read:
    def read(body: bytes, position: int, walk: Walk) -> tuple[dict[str, Any], int]:
        walk.depth += 1
        if walk.depth > DEPTH_MAX:
            raise too_deep()
        if free_items:
            walk.take_free(free_items)
        values = template.copy()
        name = ""
        try:
            for name, read_field, target in steps:  # noqa: B007 - the name is for the error's path
                value, position = read_field(body, position, walk)
                if target is not None:
                    values[target] = value
            for name, default, read_default in defaults:
                values[name], _ = read_default(default, 0, Walk())
        except MISTAKES as error:
            raise located(error, name) from None
        walk.depth -= 1
        return values, position

    return read


def _primitive(writer: Primitive, reader: Primitive) -> Read:
    read = PRIMITIVE_READERS[writer.kind]
    if writer.kind is reader.kind:
        return _with_logical(read, writer, reader)
    if (writer.kind, reader.kind) not in PROMOTIONS:
        return _unreadable(writer, reader)
    return _with_logical(_promoted(read, writer.kind, reader.kind), writer, reader)


def _promoted(read: Read, writer: Kind, reader: Kind) -> Read:
    match writer, reader:
        case Kind.STRING, _:
            return logical_reader(str.encode, read)
        case Kind.INT | Kind.LONG, Kind.FLOAT:
            return logical_reader(float_of, read)
        case Kind.INT | Kind.LONG, Kind.DOUBLE:
            return logical_reader(float, read)
        case _:  # an int is a long, and Python's float holds a float's value as it is
            return read


def _with_logical(read: Read, writer: Primitive | Fixed, reader: Primitive | Fixed) -> Read:
    logical: Logical | None = reader.logical
    for difference in logical_differences(logical, writer.logical, ""):
        return _refusing(difference.message)
    return read if logical is None else logical_reader(from_stored(logical), read)


def _enum(writer: Enum, reader: Enum) -> Read:
    known = set(reader.symbols)
    read_symbol = enum_reader(writer.symbols)
    if known.issuperset(writer.symbols):
        return read_symbol
    default = reader.default

    def read(body: bytes, position: int, walk: Walk) -> tuple[str, int]:
        symbol, position = read_symbol(body, position, walk)
        if symbol in known:
            return symbol, position
        if default is None:
            raise InvalidDocument("", f"the reader's {reader.name} has no such symbol, and no default", symbol)
        return default, position

    return read


def _unreadable(writer: AvroType, reader: AvroType) -> Read:
    return _refusing(f"{describe_type(writer)} cannot be read as {describe_type(reader)}")


def _refusing(problem: str) -> Read:
    def read(_body: bytes, _position: int, _walk: Walk) -> tuple[Any, int]:
        raise InvalidDocument("", problem)

    return read
