"""How stored items are removed; and which were, of late, so that a repair does not put them back.

A member's copy of a range is as of its own applied index. If that is below the applied index here, the copy may still
have versions that were removed here since; putting an old version back without the delete that hid it would bring a row
back to life.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from cortado.store.engine.interface import Page, Space, WriteTransaction
from cortado.store.mvcc.damage import damaged_keys
from cortado.store.mvcc.evaluation import Removal
from cortado.store.mvcc.versions import Item

_KEPT_MAX: Final = 1_000

_RUN_ITEMS: Final = 2_000
_RUN_BYTES: Final = 1 << 20
PACKED_ITEM_BYTES_MAX: Final = 2 << 10
"""The average size of a run's items up to which it is packed: half a page. A larger value stands on pages of its own,
which are full in any case. One transaction's writes are in memory until it ends: 6 GB of 16,000 such items of 400
KB."""


def remove_densely(txn: WriteTransaction, keys: Sequence[bytes]) -> None:
    """Remove stored items, and write those between them anew.

    The next version that comes into a full page of a tree halves it; a page is joined with its neighbour again only
    once a quarter of it is left. So if versions come and go at random, pages are a third full. Items put in their order
    fill them. It costs less than removing one by one, since each page is written anew in any case, and there are far
    fewer then.
    """
    gone, start, end = set(keys), keys[0], keys[-1] + b"\0"
    exhausted = False
    while not exhausted:
        page = txn.page(Space.DATA, start, end, max_items=_RUN_ITEMS, max_bytes=_RUN_BYTES)
        exhausted = page.exhausted or not page.keys
        if page.keys:
            start = page.keys[-1] + b"\0"
        removed = gone.intersection(page.keys)
        if not removed:
            continue
        kept = [item for item in zip(page.keys, page.values, strict=True) if item[0] not in removed]
        if _may_be_packed(page, kept):
            txn.delete_range(Space.DATA, page.keys[0], start)
            txn.put_many(Space.DATA, kept)
        else:
            for key in removed:
                txn.delete(Space.DATA, key)


def _may_be_packed(run: Page, kept: Sequence[Item]) -> bool:
    """Return whether a run may be written anew. Damaged items are left to repairs: beside them, only garbage is
    touched."""
    if sum(len(key) + len(value) for key, value in kept) > PACKED_ITEM_BYTES_MAX * len(kept):
        return False
    is_ordered = all(before < after for before, after in pairwise(run.keys))
    return is_ordered and not damaged_keys(run.keys, run.values)


class Removals:
    """One replica's, on the storage thread."""

    def __init__(self, known_from: int) -> None:
        self._spans: deque[tuple[int, bytes, bytes]] = deque()
        self._known_from = known_from
        self.removed = 0
        """How many keys were named to be removed since the start."""

    def forget(self, known_from: int) -> None:
        """Forget all: the state is another one, and removals up to the entry at ``known_from`` are unknown."""
        self._known_from = known_from
        self._spans.clear()

    def add(self, index: int, removal: Removal) -> None:
        """Note the removal by the entry at ``index``."""
        if removal.keys:
            self._spans.append((index, removal.keys[0], removal.keys[-1] + b"\0"))
            self.removed += len(removal.keys)
        self._spans.extend((index, each.start, each.end) for each in removal.cleared)
        while len(self._spans) > _KEPT_MAX:
            self._known_from = self._spans.popleft()[0]

    def moved(self, index: int, items: Sequence[Item]) -> None:
        """Note the items that the entry at ``index`` puts at timestamps that were over: a member that has not applied
        it lacks them."""
        if items:
            self._spans.append((index, items[0][0], items[-1][0] + b"\0"))

    def may_touch(self, after_index: int, start: bytes, end: bytes) -> bool:
        """Return whether something in ``[start, end)`` may have been removed, or put into the past, by an entry behind
        ``after_index``."""
        if after_index < self._known_from:
            return True
        return any(index > after_index and first < end and start < last for index, first, last in self._spans)
