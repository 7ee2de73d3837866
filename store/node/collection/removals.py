"""Which stored items were removed of late, so that a repair does not put them back.

A member's copy of a range is as of what that member has applied. Where that is less than what is applied here, it may
still have versions that were removed here since; putting an old version back without the delete that hid it would
bring a row back to life.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from cortado.store.mvcc.evaluation import Removal

_KEPT_MAX: Final = 1_000


class Removals:
    """One replica's, on the storage thread."""

    def __init__(self, applied_index: int) -> None:
        self._spans: deque[tuple[int, bytes, bytes]] = deque()
        self._known_from = applied_index
        self.removed = 0
        """How many keys were named to be removed since the start."""

    def add(self, index: int, removal: Removal) -> None:
        """What the entry at ``index`` removes."""
        if removal.keys:
            self._spans.append((index, removal.keys[0], removal.keys[-1] + b"\0"))
            self.removed += len(removal.keys)
        self._spans.extend((index, each.start, each.end) for each in removal.cleared)
        while len(self._spans) > _KEPT_MAX:
            self._known_from = self._spans.popleft()[0]

    def may_touch(self, after_index: int, start: bytes, end: bytes) -> bool:
        """Whether something in ``[start, end)`` may have been removed by an entry behind ``after_index``."""
        if after_index < self._known_from:
            return True
        return any(index > after_index and first < end and start < last for index, first, last in self._spans)
