"""Columns to Avro bodies, many rows at once: the bytes that every Avro writer makes of the same values.

Each field becomes a piece that knows the length of each row's value; see :mod:`cortado.schema.columnar.pieces`. A value
that does not fit the schema is refused with its path and row, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cortado.errors import Internal, InvalidDocument
from cortado.schema.columnar.checks import wrong_decimals, wrong_uuids
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
)
from cortado.schema.columnar.columns import branch_rows, present_rows, squeeze
from cortado.schema.columnar.lanes import malformed_utf8
from cortado.schema.columnar.origin import Origin
from cortado.schema.columnar.pieces import Blocks, Choice, Nothing, Output, Piece, Ranges, Sequence, Sized, Varint
from cortado.schema.columnar.ranges import decimal_bound, is_uuid_text, range_of
from cortado.schema.limits import DOCUMENT_BYTES_MAX
from cortado.schema.model import NULL, Array, AvroType, Enum, Fixed, Kind, Map, Primitive, Record, Schema, Union
from cortado.schema.names import branch_name, describe_type

_FLOAT_DTYPES = {Kind.BOOLEAN: "|u1", Kind.FLOAT: "<f4", Kind.DOUBLE: "<f8"}


def encode_rows(
    schema: Schema, columns: Mapping[str, Column], n: int, *, bytes_max: int = DOCUMENT_BYTES_MAX
) -> tuple[bytes, npt.NDArray[np.uint32]]:
    """Return the bodies of ``n`` documents of ``schema``, behind each other, and their lengths in bytes.

    ``columns`` has one for each field of the document, by name, of ``n`` rows. Raises InvalidDocument, with path and
    row, for the first value found that the schema does not admit, and for a document over 1 MiB, or over
    ``bytes_max``.
    """
    piece = _record(schema.record, columns, n, Origin())
    lengths = piece.lengths
    if lengths.max(initial=0) > bytes_max:
        row = int(np.argmax(lengths > bytes_max))
        raise InvalidDocument("", f"has {lengths[row]} bytes, the limit is {bytes_max}", row=row)
    return _written(piece)


def encode_values(type_: AvroType, column: Column) -> tuple[bytes, npt.NDArray[np.uint32]]:
    """Encode the values of one column as :func:`encode_rows` does. No value is null unless the type allows it."""
    return _written(_piece(type_, column, Origin()))


def _written(piece: Piece) -> tuple[bytes, npt.NDArray[np.uint32]]:
    ends = np.cumsum(piece.lengths)
    out = Output(int(ends[-1]) if len(ends) else 0)
    piece.write(out, ends - piece.lengths)
    return out.bytes(), piece.lengths.astype(np.uint32)


def _record(record: Record, columns: Mapping[str, Column], n: int, origin: Origin) -> Piece:
    pieces: list[Piece] = []
    for field in record.fields:
        column = columns.get(field.name)
        if column is None and n:
            raise Internal(f"no column for {field.name} of {record.name}")
        if column is not None:
            if column.length != n:
                raise Internal(f"{column.length} rows of {field.name}, {n} of {record.name}")
            pieces.append(_piece(field.type, column, origin.field(field.name)))
    return Sequence(pieces, n)


def _piece(type_: AvroType, column: Column, origin: Origin) -> Piece:
    """Return the values of ``column`` as ones of ``type_``."""
    if isinstance(type_, Union):
        return _union(type_, column, origin)
    if isinstance(column, NullColumn) and type_ != NULL and column.length:
        raise origin.error(0, f"is null, and the type {describe_type(type_)} is not nullable")
    if column.validity is not None and not column.validity.all():
        row = int(np.argmin(column.validity))
        raise origin.error(row, f"is null, and the type {describe_type(type_)} is not nullable")
    match type_, column:
        case Primitive(kind=Kind.NULL), NullColumn():
            return Nothing(column.length)
        case ((Primitive() | Enum()), FlatColumn()):
            return _flat(type_, column, origin)
        case ((Primitive() | Fixed()), BytesColumn()):
            return _bytes(type_, column, origin)
        case Array(items=items), ListColumn():
            return Blocks(column.offsets, _piece(items, column.items, origin.items(column.offsets)))
        case Map(values=values), MapColumn():
            keys = _bytes(Primitive(Kind.STRING), column.keys, origin.items(column.offsets))
            entries = _piece(values, column.values, origin.items(column.offsets))
            return Blocks(column.offsets, Sequence([keys, entries], column.keys.length))
        case Record(), RecordColumn():
            return _record(type_, column.children, column.length, origin)
        case Record(), OpaqueColumn():
            return Ranges(column.offsets, column.data)
        case _ if column.length == 0:
            return Nothing(0)
        case _:
            raise Internal(f"a column of {branch_name(column.type)} for a field of {branch_name(type_)}")


def _flat(type_: Primitive | Enum, column: FlatColumn, origin: Origin) -> Piece:
    values = column.values
    if isinstance(type_, Primitive) and type_.kind in _FLOAT_DTYPES:
        return Sized(values.astype(_FLOAT_DTYPES[type_.kind], copy=False))
    admitted = range_of(type_)
    if admitted is not None and len(values) and (values.min() < admitted.low or values.max() > admitted.high):
        row = int(np.argmax((values < admitted.low) | (values > admitted.high)))
        problem = f"is not in the range of {describe_type(type_)}, {admitted.low} to {admitted.high}"
        raise origin.error(row, problem, str(values[row]))
    return Varint(values)


def _bytes(type_: Primitive | Fixed, column: BytesColumn, origin: Origin) -> Piece:
    _check_bytes(type_, column, origin)
    ranges = Ranges(column.offsets, column.data)
    if isinstance(type_, Fixed):
        wrong = ranges.lengths != type_.size
        if wrong.any():
            row = int(np.argmax(wrong))
            raise origin.error(row, f"must have {type_.size} bytes", str(ranges.lengths[row]))
        return ranges
    return Sequence([Varint(ranges.lengths), ranges], column.length)


def _check_bytes(type_: Primitive | Fixed, column: BytesColumn, origin: Origin) -> None:
    wrong: npt.NDArray[Any] | None = None
    problem = ""
    bound = decimal_bound(type_)
    if bound is not None:
        wrong = np.flatnonzero(wrong_decimals(column.data, column.offsets, bound))
        problem = f"has more than {len(str(bound)) - 1} digits"
    elif is_uuid_text(type_):
        wrong = np.flatnonzero(wrong_uuids(column.data, column.offsets))
        problem = "is not a UUID"
    elif isinstance(type_, Primitive) and type_.kind is Kind.STRING:
        wrong = malformed_utf8(column.data, column.offsets)
        problem = "is not valid UTF-8"
    if wrong is not None and len(wrong):
        raise origin.error(int(wrong[0]), problem)


def _union(union: Union, column: Column, origin: Origin) -> Piece:
    present = union.nullable
    if present is None:
        return _branches(union, column, origin)
    null = union.branches.index(NULL)
    if isinstance(column, NullColumn):
        return Choice(np.full(column.length, null, np.int64), [])
    if column.validity is None:
        rows: npt.NDArray[np.intp] = np.arange(column.length)
        return Choice(np.full(column.length, 1 - null, np.int64), [(rows, _piece(present, column, origin))])
    rows = present_rows(column)
    branches = np.where(column.validity, np.int64(1 - null), np.int64(null))
    return Choice(branches, [(rows, _piece(present, squeeze(column), origin.where(rows)))])


def _branches(union: Union, column: Column, origin: Origin) -> Piece:
    if not isinstance(column, UnionColumn):
        raise Internal(f"a column of {branch_name(column.type)} for a union")
    if column.validity is not None and not column.validity.all():
        raise origin.error(
            int(np.argmin(column.validity)), f"is null, and the type {describe_type(union)} is not nullable"
        )
    pieces = []
    for number, (branch, child) in enumerate(zip(union.branches, column.children, strict=True)):
        rows = branch_rows(column, number)
        if len(rows):
            pieces.append((rows, _piece(branch, child, origin.where(rows))))
    return Choice(column.branches.astype(np.int64), pieces)
