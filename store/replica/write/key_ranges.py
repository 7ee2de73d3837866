"""Many ranges of keys at once: find the keys that lie in any of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

Range = tuple[bytes, bytes]


class KeyRanges:
    """Half-open ranges, in order. Ranges that overlap or touch become one; empty ones are dropped."""

    def __init__(self, ranges: Iterable[Range]) -> None:
        self._starts: list[bytes] = []
        self._ends: list[bytes] = []
        for start, end in sorted(ranges):
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            elif start < end:
                self._starts.append(start)
                self._ends.append(end)

    def __len__(self) -> int:
        return len(self._starts)

    def __iter__(self) -> Iterator[Range]:
        return zip(self._starts, self._ends, strict=True)

    def cover(self, key: bytes) -> bool:
        """Return whether ``key`` lies in one of them."""
        place = bisect_right(self._starts, key)
        return place > 0 and key < self._ends[place - 1]
