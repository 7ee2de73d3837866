"""How a slice is asked of the scan kernel, where there is one (:mod:`cortado.store.mvcc.kernel`).

These types are not in the kernel's package, since the store needs them also where no compiler is installed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from cortado.store.engine.mapped import MappedFile
from cortado.store.mvcc.reader import ScanChunk


@dataclass(frozen=True, slots=True)
class Slice:
    """A slice: the live rows of ``[start, end)`` at the time whose suffix is ``read_suffix``, without what has expired
    by the time of ``as_of``.

    With ``keys_only`` values are neither looked at nor packed, so keys that are deleted by then count, too.
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
    def read(self, mapped: MappedFile, wanted: Slice) -> ScanChunk | None:
        """The slice, in a transaction of its own; None where the Python path must read it, since something there is not
        as it should be, or not known. Raises Unavailable where the engine is closed."""
