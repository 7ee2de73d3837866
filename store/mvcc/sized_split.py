"""Dividing a range into parts of about equal numbers of stored bytes, by a sample of the leaf pages of LMDB's tree.

::

    leaves    | ■ - - - ■ - - - ■ - - - ■ - - - ■ - - - |     some are read; each stands for those beside it
    bytes     | 3 M     | 2 M   | 9 M   | 3 M           |     of keys and values, all versions, as their items say
    parts     |               |       |                 |     cut at sampled keys

No value is read, so it takes some milliseconds, or a tenth of a second for hundreds of parts. A part begins at a row's
key: all versions of a row are in one part. Any sample gives adjacent parts: only their sizes depend on it. If the pages
cannot be read, rows are counted (:class:`~cortado.store.mvcc.split.SplitPass`), as if the range were all of the node's
data.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from cortado.store.engine.interface import Engine
from cortado.store.engine.tree_sizes import BRANCHES_MAX, LEAVES_MAX, Sample, range_sample
from cortado.store.keys.keyspace import KeyRange
from cortado.store.mvcc.reader import logical_of
from cortado.store.mvcc.split import KEYS_PER_STEP, Counting, Part, SplitPass

PARTS_MAX: Final = 1_024
"""A sample for more would take too long."""
_BRANCHES_PER_PART: Final = 2
"""Or else several cuts would be below one page, and parts between them far too small."""
_LEAVES_PER_PART: Final = 4


class SizedSplit:
    """Call :meth:`step` until it returns True, then ask for :meth:`parts`."""

    def __init__(self, count: Counting, engine: Engine, within: KeyRange, parts: int, part_bytes: int) -> None:
        """Up to ``parts`` parts of about ``part_bytes`` each."""
        self._count = count
        self._engine = engine
        self._within = within
        self._parts_max = min(parts, PARTS_MAX)
        self._part_bytes = part_bytes
        self._parts: list[Part] = []
        self._counting: SplitPass | None = None
        """The count of rows, if the tree's pages cannot be read."""

    def step(self, max_keys: int = KEYS_PER_STEP) -> bool:
        """Read the sample; or count up to ``max_keys`` keys more. True once all is known."""
        if self._counting is None:
            sample = self._sample(1)
            if sample is not None:
                parts = self._wanted(int(sample.bytes.sum() * sample.weight))
                finer = self._sample(parts) if parts * _BRANCHES_PER_PART > BRANCHES_MAX else None
                self._parts = _cut(finer or sample, self._within, parts)
                return True
            self._counting = self._count(*self._within, self._wanted(self._engine.use().used_bytes))
        return self._counting.step(max_keys)

    def parts(self) -> list[Part]:
        """Return the parts in order, the first from the range's start; one alone if no row was found."""
        return self._parts if self._counting is None else self._counting.parts()

    def _wanted(self, total_bytes: int) -> int:
        return max(1, min(-(-total_bytes // self._part_bytes), self._parts_max))

    def _sample(self, parts: int) -> Sample | None:
        """Return a sample fine enough for so many parts."""
        mapped = self._engine.mapped
        if isinstance(mapped, str):
            return None
        branches, leaves = max(BRANCHES_MAX, _BRANCHES_PER_PART * parts), max(LEAVES_MAX, _LEAVES_PER_PART * parts)
        return range_sample(mapped, *self._within, branches_max=branches, leaves_max=leaves)


def _cut(sample: Sample, within: KeyRange, parts: int) -> list[Part]:
    """Cut the range at sampled rows into at most ``parts`` parts with equal shares of the sampled bytes."""
    keys = list(map(logical_of, sample.keys))
    firsts = [place for place, key in enumerate(keys) if place == 0 or key != keys[place - 1]]
    if not firsts:
        return [Part(within[0], 0)]
    # The bytes of each row and of all rows before it.
    total = np.cumsum(np.add.reduceat(sample.bytes, firsts))
    targets = total[-1] * np.arange(1, parts) / parts
    cuts = sorted({0, *(np.searchsorted(total, targets) + 1).tolist()} - {len(firsts)})
    starts = [within[0], *(keys[firsts[cut]] for cut in cuts[1:])]
    rows = [round((after - first) * sample.weight) for first, after in pairwise([*cuts, len(firsts)])]
    return list(map(Part, starts, rows))
