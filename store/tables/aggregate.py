"""Aggregates of a key range: a scan with slices that become groups instead of rows.

::

    slice -> payloads -> columns of each writer's rows -> those that pass the filter -> groups of the slice
                                                                                           |
    reply <- encoded <-- when they are many, after a second, or at the end <-- groups so far

The fields of the filter and of the aggregates are decoded once, together. A reply holds the groups of the rows since
the last one, and the token of the place up to which they were read: so a broken stream goes on there, and no row counts
twice. Groups that were not sent then are lost, and worked out again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from cortado.errors import TooLarge
from cortado.schema.columnar.column import Column
from cortado.schema.columnar.columns import take
from cortado.store.aggregate.bind import Aggregate, Aggregation, bind_aggregates
from cortado.store.aggregate.partial import PartialGroups, Piece, piece_of
from cortado.store.catalog.catalog import Catalog
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.keyspace import KeyRange
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.paging import PageToken, request_shape
from cortado.store.mvcc.reader import ScanSource
from cortado.store.tables.columns import decode_columns
from cortado.store.tables.runs import Lengths, kernel_of
from cortado.store.tables.scan import (
    FILTER_SLICE_ROWS_MAX,
    SLICE_BYTES_MAX,
    SLICE_ROWS_MAX,
    Scan,
    ScanPlan,
    plan_scan,
    position_after,
    read_rows,
)

PIECE_BYTES_MAX: Final = 1 << 20
"""The most bytes of the groups of one slice, unless one row alone makes more."""


@dataclass(frozen=True, slots=True)
class AggregateScan:
    """The aggregation: the rows of ``scan``, whose bounds, filter and schema count."""

    scan: Scan
    group_by: Sequence[str]
    aggregates: Sequence[Aggregate]

    def shape(self) -> bytes:
        """Return the shape of the request, to which a page token is bound."""
        return request_shape(
            "aggregate", self.scan.shape(), len(self.group_by), *self.group_by, *map(str, self.aggregates)
        )


@dataclass(frozen=True, slots=True)
class AggregatePlan:
    """Aggregates that have been checked against the catalogue, and can be stepped. ``paths`` are the fields read."""

    scan: ScanPlan
    aggregation: Aggregation
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AggregatePage:
    """Avro ``bodies`` of groups end to end, and the next state: None at the end."""

    bodies: bytes
    lengths: Lengths = field(repr=False)
    next: PageToken | None


def plan_aggregate(catalog: Catalog, asked: AggregateScan, read_ts: Timestamp) -> AggregatePlan:
    """Check it. Raises NotFound (database, table, index, schema), InvalidArgument, InvalidFilter, TooLarge."""
    scan = plan_scan(catalog, asked.scan, read_ts)
    reader, table_name = scan.conversion.reader_schema, scan.view.table.full_name
    aggregation = bind_aggregates(reader, asked.group_by, asked.aggregates, table_name)
    filtered = () if scan.filter is None else scan.filter.paths
    return AggregatePlan(scan, aggregation, tuple(dict.fromkeys((*aggregation.paths, *filtered))))


def read_slice(source: ScanSource, plan: AggregatePlan, groups: PartialGroups, within: KeyRange) -> LogicalKey:
    """Put the groups of the first rows of ``within``, of one slice, to ``groups``. Return the place of the next slice:
    at the end of the range, that. Raises DataLoss, SnapshotTooOld, TooLarge for a group that no page holds."""
    rows_max = FILTER_SLICE_ROWS_MAX if plan.scan.index is None else SLICE_ROWS_MAX
    chunk = source.scan_chunk(*within, plan.scan.read_ts, max_rows=rows_max, max_bytes=SLICE_BYTES_MAX)
    payloads, _ = read_rows(source, plan.scan, plan.scan.read_ts, chunk, SLICE_BYTES_MAX)
    looked_at = len(payloads)
    if looked_at:
        groups.kernel = kernel_of(payloads)
        pieces, looked_at = _pieces(plan, payloads)
        for piece in pieces:
            groups.add(piece)
    position = position_after(plan.scan, chunk, looked_at)
    return within[1] if position is None else position


def _pieces(plan: AggregatePlan, payloads: Sequence[bytes]) -> tuple[list[Piece], int]:
    """Return the groups of as many of the first rows as can be looked at together, one at least, and how many those
    are."""
    count = len(payloads)
    while True:
        try:
            pieces = _pieces_of_all(plan, payloads[:count])
        except TooLarge:
            # A reader's default, repeated for every row, would take too much.
            if count <= 1:
                raise
        else:
            if count <= 1 or sum(piece.bytes for piece in pieces) <= PIECE_BYTES_MAX:
                return pieces, count
        count //= 2


def _pieces_of_all(plan: AggregatePlan, payloads: Sequence[bytes]) -> list[Piece]:
    if not plan.paths:
        # Counted, whatever their content; a filter without fields is the same for all.
        rows = len(payloads) if plan.scan.filter is None else int(plan.scan.filter.mask({}, len(payloads)).sum())
        return [piece_of(plan.aggregation, {}, rows)] if rows else []
    reader, pieces = plan.scan.conversion.reader_schema, []
    for places, columns in decode_columns(plan.scan.view, payloads, reader, plan.paths):
        chosen, rows = _filtered(plan, columns, len(places))
        if rows:
            pieces.append(piece_of(plan.aggregation, chosen, rows, kernel_of(payloads)))
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
