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

Columns become Python values in two forms: documents for people and clients, and key parts for the key codec.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date
from decimal import Decimal
from itertools import pairwise
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
import numpy.typing as npt

from cortado.errors import InvalidArgument
from cortado.schema.decoding import compile_reader
from cortado.schema.logical_values import from_stored
from cortado.schema.model import AvroType, Enum, Fixed, Kind, Logical, LogicalKind, Primitive, Union
from cortado.schema.names import branch_name, describe_type
from cortado.schema.union_branches import ambiguous_branches
from cortado.schema.values import Branch
from cortado.schema.walk import Walk

Bools: TypeAlias = npt.NDArray[np.bool_]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Ints: TypeAlias = npt.NDArray[np.int64]
Offsets: TypeAlias = npt.NDArray[np.int32] | npt.NDArray[np.int64]

KeyColumn: TypeAlias = "Sequence[bool | int | float | bytes | str | Decimal | UUID | date | None] | npt.NDArray[Any]"

_OFFSET_MAX = 2**31 - 1
_MILLIS = (LogicalKind.TIMESTAMP_MILLIS, LogicalKind.LOCAL_TIMESTAMP_MILLIS)
_MICROS = (LogicalKind.TIMESTAMP_MICROS, LogicalKind.LOCAL_TIMESTAMP_MICROS)
_INSTANTS = (LogicalKind.TIMESTAMP_MILLIS, LogicalKind.TIMESTAMP_MICROS)
_KEY_TEXT = (LogicalKind.DECIMAL, LogicalKind.UUID)


@dataclass(slots=True)
class Column:
    """``length`` values of one type; ``validity`` is False for a null value, and None if no value is null."""

    type: AvroType
    length: int
    validity: Bools | None = field(default=None, kw_only=True)

    def to_pylist(self) -> list[Any]:
        """Return the values as in documents (:mod:`cortado.schema.values`); None for a null row."""
        return [None] * self.length

    def key_values(self) -> KeyColumn:
        """Return the values as parts of keys: a numpy array of plain numbers without nulls, else a list.

        Strings, enums and bytes are lists; timestamps are ``int`` microseconds; dates, decimals and UUIDs are objects.
        Raises InvalidArgument for a type that cannot be part of a key.
        """
        raise InvalidArgument("", f"a value of type {describe_type(self.type)} cannot be part of a key")


@dataclass(slots=True)
class NullColumn(Column):
    """Avro's ``null``: every row is null, and ``validity`` stays None."""


@dataclass(slots=True)
class FlatColumn(Column):
    """Numbers: bool, int32 (``int``, ``enum``: the symbol's index), int64, float32 or float64 in ``values``."""

    values: npt.NDArray[Any]

    def to_pylist(self) -> list[Any]:
        return _with_nulls(_flat_values(self), self.validity)

    def key_values(self) -> KeyColumn:
        logical = logical_kind(self.type)
        if not isinstance(self.type, Enum):
            if logical in _MILLIS or logical in _MICROS:
                micros = self.values * 1000 if logical in _MILLIS else self.values
                return micros if self.validity is None else _with_nulls(micros.tolist(), self.validity)
            if logical is None:
                if self.validity is not None:
                    return _with_nulls(self.values.tolist(), self.validity)
                wide = {"i": np.int64, "f": np.float64}.get(self.values.dtype.kind, np.bool_)
                return self.values.astype(wide, copy=False)
        return self.to_pylist() if logical in (None, LogicalKind.DATE) else Column.key_values(self)


@dataclass(slots=True)
class BytesColumn(Column):
    """``bytes``, ``string`` (UTF-8) and ``fixed``: row ``i`` is ``data[offsets[i]:offsets[i + 1]]``."""

    offsets: Offsets
    data: Bytes

    def to_pylist(self) -> list[Any]:
        return _with_nulls(_byte_values(self), self.validity)

    def key_values(self) -> KeyColumn:
        logical = logical_kind(self.type)
        return self.to_pylist() if logical is None or logical in _KEY_TEXT else Column.key_values(self)


@dataclass(slots=True)
class OpaqueColumn(Column):
    """Records within themselves, as their checked Avro bodies: a recursive type has no finite set of columns."""

    offsets: Offsets
    data: Bytes

    def to_pylist(self) -> list[Any]:
        read = compile_reader(self.type)
        raw, validity = _slices(self), self.validity
        present = raw if validity is None else [one for one, valid in zip(raw, validity, strict=True) if valid]
        return _spread([read(one, 0, Walk())[0] for one in present], validity)


@dataclass(slots=True)
class ListColumn(Column):
    """``array``: row ``i`` is ``items[offsets[i]:offsets[i + 1]]``."""

    offsets: Offsets
    items: Column

    def to_pylist(self) -> list[Any]:
        items = self.items.to_pylist()
        return _with_nulls([items[start:end] for start, end in _ranges(self)], self.validity)


@dataclass(slots=True)
class MapColumn(Column):
    """``map``: as an array of keys and one of values, in the order they came."""

    offsets: Offsets
    keys: BytesColumn
    values: Column

    def to_pylist(self) -> list[Any]:
        keys, values = self.keys.to_pylist(), self.values.to_pylist()
        maps = [dict(zip(keys[a:b], values[a:b], strict=True)) for a, b in _ranges(self)]
        return _with_nulls(maps, self.validity)


@dataclass(slots=True)
class RecordColumn(Column):
    """``record``: its fields' columns by name, with one row for each record that is not null."""

    children: Mapping[str, Column]

    def to_pylist(self) -> list[Any]:
        return _spread(_record_values(self), self.validity)


@dataclass(slots=True)
class UnionColumn(Column):
    """A union other than ``[null, T]``: the ``branches``' numbers, and each branch's own rows in ``children``."""

    branches: npt.NDArray[np.int32]
    children: tuple[Column, ...]

    def to_pylist(self) -> list[Any]:
        return _spread(_union_values(self), self.validity)


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


def _with_nulls(values: list[Any], validity: Bools | None) -> list[Any]:
    """Return ``values`` with None in the place of each null row."""
    if validity is not None:
        for row in np.flatnonzero(~validity).tolist():
            values[row] = None
    return values


def _spread(values: list[Any], validity: Bools | None) -> list[Any]:
    """Return the values of the rows that are not null, at their places."""
    if validity is None:
        return values
    following: Iterator[Any] = iter(values)
    return [next(following) if valid else None for valid in validity.tolist()]


def _ranges(column: ListColumn | MapColumn | BytesColumn | OpaqueColumn) -> Iterator[tuple[int, int]]:
    return pairwise(column.offsets.tolist())


def _slices(column: BytesColumn | OpaqueColumn) -> list[bytes]:
    raw = column.data.tobytes()
    return [raw[start:end] for start, end in _ranges(column)]


def _flat_values(column: FlatColumn) -> list[Any]:
    if isinstance(column.type, Enum):
        symbols = column.type.symbols
        return [symbols[index] for index in column.values.tolist()]
    logical = logical_of(column.type)
    if logical is None:
        plain: list[Any] = column.values.tolist()
        return plain
    kind = logical.kind
    if kind is LogicalKind.DATE:
        days: list[Any] = column.values.astype("datetime64[D]").tolist()
        return days
    if kind in _MILLIS or kind in _MICROS:
        micros = column.values * 1000 if kind in _MILLIS else column.values
        moments: list[Any] = micros.astype("datetime64[us]").tolist()
        return [moment.replace(tzinfo=UTC) for moment in moments] if kind in _INSTANTS else moments
    return list(map(from_stored(logical), column.values.tolist()))


def _byte_values(column: BytesColumn) -> list[Any]:
    is_text = isinstance(column.type, Primitive) and column.type.kind is Kind.STRING
    logical = logical_of(column.type)
    if is_text:
        texts = _texts(column)
        # A null's text is empty, and no UUID.
        return texts if logical is None else [UUID(text) if text else None for text in texts]
    if logical is None:
        return _slices(column)
    convert: Callable[[bytes], Any] = from_stored(logical)
    if column.validity is None:
        return list(map(convert, _slices(column)))
    pairs = zip(_slices(column), column.validity.tolist(), strict=True)
    return [convert(raw) if valid else None for raw, valid in pairs]


def _texts(column: BytesColumn) -> list[str]:
    raw = column.data.tobytes()
    if raw.isascii():
        text = raw.decode("ascii")
        return [text[start:end] for start, end in _ranges(column)]
    return [raw[start:end].decode() for start, end in _ranges(column)]


def _record_values(column: RecordColumn) -> list[dict[str, Any]]:
    """Return the records that are there."""
    names = tuple(column.children)
    if not names:
        count = column.length if column.validity is None else int(np.count_nonzero(column.validity))
        return [{} for _ in range(count)]
    rows = zip(*(child.to_pylist() for child in column.children.values()), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


def _union_values(column: UnionColumn) -> list[Any]:
    """Return the present values, each of its branch; a :class:`Branch` if the value alone would not tell the branch."""
    assert isinstance(column.type, Union)
    ambiguous = ambiguous_branches(column.type)
    values: list[Iterator[Any]] = []
    for number, (branch, child) in enumerate(zip(column.type.branches, column.children, strict=True)):
        plain: Sequence[Any] = child.to_pylist()
        name = branch_name(branch)
        values.append(iter([Branch(name, each) for each in plain] if number in ambiguous else plain))
    branches = column.branches if column.validity is None else column.branches[column.validity]
    return [next(values[number]) for number in branches.tolist()]
