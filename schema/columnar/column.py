"""Columns: many documents, with the values of the same field side by side.

Offsets and data lie as Apache Arrow lays them out, so that :mod:`cortado.schema.columnar.arrow` converts most
columns without a copy. Only records and unions differ: their children are *dense*, one row for each record that is
there, so that a hostile document cannot ask for memory by way of many nulls of a wide type::

    [null, string]          ["a", null, "bc"]       validity  1 0 1
                                                    offsets   0 1 1 3      data  a b c
    [null, {x: int}]        [{x: 7}, null, {x: 9}]  validity  1 0 1
                                                    children  x: 7 9
    [null, int, string]     [7, null, "a"]          branches  1 0 2
                                                    children  (null: 1 row) (int: 7) (string: a)

Invariants, kept by all code that builds a column:

- ``validity`` is None if no row is null, and a null row holds nothing: an empty range, or a zero.
- ``offsets`` has ``length + 1`` entries and begins with 0; ``data`` ends where the last range ends.
- ``type`` is never ``[null, T]``: that is a column of ``T`` with a ``validity``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
import numpy.typing as npt

from cortado.schema.model import AvroType, Fixed, Logical, LogicalKind, Primitive

Bools: TypeAlias = npt.NDArray[np.bool_]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Ints: TypeAlias = npt.NDArray[np.int64]
Offsets: TypeAlias = npt.NDArray[np.int32] | npt.NDArray[np.int64]

KeyColumn: TypeAlias = "Sequence[bool | int | float | bytes | str | Decimal | UUID | date | None] | npt.NDArray[Any]"

_OFFSET_MAX = 2**31 - 1


@dataclass(slots=True)
class Column:
    """``length`` values of one type; ``validity`` is False for a null value, and None if no value is null."""

    type: AvroType
    length: int
    validity: Bools | None = field(default=None, kw_only=True)

    def to_pylist(self) -> list[Any]:
        """Return the values as in documents (:mod:`cortado.schema.values`)."""
        from cortado.schema.columnar.values import (
            to_pylist,
        )  # columns do not know their Python values; values know both

        return to_pylist(self)

    def key_values(self) -> KeyColumn:
        """Return the values as parts of keys: a numpy array of plain numbers without nulls, else a list.

        Strings, enums and bytes are lists; timestamps are ``int`` microseconds; dates, decimals and UUIDs are objects.
        Raises InvalidArgument for a type that cannot be part of a key.
        """
        from cortado.schema.columnar.values import key_values

        return key_values(self)


@dataclass(slots=True)
class NullColumn(Column):
    """Avro's ``null``: every row is null, and ``validity`` stays None."""


@dataclass(slots=True)
class FlatColumn(Column):
    """Numbers: bool, int32 (``int``, ``enum``: the symbol's index), int64, float32 or float64 in ``values``."""

    values: npt.NDArray[Any]


@dataclass(slots=True)
class BytesColumn(Column):
    """``bytes``, ``string`` (UTF-8) and ``fixed``: row ``i`` is ``data[offsets[i]:offsets[i + 1]]``."""

    offsets: Offsets
    data: Bytes


@dataclass(slots=True)
class OpaqueColumn(Column):
    """Records within themselves, as their checked Avro bodies: a recursive type has no finite set of columns."""

    offsets: Offsets
    data: Bytes


@dataclass(slots=True)
class ListColumn(Column):
    """``array``: row ``i`` is ``items[offsets[i]:offsets[i + 1]]``."""

    offsets: Offsets
    items: Column


@dataclass(slots=True)
class MapColumn(Column):
    """``map``: as an array of keys and one of values, in the order they came."""

    offsets: Offsets
    keys: BytesColumn
    values: Column


@dataclass(slots=True)
class RecordColumn(Column):
    """``record``: its fields' columns by name, with one row for each record that is not null."""

    children: Mapping[str, Column]


@dataclass(slots=True)
class UnionColumn(Column):
    """A union other than ``[null, T]``: the ``branches``' numbers, and each branch's own rows in ``children``."""

    branches: npt.NDArray[np.int32]
    children: tuple[Column, ...]


def offsets_of(lengths: npt.NDArray[np.integer[Any]]) -> Offsets:
    """Arrow's offsets of ranges that follow each other; 32-bit unless they would not fit."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets if offsets[-1] > _OFFSET_MAX else offsets.astype(np.int32)


def logical_of(type_: AvroType) -> Logical | None:
    """Return the logical type of a primitive or a fixed, if it has one."""
    return type_.logical if isinstance(type_, Primitive | Fixed) else None


def logical_kind(type_: AvroType) -> LogicalKind | None:
    logical = logical_of(type_)
    return None if logical is None else logical.kind
