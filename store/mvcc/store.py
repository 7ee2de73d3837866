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

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import compress
from operator import itemgetter
from threading import Lock
from typing import Final

from cortado.errors import DataLoss, Unavailable
from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.engine.interface import ABOVE_KEYS, Engine, Space, WriteTransaction
from cortado.store.keys.codec import successor_of_prefix
from cortado.store.keys.dump import dump
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.changed import changed_since, first_above
from cortado.store.mvcc.chunks import complete_last_key, newest_visible, read_page, select_rows
from cortado.store.mvcc.damage import Damage, damaged_keys
from cortado.store.mvcc.mutations import Mutations
from cortado.store.mvcc.reader import Changed, ScanChunk, Version, logical_of
from cortado.store.mvcc.safepoints import NO_SAFEPOINTS
from cortado.store.mvcc.seen import NOTHING, Seen
from cortado.store.mvcc.slices import Slice, SliceReader
from cortado.store.mvcc.staged import NO_ITEMS, NOTHING_UNRESOLVED
from cortado.store.mvcc.staged_reads import merged, staged_items, staged_slice
from cortado.store.mvcc.versions import (
    PAYLOAD,
    PUT_KIND,
    RESIDUE,
    Item,
    checksum,
    damaged,
    decode_version,
    encode_versions,
    is_key_right,
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


class VersionStore:
    """Versions in an engine's data space. Reads on any thread; ``apply`` within the writer's transaction."""

    kernel: SliceReader | None = None
    """Reads slices in compiled code; None: Python does."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._seek = engine.point_reader(Space.DATA)
        self.unresolved = NOTHING_UNRESOLVED
        """Large transactions that have not ended. Known to be committed *before* any read at that time, and until all
        of it is in place *durably*."""
        self.safepoints = NO_SAFEPOINTS
        """Versions that only reads below these need may be gone. Raised *before* anything is removed."""
        self.unreadable = ""
        """Why there is no state to read here, while a snapshot replaces it. Set *before* anything is removed."""
        self.on_damage: Callable[[Damage], None] = _ignore
        """Hears of damage that a read met, on the reader's thread. Code that reads beside the store calls it too."""
        self.suspect: tuple[Damage, ...] = ()
        """Ranges with an item that is not as it was written, so that a key that is not found there may exist, or have a
        newer version: reads of them raise DataLoss until they are repaired."""
        self.suspect_requests: dict[Damage, bytes] = {}
        """As ``suspect``, for remembered requests; each with the key up to which one may be missing."""
        self.newest_request: Callable[[], bytes] = _above_all
        """The key up to which requests can be remembered by now: newer ones are missing nowhere."""
        self._suspects_change = Lock()

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

    def newest_items(
        self, keys: Sequence[LogicalKey], ts: Timestamp, max_bytes: int | None, seen: Seen | None
    ) -> list[Item | None]:
        """Read as :meth:`get_many` does, each item as it is stored, or will be, deletes and expired ones too."""
        read_suffix = suffix_of(ts)
        staged = staged_items(self, keys, ts) if self.unresolved.committed else NO_ITEMS
        doubted = self.suspect
        with self.tree_reported(), self.engine.read() as txn:
            items = txn.seek_many(Space.DATA, (key + read_suffix for key in keys), max_bytes=max_bytes)
        keys = keys[: len(items)]
        self.check_all_readable(keys, ts)
        if doubted or self.suspect:
            for key, item in zip(keys, items, strict=True):
                self.check_trusted(key + read_suffix, ABOVE_KEYS if item is None else item[0], doubted)
        for key, item in zip(keys, items, strict=True):
            if item is not None and item[0] < key:
                raise self.disordered(item[0])
        wanted = [
            None if item is None or item[0][:-TIMESTAMP_BYTES] != key else item
            for key, item in zip(keys, items, strict=True)
        ]
        found = [item for item in wanted if item is not None]
        self.check_intact([key for key, _ in found], [value for _, value in found])
        if seen is not None:
            for key, item in zip(keys, wanted, strict=True):
                if item is None:
                    seen.note(key, NOTHING)
                else:
                    seen.note_item(key, *item)
        return [staged.get(key, item) for key, item in zip(keys, wanted, strict=True)] if staged else wanted

    # --- checks --------------------------------------------------------------------------------------------------

    def check_intact(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """Raise DataLoss if a checksum is wrong, naming the first key, after ``on_damage`` was told of each."""
        found = self._reported(keys, values)
        if found:
            raise damaged(found[0], values[keys.index(found[0])])

    def _reported(self, keys: Sequence[bytes], values: Sequence[bytes]) -> list[bytes]:
        """Return the keys of damaged items, in their order, after ``on_damage`` was told of each."""
        found = damaged_keys(Space.DATA, keys, values)
        for key in found:
            self.on_damage(Damage.at(Space.DATA, key))
        return found

    def disordered(self, engine_key: bytes) -> DataLoss:
        """Return the error for a search that finds a key below its target, after ``on_damage`` was told."""
        self.on_damage(Damage.at(Space.DATA, engine_key))
        return DataLoss(dump(engine_key), "this stored key is out of its order")

    @contextmanager
    def tree_reported(self) -> Iterator[None]:
        """Tell ``on_damage`` if the engine itself finds its tree damaged."""
        try:
            yield
        except DataLoss as damage:
            self.on_damage(Damage.of_tree(damage))
            raise

    def check_readable(self, ts: Timestamp, start: bytes, end: bytes) -> None:
        """Raise SnapshotTooOld if ``ts`` is below the safepoint of a key in ``[start, end)``; Unavailable if there is
        no state to read. To be asked *after* the read's own transaction has ended."""
        if self.unreadable:
            raise Unavailable(self.unreadable, retry_delay_ms=1_000)
        self.safepoints.check(ts, start, end)

    def check_all_readable(self, keys: Sequence[LogicalKey], ts: Timestamp) -> None:
        """Check some keys as :meth:`check_readable` does."""
        if self.unreadable or ts < self.safepoints.highest:
            for key in keys:
                self.check_readable(ts, key, key)

    # --- damage ------------------------------------------------------------------------------------------------

    def distrust(self, damage: Damage) -> None:
        """Answer no read of this range, until it is repaired."""
        with self._suspects_change:
            if damage.space is Space.REQUESTS and damage not in self.suspect_requests:
                self.suspect_requests = {**self.suspect_requests, damage: min(damage.end, self.newest_request())}
            if damage.space is Space.DATA and damage not in self.suspect:
                self.suspect = (*self.suspect, damage)

    def trust(self, start: bytes, end: bytes, *, but: Collection[Damage] = ()) -> None:
        """Everything in ``[start, end)`` is as it was written: answer reads of ranges within it, ``but`` of these."""
        with self._suspects_change:
            self.suspect = tuple(each for each in self.suspect if each.start < start or each.end > end or each in but)

    def trust_requests(self, damage: Damage | None = None) -> None:
        """All that is remembered of requests in this range is as it was written; None: everywhere."""
        with self._suspects_change:
            others = {each: end for each, end in self.suspect_requests.items() if each != damage}
            self.suspect_requests = {} if damage is None else others

    def check_trusted(self, start: bytes, end: bytes, doubted: tuple[Damage, ...]) -> None:
        """Raise DataLoss if an item in ``[start, end)`` is known to be damaged. To be called after the read.

        ``doubted`` are the ranges that were suspect *before* the read's transaction began: the read may not have seen
        later repairs.
        """
        suspect = self.suspect
        for each in (*suspect, *doubted):
            if each.start < end and start < each.end:
                if each in suspect:
                    self.on_damage(each)
                raise DataLoss(each.what, "stored items beside it are damaged, and what they were is not known yet")

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
        staged = staged_slice(self, start, end, ts, **bounds)  # type: ignore[arg-type]
        chunk = self.stored_chunk(staged.low, staged.high, ts, seen=seen, as_of=as_of, **bounds)  # type: ignore[arg-type]
        return merged(staged, chunk, (start, end), ts if as_of is None else as_of, reverse=reverse)

    def stored_chunk(
        self,
        start: LogicalKey,
        end: LogicalKey,
        ts: Timestamp,
        *,
        reverse: bool,
        max_rows: int,
        max_bytes: int,
        seen: Seen | None = None,
        as_of: Timestamp | None = None,
    ) -> ScanChunk:
        """Read as :meth:`scan_chunk` does, only rows that are in place."""
        read_suffix = suffix_of(ts)
        doubted = self.suspect
        expired = read_suffix if as_of is None else suffix_of(as_of)
        mapped = self.engine.mapped
        if self.kernel is not None and seen is None and not isinstance(mapped, str):
            found = self.kernel.read(mapped, Slice(start, end, read_suffix, expired, reverse, max_rows, max_bytes))
            if found is not None:
                self._check_slice(start, end, ts, found.resume, doubted, reverse=reverse)
                return found
        with self.tree_reported(), self.engine.read() as txn:
            if reverse:
                page = txn.page(Space.DATA, start, end, reverse=reverse, max_items=max_rows, max_bytes=max_bytes)
            else:
                bounds = {"max_items": max_rows, "max_bytes": max_bytes}
                page = read_page(txn, start, end, read_suffix, self.disordered, **bounds)
            keys, values = page.keys, page.values
            resume: LogicalKey | None = None
            if not page.exhausted:
                last = logical_of(keys[-1])
                resume = last if reverse else LogicalKey(successor_of_prefix(last))
                complete_last_key(txn, keys, values, read_suffix, reverse=reverse)
        low, high = self._check_slice(start, end, ts, resume, doubted, reverse=reverse)
        if reverse:
            keys.reverse()
            values.reverse()
        keys, values = self._readable(keys, values, read_suffix)
        if seen is not None:
            seen.ranges.append((low, high))
            is_newest = newest_visible(keys, read_suffix).tolist() if keys else ()
            for key, value in compress(zip(keys, values, strict=True), is_newest):
                seen.note_item(logical_of(key), key, value)
        return select_rows(keys, values, read_suffix, reverse=reverse, resume=resume, as_of=expired)

    def _check_slice(
        self,
        start: LogicalKey,
        end: LogicalKey,
        ts: Timestamp,
        resume: LogicalKey | None,
        doubted: tuple[Damage, ...],
        *,
        reverse: bool,
    ) -> tuple[LogicalKey, LogicalKey]:
        """Return the range that a slice was read of. Raises as :meth:`check_readable` and :meth:`check_trusted`."""
        self.check_readable(ts, start, end)
        low, high = (start, end) if resume is None else (resume, end) if reverse else (start, resume)
        if doubted or self.suspect:
            self.check_trusted(low, high, doubted)
        return low, high

    def _readable(self, keys: list[bytes], values: list[bytes], read_suffix: bytes) -> tuple[list[bytes], list[bytes]]:
        """Return a page without the damaged versions that this read does not need: of rows that were written again
        since, or are not visible yet. Raises DataLoss for others, after ``on_damage`` was told of all."""
        wrong = set(self._reported(keys, values))
        if not wrong:
            return keys, values
        visible = set(compress(keys, newest_visible(keys, read_suffix).tolist()))
        for key, value in zip(keys, values, strict=True):
            if key in wrong and (key in visible or not is_key_right(key, value)):
                raise damaged(key, value)
        is_whole = [key not in wrong for key in keys]
        return list(compress(keys, is_whole)), list(compress(values, is_whole))

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
        return is_clear and not (doubted or self.suspect or damaged_keys(Space.DATA, keys, values))

    def split(self, start: LogicalKey, end: LogicalKey, parts: int, ts: Timestamp) -> Split:
        """Begin to divide ``[start, end)`` into about ``parts`` equal parts; one part is counted exactly."""
        self.check_readable(ts, start, end)
        return begin_split(self.engine, self.kernel, (start, end), parts, suffix_of(ts))

    # --- writes ------------------------------------------------------------------------------------------------

    def apply(self, txn: WriteTransaction, mutations: Mutations, ts: Timestamp) -> None:
        """Write a version at ``ts`` for each mutation. Durable when the transaction is."""
        items = encode_versions(mutations.keys, mutations.payloads, ts, mutations.expiries)
        items.sort(key=_engine_key)
        txn.put_many(Space.DATA, items)


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


def _above_all() -> bytes:
    return ABOVE_KEYS


def _ignore(_damage: Damage) -> None:
    """Ignore damage: the default of ``on_damage``."""
