"""Which of many ranges hold a key, told by one bisect, however many there are.

The bounds of all ranges cut the keyspace into segments, and each segment knows the ranges that cover it::

    ranges      a [----------)        b [--------------)
                        c [-------)
    segments  (  )( a )( a c )( c )( b c? ...

Adding and removing a range touches the segments between its bounds. Watches of the same range share one member, so that
thousands of them cost no more than one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from cortado.store.mvcc.versions import Item
from cortado.store.replica.feed.order import engine_key

T = TypeVar("T")


class RangeIndex(Generic[T]):
    """Half-open ranges of keys, each with its member. A member has one range."""

    def __init__(self) -> None:
        # Segment i reaches from bound i up to the next one; the last has no end.
        self._bounds: list[bytes] = [b""]
        self._members: list[tuple[T, ...]] = [()]

    @property
    def is_empty(self) -> bool:
        return len(self._bounds) == 1

    def add(self, start: bytes, end: bytes, member: T) -> None:
        """Let ``member`` have the keys in ``[start, end)``."""
        if start < end:
            first, last = self._cut(start), self._cut(end)
            for segment in range(first, last):
                self._members[segment] += (member,)

    def remove(self, start: bytes, end: bytes, member: T) -> None:
        """The inverse of :meth:`add`."""
        if start >= end:
            return
        first, last = self._cut(start), self._cut(end)
        for segment in range(first, last):
            self._members[segment] = tuple(each for each in self._members[segment] if each != member)
        for segment in (last, first):
            if segment and self._members[segment] == self._members[segment - 1]:
                del self._bounds[segment], self._members[segment]

    def runs(self, items: Sequence[Item]) -> Iterator[tuple[int, int, tuple[T, ...]]]:
        """For items in key order: which neighbouring ones (from, to) have which members. Items without members are
        passed over by a bisect for each of their segments, in any number."""
        bounds = self._bounds
        place, count = 0, len(items)
        while place < count:
            segment = bisect_right(bounds, items[place][0]) - 1
            is_last = segment + 1 == len(bounds)
            run_end = count if is_last else bisect_left(items, bounds[segment + 1], place + 1, key=engine_key)
            if self._members[segment]:
                yield place, run_end, self._members[segment]
            place = run_end

    def _cut(self, bound: bytes) -> int:
        """Return the segment that begins at ``bound``, made if there is none."""
        segment = bisect_left(self._bounds, bound)
        if segment == len(self._bounds) or self._bounds[segment] != bound:
            self._bounds.insert(segment, bound)
            self._members.insert(segment, self._members[segment - 1])
        return segment
