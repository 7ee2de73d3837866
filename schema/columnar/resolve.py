"""Columns of the schema that wrote to columns of the schema that reads, by the rules for single documents.

Most of a change of schema costs nothing here: an unchanged field is the same column, a removed one is not read, and a
new one is its default repeated. Numbers are promoted, symbols renumbered, and unions taken apart into their branches,
each resolved by itself, and put together again.

The rules are those of :mod:`cortado.schema.reader_writer`; a document comes out as
:func:`~cortado.schema.documents.decode_document` has it. With an incompatible pair, a value that the reader cannot read
is refused with its path and row; all others are read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from cortado.errors import Internal, TooLarge
from cortado.schema.columnar.column import (
    BytesColumn,
    Column,
    FlatColumn,
    ListColumn,
    MapColumn,
    NullColumn,
    OpaqueColumn,
    RecordColumn,
    UnionColumn,
    offsets_of,
)
from cortado.schema.columnar.columns import branch_rows, concat, expand, field_column, present_rows, squeeze, take
from cortado.schema.columnar.compiler import Compiler
from cortado.schema.columnar.encode import encode_values
from cortado.schema.columnar.lanes import Lanes
from cortado.schema.columnar.nodes import KEEP, Node
from cortado.schema.columnar.origin import Origin
from cortado.schema.defaults import default_bytes
from cortado.schema.encoding import compile_writer
from cortado.schema.field_paths import find_field
from cortado.schema.model import (
    NO_DEFAULT,
    NULL,
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Kind,
    Map,
    Primitive,
    Record,
    Schema,
    Union,
)
from cortado.schema.names import describe_type
from cortado.schema.reader_writer import PROMOTIONS, ReaderWriter, logical_differences, sources_of
from cortado.schema.resolution import compile_resolver
from cortado.schema.walk import MISTAKES, Walk, explained

DEFAULTS_BYTES_MAX = 1 << 28
"""The bytes that one default may take when it is repeated for every row: a long one and a million items multiply."""

_DTYPES = {Kind.LONG: np.int64, Kind.FLOAT: np.float32, Kind.DOUBLE: np.float64}

Rows = npt.NDArray[np.intp]


def resolve_columns(
    columns: Mapping[str, Column], writer: Schema, reader: Schema, paths: Collection[str] | None = None
) -> dict[str, Column]:
    """Return the reader's columns at ``paths`` (None: all its fields) from the writer's ``columns``, which are by field
    name.

    ``columns`` needs those that :func:`writer_columns` names. A null row of a type without null stays null: it stands
    for a document that was refused. Raises InvalidDocument, with the path and row, for a value that the reader cannot
    read; InvalidArgument for a path that the reader does not have; TooLarge for a default that would take over 256 MiB.
    """
    resolution = _resolution(writer, reader)
    if paths is None:
        return resolution.fields(columns, None)
    for path in paths:
        find_field(reader, path)
    resolved = resolution.fields(columns, {_first(path) for path in paths})
    return {path: _at(resolved[_first(path)], path) for path in paths}


def writer_columns(writer: Schema, reader: Schema, paths: Collection[str] | None = None) -> set[str]:
    """Return the writer's fields that :func:`resolve_columns` needs, by name."""
    names = None if paths is None else {_first(path) for path in paths}
    pairs = zip(reader.record.fields, sources_of(reader.record, writer.record), strict=True)
    found = {source.name for field, source in pairs if source is not None and (names is None or field.name in names)}
    if not found and writer.record.fields:
        # Defaults alone do not tell the number of rows.
        found.add(writer.record.fields[0].name)
    return found


def _first(path: str) -> str:
    return path.partition(".")[0]


def _at(column: Column, path: str) -> Column:
    _, _, rest = path.partition(".")
    return field_column(column, rest) if rest else column


@lru_cache(maxsize=1024)
def _resolution(writer: Schema, reader: Schema) -> _Resolution:
    return _Resolution(writer.record, reader.record)


class _Resolution:
    """One pair of schemas, with choices of branches and defaults as columns of one row, each worked out once."""

    def __init__(self, writer: Record, reader: Record) -> None:
        self._writer = writer
        self._rules = ReaderWriter()
        self._layout = Compiler(reader)
        self._sources: dict[tuple[Record, Record], list[Field | None]] = {}
        self._choices: dict[tuple[Union, AvroType], AvroType | None] = {}
        self._defaults: dict[tuple[Record, str], Column] = {}
        self._reader = reader

    def fields(self, columns: Mapping[str, Column], names: set[str] | None) -> dict[str, Column]:
        """Return the columns of the document's fields, or of some of them."""
        return self._fields(self._writer, self._reader, columns, _rows_of(columns), Origin(), names)

    def _fields(
        self,
        writer: Record,
        reader: Record,
        columns: Mapping[str, Column],
        n: int,
        origin: Origin,
        names: set[str] | None = None,
    ) -> dict[str, Column]:
        if (writer, reader) not in self._sources:
            self._sources[writer, reader] = sources_of(reader, writer)
        resolved = {}
        for field, source in zip(reader.fields, self._sources[writer, reader], strict=True):
            if names is not None and field.name not in names:
                continue
            inside = origin.field(field.name)
            if source is None:
                resolved[field.name] = self._default(reader, field, n, inside)
            elif source.name not in columns:
                raise Internal(f"no column for the writer's {source.name}")
            else:
                resolved[field.name] = self._resolve(source.type, field.type, columns[source.name], inside)
        return resolved

    def _default(self, record: Record, field: Field, n: int, origin: Origin) -> Column:
        if n == 0:
            return self._node(field.type).empty()
        if field.default is NO_DEFAULT:
            raise origin.error(0, "the document has no such field, and the reader has no default for it")
        known = self._defaults.get((record, field.name))
        if known is None:
            body = default_bytes(field.type, field.default)
            known = self._defaults[record, field.name] = self._read(field.type, [body])
        if n * column_bytes(known) > DEFAULTS_BYTES_MAX:
            length = n * column_bytes(known)
            problem = "its default, repeated for every row, takes too many bytes"
            raise TooLarge(field.name, problem, length=length, limit=DEFAULTS_BYTES_MAX)
        if isinstance(known, BytesColumn) and known.validity is None:
            offsets = offsets_of(np.full(n, len(known.data)))
            return BytesColumn(known.type, n, offsets, np.tile(known.data, n))
        return take(known, np.zeros(n, np.int64))

    def _node(self, type_: AvroType) -> Node:
        return self._layout.node(type_)

    def _read(self, type_: AvroType, bodies: list[bytes]) -> Column:
        """Columns of values that are known to be well-formed."""
        node = self._node(type_)
        ends = np.cumsum([len(body) for body in bodies])
        if node.least == 0:
            return node.blank(len(bodies))
        lanes = Lanes(b"".join(bodies), ends)
        pos = np.concatenate(([0], ends[:-1]))
        column, after = node.read(lanes, pos, ends, KEEP)
        if column is None or lanes.bad.any() or (after != ends).any():
            raise Internal("a value that was checked is malformed")
        return column

    def _resolve(self, writer: AvroType, reader: AvroType, column: Column, origin: Origin) -> Column:
        if writer == reader:
            return column
        if column.length == 0:
            return self._node(reader).empty()
        if isinstance(writer, Union):
            return self._from_union(writer, reader, column, origin)
        if column.validity is not None:
            rows = present_rows(column)
            return expand(self._resolve(writer, reader, squeeze(column), origin.where(rows)), column.validity)
        if isinstance(reader, Union):
            return self._into_union(writer, reader, column, origin)
        return self._same_kind(writer, reader, column, origin)

    def _from_union(self, writer: Union, reader: AvroType, column: Column, origin: Origin) -> Column:
        """Each branch by itself, and together again in the rows' order."""
        parts: list[tuple[Rows, Column]] = []
        present = writer.nullable
        if present is None:
            assert isinstance(column, UnionColumn)
            for number, (branch, child) in enumerate(zip(writer.branches, column.children, strict=True)):
                rows = branch_rows(column, number)
                if len(rows):
                    parts.append((rows, self._resolve(branch, reader, child, origin.where(rows))))
        else:
            rows = present_rows(column)
            if len(rows):
                parts.append((rows, self._resolve(present, reader, squeeze(column), origin.where(rows))))
            if column.validity is not None and len(rows) < column.length:
                if isinstance(reader, Union) and reader.nullable is not None:
                    return expand(parts[0][1] if parts else self._node(reader).empty(), column.validity)
                nulls = np.flatnonzero(~column.validity)
                null_column = NullColumn(NULL, len(nulls))
                parts.append((nulls, self._resolve(NULL, reader, null_column, origin.where(nulls))))
        return self._together(parts, reader, column.length)

    def _together(self, parts: list[tuple[Rows, Column]], reader: AvroType, n: int) -> Column:
        if not parts:
            return expand(self._node(reader).empty(), np.zeros(n, np.bool_))
        rows = np.concatenate([rows for rows, _ in parts])
        joined = concat([column for _, column in parts])
        if len(parts) > 1:
            joined = take(joined, np.argsort(rows))
        present = np.zeros(n, np.bool_)
        present[rows] = True
        return expand(joined, present)

    def _into_union(self, writer: AvroType, reader: Union, column: Column, origin: Origin) -> Column:
        key = (reader, writer)
        if key not in self._choices:
            self._choices[key] = self._rules.choose_branch(reader, writer)
        chosen = self._choices[key]
        if chosen is None:
            raise _unreadable(writer, reader, origin)
        if reader.nullable is not None:
            if chosen == NULL and writer == NULL:
                return expand(self._node(reader).empty(), np.zeros(column.length, np.bool_))
            return self._resolve(writer, chosen, column, origin)
        number = reader.branches.index(chosen)
        children = tuple(
            self._resolve(writer, chosen, column, origin) if each == number else self._node(branch).empty()
            for each, branch in enumerate(reader.branches)
        )
        return UnionColumn(reader, column.length, np.full(column.length, number, np.int32), children)

    def _same_kind(self, writer: AvroType, reader: AvroType, column: Column, origin: Origin) -> Column:
        match writer, reader, column:
            case Primitive(), Primitive(), _:
                return _primitive(writer, reader, column, origin)
            case Fixed(), Fixed(), BytesColumn() if writer.size == reader.size:
                _check_logical(writer, reader, origin)
                return BytesColumn(reader, column.length, column.offsets, column.data)
            case Enum(), Enum(), FlatColumn():
                return _enum(writer, reader, column, origin)
            case Array(), Array(), ListColumn():
                items = self._resolve(writer.items, reader.items, column.items, origin.items(column.offsets))
                return ListColumn(reader, column.length, column.offsets, items)
            case Map(), Map(), MapColumn():
                values = self._resolve(writer.values, reader.values, column.values, origin.items(column.offsets))
                return MapColumn(reader, column.length, column.offsets, column.keys, values)
            case Record(), Record(), _:
                if isinstance(column, RecordColumn) and not self._layout.is_opaque(reader):
                    fields = self._fields(writer, reader, column.children, column.length, origin)
                    return RecordColumn(reader, column.length, fields)
                return self._one_by_one(writer, reader, column, origin)
            case _:
                raise _unreadable(writer, reader, origin)

    def _one_by_one(self, writer: Record, reader: Record, column: Column, origin: Origin) -> Column:
        """Records within themselves, on either side: read and written again in Python."""
        if isinstance(column, OpaqueColumn):
            raw, bounds = column.data.tobytes(), column.offsets.tolist()
        else:
            encoded, lengths = encode_values(writer, column)
            raw, bounds = encoded, [0, *np.cumsum(lengths).tolist()]
        resolve, write = compile_resolver(writer, reader), compile_writer(reader)
        bodies = []
        for row in range(column.length):
            try:
                value, _ = resolve(raw[bounds[row] : bounds[row + 1]], 0, Walk())
            except MISTAKES as error:
                raise origin.error(row, str(explained(error))) from None
            out = bytearray()
            write(out, value, Walk())
            bodies.append(bytes(out))
        return self._read(reader, bodies)


def _rows_of(columns: Mapping[str, Column]) -> int:
    return next((column.length for column in columns.values()), 0)


def column_bytes(column: Column) -> int:
    """About how many bytes a column takes."""
    match column:
        case FlatColumn():
            return column.values.nbytes
        case BytesColumn() | OpaqueColumn():
            return column.offsets.nbytes + column.data.nbytes
        case ListColumn():
            return column.offsets.nbytes + column_bytes(column.items)
        case MapColumn():
            return column.offsets.nbytes + column_bytes(column.keys) + column_bytes(column.values)
        case RecordColumn():
            return sum(map(column_bytes, column.children.values()))
        case UnionColumn():
            return column.branches.nbytes + sum(map(column_bytes, column.children))
        case _:
            return 0


def _primitive(writer: Primitive, reader: Primitive, column: Column, origin: Origin) -> Column:
    if writer.kind is not reader.kind and (writer.kind, reader.kind) not in PROMOTIONS:
        raise _unreadable(writer, reader, origin)
    _check_logical(writer, reader, origin)
    if isinstance(column, FlatColumn):
        dtype = _DTYPES.get(reader.kind, column.values.dtype)
        return FlatColumn(reader, column.length, column.values.astype(dtype, copy=False))
    assert isinstance(column, BytesColumn)
    return BytesColumn(reader, column.length, column.offsets, column.data)


def _check_logical(writer: Primitive | Fixed, reader: Primitive | Fixed, origin: Origin) -> None:
    for difference in logical_differences(reader.logical, writer.logical, ""):
        raise origin.error(0, difference.message)


def _enum(writer: Enum, reader: Enum, column: FlatColumn, origin: Origin) -> Column:
    numbers = {symbol: number for number, symbol in enumerate(reader.symbols)}
    fallback = -1 if reader.default is None else numbers[reader.default]
    table = np.array([numbers.get(symbol, fallback) for symbol in writer.symbols], np.int32)
    values = table[column.values]
    if values.min() < 0:
        row = int(np.argmax(values < 0))
        symbol = writer.symbols[int(column.values[row])]
        raise origin.error(row, f"the reader's {reader.name} has no such symbol, and no default", symbol)
    return FlatColumn(reader, column.length, values)


def _unreadable(writer: AvroType, reader: AvroType, origin: Origin) -> Exception:
    return origin.error(0, f"{describe_type(writer)} cannot be read as {describe_type(reader)}")
