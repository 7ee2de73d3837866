"""Table check: proof that the indexes hold what the rows say, and nothing else, at one timestamp.

Two passes, each in bounded slices, so that a check runs beside everything else::

    over rows      the body decodes, the key in it is the row's key, every entry of the row exists and is right
    over entries   the index exists, the row that the entry names exists, and the entry is the one it should have

Together they say that rows and entries match one to one. A wrong checksum is not among the problems: it raises
DataLoss, since what else the table holds can then not be told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from cortado.errors import DataLoss, InvalidArgument, NotFound
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.descriptors import IndexDescriptor
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.bulk import row_keys
from cortado.store.keys.dump import dump
from cortado.store.keys.keyspace import (
    INDEX_PREFIX_BYTES,
    KeyRange,
    index_prefix,
    prefix_range,
    primary_key_of,
    primary_key_of_entry,
    row_range,
)
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.reader import ScanChunk, Version
from cortado.store.tables.columns import decode_columns
from cortado.store.tables.entries import IndexEntries, entries_of_columns, indexed_paths
from cortado.store.tables.scan import ScanSource
from cortado.store.tables.view import TableView

SLICE_ROWS: Final = 1_000


class ProblemKind(StrEnum):
    """What can be wrong."""

    MISSING_ENTRY = "MISSING_ENTRY"
    STRAY_ENTRY = "STRAY_ENTRY"
    WRONG_ENTRY = "WRONG_ENTRY"
    DAMAGED_ROW = "DAMAGED_ROW"
    WRONG_KEY = "WRONG_KEY"


@dataclass(frozen=True, slots=True)
class CheckProblem:
    """One finding. ``index`` is empty where it is about the row itself; ``key`` is for people."""

    index: str
    kind: ProblemKind
    key: str
    message: str


@dataclass(frozen=True, slots=True)
class CheckPlan:
    """A table to be checked as of ``read_ts``."""

    view: TableView
    read_ts: Timestamp

    @property
    def ranges(self) -> tuple[KeyRange, KeyRange]:
        """Where the rows are, and where the entries of all indexes are, those of unknown ones included."""
        table = self.view.table
        entries = index_prefix(table.table_id, 0)[: INDEX_PREFIX_BYTES - 4]
        return row_range(table.table_id, table.key), prefix_range(entries)


@dataclass(frozen=True, slots=True)
class CheckPosition:
    """Where the next step goes on: ``over_entries`` is False in the first pass."""

    over_entries: bool
    start: LogicalKey


@dataclass(slots=True)
class CheckPage:
    """What one step looked at and found; ``next`` is None when the check is done."""

    next: CheckPosition | None
    rows_checked: int = 0
    entries_checked: int = 0
    problems: list[CheckProblem] = field(default_factory=list)


def plan_check(catalog: Catalog, database: str, table: str, read_ts: Timestamp) -> CheckPlan:
    """Raises NotFound."""
    return CheckPlan(TableView(catalog, database, table), read_ts)


def check_step(
    source: ScanSource, plan: CheckPlan, position: CheckPosition | None, rows: int = SLICE_ROWS
) -> CheckPage:
    """Check a slice of ``rows`` rows or entries, from ``position`` or from the beginning. Raises DataLoss."""
    row_part, entry_part = plan.ranges
    if position is None:
        position = CheckPosition(over_entries=False, start=row_part[0])
    end = (entry_part if position.over_entries else row_part)[1]
    chunk = source.scan_chunk(position.start, end, plan.read_ts, max_rows=rows)
    page = CheckPage(next=None)
    if chunk.resume is not None:
        page.next = CheckPosition(position.over_entries, chunk.resume)
    elif not position.over_entries:
        page.next = CheckPosition(over_entries=True, start=entry_part[0])
    slice_ = _Slice(source, plan, page)
    if position.over_entries:
        page.entries_checked = len(chunk.keys)
        slice_.check_entries(chunk)
    else:
        page.rows_checked = len(chunk.keys)
        slice_.check_rows(chunk)
    return page


@dataclass(frozen=True, slots=True)
class _Expected:
    """What rows should have: the key that is in the body, and an entry in each index."""

    row_key: LogicalKey
    entries: Sequence[LogicalKey]


class _Slice:
    """One step's work; problems go to its page."""

    def __init__(self, source: ScanSource, plan: CheckPlan, page: CheckPage) -> None:
        self._reader = source.snapshot(plan.read_ts)
        self._view = plan.view
        self._page = page

    # --- rows --------------------------------------------------------------------------------------------------

    def check_rows(self, chunk: ScanChunk) -> None:
        expected = self._expected(chunk.keys, chunk.payloads, report=True)
        for place, index in enumerate(self._view.table.indexes):
            rows = [row for row, each in enumerate(expected) if each is not None and each.row_key == chunk.keys[row]]
            wanted = [each.entries[place] for row in rows if (each := expected[row]) is not None]
            for row, key, found in zip(rows, wanted, self._reader.get_many(wanted), strict=True):
                self._check_entry_of(index, chunk.keys[row], key, found)
        for row_key, each in zip(chunk.keys, expected, strict=True):
            if each is not None and each.row_key != row_key:
                message = f"its document has the key {self._view.show_key(primary_key_of(each.row_key))}"
                self._add("", ProblemKind.WRONG_KEY, self._show_row(row_key), message)

    def _check_entry_of(
        self, index: IndexDescriptor, row_key: LogicalKey, entry_key: LogicalKey, found: Version | None
    ) -> None:
        payload = primary_key_of(row_key) if index.unique else b""
        if found is None:
            self._add(index.name, ProblemKind.MISSING_ENTRY, self._show_row(row_key), f"no entry {dump(entry_key)}")
        elif found.payload != payload:
            message = (
                f"entry {dump(entry_key)} holds {found.payload.hex() or 'nothing'}, not {payload.hex() or 'nothing'}"
            )
            self._add(index.name, ProblemKind.WRONG_ENTRY, self._show_row(row_key), message)

    # --- entries -----------------------------------------------------------------------------------------------

    def check_entries(self, chunk: ScanChunk) -> None:
        places = {index.index_id: place for place, index in enumerate(self._view.table.indexes)}
        entries: list[tuple[LogicalKey, int, bytes]] = []
        for key, payload in zip(chunk.keys, chunk.payloads, strict=True):
            place = places.get(int.from_bytes(key[INDEX_PREFIX_BYTES - 4 : INDEX_PREFIX_BYTES]))
            if place is None:
                self._add("", ProblemKind.STRAY_ENTRY, dump(key), "the table has no such index")
                continue
            index = self._view.table.indexes[place]
            try:
                primary_key = primary_key_of_entry(key, payload, len(index.parts), unique=index.unique)
                self._view.decode_key(primary_key)
            except DataLoss as malformed:
                self._add(index.name, ProblemKind.STRAY_ENTRY, dump(key), malformed.message())
                continue
            entries.append((key, place, primary_key))
        self._check_rows_of(entries)

    def _check_rows_of(self, entries: Sequence[tuple[LogicalKey, int, bytes]]) -> None:
        row_keys_ = [self._view.row_key(primary_key) for _, _, primary_key in entries]
        versions = self._reader.get_many(row_keys_)
        there = [row for row, version in enumerate(versions) if version is not None]
        payloads = [version.payload for version in versions if version is not None]
        expected = dict(
            zip(there, self._expected([row_keys_[row] for row in there], payloads, report=False), strict=True)
        )
        for row, (key, place, _) in enumerate(entries):
            index = self._view.table.indexes[place]
            if row not in expected:
                message = f"it names row {self._show_row(row_keys_[row])}, which does not exist"
                self._add(index.name, ProblemKind.STRAY_ENTRY, dump(key), message)
                continue
            each = expected[row]
            if each is not None and each.entries[place] != key:
                message = f"row {self._show_row(row_keys_[row])} has other values: {dump(each.entries[place])}"
                self._add(index.name, ProblemKind.STRAY_ENTRY, dump(key), message)

    # --- shared ------------------------------------------------------------------------------------------------

    def _expected(
        self, keys: Sequence[LogicalKey], payloads: Sequence[bytes], *, report: bool
    ) -> Sequence[_Expected | None]:
        """For each row what it should have, None for a damaged one. Halves what fails, until the bad rows are alone."""
        if not keys:
            return []
        try:
            return self._expected_of_sound(payloads)
        except (DataLoss, InvalidArgument, NotFound) as damage:
            if len(keys) > 1:
                half = len(keys) // 2
                return [
                    *self._expected(keys[:half], payloads[:half], report=report),
                    *self._expected(keys[half:], payloads[half:], report=report),
                ]
            if report:
                self._add("", ProblemKind.DAMAGED_ROW, self._show_row(keys[0]), damage.message())
            return [None]

    def _expected_of_sound(self, payloads: Sequence[bytes]) -> Sequence[_Expected | None]:
        table = self._view.table
        key_paths = [part.path for part in table.key]
        found: list[_Expected | None] = [None] * len(payloads)
        for rows, columns in decode_columns(
            self._view, payloads, self._view.newest, {*key_paths, *indexed_paths(table)}
        ):
            keys = row_keys(table.table_id, table.key, [columns[path].key_values() for path in key_paths])
            entries: list[IndexEntries] = entries_of_columns(table, columns, list(map(primary_key_of, keys)))
            for place, row in enumerate(rows):
                found[row] = _Expected(keys[place], [each.keys[place] for each in entries])
        return found

    def _show_row(self, row_key: LogicalKey) -> str:
        try:
            return self._view.show_key(primary_key_of(row_key))
        except DataLoss:
            return dump(row_key)

    def _add(self, index: str, kind: ProblemKind, key: str, message: str) -> None:
        self._page.problems.append(CheckProblem(index, kind, key, message))
