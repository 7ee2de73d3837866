"""Dividing a large range into parts of about equal numbers of rows, by the pages of LMDB's tree.

::

    pages     | 60 | ? | ? | ? | 58 | ? | ? | ? | 21 | ? | ? | ? |     some are counted, others assumed to be alike
    parts     |                      |                             |     cut at begins of pages

These are branch pages, each with some thousand rows below it. Only some of hundreds or thousands of pages are counted,
so it costs a small part of a pass over all keys. The parts are as equal as those pages are like their neighbours. Parts
are adjacent whatever their content, so nothing else depends on it. A range with few pages is counted as a whole
(:class:`~cortado.store.mvcc.split.SplitPass`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np

from cortado.store.clock.timestamp import TIMESTAMP_BYTES
from cortado.store.engine.interface import Engine, LentMap, Space
from cortado.store.engine.tree_bounds import page_bounds
from cortado.store.keys.keyspace import KeyRange
from cortado.store.keys.types import LogicalKey
from cortado.store.mvcc.reader import logical_of
from cortado.store.mvcc.sized_split import SizedSplit
from cortado.store.mvcc.slices import SliceReader
from cortado.store.mvcc.split import KEYS_PER_STEP, Counting, Part, SplitPass

PAGES_MIN: Final = 256
"""A range of fewer is counted: it takes less than a tenth of a second."""
_PAGES_PER_PART: Final = 16
WEIGHED: Final = 64
"""Pages that are counted, at equal distances."""
_PAGE_COST: Final = 100
"""The cost of beginning with another page, in keys that are counted meanwhile."""


def begin_split(
    engine: Engine,
    kernel: SliceReader | None,
    within: KeyRange,
    parts: int,
    read_suffix: bytes,
    part_bytes: int | None = None,
) -> Split:
    """Begin a split: by stored bytes with ``part_bytes``, or else by rows. By rows, if the kernel reads, many parts are
    cut by pages; one part is counted, and so are all if Python reads."""

    def count(start: LogicalKey, end: LogicalKey, wanted: int) -> SplitPass:
        return SplitPass(engine, start, end, wanted, read_suffix, kernel)

    if part_bytes is not None:
        return SizedSplit(count, engine, within, parts, part_bytes)
    if parts == 1 or kernel is None or isinstance(engine.mapped, str):
        return count(*within, parts)
    return WeighedSplit(count, engine.mapped, within, parts, (max(PAGES_MIN, _PAGES_PER_PART * parts), WEIGHED))


class WeighedSplit:
    """Call :meth:`step` until it returns True, then ask for :meth:`parts`. A step takes some milliseconds."""

    def __init__(self, count: Counting, mapped: LentMap, within: KeyRange, parts: int, pages: tuple[int, int]) -> None:
        """``pages``: how many there are at least, or else all is counted; and how many are."""
        self._count = count
        self._mapped = mapped
        self._start, self._end = within
        self._parts = parts
        self._pages_min, self._weighed = pages
        self._starts: list[LogicalKey] | None = None
        """The starts of pages, the first one the range's; of many versions of one key the first page alone."""
        self._places: Sequence[int] = ()
        """The numbers of the counted pages."""
        self._rows: list[int] = []
        self._counting: SplitPass | None = None
        """The count of the current page; of the whole range, if that has few pages."""

    def step(self, max_keys: int = KEYS_PER_STEP) -> bool:
        """Look at the tree's pages, at first, and at about ``max_keys`` keys more. True once all is known."""
        if self._starts is None:
            self._begin()
        assert self._starts is not None
        if not self._places:
            assert self._counting is not None
            return self._counting.step(max_keys)
        while max_keys > 0 and len(self._rows) < len(self._places):
            if self._counting is None:
                place = self._places[len(self._rows)]
                ends = self._starts[place + 1 : place + 2] or [self._end]
                self._counting = self._count(self._starts[place], ends[0], 1)
            if not self._counting.step(max_keys):
                return False
            self._rows.append(self._counting.rows)
            max_keys -= _PAGE_COST + self._counting.rows
            self._counting = None
        return len(self._rows) == len(self._places)

    def _begin(self) -> None:
        bounds = page_bounds(self._mapped, Space.DATA, self._start, self._end, self._pages_min)
        found = dict.fromkeys(logical_of(each) for each in bounds if len(each) > TIMESTAMP_BYTES)
        self._starts = [self._start, *(each for each in found if each > self._start)]
        pages = len(self._starts)
        weighed = min(pages, self._weighed)
        if pages < self._pages_min:
            self._counting = self._count(self._start, self._end, self._parts)
        else:
            self._places = [number * pages // weighed for number in range(weighed)]

    def parts(self) -> list[Part]:
        """Return the parts in order, the first from the range's start; one alone if no row was found."""
        if not self._places:
            assert self._counting is not None
            return self._counting.parts()
        assert self._starts is not None
        pages = len(self._starts)
        like_it = np.diff([*self._places, pages])
        before = np.concatenate([[0], np.cumsum(np.repeat(np.array(self._rows, np.int64), like_it))])
        rows = int(before[-1])
        targets = [rows * number // self._parts for number in range(1, self._parts)]
        cuts = sorted({0, *np.searchsorted(before, targets).tolist()} - {pages}) if rows else [0]
        starts = [self._starts[cut] for cut in cuts]
        ends = [int(before[cut]) for cut in (*cuts, pages)]
        return list(map(Part, starts, (after - first for first, after in pairwise(ends))))


Split: TypeAlias = SplitPass | WeighedSplit | SizedSplit
