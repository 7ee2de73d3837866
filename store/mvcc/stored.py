"""Versions as they are stored: the newest items of keys, slices of ranges, and how far both can be believed.

Every read here does the same, in this order: it remembers the ranges that are suspect, reads in a short transaction of
the engine, and then asks whether its time could still be read, whether the ranges were sound, and whether every item
fits its checksum.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import compress
from threading import Lock

from cortado.errors import DataLoss, Unavailable
from cortado.store.clock.timestamp import LARGEST, TIMESTAMP_BYTES, Timestamp
from cortado.store.engine.interface import ABOVE_KEYS, Engine, Space
from cortado.store.keys.codec import successor_of_prefix
from cortado.store.keys.dump import dump
from cortado.store.keys.keyspace import key_of_staged, staged_key, staged_range
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.chunks import complete_last_key, newest_visible, read_page, select_rows
from cortado.store.mvcc.damage import Damage, damaged_keys
from cortado.store.mvcc.kept import Kept
from cortado.store.mvcc.reader import ScanChunk, logical_of
from cortado.store.mvcc.safepoints import NO_SAFEPOINTS
from cortado.store.mvcc.seen import NOTHING, Seen
from cortado.store.mvcc.slices import Slice, SliceReader
from cortado.store.mvcc.staged import NO_ITEMS, NOTHING_UNRESOLVED
from cortado.store.mvcc.staged_reads import StagedSlice
from cortado.store.mvcc.versions import PAYLOAD, Item, damaged, is_key_right, suffix_of


class StoredVersions:
    """The part of :class:`~cortado.store.mvcc.store.VersionStore` that reads and writes items."""

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
        self.kept = Kept(self.check_readable)
        """Pieces of tables' rows in memory, once there is room for some."""

    # --- points ------------------------------------------------------------------------------------------------

    def newest_items(
        self, keys: Sequence[LogicalKey], ts: Timestamp, max_bytes: int | None, seen: Seen | None
    ) -> list[Item | None]:
        """Return the newest item of each key at ``ts``, as it is stored, or will be: deletes and expired ones, too.

        For the first keys alone, up to the one whose item reaches ``max_bytes``.
        """
        read_suffix = suffix_of(ts)
        staged = self._staged_items(keys, ts) if self.unresolved.committed else NO_ITEMS
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

    def _staged_items(self, keys: Sequence[LogicalKey], ts: Timestamp) -> Mapping[LogicalKey, Item]:
        """Return the items, as they will be stored, of those ``keys`` with a staged newest version at ``ts``."""
        unresolved = self.unresolved
        looked_up = [staged_key(key) for key in keys if unresolved.covers(key)]
        if not looked_up:
            return NO_ITEMS
        found = self.newest_items(looked_up, LARGEST, None, None)
        there = [(key, item[1][PAYLOAD]) for key, item in zip(looked_up, found, strict=True) if item is not None]
        return {key: seen.item(key) for key, seen in unresolved.seen_of(ts, there).items()}

    # --- checks --------------------------------------------------------------------------------------------------

    def check_intact(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """Raise DataLoss if a checksum is wrong, naming the first key, after ``on_damage`` was told of each."""
        found = self._reported(keys, values)
        if found:
            raise damaged(found[0], values[keys.index(found[0])])

    def _reported(self, keys: Sequence[bytes], values: Sequence[bytes]) -> list[bytes]:
        """Return the keys of damaged items, in their order, after ``on_damage`` was told of each."""
        found = damaged_keys(keys, values)
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
        self.kept.forget()

    def trust(self, start: bytes, end: bytes, *, but: Collection[Damage] = ()) -> None:
        """Everything in ``[start, end)`` is as it was written: answer reads of ranges within it, ``but`` of these."""
        with self._suspects_change:
            self.suspect = tuple(each for each in self.suspect if each.start < start or each.end > end or each in but)
        self.kept.forget()

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
        """Read as :meth:`~cortado.store.mvcc.store.VersionStore.scan_chunk` does, only rows that are in place."""
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

    def staged_slice(
        self,
        start: LogicalKey,
        end: LogicalKey,
        ts: Timestamp,
        *,
        reverse: bool = False,
        max_rows: int,
        max_bytes: int,
    ) -> StagedSlice:
        """Return the first slice of ``[start, end)``, or from its end."""
        bounds = staged_range(start, end)
        chunk = self.stored_chunk(*bounds, LARGEST, reverse=reverse, max_rows=max_rows, max_bytes=max_bytes)
        seen = self.unresolved.seen_of(ts, zip(chunk.keys, chunk.payloads, strict=True))
        if chunk.resume is None:
            return StagedSlice(seen, start, end)
        reached = key_of_staged(chunk.resume)
        return StagedSlice(seen, reached, end) if reverse else StagedSlice(seen, start, reached)


def _above_all() -> bytes:
    return ABOVE_KEYS


def _ignore(_damage: Damage) -> None:
    """Ignore damage: the default of ``on_damage``."""
