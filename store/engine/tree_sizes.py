"""Estimates a range's items and bytes from the pages of LMDB's tree: from all pages, or from some of many.

::

    branch pages    | ■  -  ■  -  ■  -  ■ |          of each level a bounded number is read, at equal distances,
    branch pages    | ■ ■ ■ | ■ ■ ■ | ...            and each stands for those beside it
    leaf pages      | ■ - - - ■ - - - ■ - - - ...    a leaf says how long its keys and values are, large values too

So it takes some twenty milliseconds, however large the range, and no value is read but for its first byte, if items are
counted by that. For a range of a few MiB it is exact; for a larger one it is off by a few percent, as the read pages
differ from their neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import string_at
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from cortado.store.engine.data_file import DamagedDataFile
from cortado.store.engine.interface import LentMap, Space, Tree
from cortado.store.engine.page_check import META_PAGES
from cortado.store.engine.page_nodes import (
    HEADER_BYTES,
    NODE_BIG_DATA,
    Integers,
    KeyOrder,
    PageKind,
    Pages,
    TreePages,
)
from cortado.store.engine.tree_bounds import overlapping

BRANCHES_MAX: Final = 128
"""Read of each level."""
LEAVES_MAX: Final = 1_024
"""Leaves of 4 KiB each, so that some 4 MiB are measured exactly."""

Counts: TypeAlias = Callable[[bytes, int], bool]
"""Whether an item counts, by its key and the first byte of its value (-1: it has none). Called for each item, in
order."""


@dataclass(frozen=True, slots=True)
class RangeUse:
    """The estimate of a range: its items, those that count, and the bytes of keys and values, without LMDB's overhead.
    ``is_exact`` if all of it was read."""

    items: int = 0
    counted: int = 0
    bytes: int = 0
    is_exact: bool = True


@dataclass(frozen=True, slots=True)
class Sample:
    """Items of a range, some or all of them: their ``keys``, ascending, the ``bytes`` of each with its value, and how
    many items each stands for."""

    keys: list[bytes]
    bytes: Integers
    weight: float


def range_bytes(
    mapped: LentMap, start: bytes, end: bytes, *, branches_max: int = BRANCHES_MAX, leaves_max: int = LEAVES_MAX
) -> int | None:
    """Return the bytes of :func:`range_use`. Raises Unavailable."""
    found = range_use(mapped, start, end, branches_max=branches_max, leaves_max=leaves_max)
    return None if found is None else found.bytes


def range_use(
    mapped: LentMap,
    start: bytes,
    end: bytes,
    *,
    branches_max: int = BRANCHES_MAX,
    leaves_max: int = LEAVES_MAX,
    counts: Counts | None = None,
) -> RangeUse | None:
    """Return the use of ``[start, end)`` of the data space. None if a page does not fit its place in the tree. Raises
    Unavailable once the engine is closed.
    """
    with mapped.tree(Space.DATA) as tree:
        if tree is None:
            return None
        try:
            leaves, weight = _leaves(tree, start, end, branches_max, leaves_max)
        except DamagedDataFile:
            return None
        if leaves is None:
            return RangeUse()
        use = _within(leaves, start, end)
        counted = 0 if counts is None else _counted(leaves, start, end, counts, tree)
        if counted is None:
            return None
        return RangeUse(round(use.items * weight), round(counted * weight), round(use.bytes * weight), weight == 1.0)


def range_sample(mapped: LentMap, start: bytes, end: bytes, *, branches_max: int, leaves_max: int) -> Sample | None:
    """Return items of ``[start, end)`` of the data space, at about equal distances. None if a page does not fit its
    place in the tree, or a key its place. Raises Unavailable once the engine is closed."""
    with mapped.tree(Space.DATA) as tree:
        if tree is None:
            return None
        try:
            leaves, weight = _leaves(tree, start, end, branches_max, leaves_max)
        except DamagedDataFile:
            return None
        if leaves is None:
            return Sample([], np.zeros(0, np.int64), 1.0)
        keys = leaves.keys()
        places = [place for place, key in enumerate(keys) if start <= key < end]
        if leaves.disordered:
            return None
        return Sample([keys[place] for place in places], (leaves.key_bytes + leaves.data_bytes)[places], weight)


def _leaves(tree: Tree, start: bytes, end: bytes, branches_max: int, leaves_max: int) -> tuple[TreePages | None, float]:
    """Return leaves of a range, None if it has none, and how many each stands for. Raises DamagedDataFile if a page
    does not fit its place."""
    base, page_size, last_page, root, depth = tree
    pages, weight = Pages(np.array([root]), [b""], [b""]), 1.0
    for level in range(depth):
        is_leaf = level == depth - 1
        pages, share = _some(pages, leaves_max if is_leaf else branches_max)
        weight *= share
        if not len(pages):
            break
        if ((pages.numbers < META_PAGES) | (pages.numbers > last_page)).any():
            raise DamagedDataFile("a page of the data space has a child that is no page of the file")
        raw = b"".join(string_at(base + number * page_size, page_size) for number in pages.numbers.tolist())
        kind, order = (PageKind.LEAF, KeyOrder.FEW_STRAY) if is_leaf else (PageKind.BRANCH, KeyOrder.BYTES)
        found = TreePages(raw, pages, page_size, kind, Space.DATA, order=order)
        if is_leaf:
            return found, weight
        pages = overlapping(found.child_pages(), start, end)
    return None, weight


def _some(pages: Pages, most: int) -> tuple[Pages, float]:
    """Return at most ``most`` of the pages, at equal distances, and how many pages each stands for."""
    count = len(pages)
    if count <= most:
        return pages, 1.0
    places = [place * count // most for place in range(most)]
    lows, highs = [pages.lows[each] for each in places], [pages.highs[each] for each in places]
    return Pages(pages.numbers[places], lows, highs), count / most


def _within(leaves: TreePages, start: bytes, end: bytes) -> RangeUse:
    """Those at the ends of the range may hold items of others."""
    size = leaves.key_bytes + leaves.data_bytes
    bounds = zip(leaves.pages.lows, leaves.pages.highs, strict=True)
    partly = [place for place, (low, high) in enumerate(bounds) if low < start or not high or high > end]
    items, total = len(size), int(size.sum())
    begins = leaves.data_starts() - leaves.key_bytes
    for page in partly:
        first, count = int(leaves.firsts[page]), int(leaves.counts[page])
        for node in range(first, first + count):
            begin = int(begins[node])
            key = leaves.raw[begin : begin + int(leaves.key_bytes[node])]
            if not start <= key < end:
                items -= 1
                total -= int(size[node])
    return RangeUse(items, 0, total)


def _counted(leaves: TreePages, start: bytes, end: bytes, counts: Counts, tree: Tree) -> int | None:
    """Return how many items of the range count; None if a large value is not at its leaf's pointer."""
    base, page_size, last_page, *_ = tree
    raw, firsts = leaves.raw, leaves.data_starts()
    begins = (firsts - leaves.key_bytes).tolist()
    is_large = (leaves.flags & NODE_BIG_DATA) != 0
    numbers = leaves.numbers_at(np.where(is_large, firsts, 0)).tolist()
    found = 0
    for begin, place, large, number, size in zip(
        begins, firsts.tolist(), is_large.tolist(), numbers, leaves.data_bytes.tolist(), strict=True
    ):
        key = raw[begin:place]
        if not start <= key < end:
            continue
        if not large:
            first = raw[place] if size else -1
        elif META_PAGES <= number <= last_page:
            first = string_at(base + number * page_size + HEADER_BYTES, 1)[0]
        else:
            return None
        found += counts(key, first)
    return found
