"""A field's values in the one form that numpy groups and orders, and back in the form that travels.

::

    numbers, dates, times    as they are; -0.0 is 0.0, and there is one NaN
    enums                    the places of their symbols in the order of the symbols' text
    strings, bytes           as they are: their order is that of the bytes
    UUIDs                    16 bytes
    decimals                 of up to 18 digits: 64-bit integers; of more: big-endian with the sign bit flipped, of one
                             size, so that their order is that of the bytes

Two values are equal if their forms are, and null stays null.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from cortado.schema.columnar.column import Bytes, BytesColumn, Column, FlatColumn, Ints, logical_of, offsets_of
from cortado.schema.columnar.columns import expand, squeeze, take
from cortado.schema.columnar.exact import UNIT_DIGITS_MAX, decimal_units, uuid_column
from cortado.schema.model import AvroType, Enum, Kind, Logical, Primitive
from cortado.store.filter.fields import Family, FieldRef

SUM_BYTES: Final = 24
SUM_PRECISION: Final = 57
"""The precision of a partial sum of decimals: two thousand million of 38 digits fit."""

_LIMB_BITS: Final = 32
_LIMB: Final = (1 << _LIMB_BITS) - 1
_BYTES: Final = Primitive(Kind.BYTES)
_STRING: Final = Primitive(Kind.STRING)


def decimal_of(type_: AvroType) -> Logical:
    """Return the logical type of a decimal."""
    logical = logical_of(type_)
    assert logical is not None
    return logical


def decimal_bytes(logical: Logical) -> int:
    """Return how many bytes hold every decimal of that precision."""
    if logical.precision <= UNIT_DIGITS_MAX:
        return 8
    return int((10**logical.precision).bit_length()) // 8 + 1


def ordered(column: Column, field: FieldRef) -> Column:
    """Return the column's values in the form above, with the column's nulls."""
    present = column.validity
    match field.family:
        case Family.REAL:
            assert isinstance(column, FlatColumn)
            values = column.values + column.values.dtype.type(0)
            values[np.isnan(values)] = np.nan
            return FlatColumn(column.type, column.length, values, validity=present)
        case Family.ENUM:
            assert isinstance(column, FlatColumn) and isinstance(column.type, Enum)
            places = np.argsort(_by_text(column.type)).astype(np.int64)[column.values]
            if present is not None:
                places[~present] = 0
            return FlatColumn(column.type, column.length, places, validity=present)
        case Family.UUID:
            assert isinstance(column, BytesColumn)
            return uuid_column(column)
        case Family.DECIMAL:
            assert isinstance(column, BytesColumn)
            logical = decimal_of(field.type)
            return decimal_units(column) if logical.precision <= UNIT_DIGITS_MAX else _wide(column, logical)
    return column


def travelling(column: Column, field: FieldRef) -> Column:
    """Return the inverse of :func:`ordered`, as the groups' schema has the field's values."""
    match field.family:
        case Family.ENUM:
            assert isinstance(column, FlatColumn) and isinstance(column.type, Enum)
            return _symbols(column, column.type)
        case Family.DECIMAL:
            present = column.validity
            dense = squeeze(column)
            formed = _fixed(_unordered(dense, decimal_of(field.type)))
            return formed if present is None else expand(formed, present)
    return column


def _by_text(type_: Enum) -> Sequence[int]:
    """Return the symbols' numbers in the order of their text."""
    return sorted(range(len(type_.symbols)), key=lambda number: type_.symbols[number].encode())


def _symbols(column: FlatColumn, type_: Enum) -> Column:
    texts = [type_.symbols[number].encode() for number in _by_text(type_)]
    joined = np.frombuffer(b"".join(texts), np.uint8)
    table = BytesColumn(_STRING, len(texts), offsets_of(np.array(list(map(len, texts)), np.int64)), joined)
    present = column.validity
    if present is None:
        return take(table, column.values)
    return expand(take(table, column.values[present]), present)


def _fixed(rows: Bytes) -> BytesColumn:
    """Return a column of rows that have equally many bytes each."""
    length, size = rows.shape
    return BytesColumn(_BYTES, length, np.arange(length + 1, dtype=np.int64) * size, rows.reshape(-1))


# --- decimals ------------------------------------------------------------------------------------------------------


def _wide(column: BytesColumn, logical: Logical) -> Column:
    dense = squeeze(column)
    assert isinstance(dense, BytesColumn)
    rows = _extended(dense, decimal_bytes(logical))
    rows[:, 0] ^= 0x80
    formed = _fixed(rows)
    return formed if column.validity is None else expand(formed, column.validity)


def _unordered(column: Column, logical: Logical) -> Bytes:
    """Return the bytes of each decimal, big-endian."""
    size = decimal_bytes(logical)
    if isinstance(column, FlatColumn):
        return column.values.astype(">i8").view(np.uint8).reshape(column.length, size)
    assert isinstance(column, BytesColumn)
    rows = column.data.reshape(column.length, size).copy()
    rows[:, 0] ^= 0x80
    return rows


def _extended(column: BytesColumn, size: int) -> Bytes:
    """Return the numbers, none empty, as ``size`` bytes each: longer ones only repeat their sign in front."""
    starts, ends = (bounds.astype(np.int64)[:, None] for bounds in (column.offsets[:-1], column.offsets[1:]))
    at = ends - np.arange(size, 0, -1)
    fill = np.where(column.data[starts] >= 0x80, 0xFF, 0).astype(np.uint8)
    rows: Bytes = np.where(at >= starts, column.data[np.maximum(at, 0)], fill)
    return rows


def limbs(column: Column) -> list[Ints]:
    """Whole numbers as :func:`ordered` forms them, as digits to the base of 2^32, the lowest first and the highest with
    the sign; zero if a row is null. Sums of each are exact for two thousand million rows."""
    if isinstance(column, FlatColumn):
        values = column.values.astype(np.int64, copy=False)
        return [values & _LIMB, values >> _LIMB_BITS]
    assert isinstance(column, BytesColumn)
    dense = squeeze(column)
    assert isinstance(dense, BytesColumn)
    size = len(dense.data) // max(dense.length, 1)
    rows = dense.data.reshape(dense.length, size).copy() if size else np.zeros((0, 4), np.uint8)
    rows[:, 0] ^= 0x80
    sign = np.where(rows[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)
    padded = np.concatenate([np.repeat(sign, -rows.shape[1] % 4, axis=1), rows], axis=1)
    words = np.ascontiguousarray(padded).view(">i4").astype(np.int64)
    words[:, 1:] &= _LIMB
    spread: npt.NDArray[np.int64] = np.zeros((column.length, SUM_BYTES // 4 - 2), np.int64)
    kept = words[:, ::-1]
    # Every row has as many digits, whether or not one has a value.
    filled = np.zeros((dense.length, spread.shape[1]), np.int64)
    filled[:, : kept.shape[1]] = kept
    spread[slice(None) if column.validity is None else column.validity] = filled
    return [spread[:, place] for place in range(spread.shape[1])]


def of_limbs(digits: Sequence[Ints], size: int) -> BytesColumn:
    """Return the numbers of these digits, with their carries, as ``size`` bytes each, big-endian."""
    carry = np.zeros_like(digits[0])
    words = []
    for place in range(size // 4):
        value = digits[place] + carry if place < len(digits) else carry
        words.append(value & _LIMB)
        carry = value >> _LIMB_BITS
    rows = np.stack(words[::-1], axis=1).astype(">u4")
    return _fixed(rows.view(np.uint8).reshape(len(carry), size))
