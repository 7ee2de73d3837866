"""The newest changes of all keys, kept in memory: a watcher that comes back after a moment need not search the engine.

After a leader was killed, all its watchers turn to another node, each at a timestamp of a second or two ago. The
changes that they missed are here; a pass over the versions of each one's range would take far longer, and all of them
at once. Nothing is copied: entries of the log are held a little longer than they would live anyway.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from cortado.store.clock.timestamp import Timestamp
from cortado.store.mvcc.versions import Item
from cortado.store.replica.feed.order import engine_key


@dataclass(frozen=True, slots=True)
class Applied:
    """One applied entry's changes, in key order; ``last_ts`` is its last commit's timestamp, ``size_bytes`` about how
    much memory it takes. ``moved`` was put in place at the timestamp of a large transaction's commit, before."""

    last_ts: Timestamp
    items: Sequence[Item]
    size_bytes: int
    moved: Sequence[Item] = ()


class RecentChanges:
    """Everything that was applied above :attr:`floor`, bounded in entries and bytes."""

    def __init__(self, position: Timestamp, *, entries_max: int, bytes_max: int) -> None:
        self._entries_max = entries_max
        self._bytes_max = bytes_max
        self._entries: deque[Applied] = deque()
        self.size_bytes = 0
        self.floor = position

    def add(self, applied: Applied) -> None:
        """The next entry. Older ones go if there are too many."""
        self._entries.append(applied)
        self.size_bytes += applied.size_bytes
        while len(self._entries) > self._entries_max or self.size_bytes > self._bytes_max:
            oldest = self._entries.popleft()
            self.size_bytes -= oldest.size_bytes
            self.floor = oldest.last_ts

    def clear(self, position: Timestamp) -> None:
        """Nothing is known of how the state at ``position`` came about."""
        self._entries.clear()
        self.size_bytes = 0
        self.floor = position

    def all_since(self, after: Timestamp) -> list[Sequence[Item]] | None:
        """Return the changes of the entries that end above ``after``, each in key order, newest first; the last may
        hold changes at or below ``after``, too. None if ``after`` is below the floor."""
        if after < self.floor:
            return None
        newer = takewhile(lambda applied: applied.last_ts > after, reversed(self._entries))
        return [applied.items for applied in newer]

    def since(self, after: Timestamp, start: bytes, end: bytes) -> list[Sequence[Item]] | None:
        """As :meth:`all_since`, in ``[start, end)`` alone, and oldest first."""
        entries = self.all_since(after)
        if entries is None:
            return None
        found: list[Sequence[Item]] = []
        for items in entries:
            begin = bisect_left(items, start, key=engine_key)
            changed = items[begin : bisect_left(items, end, begin, key=engine_key)]
            if changed:
                found.append(changed)
        found.reverse()
        return found
