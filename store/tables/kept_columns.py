"""Columns of a table's rows, as aggregates decoded them, kept for later ones (:mod:`cortado.store.mvcc.kept`).

A piece is the rows of one slice: for each schema that wrote some of them, how many, and the values of each field. Rows
through an index are not kept, nor fields of a type without columns of numbers or bytes. An array that is kept cannot be
changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self, TypeAlias

import numpy as np

from cortado.schema.columnar.column import BytesColumn, Column, FlatColumn
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import KeyRange
from cortado.store.mvcc.kept import KeptPiece, KeptTable
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.walks import ColumnKernel
from cortado.store.tables.scan import ScanPlan

_PIECE_BYTES: Final = 1_024
_ARRAY_BYTES: Final = 256
"""About how much a piece, and a column, take beside their values."""

Decoded: TypeAlias = Sequence[tuple[int, Mapping[str, Column]]]
"""For each schema that wrote some of the rows: how many, and their columns by path."""


@dataclass(frozen=True, slots=True)
class ColumnPiece(KeptPiece):
    """The rows of a slice: ``rows`` by the schema that wrote them, and, by path, a column for each of those."""

    rows: tuple[int, ...]
    columns: Mapping[str, Sequence[Column]]
    kernel: ColumnKernel | None
    """The compiled kernel that groups them, if there is one."""

    def decoded(self) -> Iterator[tuple[int, Mapping[str, Column]]]:
        """Yield the rows as they were decoded."""
        for place, count in enumerate(self.rows):
            yield count, {path: columns[place] for path, columns in self.columns.items()}

    def with_those_of(self, other: Self) -> Self:
        """Return a piece of the same rows with the columns of both."""
        if self.rows != other.rows:
            # One of them was counted without a look at the rows.
            return self
        columns = {**other.columns, **self.columns}
        return replace(self, columns=columns, names=frozenset(columns), bytes=_bytes(columns))


def kept_columns(store: VersionStore, plan: ScanPlan) -> KeptTable | None:
    """Return the pieces that the scan may use and make, if any."""
    if plan.index is not None:
        return None
    reader = plan.conversion.reader_schema
    return store.kept_table(plan.view.table.table_id, reader.fingerprint, plan.read_ts)


def piece_of_columns(
    within: KeyRange, read_ts: Timestamp, paths: Sequence[str], decoded: Decoded, kernel: ColumnKernel | None
) -> ColumnPiece | None:
    """Return all rows of ``within`` as a piece that shares no memory; None if a column is of another type."""
    columns: dict[str, list[Column]] = {path: [] for path in paths}
    for _, found in decoded:
        for path in paths:
            column = _copied(found[path])
            if column is None:
                return None
            columns[path].append(column)
    rows = tuple(count for count, _ in decoded)
    return ColumnPiece(*within, read_ts, frozenset(paths), _bytes(columns), rows, columns, kernel)


def _copied(column: Column) -> Column | None:
    validity = None if column.validity is None else _fixed(column.validity)
    match column:
        case FlatColumn():
            return FlatColumn(column.type, column.length, _fixed(column.values), validity=validity)
        case BytesColumn():
            offsets, data = _fixed(column.offsets), _fixed(column.data)
            return BytesColumn(column.type, column.length, offsets, data, validity=validity)
    return None


def _fixed(array: np.ndarray) -> np.ndarray:
    copied = array.copy()
    copied.flags.writeable = False
    return copied


def _bytes(columns: Mapping[str, Sequence[Column]]) -> int:
    return _PIECE_BYTES + sum(_bytes_of(column) for each in columns.values() for column in each)


def _bytes_of(column: Column) -> int:
    size_bytes = _ARRAY_BYTES + (0 if column.validity is None else column.validity.nbytes)
    if isinstance(column, FlatColumn):
        return size_bytes + column.values.nbytes
    assert isinstance(column, BytesColumn)
    return size_bytes + column.offsets.nbytes + column.data.nbytes
