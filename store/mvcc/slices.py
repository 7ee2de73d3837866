"""The request of a slice to the scan kernel, if there is one (:mod:`cortado.store.mvcc.kernel`).

These types are not in the kernel's package, since the store needs them also without a compiler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from cortado.store.engine.interface import LentMap
from cortado.store.mvcc.reader import ScanChunk
from cortado.store.mvcc.row_maker import RowMaker


@dataclass(frozen=True, slots=True)
class Slice:
    """A slice: the live rows of ``[start, end)`` at the time of the suffix ``read_suffix``, without rows that have
    expired by the time of ``as_of``.

    With ``keys_only`` values are neither read nor packed, so keys that are deleted by then count, too.
    """

    start: bytes
    end: bytes
    read_suffix: bytes
    as_of: bytes
    reverse: bool
    rows_max: int
    bytes_max: int
    keys_only: bool = False


class SliceReader(Protocol):
    @property
    def row_maker(self) -> RowMaker:
        """Return the maker of new rows that was compiled with it."""

    def read(self, mapped: LentMap, wanted: Slice) -> ScanChunk | None:
        """Read the slice in a transaction of its own. Returns None if the Python path must read it, since an item there
        is not sound, or of an unknown form. Raises Unavailable once the engine is closed."""
