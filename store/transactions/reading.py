"""Reads of a transaction: the stored state at its time, and over it the transaction's own writes; and notes of both.

::

    own writes      the net change of the operations so far, worked out at the read's time, as a commit would
    ───────────
    stored          as any read at that time sees it

A read that sees the transaction's own writes goes through the same code as any other: it gets another source of
versions. Own writes have the timestamp :data:`~cortado.store.mvcc.transacting.OWN`, so a condition on their etag holds
at the commit, too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from heapq import merge
from itertools import islice
from operator import itemgetter

from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.clock.timestamp import Timestamp
from cortado.store.keys.codec import successor_of_prefix
from cortado.store.keys.keyspace import INDEX_PREFIX_BYTES, is_of_index, rows_beside
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Changed, Reader, ScanChunk, ScanSource, Version
from cortado.store.mvcc.staged_reads import laid_over
from cortado.store.mvcc.transacting import own_version
from cortado.store.transactions.footprint import Footprint, Range, TableRead


class TransactionReads:
    """One call's reads. A :class:`ScanSource` itself, over ``source``; :meth:`reader` is for reads by key."""

    def __init__(self, source: ScanSource, own: Mutations, added: Collection[LogicalKey] = ()) -> None:
        """``added`` are the rows that the own writes add to."""
        self._source = source
        self._added = added
        self._own = {
            key: own_version(payload, own.expiries.get(key, 0))
            for key, payload in zip(own.keys, own.payloads, strict=True)
        }
        self._sorted = sorted(self._own)
        self._keys: dict[LogicalKey, None] = {}
        self._ranges: list[Range] = []
        self._tables: dict[TableRead, None] = {}

    def rest_on(self, table: TableDescriptor) -> None:
        """Note that the reads are of this table, which its name has to stand for at the commit, too."""
        self._tables[TableRead(table.database, table.name, table.table_id)] = None

    def take_footprint(self) -> Footprint:
        """Return the footprint of the reads since the last call."""
        found = Footprint(list(self._keys), self._ranges, list(self._tables))
        self._keys, self._ranges, self._tables = {}, [], {}
        return found

    def reader(self, base: Reader) -> Reader:
        """``base`` with the own writes over it."""
        return _OwnReader(base, self)

    def snapshot(self, read_ts: Timestamp) -> Reader:
        return self.reader(self._source.snapshot(read_ts))

    def scan_chunk(
        self,
        start: LogicalKey,
        end: LogicalKey,
        ts: Timestamp,
        *,
        reverse: bool = False,
        max_rows: int = 2_000,
        max_bytes: int = 1 << 20,
    ) -> ScanChunk:
        chunk = self._source.scan_chunk(start, end, ts, reverse=reverse, max_rows=max_rows, max_bytes=max_bytes)
        low, high = _looked_at(start, end, chunk.resume, reverse=reverse)
        own = self._own_between(low, high)
        if own:
            over = {key: self._own[key] for key in own}
            chunk = laid_over(chunk, over, chunk.resume, reverse=reverse)
            chunk = _cut(chunk, max_rows, max_bytes, reverse=reverse)
            low, high = _looked_at(start, end, chunk.resume, reverse=reverse)
        self._ranges.append((low, high))
        if self._added and is_of_index(start):
            self._note_added(start)
        return chunk

    def _note_added(self, start: LogicalKey) -> None:
        """Note the rows that an add may move within this index. Its place there follows from the row, and there may be
        no entry yet that shows it: the commit works the sum out anew, and nothing else asks whether the row has
        changed."""
        index = start[:INDEX_PREFIX_BYTES]
        if self._own_between(LogicalKey(index), LogicalKey(successor_of_prefix(index))):
            rows = rows_beside(start)
            self._keys.update(dict.fromkeys(each for each in self._added if each.startswith(rows)))

    def _own_between(self, start: LogicalKey, end: LogicalKey) -> list[LogicalKey]:
        return self._sorted[bisect_left(self._sorted, start) : bisect_left(self._sorted, end)]


def _looked_at(start: LogicalKey, end: LogicalKey, resume: LogicalKey | None, *, reverse: bool) -> Range:
    if resume is None:
        return start, end
    return (resume, end) if reverse else (start, resume)


def _cut(chunk: ScanChunk, max_rows: int, max_bytes: int, *, reverse: bool) -> ScanChunk:
    """As much of it as a slice may hold, which was that much before something came in between."""
    keys, count = chunk.keys, 0
    while count < min(max_rows, len(keys)) and max_bytes > 0:
        max_bytes -= len(keys[count]) + len(chunk.payloads[count])
        count += 1
    return chunk.cut(count, reverse=reverse)


class _OwnReader:
    """See :class:`~cortado.store.mvcc.reader.Reader`."""

    def __init__(self, base: Reader, reads: TransactionReads) -> None:
        self._base = base
        self._reads = reads

    @property
    def read_ts(self) -> Timestamp:
        return self._base.read_ts

    @property
    def as_of(self) -> Timestamp:
        return self._base.as_of

    def get(self, key: LogicalKey) -> Version | None:
        self._reads._keys[key] = None
        own = self._reads._own
        return own[key] if key in own else self._base.get(key)

    def get_many(self, keys: Sequence[LogicalKey], *, max_bytes: int | None = None) -> list[Version | None]:
        found = self._base.get_many(keys, max_bytes=max_bytes)
        own = self._reads._own
        keys = keys[: len(found)]
        self._reads._keys.update(dict.fromkeys(keys))
        return [own.get(key, version) for key, version in zip(keys, found, strict=True)]

    def scan(
        self, start: LogicalKey, end: LogicalKey, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[tuple[LogicalKey, Version]]:
        self._reads._ranges.append((start, end))
        own = [(key, self._reads._own[key]) for key in self._reads._own_between(start, end)]
        hidden = dict(own)
        stored = ((key, version) for key, version in self._base.scan(start, end, reverse=reverse) if key not in hidden)
        written = [(key, version) for key, version in own if version is not None]
        return islice(
            merge(stored, reversed(written) if reverse else written, key=itemgetter(0), reverse=reverse), limit
        )

    def changed_since(self, keys: Sequence[LogicalKey], ranges: Sequence[Range], ts: Timestamp) -> Changed | None:
        return self._base.changed_since(keys, ranges, ts)
