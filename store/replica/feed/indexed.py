"""The changes of a range between two timestamps, read from the index of changes.

Items come in the order of time, so a pass reads the changes between the two, of all ranges, and ends early if it has
enough. Each step proves that it has missed nothing (see :mod:`cortado.store.replica.feed.index`)::

    after                                     until
      │  [ts 5, previous 2]  [ts 7, previous 5]  │  [ts 9, previous 7]
      ▲                                             ▲
      the first item's previous is not above it     the first item behind it, or what is applied says: 7 was the last

If that does not hold, or a key that it finds is not stored, the pass is *broken*: the versions decide.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from enum import Enum
from typing import Final

from cortado.store.clock.timestamp import Timestamp
from cortado.store.engine.interface import ReadTransaction, Space
from cortado.store.mvcc.store import VersionStore
from cortado.store.replica.apply.applied_state import AppliedState
from cortado.store.replica.feed.index import (
    HEAD,
    MOVED,
    BrokenIndex,
    IndexItem,
    Own,
    decode_item,
    first_above,
    index_range,
)
from cortado.store.replica.feed.oldest import OldestChanges, Window
from cortado.store.replica.snapshots.marker import applied_key

_ITEMS_PER_STEP: Final = 500
_BYTES_PER_STEP: Final = 256 << 10


class Progress(Enum):
    """The state of a pass, after a step."""

    MORE = "more"
    DONE = "done"
    BROKEN = "broken"


class IndexPass:
    """Call :meth:`step` while there is MORE, and ask for the :meth:`window` when it is DONE."""

    def __init__(
        self,
        store: VersionStore,
        group_id: int,
        start: bytes,
        end: bytes,
        found: OldestChanges,
        after: Timestamp,
    ) -> None:
        """``found`` is empty, and bounds the search."""
        self._engine = store.engine
        self._store = store
        self._group_id = group_id
        self._start = start
        self._end = end
        self._found = found
        self._after = after
        self._after_bytes = bytes(after)
        self._position = first_above(group_id, after)
        self._last: Own | None = None
        self._last_ts = self._after_bytes
        self._pieces_left = 0
        self._head_due = False
        self._moved_left = 0
        self._moved = 0
        self._moved_keys: set[bytes] = set()

    def step(self) -> Progress:
        """Read the next items. Raises SnapshotTooOld if history that this needs is gone, Unavailable while a snapshot
        replaces the state."""
        position, is_done = self._position, False
        with self._engine.read() as txn:
            page = txn.page(
                Space.CHANGES,
                position,
                index_range(self._group_id)[1],
                max_items=_ITEMS_PER_STEP,
                max_bytes=_BYTES_PER_STEP,
            )
            try:
                for key, value in zip(page.keys, page.values, strict=True):
                    is_done = self._take(txn, decode_item(key, value))
                    if is_done:
                        break
                if page.exhausted and not is_done:
                    self._check_last(txn)
                    is_done = True
            except BrokenIndex:
                return Progress.BROKEN
        self._store.check_readable(self._after, self._start, self._end)
        if not is_done:
            self._position = page.keys[-1] + b"\0"
        return Progress.DONE if is_done else Progress.MORE

    def window(self) -> Window:
        """Return the changes, once all is done."""
        return self._found.window()

    def _take(self, txn: ReadTransaction, item: IndexItem) -> bool:
        """Take the next item; return True if it, and the items that follow, are not needed. Raises BrokenIndex."""
        content = item.content
        if isinstance(content, Own):
            if item.number == 0:
                self._check_complete()
                if self._is_enough():
                    return True
                self._check_follows(content.previous)
                self._last, self._last_ts = content, item.ts
                self._pieces_left, self._head_due = content.pieces, content.is_head_due
                self._moved_left = self._moved = 0
                self._moved_keys.clear()
            if item.ts != self._last_ts or self._last is None or item.number != self._last.pieces - self._pieces_left:
                raise BrokenIndex("a piece is not here")
            self._pieces_left -= 1
            self._add(txn, self._in_range(content.keys))
        elif item.kind == HEAD and isinstance(content, int):
            if not self._head_due or self._pieces_left or item.ts != self._last_ts:
                raise BrokenIndex("a head of nothing")
            self._head_due, self._moved_left = False, content
        elif item.kind == MOVED and not isinstance(content, int):
            if not self._moved_left or item.ts != self._last_ts or item.number != self._moved:
                raise BrokenIndex("a piece of what was moved is not here")
            self._moved_left -= 1
            self._moved += 1
            # Two writers that moved a row at once have both named it.
            new = [key for key in self._in_range(content) if key not in self._moved_keys]
            self._moved_keys.update(new)
            self._add(txn, new)
        else:
            raise BrokenIndex("an item of no kind")
        return False

    def _in_range(self, keys: Sequence[bytes]) -> Sequence[bytes]:
        begin = bisect_left(keys, self._start)
        return keys[begin : bisect_left(keys, self._end, begin)]

    def _add(self, txn: ReadTransaction, keys: Sequence[bytes]) -> None:
        """Keys of the range; each of this time must be stored."""
        changes = self._found.add(keys)
        for key, stored in zip(changes, txn.seek_many(Space.DATA, changes), strict=True):
            if stored is None or stored[0] != key:
                raise BrokenIndex("what was changed is not stored here any more")

    def _is_enough(self) -> bool:
        """Return whether the entries so far reach to the end, or hold all that is wanted."""
        if self._last_ts >= self._found.until_bytes:
            return True
        if len(self._found.found) > self._found.events_max:
            self._found.complete_to(Timestamp.from_bytes(self._last_ts))
            return True
        return False

    def _check_follows(self, changed_ts: bytes) -> None:
        """Check that the last change before this item was at ``changed_ts``: the one that was read, or none of this
        time (C1). Raises BrokenIndex."""
        if changed_ts > self._after_bytes if self._last is None else changed_ts != self._last_ts:
            raise BrokenIndex("an entry's changes are not here")

    def _check_complete(self) -> None:
        """Check that all pieces of the last entry were read, and the rows that were moved to its time (C2). Raises
        BrokenIndex."""
        if self._pieces_left or self._head_due or self._moved_left:
            raise BrokenIndex("an entry's changes end within")

    def _check_last(self, txn: ReadTransaction) -> None:
        """No item follows: none was written since. Raises BrokenIndex."""
        self._check_complete()
        stored = txn.get(Space.META, applied_key(self._group_id))
        if stored is None:
            raise BrokenIndex("nothing says where it ends")
        self._check_follows(bytes(AppliedState.decode(stored).changed_ts))
