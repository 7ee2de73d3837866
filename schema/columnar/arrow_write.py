"""Columns to Arrow arrays of the types that :func:`cortado.schema.columnar.arrow.arrow_schema` says."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cortado.errors import Internal, TooLarge
from cortado.schema.columnar.column import (
    Bools,
    Bytes,
    BytesColumn,
    Column,
    FlatColumn,
    ListColumn,
    MapColumn,
    Offsets,
    RecordColumn,
    UnionColumn,
    logical_kind,
)
from cortado.schema.columnar.columns import branch_rows, expand, take
from cortado.schema.model import NULL, Enum, Fixed, LogicalKind, Union
from cortado.schema.names import branch_name

_OFFSET_MAX = 2**31 - 1
_TO_MICROS = (LogicalKind.TIMESTAMP_MILLIS, LogicalKind.LOCAL_TIMESTAMP_MILLIS, LogicalKind.TIME_MILLIS)
_HEX = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), np.uint8).reshape(256, 2)
# The places of the digits of each of 16 bytes in 8-4-4-4-12.
_UUID_PLACES = np.array([2 * byte + sum(byte >= group for group in (4, 6, 8, 10)) for byte in range(16)])


def write_array(column: Column, target: pa.DataType, *, nullable: bool) -> pa.Array:
    """Return ``column`` as an array of ``target``. If it is not ``nullable`` (inside a null record), nulls are
    zeros."""
    length = column.length
    bits = _bitmap(column.validity) if nullable else None
    match column:
        case FlatColumn() if isinstance(column.type, Enum):
            symbols = pa.array(column.type.symbols, pa.string())
            return symbols.take(pa.Array.from_buffers(pa.int32(), length, [bits, _buffer(column.values)]))
        case FlatColumn():
            return pa.Array.from_buffers(target, length, [bits, _flat_buffer(column)])
        case BytesColumn():
            return _write_bytes(column, target, bits)
        case ListColumn():
            element = target.value_field
            items = write_array(column.items, element.type, nullable=element.nullable)
            return pa.Array.from_buffers(target, length, [bits, _offsets(column.offsets)], children=[items])
        case MapColumn():
            return _write_map(_last_of_each_key(column), target, bits)
        case RecordColumn():
            children = [
                write_array(_spread(column.children[field.name], column.validity), field.type, nullable=field.nullable)
                for field in target
            ]
            return pa.Array.from_buffers(target, length, [bits], children=children)
        case UnionColumn():
            return _write_union(column, target, nullable=nullable)
        case _ if pa.types.is_null(target):
            return pa.nulls(length)
        case _:
            raise Internal(f"a column of {branch_name(column.type)} for {target}")


def _spread(column: Column, validity: Bools | None) -> Column:
    return column if validity is None else expand(column, validity)


def _buffer(values: npt.NDArray[Any]) -> pa.Buffer:
    return pa.py_buffer(np.ascontiguousarray(values))


def _bitmap(validity: Bools | None) -> pa.Buffer | None:
    return None if validity is None else pa.py_buffer(np.packbits(validity, bitorder="little"))


def _offsets(offsets: Offsets) -> pa.Buffer:
    if offsets[-1] > _OFFSET_MAX:
        problem = "a column of one batch holds too much"
        raise TooLarge("batch", problem, length=int(offsets[-1]), limit=_OFFSET_MAX)
    return _buffer(offsets.astype(np.int32, copy=False))


def _flat_buffer(column: FlatColumn) -> pa.Buffer:
    values = column.values
    if values.dtype == np.bool_:
        return pa.py_buffer(np.packbits(values, bitorder="little"))
    if logical_kind(column.type) in _TO_MICROS:
        values = values.astype(np.int64, copy=False) * 1000
    return _buffer(values)


def _write_bytes(column: BytesColumn, target: pa.DataType, bits: pa.Buffer | None) -> pa.Array:
    length, logical = column.length, logical_kind(column.type)
    if logical is LogicalKind.DECIMAL:
        return pa.Array.from_buffers(target, length, [bits, _buffer(decimal_words(column.offsets, column.data))])
    if logical is LogicalKind.DURATION:
        return _write_duration(column, target, bits)
    if logical is LogicalKind.UUID and isinstance(column.type, Fixed):
        column = _uuid_texts(column)
    return pa.Array.from_buffers(target, length, [bits, _offsets(column.offsets), _buffer(column.data)])


def decimal_words(offsets: Offsets, data: Bytes) -> Bytes:
    """Return big-endian numbers of any width, all within 128 bits, as 16 little-endian bytes each. An empty one is
    zero."""
    if not len(data):
        return np.zeros((len(offsets) - 1, 16), np.uint8)
    starts, ends = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
    first = data[np.minimum(starts, len(data) - 1)]
    fill = np.where((first >= 0x80) & (ends > starts), 0xFF, 0).astype(np.uint8)
    at = ends[:, None] - 1 - np.arange(16)
    words: Bytes = np.where(at >= starts[:, None], data[np.maximum(at, 0)], fill[:, None])
    return words


def _write_duration(column: BytesColumn, target: pa.DataType, bits: pa.Buffer | None) -> pa.Array:
    counts = np.zeros((column.length, 3), np.int64)
    rows = slice(None) if column.validity is None else column.validity
    counts[rows] = column.data.view("<u4").reshape(-1, 3)
    children = [pa.array(np.ascontiguousarray(counts[:, part])) for part in range(3)]
    return pa.Array.from_buffers(target, column.length, [bits], children=children)


def _uuid_texts(column: BytesColumn) -> BytesColumn:
    raw = column.data.reshape(-1, 16)
    text = np.full((len(raw), 36), ord("-"), np.uint8)
    text[:, _UUID_PLACES] = _HEX[raw, 0]
    text[:, _UUID_PLACES + 1] = _HEX[raw, 1]
    offsets = (column.offsets // 16) * 36
    return BytesColumn(column.type, column.length, offsets, text.reshape(-1), validity=column.validity)


def _write_map(column: MapColumn, target: pa.DataType, bits: pa.Buffer | None) -> pa.Array:
    keys = write_array(column.keys, target.key_type, nullable=False)
    item = target.item_field
    values = write_array(column.values, item.type, nullable=item.nullable)
    entries = pa.StructArray.from_arrays([keys, values], fields=[target.key_field, item])
    return pa.Array.from_buffers(target, column.length, [bits, _offsets(column.offsets)], children=[entries])


def _last_of_each_key(column: MapColumn) -> MapColumn:
    """Drop entries with a key that comes again in the same map: in a document the last counts, in Spark the first."""
    if column.keys.length < 2:
        return column
    keys = write_array(column.keys, pa.string(), nullable=False).dictionary_encode()
    row = np.repeat(np.arange(column.length), np.diff(column.offsets))
    entry = row * len(keys.dictionary) + keys.indices.to_numpy()
    _, last = np.unique(entry[::-1], return_index=True)
    if len(last) == len(entry):
        return column
    kept = np.sort(len(entry) - 1 - last)
    offsets = np.searchsorted(kept, column.offsets).astype(np.int32)
    picked, values = take(column.keys, kept), take(column.values, kept)
    return MapColumn(column.type, column.length, offsets, picked, values, validity=column.validity)


def _write_union(column: UnionColumn, target: pa.DataType, *, nullable: bool) -> pa.Array:
    assert isinstance(column.type, Union)
    numbers = [number for number, branch in enumerate(column.type.branches) if branch != NULL]
    present = np.isin(column.branches, numbers)
    if column.validity is not None:
        present &= column.validity
    if len(numbers) <= 1:
        if not numbers:
            return pa.nulls(column.length)
        return write_array(expand(column.children[numbers[0]], present), target, nullable=nullable)
    members = []
    for number, member in zip(numbers, target, strict=True):
        mine = np.zeros(column.length, np.bool_)
        mine[branch_rows(column, number)] = True
        members.append(write_array(expand(column.children[number], mine), member.type, nullable=True))
    bits = _bitmap(present) if nullable else None
    return pa.Array.from_buffers(target, column.length, [bits], children=members)
