"""Table check: proof that the indexes hold the rows' entries, and no others, at one timestamp.

Two passes, or three, each in bounded slices, so that a check runs beside all other work::

    rows      the body decodes, the key in it is the row's key, every entry of the row exists and is right
    count     every index has as many entries as there are rows, and no entry is of an unknown index
    entries   (only if one of the others found a problem) the row that an entry names exists, and should have it

The first two are a proof. No two rows share an entry: one that is not unique ends with its row's key, and a unique one
holds it. So a sound first pass finds as many different entries as there are rows, and if an index has no more than
that, none is left over. The third pass, which reads each entry's row, only has to name the entries that the count has
shown.

A wrong checksum is not among the problems: it raises DataLoss, since the rest of the table is then uncertain.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum, auto
from itertools import chain
from typing import Final, assert_never

from cortado.errors import DataLoss, InvalidArgument, NotFound
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.descriptors import IndexDescriptor, TableDescriptor
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
from cortado.store.mvcc.reader import ScanChunk, ScanSource, Version, get_in_pieces
from cortado.store.tables.columns import decode_columns
from cortado.store.tables.entries import entries_of_columns, indexed_paths
from cortado.store.tables.view import TableView

SLICE_ROWS: Final = 2_000

# To ask an entry for its row costs several times as much as the other way round.
_ENTRIES_SHARE: Final = 4


class ProblemKind(StrEnum):
    """The kinds of problems."""

    MISSING_ENTRY = "MISSING_ENTRY"
    STRAY_ENTRY = "STRAY_ENTRY"
    WRONG_ENTRY = "WRONG_ENTRY"
    DAMAGED_ROW = "DAMAGED_ROW"
    WRONG_KEY = "WRONG_KEY"


@dataclass(frozen=True, slots=True)
class CheckProblem:
    """One finding. ``index`` is empty if it is about the row itself; ``key`` is for users.

    ``suspect`` is the key of the row that lacks an entry, or of the entry that should not be there: a repair reads it.
    None if nothing can be repaired.
    """

    index: str
    kind: ProblemKind
    key: str
    message: str
    suspect: LogicalKey | None = None


@dataclass(frozen=True, slots=True)
class CheckPlan:
    """A table to be checked as of ``read_ts``."""

    view: TableView
    read_ts: Timestamp
    passed_by: frozenset[int] = frozenset()
    """Ids of indexes that are not checked: indexes that are not read, and dropped ones."""

    @property
    def indexes(self) -> tuple[IndexDescriptor, ...]:
        """Return the checked indexes: those that a read at that time may go through."""
        return tuple(each for each in self.view.table.indexes if each.is_ready_at(self.read_ts))

    @property
    def ranges(self) -> tuple[KeyRange, KeyRange]:
        """Return the range of the rows, and the range of the entries of all indexes, unknown ones included."""
        table = self.view.table
        entries = index_prefix(table.table_id, 0)[: INDEX_PREFIX_BYTES - 4]
        return row_range(table.table_id, table.key), prefix_range(entries)


class CheckPass(Enum):
    """The pass that a step belongs to."""

    ROWS = auto()
    COUNT = auto()
    ENTRIES = auto()


@dataclass(frozen=True, slots=True)
class CheckPosition:
    """The place of the next step, and the findings of the steps before it.

    ``rows`` and ``entries`` (of each index, in the table's order) are how many there are; ``is_sound`` is False once a
    finding calls for the third pass.
    """

    stage: CheckPass
    start: LogicalKey
    rows: int = 0
    entries: tuple[int, ...] = ()
    is_sound: bool = True


@dataclass(slots=True)
class CheckPage:
    """The counts and findings of one step; ``next`` is None when the check is done."""

    next: CheckPosition | None
    rows_checked: int = 0
    entries_checked: int = 0
    problems: list[CheckProblem] = field(default_factory=list)


def plan_check(catalog: Catalog, database: str, table: str, read_ts: Timestamp) -> CheckPlan:
    """Raises NotFound."""
    view = TableView(catalog, database, table)
    unread = {index.index_id for index in view.table.indexes if not index.is_ready_at(read_ts)}
    return CheckPlan(view, read_ts, dropped_indexes(catalog, view.table) | unread)


def dropped_indexes(catalog: Catalog, table: TableDescriptor) -> frozenset[int]:
    """Return the ids of the table's dropped indexes with entries that are not cleared yet."""
    entries = index_prefix(table.table_id, 0)[: INDEX_PREFIX_BYTES - 4]
    ranges = (each for dropped in catalog.dropped() for each in dropped.what.ranges)
    return frozenset(index_id_of(start) for start, _ in ranges if start.startswith(entries))


def index_id_of(entry: bytes) -> int:
    """Return the index id in the key of an entry."""
    return int.from_bytes(entry[INDEX_PREFIX_BYTES - 4 : INDEX_PREFIX_BYTES])


def check_step(
    source: ScanSource, plan: CheckPlan, position: CheckPosition | None, rows: int = SLICE_ROWS
) -> CheckPage:
    """Check a slice of ``rows`` rows or entries, from ``position`` or from the beginning. Raises DataLoss."""
    row_part, entry_part = plan.ranges
    if position is None:
        position = CheckPosition(CheckPass.ROWS, row_part[0], entries=(0,) * len(plan.indexes))
    end = (row_part if position.stage is CheckPass.ROWS else entry_part)[1]
    if position.stage is CheckPass.ENTRIES:
        rows = max(1, rows // _ENTRIES_SHARE)
    chunk = source.scan_chunk(position.start, end, plan.read_ts, max_rows=rows)
    page = CheckPage(next=None)
    slice_ = _Slice(source, plan, page)
    match position.stage:
        case CheckPass.ROWS:
            page.rows_checked = len(chunk.keys)
            slice_.check_rows(chunk)
            is_sound = position.is_sound and not page.problems
            position = replace(position, rows=position.rows + len(chunk.keys), is_sound=is_sound)
        case CheckPass.COUNT:
            position = slice_.count_entries(chunk, position)
        case CheckPass.ENTRIES:
            slice_.check_entries(chunk)
        case _:
            assert_never(position.stage)
    page.next = _following(position, chunk.resume, entry_part[0])
    return page


def _following(position: CheckPosition, resume: LogicalKey | None, first_entry: LogicalKey) -> CheckPosition | None:
    """Return the next position after a slice that ended at ``resume``, with ``position`` as it is after that slice."""
    if resume is not None:
        return replace(position, start=resume)
    if position.stage is CheckPass.ROWS:
        return replace(position, stage=CheckPass.COUNT, start=first_entry)
    all_counted = position.is_sound and all(count == position.rows for count in position.entries)
    if position.stage is CheckPass.ENTRIES or all_counted:
        return None
    return replace(position, stage=CheckPass.ENTRIES, start=first_entry)


@dataclass(frozen=True, slots=True)
class _Expected:
    """The expected keys and entries of rows: the key in each body, None for a damaged one, and each index's entries."""

    row_keys: list[LogicalKey | None]
    entries: list[list[LogicalKey]]

    def __add__(self, other: _Expected) -> _Expected:
        pairs = zip(self.entries, other.entries, strict=True)
        return _Expected(self.row_keys + other.row_keys, [left + right for left, right in pairs])


class _Slice:
    """One step's work; problems go to its page."""

    def __init__(self, source: ScanSource, plan: CheckPlan, page: CheckPage) -> None:
        self._reader = source.snapshot(plan.read_ts)
        self._view = plan.view
        self._indexes = plan.indexes
        self._passed_by = plan.passed_by
        self._page = page

    # --- rows --------------------------------------------------------------------------------------------------

    def check_rows(self, chunk: ScanChunk) -> None:
        keys = chunk.keys
        expected = self._expected(keys, chunk.payloads, report=True)
        rows: Sequence[int] = range(len(keys))
        if expected.row_keys != keys:
            rows = [row for row, (wanted, key) in enumerate(zip(expected.row_keys, keys, strict=True)) if wanted == key]
        for index, entry_keys in zip(self._indexes, expected.entries, strict=True):
            self._check_entries_of(index, chunk, rows, entry_keys)
        if len(rows) != len(keys):
            for row_key, wanted in zip(keys, expected.row_keys, strict=True):
                if wanted is not None and wanted != row_key:
                    message = f"its document has the key {self._view.show_key(primary_key_of(wanted))}"
                    self._add("", ProblemKind.WRONG_KEY, self._show_row(row_key), message)

    def _check_entries_of(
        self,
        index: IndexDescriptor,
        chunk: ScanChunk,
        rows: Sequence[int],
        entry_keys: Sequence[LogicalKey],
    ) -> None:
        """Look one index's entry of each of the ``rows`` up, in the order of the entries: neighbours share pages."""
        row_keys, expiries = chunk.keys, chunk.expiries
        in_order = sorted(rows, key=entry_keys.__getitem__)
        found = chain.from_iterable(get_in_pieces(self._reader, [entry_keys[row] for row in in_order]))
        bad: list[tuple[int, bytes | None]] = []
        untimely: list[tuple[int, int]] = []
        for row, entry in zip(in_order, found, strict=True):
            if entry is None:
                bad.append((row, None))
            elif entry.payload != (primary_key_of(row_keys[row]) if index.unique else b""):
                bad.append((row, entry.payload))
            elif entry.expires_ms != expiries.get(row_keys[row], 0):
                untimely.append((row, entry.expires_ms))
        for row, payload in sorted(bad):
            self._add_bad_entry(index, row_keys[row], entry_keys[row], payload)
        for row, expires_ms in sorted(untimely):
            problem = f"expires at {expires_ms}, its row at {expiries.get(row_keys[row], 0)} (0: never)"
            message = f"entry {dump(entry_keys[row])} {problem}"
            shown = self._show_row(row_keys[row])
            self._add(index.name, ProblemKind.WRONG_ENTRY, shown, message, row_keys[row])

    def _add_bad_entry(
        self, index: IndexDescriptor, row_key: LogicalKey, entry_key: LogicalKey, payload: bytes | None
    ) -> None:
        if payload is None:
            self._add(
                index.name, ProblemKind.MISSING_ENTRY, self._show_row(row_key), f"no entry {dump(entry_key)}", row_key
            )
            return
        wanted = primary_key_of(row_key) if index.unique else b""
        message = f"entry {dump(entry_key)} holds {payload.hex() or 'nothing'}, not {wanted.hex() or 'nothing'}"
        self._add(index.name, ProblemKind.WRONG_ENTRY, self._show_row(row_key), message, row_key)

    # --- entries -----------------------------------------------------------------------------------------------

    def count_entries(self, chunk: ScanChunk, position: CheckPosition) -> CheckPosition:
        """``position`` with the slice's entries counted in; unsound if any of them is of no index."""
        keys = chunk.keys
        counts = list(position.entries)
        known = 0
        places = {index.index_id: place for place, index in enumerate(self._indexes)}
        for index_id in (*places, *self._passed_by):
            start, end = prefix_range(index_prefix(self._view.table.table_id, index_id))
            count = bisect_left(keys, end) - bisect_left(keys, start)
            if index_id in places:
                counts[places[index_id]] += count
                self._page.entries_checked += count
            known += count
        return replace(position, entries=tuple(counts), is_sound=position.is_sound and known == len(keys))

    def check_entries(self, chunk: ScanChunk) -> None:
        places = {index.index_id: place for place, index in enumerate(self._indexes)}
        entries: list[tuple[LogicalKey, int, bytes]] = []
        for key, payload in zip(chunk.keys, chunk.payloads, strict=True):
            index_id = index_id_of(key)
            if index_id in self._passed_by:
                continue
            place = places.get(index_id)
            if place is None:
                self._add("", ProblemKind.STRAY_ENTRY, dump(key), "the table has no such index", key)
                continue
            index = self._indexes[place]
            try:
                primary_key = primary_key_of_entry(key, payload, len(index.parts), unique=index.unique)
                self._view.decode_key(primary_key)
            except DataLoss as malformed:
                self._add(index.name, ProblemKind.STRAY_ENTRY, dump(key), malformed.message(), key)
                continue
            entries.append((key, place, primary_key))
        self._check_rows_of(entries)

    def _check_rows_of(self, entries: Sequence[tuple[LogicalKey, int, bytes]]) -> None:
        named = [self._view.row_key(primary_key) for _, _, primary_key in entries]
        place = 0
        for versions in get_in_pieces(self._reader, named):
            end = place + len(versions)
            self._check_named(entries[place:end], named[place:end], versions)
            place = end

    def _check_named(
        self,
        entries: Sequence[tuple[LogicalKey, int, bytes]],
        named: Sequence[LogicalKey],
        versions: Sequence[Version | None],
    ) -> None:
        """Entries, the rows that they name, and what these hold."""
        there = [place for place, version in enumerate(versions) if version is not None]
        payloads = [version.payload for version in versions if version is not None]
        expected = self._expected([named[place] for place in there], payloads, report=False)
        expected_places = {place: row for row, place in enumerate(there)}
        for place, (key, index_place, _) in enumerate(entries):
            index = self._indexes[index_place]
            row = expected_places.get(place)
            if row is None:
                message = f"it names row {self._show_row(named[place])}, which does not exist"
                self._add(index.name, ProblemKind.STRAY_ENTRY, dump(key), message, key)
            elif expected.row_keys[row] is not None and expected.entries[index_place][row] != key:
                other = dump(expected.entries[index_place][row])
                message = f"row {self._show_row(named[place])} has other values: {other}"
                self._add(index.name, ProblemKind.STRAY_ENTRY, dump(key), message, key)

    # --- shared ------------------------------------------------------------------------------------------------

    def _expected(self, keys: Sequence[LogicalKey], payloads: Sequence[bytes], *, report: bool) -> _Expected:
        """Return the expected keys and entries of each row. Halves rows that fail, until the bad rows are alone."""
        indexes = self._indexes
        if not keys:
            return _Expected([], [[] for _ in indexes])
        try:
            return self._expected_of_sound(payloads)
        except (DataLoss, InvalidArgument, NotFound) as damage:
            half = len(keys) // 2
            if half:
                first = self._expected(keys[:half], payloads[:half], report=report)
                return first + self._expected(keys[half:], payloads[half:], report=report)
            if report:
                self._add("", ProblemKind.DAMAGED_ROW, self._show_row(keys[0]), damage.message())
            return _Expected([None], [[LogicalKey(b"")] for _ in indexes])

    def _expected_of_sound(self, payloads: Sequence[bytes]) -> _Expected:
        table = self._view.table
        key_paths = [part.path for part in table.key]
        found = _Expected([None] * len(payloads), [[LogicalKey(b"")] * len(payloads) for _ in self._indexes])
        for rows, columns in decode_columns(
            self._view, payloads, self._view.newest, {*key_paths, *indexed_paths(self._indexes)}
        ):
            keys = row_keys(table.table_id, table.key, [columns[path].key_values() for path in key_paths])
            entries = entries_of_columns(table, self._indexes, columns, list(map(primary_key_of, keys)))
            for place, row in enumerate(rows):
                found.row_keys[row] = keys[place]
            for entry_keys, of_group in zip(found.entries, entries, strict=True):
                for row, key in zip(rows, of_group.keys, strict=True):
                    entry_keys[row] = key
        return found

    def _show_row(self, row_key: LogicalKey) -> str:
        try:
            return self._view.show_key(primary_key_of(row_key))
        except DataLoss:
            return dump(row_key)

    def _add(self, index: str, kind: ProblemKind, key: str, message: str, suspect: LogicalKey | None = None) -> None:
        self._page.problems.append(CheckProblem(index, kind, key, message, suspect))
