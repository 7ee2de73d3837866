"""The garbage that a pass has found in one piece, and how it is removed: run by run, and packed where that pays.

::

    removed    ▒ one of sixteen, or more  ──► what is between is packed: about every page is written anew in any case
               ░ less, and more to come   ──► one by one; the piece is a little looser now
               ░ less, but the last of it ──► packed, where one of sixteen went since it was: it stays as it is then

Under constant writes nothing stays packed for long: the next version that comes into a full page divides it. But
versions that are left once writing ends are read for years.
"""

from __future__ import annotations

from typing import Final

from cortado.store.mvcc.evaluation import Cleared, Removal
from cortado.store.replica.collection.slices import Slice

DENSE: Final = 16
"""Packing pays once one of this many items goes."""
PACKED_VERSIONS: Final = 16_000
"""An entry packs this many, and those of a slice."""


class Findings:
    """The findings of one pass in one piece. ``loose`` is which part of its versions went since the rest was packed."""

    def __init__(self, loose: float) -> None:
        self._before = loose
        self._looked = self._removed = 0
        self._is_packed = True
        self._begin()

    def _begin(self) -> None:
        self._keys: list[bytes] = []
        self._deleted: list[Cleared] = []
        self._versions = 0
        self._is_settled = True

    def add(self, found: Slice) -> None:
        """Add the garbage of the run's next slice."""
        self._keys += found.garbage.keys
        self._deleted += found.garbage.deleted
        self._versions += found.versions
        self._is_settled &= found.garbage.next_ts is None and not found.was_left

    def is_enough(self, items_max: int) -> bool:
        """Return whether an entry is to remove the garbage that the run has so far."""
        count = len(self._keys) + len(self._deleted)
        return count >= items_max or (self._versions >= PACKED_VERSIONS and self._is_dense)

    def take(self) -> Removal | None:
        """Return the removal of that, or None if there is nothing; another run begins behind it."""
        keys, deleted, is_dense = self._keys, self._deleted, self._is_dense
        self._looked += self._versions
        self._removed += len(keys)
        self._is_packed &= is_dense or not keys
        self._begin()
        return Removal(keys, deleted, is_dense=is_dense) if keys or deleted else None

    @property
    def loose(self) -> float:
        """As of now, once all is taken."""
        if self._removed and self._is_packed:
            return 0.0
        return self._before + self._removed / max(self._looked, 1)

    @property
    def _is_dense(self) -> bool:
        if not self._keys:
            return False
        part = len(self._keys) / self._versions
        return DENSE * (part + self._before if self._is_settled else part) > 1
