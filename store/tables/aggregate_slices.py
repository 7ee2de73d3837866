"""One slice of an aggregate: rows become columns, and columns become groups.

::

    rows read -> columns of each writer's rows ─┬─> those that pass the filter -> groups
    kept columns (kept_columns.py) ─────────────┘
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from cortado.errors import TooLarge
from cortado.schema.columnar.column import Column
from cortado.schema.columnar.columns import take
from cortado.store.aggregate.partial import PartialGroups, Piece, piece_of
from cortado.store.keys.keyspace import KeyRange
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.kept import KeptPiece, KeptTable
from cortado.store.mvcc.reader import ScanSource
from cortado.store.mvcc.walks import ColumnKernel
from cortado.store.tables.aggregate import AggregatePlan
from cortado.store.tables.columns import decode_columns
from cortado.store.tables.kept_columns import ColumnPiece, Decoded, piece_of_columns
from cortado.store.tables.runs import kernel_of
from cortado.store.tables.scan import (
    FILTER_SLICE_ROWS_MAX,
    SLICE_BYTES_MAX,
    SLICE_ROWS_MAX,
    position_after,
    read_rows,
)

PIECE_BYTES_MAX: Final = 1 << 20
"""The most bytes of the groups of one slice, unless one row alone makes more."""
KEPT_ROWS_MIN: Final = 1_000
"""The last slice of a range is not kept if it has fewer rows: aggregates of small ranges would cut the reads of whole
tables to pieces."""


def read_slice(
    source: ScanSource,
    plan: AggregatePlan,
    groups: PartialGroups,
    within: KeyRange,
    kept: KeptTable | None = None,
) -> LogicalKey:
    """Put the groups of the first rows of ``within``, of one slice, to ``groups``. Return the place of the next slice:
    at the end of the range, that. Their columns come from ``kept``, or are kept there, if it can be.

    Raises DataLoss, SnapshotTooOld, TooLarge for a group that no page holds.
    """
    start, end = within
    if kept is not None:
        found, end = kept.find(start, end, plan.scan.read_ts, frozenset(plan.paths))
        if found is not None and _add_kept(plan, groups, found):
            return found.end
    rows_max = FILTER_SLICE_ROWS_MAX if plan.scan.index is None else SLICE_ROWS_MAX
    chunk = source.scan_chunk(start, end, plan.scan.read_ts, max_rows=rows_max, max_bytes=SLICE_BYTES_MAX)
    payloads, _ = read_rows(source, plan.scan, plan.scan.read_ts, chunk, SLICE_BYTES_MAX)
    looked_at, kernel = len(payloads), kernel_of(payloads)
    decoded: Decoded = ()
    if looked_at:
        groups.kernel = kernel
        pieces, decoded = _pieces(plan, payloads)
        looked_at = sum(rows for rows, _ in decoded)
        for piece in pieces:
            groups.add(piece)
    position = position_after(plan.scan, chunk, looked_at)
    is_small = position is None and looked_at < KEPT_ROWS_MIN
    end = end if position is None else position
    if kept is not None and not kept.is_closed and not is_small and not chunk.expiries:
        made = piece_of_columns((start, end), plan.scan.read_ts, plan.paths, decoded, kernel)
        if made is not None:
            kept.keep(made)
    return end


def _add_kept(plan: AggregatePlan, groups: PartialGroups, found: KeptPiece) -> bool:
    """Put the groups of rows that were kept to ``groups``, unless those take too much for one slice."""
    assert isinstance(found, ColumnPiece)
    pieces = _pieces_of(plan, found.decoded(), found.kernel)
    if sum(piece.bytes for piece in pieces) > PIECE_BYTES_MAX:
        return False
    groups.kernel = found.kernel or groups.kernel
    for piece in pieces:
        groups.add(piece)
    return True


def _pieces(plan: AggregatePlan, payloads: Sequence[bytes]) -> tuple[list[Piece], Decoded]:
    """Return the groups of as many of the first rows as can be looked at together, one at least, and those rows."""
    count = len(payloads)
    while True:
        try:
            decoded = _decoded(plan, payloads[:count])
            pieces = _pieces_of(plan, decoded, kernel_of(payloads))
        except TooLarge:
            # A reader's default, repeated for every row, would take too much.
            if count <= 1:
                raise
        else:
            if count <= 1 or sum(piece.bytes for piece in pieces) <= PIECE_BYTES_MAX:
                return pieces, decoded
        count //= 2


def _decoded(plan: AggregatePlan, payloads: Sequence[bytes]) -> Decoded:
    if not plan.paths:
        # Counted, whatever their content; a filter without fields is the same for all.
        return [(len(payloads), {})]
    reader = plan.scan.conversion.reader_schema
    found = decode_columns(plan.scan.view, payloads, reader, plan.paths)
    return [(len(places), columns) for places, columns in found]


def _pieces_of(
    plan: AggregatePlan, decoded: Iterable[tuple[int, Mapping[str, Column]]], kernel: ColumnKernel | None
) -> list[Piece]:
    pieces = []
    for count, columns in decoded:
        chosen, rows = _filtered(plan, columns, count)
        if rows:
            pieces.append(piece_of(plan.aggregation, chosen, rows, kernel))
    return pieces


def _filtered(plan: AggregatePlan, columns: Mapping[str, Column], rows: int) -> tuple[Mapping[str, Column], int]:
    """Return the columns of the rows that the filter is true of, and how many those are."""
    if plan.scan.filter is None:
        return columns, rows
    mask = plan.scan.filter.mask(columns, rows)
    found = np.flatnonzero(mask)
    if len(found) < rows:
        columns = {path: take(columns[path], found) for path in plan.aggregation.paths}
    return columns, len(found)
