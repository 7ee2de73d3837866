"""Bounds of the branch pages of a tree, from the pages above them: they cut a large range without reading its items.

::

    root            | -     m |                             two pages below, which begin with no bound and m
    branch pages    | - d h | | - q |                       if that is too few: these five, with d, h, m and q
    branch pages    | - b c | | - e f | | - ...             not read, nor are the leaf pages below them

A bound was a key of the tree when its page was split, and need not be there any more. The amount below a page varies as
far as LMDB fills its pages, so a caller that wants parts of equal size weighs some of them.
"""

from __future__ import annotations

from ctypes import string_at
from typing import Final

import numpy as np

from cortado.store.engine.data_file import DamagedDataFile
from cortado.store.engine.interface import LentMap, Space
from cortado.store.engine.page_check import META_PAGES
from cortado.store.engine.page_nodes import KeyOrder, PageKind, Pages, TreePages

_PAGES_MAX: Final = 64
"""Pages that are read at once, in some milliseconds."""


def page_bounds(mapped: LentMap, space: Space, start: bytes, end: bytes, enough: int) -> list[bytes]:
    """Return keys in ``(start, end)``, ascending, each the lower bound of a branch page. All are of one level: the
    highest one that has ``enough`` of them, or the lowest one that can be reached.

    Empty if there are no such pages, or if one does not fit its place in the tree. Raises Unavailable once the engine
    is closed.
    """
    bounds: list[bytes] = []
    with mapped.tree(space) as tree:
        if tree is None:
            return bounds
        base, page_size, last_page, root, depth = tree
        pages = Pages(np.array([root]), [b""], [b""])
        for _ in range(depth - 2):
            if len(bounds) >= enough or len(pages) > _PAGES_MAX:
                break
            raw = b"".join(string_at(base + number * page_size, page_size) for number in pages.numbers.tolist())
            try:
                below = TreePages(raw, pages, page_size, PageKind.BRANCH, space, order=KeyOrder.BYTES).child_pages()
            except DamagedDataFile:
                return []
            pages = overlapping(below, start, end)
            if ((pages.numbers < META_PAGES) | (pages.numbers > last_page)).any():
                return []
            bounds = [low for low in pages.lows if start < low]
    return bounds


def overlapping(pages: Pages, start: bytes, end: bytes) -> Pages:
    """Return the pages that may hold keys of ``[start, end)``."""
    lows, highs = pages.lows, pages.highs
    places = [place for place, low in enumerate(lows) if low < end and (not highs[place] or start < highs[place])]
    return Pages(pages.numbers[places], [lows[place] for place in places], [highs[place] for place in places])
