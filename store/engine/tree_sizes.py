"""How many bytes the items of a range have, told from the pages of LMDB's tree: of all, or where they are many of some.

::

    branch pages    | ■  -  ■  -  ■  -  ■ |          of each level at most so many are read, at equal distances,
    branch pages    | ■ ■ ■ | ■ ■ ■ | ...            and each stands for those beside it
    leaf pages      | ■ - - - ■ - - - ■ - - - ...    a leaf says how long its keys and values are, large values too

So it takes some twenty milliseconds, whatever the range holds, and no value is read. Of a range of a few MiB it is
exact; of a larger one it is as right as the pages that are read are like their neighbours: a few percent.
"""

from __future__ import annotations

from ctypes import string_at
from typing import Final

import numpy as np

from cortado.store.engine.data_file import DamagedDataFile
from cortado.store.engine.interface import Space
from cortado.store.engine.mapped import MappedFile
from cortado.store.engine.page_check import META_PAGES
from cortado.store.engine.page_nodes import KeyOrder, PageKind, Pages, TreePages
from cortado.store.engine.tree_bounds import overlapping

BRANCHES_MAX: Final = 128
"""Read of each level."""
LEAVES_MAX: Final = 1_024
"""Of 4 KiB each, so that some 4 MiB are measured exactly."""


def range_bytes(
    mapped: MappedFile, start: bytes, end: bytes, *, branches_max: int = BRANCHES_MAX, leaves_max: int = LEAVES_MAX
) -> int | None:
    """About the bytes of keys and values in ``[start, end)`` of the data space, without what LMDB adds to them.

    None where a page is not what its place in the tree says. Raises Unavailable where the engine is closed.
    """
    with mapped.tree(Space.DATA) as tree:
        if tree is None:
            return None
        base, page_size, last_page, root, depth = tree
        if not depth:
            return 0
        pages, weight = Pages(np.array([root]), [b""], [b""]), 1.0
        for level in range(depth):
            is_leaf = level == depth - 1
            pages, share = _some(pages, leaves_max if is_leaf else branches_max)
            weight *= share
            if not len(pages):
                return 0
            if ((pages.numbers < META_PAGES) | (pages.numbers > last_page)).any():
                return None
            raw = b"".join(string_at(base + number * page_size, page_size) for number in pages.numbers.tolist())
            kind, order = (PageKind.LEAF, KeyOrder.FEW_STRAY) if is_leaf else (PageKind.BRANCH, KeyOrder.BYTES)
            try:
                found = TreePages(raw, pages, page_size, kind, Space.DATA, order=order)
            except DamagedDataFile:
                return None
            if is_leaf:
                return round(_bytes_within(found, start, end) * weight)
            pages = overlapping(found.child_pages(), start, end)
    return None


def _some(pages: Pages, most: int) -> tuple[Pages, float]:
    """At most so many of them, at equal distances, and how many each stands for."""
    count = len(pages)
    if count <= most:
        return pages, 1.0
    places = [place * count // most for place in range(most)]
    lows, highs = [pages.lows[each] for each in places], [pages.highs[each] for each in places]
    return Pages(pages.numbers[places], lows, highs), count / most


def _bytes_within(leaves: TreePages, start: bytes, end: bytes) -> int:
    """Those at the ends of the range may hold items of others."""
    size = leaves.key_bytes + leaves.data_bytes
    bounds = zip(leaves.pages.lows, leaves.pages.highs, strict=True)
    partly = [place for place, (low, high) in enumerate(bounds) if low < start or not high or high > end]
    total = int(size.sum())
    begins = leaves.data_starts() - leaves.key_bytes
    for page in partly:
        first, count = int(leaves.firsts[page]), int(leaves.counts[page])
        for node in range(first, first + count):
            begin = int(begins[node])
            key = leaves.raw[begin : begin + int(leaves.key_bytes[node])]
            if not start <= key < end:
                total -= int(size[node])
    return total
