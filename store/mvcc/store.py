"""The versions of all keys, read at any timestamp.

A read never holds a transaction for longer than one slice: each begins its own, seeks, copies and ends, and the
timestamp keeps the slices of one scan consistent with each other. So any number of scans may take minutes without
keeping LMDB from using freed pages again. The price is one seek per slice.

A point read is one seek. Versions are stored newest first, so the first engine key at or after ``key + inverted
read_ts`` is the newest visible version, if it is one of the key's at all::

    key @9   key @7   key @4   next key @8
             ^ a read at 8, or at 7, finds this

Bounds of scans are logical keys, prefixes of whole parts, or their successors. Appending bytes to a key makes no bound:
the appended bytes would be compared with the timestamps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Final

from cortado.errors import DataLoss
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.engine.interface import ABOVE_KEYS, Space, WriteTransaction
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.changed import changed_since, first_above
from cortado.store.mvcc.damage import Damage, damaged_keys
from cortado.store.mvcc.kept import KeptTable
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Changed, ScanChunk, Version, logical_of
from cortado.store.mvcc.seen import NOTHING, Seen
from cortado.store.mvcc.staged_reads import merged
from cortado.store.mvcc.stored import StoredVersions
from cortado.store.mvcc.versions import (
    PAYLOAD,
    PUT_KIND,
    RESIDUE,
    Item,
    checksum,
    damaged,
    decode_version,
    encode_versions,
    suffix_of,
    unexpired,
)
from cortado.store.mvcc.weighed_split import Split, begin_split

ROWS_MAX: Final = 2_000
_MORE_ROWS: Final = 4
BYTES_MAX: Final = 1 << 20


# Up to this many keys, a search each costs less than a transaction for all of them.
_SOUGHT_KEYS_MAX: Final = 3
# From this many keys on, one search that tells whether any is there pays: new rows mostly come in their order.
_MANY_KEYS: Final = 16

# A reader's scan begins with a small slice, since many callers want a few rows; then they grow.
_FIRST_ROWS: Final = 32

# No key comes twice, so comparing whole items would only compare keys twice.
_engine_key: Callable[[tuple[bytes, bytes]], bytes] = itemgetter(0)


class VersionStore(StoredVersions):
    """Versions in an engine's data space. Reads on any thread; ``apply`` within the writer's transaction."""

    def snapshot(self, read_ts: Timestamp, seen: Seen | None = None, as_of: Timestamp | None = None) -> Snapshot:
        """Return a Reader at ``read_ts``; ``seen`` notes its reads. Keys that have expired by ``as_of``, which is
        ``read_ts`` or later, are absent. It holds no resource; there is nothing to close."""
        return Snapshot(self, read_ts, seen, read_ts if as_of is None else as_of)

    # --- points ------------------------------------------------------------------------------------------------

    def get(self, key: LogicalKey, ts: Timestamp) -> Version | None:
        """Return the newest version at or below ``ts``; None if there is none, or it is a delete or has expired."""
        return self.snapshot(ts).get(key)

    def get_many(
        self,
        keys: Sequence[LogicalKey],
        ts: Timestamp,
        *,
        max_bytes: int | None = None,
        seen: Seen | None = None,
        as_of: Timestamp | None = None,
    ) -> list[Version | None]:
        """:meth:`get` for each, of one state and in the order asked; see :meth:`Reader.get_many` for ``max_bytes``."""
        expired = suffix_of(ts if as_of is None else as_of)
        stored = self.newest_items(keys, ts, max_bytes, seen)
        return [None if item is None else decode_version(*item, expired) for item in stored]

    # --- ranges ------------------------------------------------------------------------------------------------

    def scan_chunk(
        self,
        start: LogicalKey,
        end: LogicalKey,
        ts: Timestamp,
        *,
        reverse: bool = False,
        max_rows: int = ROWS_MAX,
        max_bytes: int = BYTES_MAX,
        seen: Seen | None = None,
        as_of: Timestamp | None = None,
    ) -> ScanChunk:
        """Return one slice of the live rows of ``[start, end)`` at ``ts``, from the start up or, reversed, from the end
        down.

        It reads ``max_rows`` versions at most, visible or not, up to the one that reaches ``max_bytes``, and perhaps
        one more, so it takes a bounded time. (Ascending, if keys have many versions, it reads some more, and takes that
        many of them.) If none of a few is a row, it goes on to some ROWS_MAX more: a caller that wants one row may have
        to pass by many deleted ones. The next slice begins (reversed: ends) at the chunk's ``resume``.
        """
        bounds = {"reverse": reverse, "max_rows": max_rows, "max_bytes": max_bytes}
        if not self.unresolved.seen_at(ts, start, end):
            chunk = self.stored_chunk(start, end, ts, seen=seen, as_of=as_of, **bounds)  # type: ignore[arg-type]
            looked_at = max_rows
            while not chunk.payloads and chunk.resume is not None and looked_at < ROWS_MAX:
                looked_at *= _MORE_ROWS
                start, end = (start, chunk.resume) if reverse else (chunk.resume, end)
                bounds["max_rows"] = min(looked_at, ROWS_MAX)
                chunk = self.stored_chunk(start, end, ts, seen=seen, as_of=as_of, **bounds)  # type: ignore[arg-type]
            return chunk.cut(max_rows, reverse=reverse)
        staged = self.staged_slice(start, end, ts, **bounds)  # type: ignore[arg-type]
        chunk = self.stored_chunk(staged.low, staged.high, ts, seen=seen, as_of=as_of, **bounds)  # type: ignore[arg-type]
        return merged(staged, chunk, (start, end), ts if as_of is None else as_of, reverse=reverse)

    def kept_table(self, table_id: int, reader: bytes, ts: Timestamp) -> KeptTable | None:
        """Return the pieces of a table for a read: see :meth:`~cortado.store.mvcc.kept.Kept.open`."""
        # Asked first: rows are in their place before their transaction is none of these any more.
        return None if self.unresolved.committed else self.kept.open(table_id, reader, ts)

    def has_none_between(self, first: LogicalKey, last: LogicalKey, ts: Timestamp) -> bool:
        """Return True if no key from ``first`` to ``last`` has a version, visible at ``ts`` or not; False also if only
        a search for each would tell. The items before and behind stand side by side, and are whole: so one that rotted
        hides no more from this than from searches."""
        if self.unresolved.committed:
            return False
        doubted = self.suspect
        with self.tree_reported(), self.engine.read() as txn:
            behind = txn.seek(Space.DATA, first)
            before = txn.page(Space.DATA, b"", first, reverse=True, max_items=1)
        self.check_readable(ts, first, last)
        keys, values = before.keys, before.values
        is_clear = True
        if behind is not None:
            keys, values = [*keys, behind[0]], [*values, behind[1]]
            # No key is a prefix of another: the versions of smaller ones lie before those of a greater one.
            is_clear = logical_of(behind[0]) > last
        return is_clear and not (doubted or self.suspect or damaged_keys(keys, values))

    def split(
        self, start: LogicalKey, end: LogicalKey, parts: int, ts: Timestamp, part_bytes: int | None = None
    ) -> Split:
        """Begin to divide ``[start, end)`` into about ``parts`` parts with equally many rows, and one part is counted
        exactly; or, with ``part_bytes``, into at most ``parts`` parts of about so many stored bytes."""
        self.check_readable(ts, start, end)
        return begin_split(self.engine, self.kernel, (start, end), parts, suffix_of(ts), part_bytes)

    # --- writes ------------------------------------------------------------------------------------------------

    def apply(self, txn: WriteTransaction, mutations: Mutations, ts: Timestamp) -> None:
        """Write a version at ``ts`` for each mutation. Durable when the transaction is."""
        items = encode_versions(mutations.keys, mutations.payloads, ts, mutations.expiries)
        items.sort(key=_engine_key)
        txn.put_many(Space.DATA, items)
        self.kept.wrote(items, ts)


class Snapshot:
    """See :class:`~cortado.store.mvcc.reader.Reader`. Holds no transaction: cheap to make, nothing to close."""

    __slots__ = ("_as_of", "_read_suffix", "_read_ts", "_seek", "_seen", "_store")

    def __init__(self, store: VersionStore, read_ts: Timestamp, seen: Seen | None, as_of: Timestamp) -> None:
        self._store = store
        self._seen = seen
        self._read_ts = read_ts
        self._as_of = as_of
        self._read_suffix = suffix_of(read_ts)
        self._seek = store._seek

    @property
    def read_ts(self) -> Timestamp:
        return self._read_ts

    @property
    def as_of(self) -> Timestamp:
        return self._as_of

    def get(self, key: LogicalKey) -> Version | None:
        item = self._newest(key)
        if item is None:
            return None
        engine_key, engine_value = item
        if engine_value[0] == PUT_KIND:
            return Version(engine_key, engine_value[PAYLOAD])
        return unexpired(engine_key, engine_value, suffix_of(self._as_of))

    def _newest(self, key: LogicalKey) -> Item | None:
        """Return the newest item as it is stored, or will be, a delete or an expired one too."""
        store = self._store
        if store.unresolved.committed:
            return store.newest_items([key], self._read_ts, None, self._seen)[0]
        doubted = store.suspect
        try:
            item = self._seek(key + self._read_suffix)
        except DataLoss as damage:
            store.on_damage(Damage.of_tree(damage))
            raise
        if store.unreadable or doubted or store.suspect or self._read_ts < store.safepoints.highest:
            store.check_readable(self._read_ts, key, key)
            # The items that a search passed over lie before its result.
            store.check_trusted(key + self._read_suffix, ABOVE_KEYS if item is None else item[0], doubted)
        if item is None:
            if self._seen is not None:
                self._seen.note(key, NOTHING)
            return None
        engine_key, engine_value = item
        if engine_key[:-TIMESTAMP_BYTES] != key:
            if engine_key < key:
                raise store.disordered(engine_key)
            if self._seen is not None:
                self._seen.note(key, NOTHING)
            return None
        # As decode_version does; the call would cost a twentieth of the whole read.
        if checksum(engine_key + engine_value) != RESIDUE:
            store.on_damage(Damage.at(Space.DATA, engine_key))
            raise damaged(engine_key, engine_value)
        if self._seen is not None:
            self._seen.note_item(key, *item)
        return item

    def get_many(self, keys: Sequence[LogicalKey], *, max_bytes: int | None = None) -> list[Version | None]:
        if len(keys) <= _SOUGHT_KEYS_MAX:
            return self._get_few(keys, max_bytes)
        are_many = len(keys) >= _MANY_KEYS and self._seen is None
        if are_many and self._store.has_none_between(min(keys), max(keys), self._read_ts):
            return [None] * len(keys)
        return self._store.get_many(keys, self._read_ts, max_bytes=max_bytes, seen=self._seen, as_of=self._as_of)

    def _get_few(self, keys: Sequence[LogicalKey], max_bytes: int | None) -> list[Version | None]:
        """Read each key by a search of its own. Versions at a time do not change, so they are of one state all the
        same."""
        found: list[Version | None] = []
        left_bytes = max_bytes
        for key in keys:
            version = self.get(key)
            found.append(version)
            if left_bytes is not None and version is not None:
                left_bytes -= len(version.payload)
                if left_bytes <= 0:
                    break
        return found

    def scan(
        self, start: LogicalKey, end: LogicalKey, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[tuple[LogicalKey, Version]]:
        rows = _FIRST_ROWS
        while limit is None or limit > 0:
            chunk = self._store.scan_chunk(
                start, end, self._read_ts, reverse=reverse, max_rows=rows, seen=self._seen, as_of=self._as_of
            )
            for key, suffix, payload in zip(chunk.keys, chunk.suffixes, chunk.payloads, strict=True):
                yield key, Version(suffix, payload, chunk.expiries.get(key, 0))
                if limit is not None:
                    limit -= 1
                    if limit == 0:
                        return
            if chunk.resume is None:
                return
            start, end = (start, chunk.resume) if reverse else (chunk.resume, end)
            rows = min(4 * rows, ROWS_MAX)

    def changed_since(
        self, keys: Sequence[LogicalKey], ranges: Sequence[tuple[LogicalKey, LogicalKey]], ts: Timestamp
    ) -> Changed | None:
        if len(keys) > _SOUGHT_KEYS_MAX or ranges:
            return changed_since(self._store, keys, ranges, ts, self._read_ts, self._seen)
        stored = list(map(self._newest, keys))
        self._store.check_all_readable(keys, ts)
        return first_above(stored, ts)
