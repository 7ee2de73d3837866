"""Columns to Python values: documents for people and clients, key parts for the key codec."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC
from itertools import pairwise
from typing import Any
from uuid import UUID

import numpy as np

from cortado.errors import InvalidArgument
from cortado.schema.columnar.column import (
    Bools,
    BytesColumn,
    Column,
    FlatColumn,
    KeyColumn,
    ListColumn,
    MapColumn,
    OpaqueColumn,
    RecordColumn,
    UnionColumn,
    logical_kind,
    logical_of,
)
from cortado.schema.decoding import compile_reader
from cortado.schema.logical_values import from_stored
from cortado.schema.model import Enum, Kind, LogicalKind, Primitive, Union
from cortado.schema.names import branch_name, describe_type
from cortado.schema.union_branches import ambiguous_branches
from cortado.schema.values import Branch
from cortado.schema.walk import Walk

_MILLIS = (LogicalKind.TIMESTAMP_MILLIS, LogicalKind.LOCAL_TIMESTAMP_MILLIS)
_MICROS = (LogicalKind.TIMESTAMP_MICROS, LogicalKind.LOCAL_TIMESTAMP_MICROS)
_INSTANTS = (LogicalKind.TIMESTAMP_MILLIS, LogicalKind.TIMESTAMP_MICROS)
_KEY_TEXT = (LogicalKind.DECIMAL, LogicalKind.UUID)


def to_pylist(column: Column) -> list[Any]:
    """Return the values as in documents (:mod:`cortado.schema.values`); None for a null row."""
    match column:
        case FlatColumn():
            return _with_nulls(_flat_values(column), column.validity)
        case BytesColumn():
            return _with_nulls(_byte_values(column), column.validity)
        case ListColumn():
            items = column.items.to_pylist()
            return _with_nulls([items[start:end] for start, end in _ranges(column)], column.validity)
        case MapColumn():
            keys, values = column.keys.to_pylist(), column.values.to_pylist()
            maps = [dict(zip(keys[a:b], values[a:b], strict=True)) for a, b in _ranges(column)]
            return _with_nulls(maps, column.validity)
        case RecordColumn():
            return _spread(_record_values(column), column.validity)
        case UnionColumn():
            return _spread(_union_values(column), column.validity)
        case OpaqueColumn():
            read = compile_reader(column.type)
            raw, validity = _slices(column), column.validity
            present = raw if validity is None else [one for one, valid in zip(raw, validity, strict=True) if valid]
            return _spread([read(one, 0, Walk())[0] for one in present], validity)
        case _:
            return [None] * column.length


def key_values(column: Column) -> KeyColumn:
    """Return the values as key parts; see :meth:`cortado.schema.columnar.column.Column.key_values`."""
    logical = logical_kind(column.type)
    if isinstance(column, FlatColumn) and not isinstance(column.type, Enum):
        if logical in _MILLIS or logical in _MICROS:
            micros = column.values * 1000 if logical in _MILLIS else column.values
            return micros if column.validity is None else _with_nulls(micros.tolist(), column.validity)
        if logical is None:
            if column.validity is not None:
                return _with_nulls(column.values.tolist(), column.validity)
            wide = {"i": np.int64, "f": np.float64}.get(column.values.dtype.kind, np.bool_)
            return column.values.astype(wide, copy=False)
    if isinstance(column, FlatColumn | BytesColumn) and (
        logical in (None, LogicalKind.DATE) or (logical in _KEY_TEXT and isinstance(column, BytesColumn))
    ):
        return to_pylist(column)
    raise InvalidArgument("", f"a value of type {describe_type(column.type)} cannot be part of a key")


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
