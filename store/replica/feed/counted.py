"""The end of a window of a bounded number of changes, and the bounds that divide its range into parts with about
equally many of them.

A reader of a range's history in batches asks for its next window before it reads any of it: a Spark stream plans a
batch in one process, and reads it in others. The answer depends on the committed changes alone, so a reader that asks
again, at any replica, gets the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from cortado.store.clock.timestamp import TIMESTAMP_BYTES, Timestamp
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.reader import logical_of
from cortado.store.mvcc.store import VersionStore
from cortado.store.mvcc.versions import timestamp_of
from cortado.store.replica.feed.history import ITEMS_PER_READ, HistoryPass, read_changes
from cortado.store.replica.feed.oldest import Window

_READ_BYTES: Final = 1 << 20
_SORTED_MAX: Final = 10_000
"""Keys that are put in order to find bounds: if there are more, every second, or third, and so on."""


@dataclass(frozen=True, slots=True)
class CountedWindow:
    """``changes`` of a range are above where it began and at or below ``until``. ``bounds`` divide the range into one
    part more than there are of them; ``counts`` are about how many of the changes each part has."""

    until: Timestamp
    changes: int
    bounds: Sequence[LogicalKey]
    counts: Sequence[int]


class CountingPass:
    """Call :meth:`step` until it returns True, then :meth:`counted`. A step takes a few milliseconds."""

    def __init__(self, search: HistoryPass, store: VersionStore, *, bytes_max: int, parts: int) -> None:
        """``search`` has not begun. ``bytes_max``: the bound on keys and values; the window ends before the first
        commit that does not fit, but has one at least. 0: any number. ``parts``: the most parts."""
        self._search = search
        self._store = store
        self._bytes_left = bytes_max
        self._is_bounded = bytes_max > 0
        self._parts = parts
        self._window: Window | None = None
        self._sized = 0
        self._commit_begins = 0

    def step(self) -> bool:
        """Look at the next versions or changes. True once all of it is done. Raises as :meth:`.HistoryPass.step`."""
        if self._window is None:
            if not self._search.step():
                return False
            self._window = self._search.window()
            return not self._is_bounded or not self._window.keys
        keys = self._window.keys
        engine = self._store.engine
        following = keys[self._sized : self._sized + ITEMS_PER_READ]
        for key, value in read_changes(engine, self._store, following, bytes_max=_READ_BYTES):
            if key[-TIMESTAMP_BYTES:] != keys[self._commit_begins][-TIMESTAMP_BYTES:]:
                self._commit_begins = self._sized
            self._bytes_left -= len(key) + len(value)
            if self._bytes_left < 0 and self._commit_begins > 0:
                until = timestamp_of(key[-TIMESTAMP_BYTES:]).previous()
                self._window = Window(keys[: self._commit_begins], until)
                return True
            self._sized += 1
        return self._sized == len(keys)

    def counted(self) -> CountedWindow:
        """Return the window, once all is done."""
        assert self._window is not None
        keys = self._window.keys
        every = -(-len(keys) // _SORTED_MAX) or 1
        in_order = sorted(map(logical_of, keys[::every]))
        count = len(in_order)
        cuts = {in_order[part * count // self._parts] for part in range(1, self._parts)} if in_order else set()
        # The first key bounds nothing.
        bounds = sorted(cuts - set(in_order[:1]))
        places = [0, *(bisect_left(in_order, bound) for bound in bounds), count]
        counts = [min(every * end, len(keys)) - min(every * begin, len(keys)) for begin, end in pairwise(places)]
        return CountedWindow(self._window.until, len(keys), bounds, counts)
