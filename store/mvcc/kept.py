"""Results of reading a table's rows, kept in memory piece by piece for later reads, until a write of the table.

::

    a table's rows, by key    │ piece │ piece │       │ piece │           all rows of [start, end), as worked out once
    a read at a timestamp     │ found │ found │ read  │ found │ read ──►  what it reads becomes a piece

A piece agrees with the stored rows at each timestamp that it serves. So:

- *K1*: reads at or above the table's last write make pieces and use them. A write closes all pieces of its table before
  any read can see it; reads that began before it find none, and keep none.
- *K2*: a piece serves reads at its own timestamp and above. Rows that had expired by then are not in it; a slice with a
  row that expires later makes no piece.
- *K3*: none is made or used while rows of a committed large transaction are not in their place.
- *K4*: all are closed when stored rows change, or may have been read wrongly, without a write: damage, repair, a loss
  that was given up, another state from a snapshot.
- *K5*: a read that finds a piece asks whether its timestamp can be read, as any other.

A write costs a search for each of its tables, and nothing before the first read that may keep something. The first read
of a table since its last write keeps nothing: it may be the only one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, Self

from cortado.store.clock.timestamp import ZERO, Timestamp
from cortado.store.keys.codec import successor_of_prefix
from cortado.store.keys.keyspace import TABLE_SPACE
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.versions import Item

_PREFIX_BYTES: Final = 5
"""The space and the id of a table, with which all of its keys begin."""


@dataclass(frozen=True, slots=True)
class KeptPiece(ABC):
    """Results for all rows of ``[start, end)`` as of ``read_ts``, by ``names``; they take ``bytes`` of memory."""

    start: LogicalKey
    end: LogicalKey
    read_ts: Timestamp
    names: frozenset[str]
    bytes: int

    @abstractmethod
    def with_those_of(self, other: Self) -> Self:
        """Return a piece of the same rows with what ``other`` has besides."""


class KeptTable:
    """The pieces of one table in the form of one reader; no two overlap. On any thread."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self.starts: list[LogicalKey] = []
        self.pieces: dict[LogicalKey, KeptPiece] = {}
        self.is_closed = False

    def find(
        self, start: LogicalKey, end: LogicalKey, ts: Timestamp, names: frozenset[str]
    ) -> tuple[KeptPiece | None, LogicalKey]:
        """Return the piece from ``start`` to ``end`` or before, if a read at ``ts`` finds all of ``names`` there; else
        None, and the end of the rows to read instead: it crosses no bound of a piece. Raises SnapshotTooOld,
        Unavailable."""
        with self._kept.lock:
            found, end = self._at(start, end)
            if found is not None and found.read_ts <= ts and names <= found.names:
                self._kept.hits += 1
            else:
                found = None
                self._kept.misses += 1
        if found is not None:
            self._kept.check_readable(ts, start, end)
        return found, end

    def _at(self, start: LogicalKey, end: LogicalKey) -> tuple[KeptPiece | None, LogicalKey]:
        place = bisect_right(self.starts, start)
        if place:
            found = self.pieces[self.starts[place - 1]]
            if start < found.end:
                is_whole = found.start == start and found.end <= end
                return (found if is_whole else None), min(end, found.end)
        return None, min([end, *self.starts[place : place + 1]])

    def aligned(self, cuts: Sequence[LogicalKey]) -> list[LogicalKey]:
        """Return ascending cuts, those within a piece moved to its start."""
        with self._kept.lock:
            return sorted({self._start_of(each) for each in cuts})

    def _start_of(self, key: LogicalKey) -> LogicalKey:
        place = bisect_right(self.starts, key)
        before = self.starts[place - 1] if place else key
        return before if place and key < self.pieces[before].end else key

    def keep(self, piece: KeptPiece) -> None:
        """Keep it if there is room, unless the table was written since, or it crosses a bound of another piece."""
        with self._kept.lock:
            before, size_bytes = self.pieces.get(piece.start), piece.bytes
            if self.is_closed or self._crosses(piece):
                return
            if before is not None:
                piece = piece.with_those_of(before)
                size_bytes = piece.bytes - before.bytes
            if not self._kept.make_room(size_bytes, self):
                return
            if before is None:
                self.starts.insert(bisect_left(self.starts, piece.start), piece.start)
            self.pieces[piece.start] = piece
            self._kept.bytes += size_bytes

    def _crosses(self, piece: KeptPiece) -> bool:
        before = self.pieces.get(piece.start)
        if before is not None:
            return before.end != piece.end
        place = bisect_left(self.starts, piece.start)
        is_within = place > 0 and self.pieces[self.starts[place - 1]].end > piece.start
        return is_within or (place < len(self.starts) and self.starts[place] < piece.end)


@dataclass(slots=True)
class _Table:
    """A table that was asked for. ``readers`` have asked since the write at ``wrote_ts``, None: once."""

    wrote_ts: Timestamp
    readers: dict[bytes, KeptTable | None] = field(default_factory=dict)


class Kept:
    """All pieces of one replica. On any thread; ``lock`` guards everything."""

    def __init__(self, check_readable: Callable[[Timestamp, bytes, bytes], None]) -> None:
        self.check_readable = check_readable
        self.room: Callable[[], int] = _no_room
        """Returns how many bytes pieces may hold now."""
        self.lock = Lock()
        self.bytes = 0
        self.hits = self.misses = 0
        """Slices that reads found here, and slices that they read from the store, of tables that may have pieces."""
        self._last_ts = ZERO
        self._tables: dict[int, _Table] = {}
        self._order: dict[KeptTable, None] = {}
        """The one that was asked for last is the last."""

    def open(self, table_id: int, reader: bytes, ts: Timestamp) -> KeptTable | None:
        """Return the pieces of a table for a read at ``ts``, which is applied, in the form that ``reader`` names; None
        if it can use none and make none."""
        with self.lock:
            # Written when it was last written here, or before.
            table = self._tables.setdefault(table_id, _Table(self._last_ts))
            if ts < table.wrote_ts:
                return None
            if reader not in table.readers:
                table.readers[reader] = None
                return None
            found = table.readers[reader] or KeptTable(self)
            table.readers[reader] = found
            self._order.pop(found, None)
            self._order[found] = None
            return found

    def wrote(self, items: Sequence[Item], last_ts: Timestamp) -> None:
        """Close the pieces of the tables that an entry writes: its stored items, in order. To be called before any read
        can see them."""
        closed: list[KeptTable] = []
        with self.lock:
            self._last_ts = last_ts
            for table_id in _tables_of(items) if self._tables else ():
                table = self._tables.get(table_id)
                if table is not None:
                    closed += self._close(table)
                    table.wrote_ts = last_ts
        _free(closed)

    def forget(self, last_ts: Timestamp | None = None) -> None:
        """Close all pieces: stored rows changed without a write, or were read wrongly; to be called after they did.
        ``last_ts``: of another state, which has taken the place of the one before."""
        closed: list[KeptTable] = []
        with self.lock:
            for table in self._tables.values():
                closed += self._close(table)
            self._tables.clear()
            if last_ts is not None:
                self._last_ts = last_ts
        _free(closed)

    def shrink(self, bytes_max: int) -> None:
        """Give memory back, of tables first that were not asked for for the longest time."""
        with self.lock:
            for table in self._order:
                while table.starts and self.bytes > bytes_max:
                    self._drop_last(table)

    def make_room(self, size_bytes: int, of: KeptTable) -> bool:
        """Drop pieces of other tables than ``of`` until there is room; return whether there is. A table that does not
        fit keeps its first pieces, so that each read of it finds those."""
        room = self.room()
        if self.bytes + size_bytes > room:
            for table in self._order:
                while table is not of and table.starts and self.bytes + size_bytes > room:
                    self._drop_last(table)
        return self.bytes + size_bytes <= room

    def _drop_last(self, table: KeptTable) -> None:
        self.bytes -= table.pieces.pop(table.starts.pop()).bytes

    def _close(self, table: _Table) -> list[KeptTable]:
        """Close its pieces, and return those that are to be freed."""
        closed = [each for each in table.readers.values() if each is not None]
        for each in closed:
            each.is_closed = True
            each.starts = []
            self.bytes -= sum(piece.bytes for piece in each.pieces.values())
            self._order.pop(each, None)
        table.readers.clear()
        return closed


def _free(closed: Sequence[KeptTable]) -> None:
    """Free pieces behind the lock, one by one: so much memory takes some milliseconds, and other threads go on."""
    for each in closed:
        while each.pieces:
            each.pieces.popitem()


def _tables_of(items: Sequence[Item]) -> Iterator[int]:
    """Yield the ids of the tables to which items belong, in a search each: items are in the order of their keys."""
    place = bisect_left(items, (TABLE_SPACE, b""))
    while place < len(items) and items[place][0][:1] == TABLE_SPACE:
        prefix = items[place][0][:_PREFIX_BYTES]
        yield int.from_bytes(prefix[1:])
        place = bisect_left(items, (successor_of_prefix(prefix), b""), place)


def _no_room() -> int:
    return 0
