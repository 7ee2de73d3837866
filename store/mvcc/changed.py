"""Whether keys, or ranges of keys, have changed since a time: a commit checks its footprint so.

Deletes are changes, too (T2). Keys cost a search each; a range costs a look at all of its versions, slice by slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import Space
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.reader import Changed, logical_of, suffix_from
from cortado.store.mvcc.seen import Seen
from cortado.store.mvcc.stored import StoredVersions
from cortado.store.mvcc.versions import Item, suffix_of, timestamp_of

# Keys that are checked at once.
_CHECKED_KEYS: Final = 1_000
_SLICE_ITEMS: Final = 2_000
_SLICE_BYTES: Final = 1 << 20


def changed_since(
    store: StoredVersions,
    keys: Sequence[LogicalKey],
    ranges: Sequence[tuple[LogicalKey, LogicalKey]],
    ts: Timestamp,
    read_ts: Timestamp,
    seen: Seen | None = None,
) -> Changed | None:
    """See :meth:`Reader.changed_since`. A range takes as long as its versions."""
    place = 0
    while place < len(keys):
        # Values are read for their checksums alone: all of them at once may be gigabytes.
        items = store.newest_items(keys[place : place + _CHECKED_KEYS], read_ts, _SLICE_BYTES, seen)
        store.check_all_readable(keys[place : place + len(items)], ts)
        changed = first_above(items, ts)
        if changed is not None:
            return changed
        place += len(items)
    for start, end in ranges:
        resume: LogicalKey | None = start
        while resume is not None:
            changed, resume = changed_within(store, resume, end, ts, read_ts)
            if changed is not None:
                return changed
    return None


def changed_within(
    store: StoredVersions, start: LogicalKey, end: LogicalKey, ts: Timestamp, read_ts: Timestamp
) -> tuple[Changed | None, LogicalKey | None]:
    """Read one slice of a range's versions. Returns a key that changed above ``ts``, and at or below ``read_ts``, and
    the start of the next slice, None at the end. Raises SnapshotTooOld, DataLoss."""
    is_last = True
    if store.unresolved.seen_at(read_ts, start, end):
        staged = store.staged_slice(start, end, read_ts, max_rows=_SLICE_ITEMS, max_bytes=_SLICE_BYTES)
        for logical, seen in staged.seen.items():
            if seen.suffix < suffix_of(ts):
                return Changed(logical, timestamp_of(seen.suffix)), None
        end, is_last = staged.high, staged.high == end
    since, read_suffix, doubted = suffix_of(ts), suffix_of(read_ts), store.suspect
    with store.tree_reported(), store.engine.read() as txn:
        page = txn.page(Space.DATA, start, end, max_items=_SLICE_ITEMS, max_bytes=_SLICE_BYTES)
    store.check_readable(ts, start, end)
    # The next slice begins within the last key's versions, if these did not all fit.
    resume = None if page.exhausted else LogicalKey(page.keys[-1] + b"\0")
    if doubted or store.suspect:
        store.check_trusted(start, end if resume is None else resume, doubted)
    store.check_intact(page.keys, page.values)
    for key in page.keys:
        if read_suffix <= suffix_from(key) < since:
            return Changed(logical_of(key), timestamp_of(suffix_from(key))), None
    return None, end if resume is None and not is_last else resume


def first_above(stored: Sequence[Item | None], ts: Timestamp) -> Changed | None:
    """Return the first of some versions that is above ``ts``."""
    since = suffix_of(ts)
    found = (item[0] for item in stored if item is not None and suffix_from(item[0]) < since)
    return next((Changed(logical_of(each), timestamp_of(suffix_from(each))) for each in found), None)
