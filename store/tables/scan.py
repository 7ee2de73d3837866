"""Scans: a key range of a table or of an index, a page at a time.

A scan is a plan, made once, and steps, each of which reads some bounded slices and returns a page and the next place.
Between two steps nothing is held, neither a transaction nor a cursor: the read timestamp keeps the pages consistent::

    plan_scan(catalog, scan, read_ts) -> ScanPlan
    scan_step(source, plan, token, budget) -> ScanPage(runs, next) ... until next is None

A slice goes through at most three stages, and a stage that was not asked for costs nothing::

    entries -> rows      an index scan reads the rows that its entries name, in the entries' order
    rows -> rows         the filter, on the columns that it names, over the whole slice at once
    rows -> runs         as they were written, or read through one schema, or projected (``convert.py``)

Bounds are prefixes of a key, in the order of the *key*: under a descending part the lower bound has the larger value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cortado.errors import DataLoss, InvalidArgument, TooLarge
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.descriptors import IndexDescriptor, TableDescriptor
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.filter.bind import compile_filter
from cortado.store.filter.truth import BoundFilter
from cortado.store.keys.codec import INVERTED, encode_parts
from cortado.store.keys.keyspace import (
    KeyRange,
    index_prefix,
    index_range,
    prefix_range,
    primary_key_of_entry,
    row_prefix,
    row_range,
)
from cortado.store.keys.types import KeyPart, KeyValue, LogicalKey
from cortado.store.mvcc.paging import PageToken, request_shape
from cortado.store.mvcc.reader import ScanChunk, ScanSource, Version
from cortado.store.tables.columns import decode_columns
from cortado.store.tables.convert import Conversion, plan_conversion
from cortado.store.tables.indexes import index_label
from cortado.store.tables.runs import Run, take_rows
from cortado.store.tables.view import TableView

SLICE_ROWS_MAX: Final = 2_000
SLICE_BYTES_MAX: Final = 1 << 20

FILTER_SLICE_ROWS_MAX: Final = 8_000
"""Rows of a slice that are only filtered: columns of some thousand values cost little more than shorter ones."""

JSON_SLICE_ROWS_MAX: Final = 250
"""JSON is made row by row, some ten microseconds each, and a slice should take a few milliseconds."""


CONVERTED_BYTES_MAX: Final = 2 << 20
"""The most bytes of a slice's rows in the requested form, unless one alone has more."""

PAGE_BYTES_MAX: Final = 3 << 20
"""The most bytes of a page's rows, unless one alone has more: the reply then fits gRPC's default bound, 4 MiB."""

ROW_BYTES_MAX: Final = 7 << 20
"""The most bytes of one row in the requested form."""

# JSON has about four times the bytes of its source.
_JSON_GROWTH: Final = 4


@dataclass(frozen=True, slots=True)
class Scan:
    """The request of a scan. ``prefix`` excludes ``lower`` and ``upper``; an empty ``index`` means the primary key.

    ``schema_id`` is the schema to read with, and to filter and project in; 0 reads rows as they were written, and
    filters and projects in the subject's newest version. With ``json`` rows come back as JSON texts.
    """

    database: str
    table: str
    index: str = ""
    lower: Sequence[KeyValue] | None = None
    upper: Sequence[KeyValue] | None = None
    prefix: Sequence[KeyValue] | None = None
    reverse: bool = False
    filter: str = ""
    columns: Sequence[str] = ()
    limit: int | None = None
    schema_id: int = 0
    json: bool = False
    with_versions: bool = False

    def shape(self) -> bytes:
        """Return the shape to which a page token of this scan is bound: all but the number of rows still wanted."""
        return request_shape(
            self.database,
            self.table,
            self.index,
            *(repr(None if bound is None else tuple(bound)) for bound in (self.lower, self.upper, self.prefix)),
            self.reverse,
            self.filter,
            self.limit,
            self.schema_id,
            self.json,
            self.with_versions,
            *self.columns,
        )


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """A scan that has been checked against the catalogue and can be stepped."""

    view: TableView
    range: KeyRange
    index: IndexDescriptor | None
    reverse: bool
    filter: BoundFilter | None
    conversion: Conversion
    read_ts: Timestamp
    limit: int | None
    with_versions: bool

    @property
    def projected_schema(self) -> str:
        """Return the schema (JSON) of rows in runs with schema id 0; empty without a projection."""
        return self.conversion.projected_schema


@dataclass(frozen=True, slots=True)
class Budget:
    """The bounds of one step: it stops at the first slice that reaches one. ``clock_ms`` is monotonic."""

    rows: int
    bytes: int
    ms: float
    clock_ms: Callable[[], float]


@dataclass(slots=True)
class ScanPage:
    """One step's rows, and the token of the next step: None at the end of the range or of the limit.

    A page of a filtered scan may be empty and not be the last.
    """

    runs: list[Run] = field(default_factory=list)
    json_rows: list[str] = field(default_factory=list)
    next: PageToken | None = None
    rows: int = 0
    bytes: int = 0
    is_full: bool = False

    def take(self, made: ScanPage) -> None:
        """Add the rows of a slice."""
        self.runs += made.runs
        self.json_rows += made.json_rows
        self.rows += made.rows
        self.bytes += made.bytes

    def etags(self) -> list[str]:
        """Return the etag of each row, if versions were asked for."""
        return [str(ts) for run in self.runs for ts in run.timestamps()]


def plan_scan(catalog: Catalog, scan: Scan, read_ts: Timestamp) -> ScanPlan:
    """Check a scan. Raises NotFound (database, table, index, field, schema), IndexNotReady, InvalidArgument,
    InvalidFilter."""
    view = TableView(catalog, scan.database, scan.table)
    index = None
    if scan.index:
        index = catalog.index_of(view.table, scan.index)
        index.check_ready(view.table.full_name, read_ts)
    if scan.limit is not None and scan.limit < 0:
        raise InvalidArgument("limit", "must not be negative", str(scan.limit))
    conversion = plan_conversion(view, scan.schema_id, scan.columns, json=scan.json)
    return ScanPlan(
        view=view,
        range=scan_range(view.table, index, scan.lower, scan.upper, scan.prefix),
        index=index,
        reverse=scan.reverse,
        filter=compile_filter(scan.filter, conversion.reader_schema),
        conversion=conversion,
        read_ts=read_ts,
        limit=scan.limit,
        with_versions=scan.with_versions,
    )


def scan_range(
    table: TableDescriptor,
    index: IndexDescriptor | None,
    lower: Sequence[KeyValue] | None = None,
    upper: Sequence[KeyValue] | None = None,
    prefix: Sequence[KeyValue] | None = None,
) -> KeyRange:
    """Return the keys of rows, or of an index's entries, within these bounds. Raises InvalidArgument naming the
    bound."""
    parts = table.key if index is None else index.parts
    if prefix:
        if lower or upper:
            raise InvalidArgument("range.prefix", "excludes start and end")
        encoded = encode_parts(_within(prefix, parts, "range.prefix"), parts[: len(prefix)])
        base = row_prefix(table.table_id) if index is None else index_prefix(table.table_id, index.index_id)
        return prefix_range(base + encoded)
    if index is None:
        found = row_range(table.table_id, parts, lower, upper)
    else:
        found = index_range(table.table_id, index.index_id, parts, lower, upper)
    start, end = found
    if lower and upper and start > end:
        order = ", ".join(f"{part.path} {'descending' if part.descending else 'ascending'}" for part in parts)
        raise InvalidArgument("range.end", f"must not come before start, in the order {order}")
    return found


def _within(values: Sequence[KeyValue], parts: Sequence[KeyPart], name: str) -> Sequence[KeyValue]:
    if len(values) > len(parts):
        names = ", ".join(part.path for part in parts)
        raise InvalidArgument(name, f"must have at most {len(parts)} parts: {names}", f"{len(values)} parts")
    return values


def scan_step(source: ScanSource, plan: ScanPlan, token: PageToken | None, budget: Budget) -> ScanPage:
    """Return the next page, from ``token`` or from the beginning. Raises InvalidPageToken, DataLoss, SnapshotTooOld."""
    deadline_ms = budget.clock_ms() + budget.ms
    page = ScanPage(next=token if token is not None else PageToken(plan.read_ts, first_key(plan), plan.limit))
    while page.next is not None:
        _scan_slice(source, plan, page, budget)
        if page.is_full or page.rows >= budget.rows or page.bytes >= budget.bytes or budget.clock_ms() >= deadline_ms:
            break
    return page


def first_key(plan: ScanPlan) -> bytes:
    """Return the key at which the scan begins."""
    start, end = plan.range
    return end if plan.reverse else start


def _scan_slice(source: ScanSource, plan: ScanPlan, page: ScanPage, budget: Budget) -> None:
    """Read one slice from ``page.next``, add its rows, and set the next place."""
    token = page.next
    assert token is not None
    start, end = plan.range
    resume = LogicalKey(token.resume_within(start, end)) if start < end else start
    if plan.reverse:
        end = resume
    else:
        start = resume
    wanted = budget.rows - page.rows
    if token.remaining is not None:
        wanted = min(wanted, token.remaining)
    if start >= end or wanted <= 0:
        page.next = None
        return
    max_bytes = min(SLICE_BYTES_MAX, max(1, budget.bytes - page.bytes))
    if plan.conversion.json:
        max_bytes //= _JSON_GROWTH
    chunk = source.scan_chunk(
        start, end, token.read_ts, reverse=plan.reverse, max_rows=_rows_max(plan, wanted), max_bytes=max_bytes
    )
    payloads, versions = read_rows(source, plan, token.read_ts, chunk, max_bytes)
    chosen: Sequence[int] = range(len(payloads))
    if plan.filter is not None:
        payloads, chosen = _filtered(plan, plan.filter, payloads)
    looked_at = len(payloads)
    if len(chosen) > wanted:
        chosen = chosen[:wanted]
        looked_at = chosen[-1] + 1
    made = _converted(plan, take_rows(payloads, chosen), _timestamps(plan, chunk, versions, chosen))
    if page.rows and page.bytes + made.bytes > PAGE_BYTES_MAX:
        page.is_full = True
        return
    if made.rows < len(chosen):
        looked_at = chosen[made.rows - 1] + 1
    page.take(made)
    position = position_after(plan, chunk, looked_at)
    remaining = None if token.remaining is None else token.remaining - made.rows
    page.next = None if position is None or remaining == 0 else PageToken(token.read_ts, position, remaining)


def _timestamps(plan: ScanPlan, chunk: ScanChunk, versions: Sequence[Version] | None, chosen: Sequence[int]) -> bytes:
    """The timestamps of the chosen rows; none where they were not asked for."""
    if not plan.with_versions:
        return b""
    if versions is None:
        return chunk.versions(None if len(chosen) == len(chunk.payloads) else chosen)
    return b"".join([versions[row].suffix for row in chosen]).translate(INVERTED)


def position_after(plan: ScanPlan, chunk: ScanChunk, looked_at: int) -> LogicalKey | None:
    """Return the next place after the chunk's first rows; None if no row follows."""
    if looked_at == len(chunk.payloads):
        return chunk.resume
    # At the first row not looked at; reversed, the end is exclusive, so that is the last one that was.
    return chunk.keys[looked_at - 1 if plan.reverse else looked_at]


def _rows_max(plan: ScanPlan, wanted: int) -> int:
    """Return how many rows a slice may look at, so that it takes some milliseconds."""
    if plan.conversion.json:
        rows_max = JSON_SLICE_ROWS_MAX
    elif plan.filter is None or plan.index is not None:
        rows_max = SLICE_ROWS_MAX
    else:
        rows_max = FILTER_SLICE_ROWS_MAX
    return rows_max if plan.filter is not None else min(rows_max, wanted)


def _converted(plan: ScanPlan, payloads: Sequence[bytes], versions: bytes) -> ScanPage:
    """Convert as many of the first rows as fit, one at least, to the requested form. ``versions`` are their timestamps,
    or nothing.

    There a row may be many times as large as it is stored, by a reader's defaults or by the names in JSON.
    """
    conversion, count = plan.conversion, len(payloads)
    while True:
        made = ScanPage(rows=count)
        try:
            made.runs = conversion.runs(payloads[:count], versions[: count * TIMESTAMP_BYTES])
        except TooLarge:
            # The size of the defaults is known before they are made.
            if count <= 1:
                raise
            count //= 2
            continue
        fitting = count
        if conversion.json:
            made.json_rows, made.bytes = conversion.json_rows(made.runs, CONVERTED_BYTES_MAX)
            fitting = len(made.json_rows)
        else:
            made.bytes = sum(len(run.bodies) for run in made.runs)
            if made.bytes > CONVERTED_BYTES_MAX:
                fitting = max(1, count * CONVERTED_BYTES_MAX // made.bytes)
        if fitting >= count:
            break
        count = fitting
    if made.bytes > ROW_BYTES_MAX:
        problem = (
            f"one document has {made.bytes} bytes in the form that was asked for, a reply may have {ROW_BYTES_MAX}"
        )
        raise TooLarge("document", f"{problem}: read it as it was written", "", made.bytes, ROW_BYTES_MAX)
    return made


def read_rows(
    source: ScanSource, plan: ScanPlan, read_ts: Timestamp, chunk: ScanChunk, max_bytes: int
) -> tuple[Sequence[bytes], Sequence[Version] | None]:
    """Return row payloads: of the slice itself, or of the rows that its first entries name, then with their
    versions."""
    if plan.index is None:
        return chunk.payloads, None
    index = plan.index
    primary_keys = [
        primary_key_of_entry(key, payload, len(index.parts), unique=index.unique)
        for key, payload in zip(chunk.keys, chunk.payloads, strict=True)
    ]
    row_keys = list(map(plan.view.row_key, primary_keys))
    found = source.snapshot(read_ts).get_many(row_keys, max_bytes=max_bytes) if row_keys else []
    versions: list[Version] = []
    for primary_key, version in zip(primary_keys[: len(found)], found, strict=True):
        if version is None:
            where = index_label(plan.view.table, index)
            raise DataLoss(where, f"an entry names row {plan.view.show_key(primary_key)}, which does not exist")
        versions.append(version)
    return [version.payload for version in versions], versions


def _filtered(plan: ScanPlan, bound: BoundFilter, payloads: Sequence[bytes]) -> tuple[Sequence[bytes], Sequence[int]]:
    """Return as many of the first rows as can be filtered together, and the places of those that pass."""
    while True:
        try:
            return payloads, np.flatnonzero(_mask(plan, bound, payloads)).tolist()
        except TooLarge:
            # A reader's default, repeated for every row, would take too much.
            if len(payloads) <= 1:
                raise
            payloads = payloads[: len(payloads) // 2]


def _mask(plan: ScanPlan, bound: BoundFilter, payloads: Sequence[bytes]) -> NDArray[np.bool_]:
    """Which rows the filter is true of: its columns, schema by schema, as the reader's schema has them."""
    mask = np.zeros(len(payloads), dtype=np.bool_)
    for rows, columns in decode_columns(plan.view, payloads, plan.conversion.reader_schema, bound.paths):
        if len(rows) == len(payloads):
            return bound.mask(columns, len(rows))
        mask[rows] = bound.mask(columns, len(rows))
    return mask
